//! A stored head as it lies on disk: a version, then the parts in postcard's form. Disks outlive releases and clocks, so nothing
//! that is read is believed: what is not whole is no head, and what claims an impossible time is stale.

use std::ops::Range;

use bytes::Bytes;
use http::StatusCode;
use larder_semantics::{Freshness, LifetimeSource};
use serde::{Deserialize, Serialize};

use super::StoredHead;
use crate::clock::Moment;

#[cfg(test)]
mod tests;

/// Of the form. Another version is a miss: the answer is fetched anew.
const VERSION: u8 = 1;

/// Received longer ago than this, it was stored while the clock stood at its epoch: ten years, more than any cache keeps.
const LONGEST_AGO_SECS: u64 = 10 * 365 * 24 * 60 * 60;

/// Room for all but the text: 15 numbers of some bytes each.
const NUMBERS_BYTES: usize = 128;

#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    status: u16,
    #[serde(borrow)]
    shared: &'a [u8],
    lifetime_secs: u64,
    source: u8,
    initial_age_secs: u64,
    must_revalidate: bool,
    strip_set_cookie: bool,
    stale_while_revalidate_secs: Option<u64>,
    stale_if_error_secs: Option<u64>,
    received_us: u64,
    answers_authorized: bool,
    etag: Option<(u32, u32)>,
    last_modified: Option<(u32, u32)>,
    content_encoding: Option<(u32, u32)>,
}

/// Sources by their numbers on disk; a number is never used for another one.
const SOURCES: [LifetimeSource; 6] = [
    LifetimeSource::Targeted,
    LifetimeSource::SMaxage,
    LifetimeSource::MaxAge,
    LifetimeSource::Expires,
    LifetimeSource::Rule,
    LifetimeSource::Heuristic,
];

/// Appends it.
pub(super) fn encode(head: &StoredHead, out: &mut Vec<u8>) {
    let freshness = &head.freshness;
    let source = SOURCES.iter().position(|source| *source == freshness.source);
    let wire = Wire {
        status: head.status.as_u16(),
        shared: &head.shared,
        lifetime_secs: freshness.lifetime_secs,
        source: source.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX),
        initial_age_secs: freshness.initial_age_secs,
        must_revalidate: freshness.must_revalidate,
        strip_set_cookie: freshness.strip_set_cookie,
        stale_while_revalidate_secs: freshness.stale_while_revalidate_secs,
        stale_if_error_secs: freshness.stale_if_error_secs,
        received_us: head.received.as_micros(),
        answers_authorized: head.answers_authorized,
        etag: place(head.etag.as_ref()),
        last_modified: place(head.last_modified.as_ref()),
        content_encoding: place(head.content_encoding.as_ref()),
    };
    // A vector takes everything; were it otherwise, nothing at all would be a form that is no head.
    if let Ok(form) = postcard::to_extend(&wire, Vec::with_capacity(head.shared.len() + NUMBERS_BYTES)) {
        out.push(VERSION);
        out.extend_from_slice(&form);
    }
}

/// Reads it at the time `now`; `None` where it is of another version, damaged, or followed by something else.
pub(super) fn decode(bytes: &[u8], now: Moment) -> Option<StoredHead> {
    let (&VERSION, form) = bytes.split_first()? else {
        return None;
    };
    let (wire, rest) = postcard::take_from_bytes::<Wire<'_>>(form).ok()?;
    if !rest.is_empty() || !is_head_text(wire.shared) {
        return None;
    }
    let range = |place: Option<(u32, u32)>| match place {
        None => Some(None),
        Some(place) => range(place, wire.shared.len()).map(Some),
    };
    let freshness = Freshness {
        lifetime_secs: wire.lifetime_secs,
        source: *SOURCES.get(usize::from(wire.source))?,
        initial_age_secs: wire.initial_age_secs,
        must_revalidate: wire.must_revalidate,
        strip_set_cookie: wire.strip_set_cookie,
        stale_while_revalidate_secs: wire.stale_while_revalidate_secs,
        stale_if_error_secs: wire.stale_if_error_secs,
    };
    let head = StoredHead {
        status: StatusCode::from_u16(wire.status).ok()?,
        // A copy, so that the head pins nothing of what it was read with.
        shared: Bytes::copy_from_slice(wire.shared),
        freshness,
        received: Moment::from_micros(wire.received_us),
        answers_authorized: wire.answers_authorized,
        etag: range(wire.etag)?,
        last_modified: range(wire.last_modified)?,
        content_encoding: range(wire.content_encoding)?,
    };
    Some(with_believable_age(head, now))
}

/// RFC 9111 section 4.2.3 counts the time that a response was resident. Where the clock was set back since, or stood at nothing
/// when it came, nobody knows that time: such a response counts as just become stale, never as fresh for longer.
fn with_believable_age(mut head: StoredHead, now: Moment) -> StoredHead {
    if head.received > now || now.secs_since(head.received) > LONGEST_AGO_SECS {
        let freshness = &mut head.freshness;
        freshness.initial_age_secs = freshness.initial_age_secs.max(freshness.lifetime_secs);
        head.received = now;
    }
    head
}

/// A status line, and every line ended: what follows it in an answer is a line of its own.
fn is_head_text(text: &[u8]) -> bool {
    text.starts_with(b"HTTP/1.1 ") && text.ends_with(b"\r\n")
}

/// Heads are far below four gigabytes.
fn place(range: Option<&Range<usize>>) -> Option<(u32, u32)> {
    let range = range?;
    Some((u32::try_from(range.start).ok()?, u32::try_from(range.end).ok()?))
}

/// It must lie in a text of `length` bytes.
fn range((start, end): (u32, u32), length: usize) -> Option<Range<usize>> {
    let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
    (range.start <= range.end && range.end <= length).then_some(range)
}
