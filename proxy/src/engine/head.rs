//! The head of a response, rendered once: what is the same for every client that gets it. Age, `Cache-Status`, framing and
//! Connection are added for each answer.

mod wire;

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use larder_semantics::preconditions::not_modified;
use larder_semantics::{Fields, Freshness};

use crate::clock::{Moment, unix_secs};
use crate::http1::response::{write_field, write_status_line};

/// Fields that are never part of the shared text: framing is ours, Age is computed, X-Cache-Status is ours alone.
const NOT_SHARED: [HeaderName; 2] = [header::CONTENT_LENGTH, header::AGE];
const X_CACHE_STATUS: &str = "x-cache-status";

/// Nothing stale is of use, but a sweep need not come to the second.
const STALE_KEPT_SECS: u64 = 60;

/// A response head as text, without framing, Age, cache status, Connection and the empty line.
#[derive(Debug, Clone)]
pub(crate) struct RenderedHead {
    pub(crate) status: StatusCode,
    /// Status line and field lines.
    pub(crate) shared: Bytes,
    /// Field lines for the client alone that caused the request: the origin's Age, cookies that are not stored.
    pub(crate) private: Bytes,
}

/// What is stored of a head, with what is needed to decide on its use without parsing it again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredHead {
    pub(crate) status: StatusCode,
    pub(crate) shared: Bytes,
    pub(crate) freshness: Freshness,
    /// When the head came from the origin.
    pub(crate) received: Moment,
    /// It may answer requests that carry Authorization (RFC 9111 section 3.5).
    pub(crate) answers_authorized: bool,
    etag: Option<Range<usize>>,
    last_modified: Option<Range<usize>>,
    content_encoding: Option<Range<usize>>,
}

impl StoredHead {
    pub(crate) fn new(
        rendered: &RenderedHead,
        fields: &HeaderMap,
        freshness: Freshness,
        received: Moment,
        answers_authorized: bool,
    ) -> Self {
        let shared = &rendered.shared;
        let place = |name: HeaderName| {
            let value = fields.get(&name)?.as_bytes();
            let line = [b"\r\n", title_case(name.as_str()).as_bytes(), b": ", value, b"\r\n"].concat();
            let at = memchr::memmem::find(shared, &line)? + line.len() - 2 - value.len();
            Some(at..at + value.len())
        };
        Self {
            status: rendered.status,
            shared: shared.clone(),
            etag: place(header::ETAG),
            last_modified: place(header::LAST_MODIFIED),
            content_encoding: place(header::CONTENT_ENCODING),
            freshness,
            received,
            answers_authorized,
        }
    }

    /// Current age in seconds (RFC 9111 section 4.2.3).
    pub(crate) fn age(&self, now: Moment) -> u64 {
        self.freshness
            .initial_age_secs
            .saturating_add(now.secs_since(self.received))
    }

    /// Seconds of freshness left; not positive when stale.
    pub(crate) fn ttl(&self, now: Moment) -> i64 {
        self.freshness.ttl(self.age(now))
    }

    /// Whether the client holds what is stored (RFC 9110 section 13.2.2).
    pub(crate) fn is_not_modified(&self, request: &impl Fields) -> bool {
        self.status == StatusCode::OK && not_modified(request, self.etag(), self.last_modified(), unix_secs())
    }

    pub(crate) fn etag(&self) -> Option<&[u8]> {
        self.shared.get(self.etag.clone()?)
    }

    pub(crate) fn last_modified(&self) -> Option<&[u8]> {
        self.shared.get(self.last_modified.clone()?)
    }

    /// Of the body, as it is stored.
    pub(crate) fn content_encoding(&self) -> Option<&[u8]> {
        self.shared.get(self.content_encoding.clone()?)
    }
}

impl larder_storage::Head for StoredHead {
    fn weight(&self) -> usize {
        self.shared.len() + size_of::<Self>()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        wire::encode(self, out);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        wire::decode(bytes, Moment::now())
    }

    fn keep_until_secs(&self) -> u64 {
        let Freshness {
            lifetime_secs,
            initial_age_secs,
            ..
        } = self.freshness;
        (self.received.as_micros() / 1_000_000)
            .saturating_add(lifetime_secs.saturating_sub(initial_age_secs))
            .saturating_add(STALE_KEPT_SECS)
    }
}

impl RenderedHead {
    /// Renders `fields`, from which hop-by-hop fields are gone already. Set-Cookie lines go to the private part where
    /// `hide_cookies` asks for it. A missing Date is added (RFC 9110 section 6.6.1).
    pub(crate) fn new(status: StatusCode, fields: &HeaderMap, hide_cookies: bool, now_secs: i64) -> Self {
        let mut shared = Vec::with_capacity(512);
        let mut private = Vec::new();
        write_status_line(status, None, &mut shared);
        for (name, value) in fields {
            if *name == header::AGE || (hide_cookies && *name == header::SET_COOKIE) {
                field_line(name, value, &mut private);
            } else if !NOT_SHARED.contains(name) && name.as_str() != X_CACHE_STATUS {
                field_line(name, value, &mut shared);
            }
        }
        if !fields.contains_key(header::DATE) {
            shared.extend_from_slice(b"Date: ");
            larder_semantics::date::write(now_secs, &mut shared);
            shared.extend_from_slice(b"\r\n");
        }
        // `Bytes::from` of an exact allocation: what is stored holds no spare capacity.
        Self {
            status,
            shared: Bytes::from(shared.into_boxed_slice()),
            private: Bytes::from(private),
        }
    }
}

pub(crate) fn field_line(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    write_field(&title_case(name.as_str()), value.as_bytes(), out);
}

/// Field names are compared without case; this is how people expect to see them.
fn title_case(name: &str) -> String {
    match name {
        "etag" => return "ETag".to_owned(),
        "www-authenticate" => return "WWW-Authenticate".to_owned(),
        _ => {}
    }
    let mut start = true;
    name.chars()
        .map(|c| {
            let shown = if start { c.to_ascii_uppercase() } else { c };
            start = c == '-';
            shown
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn what_differs_between_clients_is_not_in_the_shared_text() {
        let fields = fields(&[
            ("content-length", "5"),
            ("age", "7"),
            ("etag", "\"a\""),
            ("set-cookie", "sid=1"),
            ("x-cache-status", "HIT"),
            ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ]);
        let head = RenderedHead::new(StatusCode::OK, &fields, true, 0);
        assert_eq!(
            &head.shared[..],
            b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
        );
        assert_eq!(&head.private[..], b"Age: 7\r\nSet-Cookie: sid=1\r\n");
    }

    #[test]
    fn a_missing_date_is_added() {
        let head = RenderedHead::new(StatusCode::NOT_FOUND, &HeaderMap::new(), false, 784_111_777);
        assert_eq!(
            &head.shared[..],
            b"HTTP/1.1 404 Not Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        );
    }
}
