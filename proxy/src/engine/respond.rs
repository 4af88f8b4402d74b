//! What is added to a rendered head for one answer: framing, Age, the two cache status fields and Connection.

use http::StatusCode;
use larder_semantics::CacheStatusItem;

use crate::http1::Version;
use crate::outcome::{Outcome, Stored};

/// Our name in `Cache-Status` and `Via`.
pub(crate) const CACHE_NAME: &str = "larder";

/// How the end of a body is marked (RFC 9112 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The status or the request's method allows no body, and no length is known.
    Bodiless,
    Length(u64),
    Chunked,
    /// The connection's end; for HTTP/1.0 clients.
    Close,
}

impl Framing {
    /// For a body of `length` to a client of `version`.
    pub(crate) fn choose(status: StatusCode, length: Option<u64>, version: Version) -> Self {
        match length {
            _ if has_no_body(status) => Self::Bodiless,
            Some(length) => Self::Length(length),
            None if version == Version::Http10 => Self::Close,
            None => Self::Chunked,
        }
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
    framing: Framing,
    age: Option<u64>,
    outcome: &Outcome,
    version: Version,
    persistence: Persistence,
) {
    match framing {
        Framing::Length(length) => number_line(b"Content-Length: ", length, out),
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::Bodiless | Framing::Close => {}
    }
    if let Some(age) = age {
        number_line(b"Age: ", age, out);
    }
    cache_lines(outcome, out);
    match (persistence, version) {
        (Persistence::Close, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (Persistence::KeepAlive, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (Persistence::KeepAlive, Version::Http11) => {}
    }
    out.extend_from_slice(b"\r\n");
}

fn number_line(name: &[u8], number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// `X-Cache-Status` and `Cache-Status` (RFC 9211), from one outcome.
pub(crate) fn cache_lines(outcome: &Outcome, out: &mut Vec<u8>) {
    let Some(cache) = outcome.cache else { return };
    out.extend_from_slice(b"X-Cache-Status: ");
    out.extend_from_slice(cache.word().as_bytes());
    out.extend_from_slice(b"\r\nCache-Status: ");
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
