//! What is added to a rendered head for one answer: framing, Age, the two cache status fields and Connection.

use http::StatusCode;
use larder_semantics::CacheStatusItem;

use crate::http1::Version;
use crate::http1::response::{
    Connection, ResponseFraming, write_connection, write_field, write_framing, write_status_line,
};
use crate::outcome::{Outcome, Stored};

/// Our name in `Cache-Status` and `Via`.
pub(crate) const CACHE_NAME: &str = "larder";

/// The framing of a body of `length` to a client of `version` (RFC 9112 section 6).
pub(crate) fn choose_framing(status: StatusCode, length: Option<u64>, version: Version) -> ResponseFraming {
    match length {
        _ if has_no_body(status) => ResponseFraming::Bodiless,
        Some(length) => ResponseFraming::Length(length),
        None if version == Version::Http10 => ResponseFraming::UntilClose,
        None => ResponseFraming::Chunked,
    }
}

/// 1xx, 204 and 304 end with their head, whatever their fields say (RFC 9112 section 6.3).
pub(crate) fn has_no_body(status: StatusCode) -> bool {
    status.is_informational() || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}

/// Whether the connection goes on after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    KeepAlive,
    Close,
}

/// Appends the field lines of one answer and the empty line that ends a head.
pub(crate) fn finish_head(
    out: &mut Vec<u8>,
    framing: ResponseFraming,
    age: Option<u64>,
    outcome: &Outcome,
    version: Version,
    persistence: Persistence,
) {
    write_framing(framing, out);
    if let Some(age) = age {
        write_field("Age", itoa::Buffer::new().format(age).as_bytes(), out);
    }
    cache_lines(outcome, out);
    write_connection(
        match (persistence, version) {
            (Persistence::Close, _) => Connection::Close,
            (Persistence::KeepAlive, Version::Http10) => Connection::KeepAlive,
            (Persistence::KeepAlive, Version::Http11) => Connection::Implied,
        },
        out,
    );
    out.extend_from_slice(b"\r\n");
}

/// The lines of a stored head that a 304 repeats: all but the status line and what describes the body that is not sent
/// (RFC 9110 section 15.4.5).
pub(crate) fn append_not_modified(shared: &[u8], out: &mut Vec<u8>) {
    write_status_line(StatusCode::NOT_MODIFIED, None, out);
    for line in shared.split_inclusive(|&byte| byte == b'\n').skip(1) {
        let describes_body = line.starts_with(b"Content-") && !line.starts_with(b"Content-Location:");
        if !describes_body {
            out.extend_from_slice(line);
        }
    }
}

/// An interim answer as it is passed on (RFC 9110 section 15.2).
pub(crate) fn append_interim(interim: &http::Response<()>, out: &mut Vec<u8>) {
    write_status_line(interim.status(), None, out);
    for (name, value) in interim.headers() {
        super::head::field_line(name, value, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// `X-Cache-Status` and `Cache-Status` (RFC 9211), from one outcome.
pub(crate) fn cache_lines(outcome: &Outcome, out: &mut Vec<u8>) {
    let Some(cache) = outcome.cache else { return };
    write_field("X-Cache-Status", cache.word().as_bytes(), out);
    out.extend_from_slice(b"Cache-Status: ");
    let not_stored = match outcome.stored {
        Some(Stored::No(reason)) => Some(reason.name()),
        _ => None,
    };
    CacheStatusItem {
        cache: CACHE_NAME,
        hit: outcome.forward.is_none(),
        fwd: outcome.forward.map(|forward| forward.token()),
        fwd_status: outcome.forward_status,
        stored: outcome.stored.map(|stored| stored == Stored::Yes),
        collapsed: outcome.collapsed,
        ttl: outcome.ttl_secs,
        key: None,
        detail: not_stored,
    }
    .write(out);
    out.extend_from_slice(b"\r\n");
}
