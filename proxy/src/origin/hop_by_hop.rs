//! Which fields belong to one connection only (RFC 9110 section 7.6.1), and which no Connection field may take away.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Fields of one connection, whether Connection names them or not. Proxy authentication is between a client and its own
/// proxy, which a reverse proxy is not; `http2-settings` belongs to an upgrade that is never offered.
const FIELDS: [&str; 12] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-authentication-info",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// Meant for everyone on the way (RFC 9110 section 7.6.1: never appropriate as a connection option). Without this list
/// a client could strip what an origin decides by, and an origin's slip could make a private answer storable.
const END_TO_END: [&str; 31] = [
    "age",
    "authorization",
    "cache-control",
    "cdn-cache-control",
    "content-encoding",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expires",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "origin",
    "pragma",
    "range",
    "set-cookie",
    "vary",
    "via",
    "www-authenticate",
    "x-content-type-options",
    "x-real-ip",
];

/// Removes the fields of one connection and those that Connection names.
pub(super) fn remove(headers: &mut HeaderMap) {
    let nominated: Vec<HeaderValue> = match headers.entry(header::CONNECTION) {
        header::Entry::Occupied(lines) => lines.remove_entry_mult().1.collect(),
        header::Entry::Vacant(_) => Vec::new(),
    };
    for name in nominated
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
    {
        let Ok(name) = HeaderName::from_bytes(name.trim_ascii()) else {
            continue;
        };
        if !is_end_to_end(&name) {
            headers.remove(name);
        }
    }
    for name in FIELDS {
        headers.remove(name);
    }
}

fn is_end_to_end(name: &HeaderName) -> bool {
    END_TO_END.contains(&name.as_str()) || name.as_str().starts_with("x-forwarded-")
}
