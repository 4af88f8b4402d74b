//! The fields that cross from a client's request to the origin's, and from the origin's answer to the client's:
//! connection fields go, what clients could use to impersonate a proxy is overwritten, and the proxy's own fields are
//! added last.

use std::fmt::Write;
use std::net::IpAddr;

use http::Version;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::hop_by_hop;

#[cfg(test)]
mod tests;

/// What the front knows of a request.
#[derive(Debug, Clone, Copy)]
pub struct ForwardContext<'a> {
    pub client_ip: IpAddr,
    /// `http` or `https`, as the client spoke it.
    pub scheme: &'a str,
    /// The authority that the client meant.
    pub host: &'a str,
    /// Of the client's message.
    pub version: Version,
    /// The peer is a proxy whose word on its own client is taken.
    pub trusted: bool,
    /// Our name in Via.
    pub received_by: &'a str,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Requests that origins believe about themselves: where they came from, and what they really ask for. None is part of
/// a cache key, so from a client they could poison it. `x-forwarded-` is matched as a prefix.
const IMPERSONATING: [&str; 12] = [
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "x-host",
    "x-original-host",
    "x-http-host-override",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
];

/// The fields for the origin. Framing is not among them: the pool sets it from the body. Nor is `Upgrade`, which the
/// caller adds back (with `Connection: upgrade`) for a protocol that may be switched to.
#[must_use]
pub fn request_headers(client: &HeaderMap, context: &ForwardContext<'_>) -> HeaderMap {
    let mut headers = client.clone();
    hop_by_hop::remove(&mut headers);
    for name in [
        header::EXPECT,
        header::CONTENT_LENGTH,
        header::HOST,
        HeaderName::from_static("proxy"),
    ] {
        headers.remove(name);
    }
    let guarded: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_guarded(name, context.trusted))
        .cloned()
        .collect();
    for name in guarded {
        headers.remove(name);
    }
    set(&mut headers, header::HOST, context.host);
    let peer = context.client_ip.to_canonical();
    append_to_list(&mut headers, X_FORWARDED_FOR, &peer.to_string());
    append_to_list(&mut headers, header::FORWARDED, &forwarded_element(peer, context));
    set_if_absent(&mut headers, X_FORWARDED_PROTO, context.scheme);
    set_if_absent(&mut headers, X_FORWARDED_HOST, context.host);
    append_via(&mut headers, context.version, context.received_by);
    headers
}

/// Makes an origin's fields fit to be stored and sent on. `version` is that of the origin's message.
pub fn response_headers(headers: &mut HeaderMap, version: Version, received_by: &str) {
    hop_by_hop::remove(headers);
    append_via(headers, version, received_by);
}

/// How often a request has passed here already, by its Via fields. More than a few times is a loop.
#[must_use]
pub fn via_count(headers: &HeaderMap, received_by: &str) -> usize {
    headers
        .get_all(header::VIA)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .filter(|element| {
            let mut words = element
                .split(|byte| matches!(byte, b' ' | b'\t'))
                .filter(|word| !word.is_empty());
            words
                .nth(1)
                .is_some_and(|name| name.eq_ignore_ascii_case(received_by.as_bytes()))
        })
        .count()
}

/// Fields that only a trusted peer may set. Names with `_` are what CGI and its heirs can't tell from `-`, so those go
/// from everybody.
fn is_guarded(name: &HeaderName, trusted: bool) -> bool {
    let name = name.as_str();
    let dashed;
    let (canonical, disguised) = if name.contains('_') {
        dashed = name.replace('_', "-");
        (dashed.as_str(), true)
    } else {
        (name, false)
    };
    let guarded = canonical.starts_with("x-forwarded-") || IMPERSONATING.contains(&canonical);
    if disguised {
        guarded || matches!(canonical, "proxy" | "host" | "content-length" | "transfer-encoding")
    } else {
        guarded && !trusted
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn set_if_absent(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if !headers.contains_key(&name) {
        set(headers, name, value);
    }
}

/// One line of all lines in their order, and `element` at the end.
fn append_to_list(headers: &mut HeaderMap, name: HeaderName, element: &str) {
    let mut joined = Vec::new();
    for line in headers.get_all(&name) {
        if !line.as_bytes().trim_ascii().is_empty() {
            joined.extend_from_slice(line.as_bytes());
            joined.extend_from_slice(b", ");
        }
    }
    joined.extend_from_slice(element.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&joined) {
        headers.insert(name, value);
    }
}

/// RFC 7239 section 4, with what RFC 9110 does not call a token quoted (section 6: IPv6 in brackets and quotes).
fn forwarded_element(peer: IpAddr, context: &ForwardContext<'_>) -> String {
    let mut element = String::with_capacity(64);
    let _ = match peer {
        IpAddr::V4(address) => write!(element, "for={address}"),
        IpAddr::V6(address) => write!(element, "for=\"[{address}]\""),
    };
    element.push_str(";host=");
    push_value(&mut element, context.host);
    element.push_str(";proto=");
    push_value(&mut element, context.scheme);
    element
}

fn push_value(element: &mut String, value: &str) {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !value.is_empty() && value.bytes().all(is_token) {
        element.push_str(value);
        return;
    }
    element.push('"');
    for character in value.chars() {
        if matches!(character, '"' | '\\') {
            element.push('\\');
        }
        element.push(character);
    }
    element.push('"');
}

/// RFC 9110 section 7.6.3.
fn append_via(headers: &mut HeaderMap, version: Version, received_by: &str) {
    let version = match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    };
    append_to_list(headers, header::VIA, &format!("{version} {received_by}"));
}
