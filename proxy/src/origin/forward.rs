//! The fields that cross from a client's request to the origin's, and from the origin's answer to the client's:
//! connection fields go, what clients could use to impersonate a proxy is overwritten, and the proxy's own fields are
//! added last.

use std::fmt::Write;
use std::net::IpAddr;

use http::Version;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use larder_semantics::Fields;

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

impl ForwardContext<'_> {
    pub(super) fn peer(&self) -> IpAddr {
        self.client_ip.to_canonical()
    }
}

/// Between the client and this proxy, or set by it.
const NEVER_FORWARDED: [&str; 4] = ["expect", "content-length", "host", "proxy"];

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
    for name in NEVER_FORWARDED {
        headers.remove(name);
    }
    let guarded: Vec<HeaderName> = headers
        .keys()
        .filter(|name| is_guarded(name.as_str(), context.trusted))
        .cloned()
        .collect();
    for name in guarded {
        headers.remove(name);
    }
    set(&mut headers, header::HOST, context.host);
    append_to_list(&mut headers, X_FORWARDED_FOR, &context.peer().to_string());
    append_to_list(&mut headers, header::FORWARDED, &forwarded_element(context));
    set_if_absent(&mut headers, X_FORWARDED_PROTO, context.scheme);
    set_if_absent(&mut headers, X_FORWARDED_HOST, context.host);
    append_via(&mut headers, context.version, context.received_by);
    headers
}

/// Whether a line of the field `name` (lower case) of a client's request goes on to the origin, alone or as part of a list.
pub(super) fn crosses(client: &impl Fields, name: &str, context: &ForwardContext<'_>) -> bool {
    !NEVER_FORWARDED.contains(&name) && !is_guarded(name, context.trusted) && !hop_by_hop::removes(client, name)
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
fn is_guarded(name: &str, trusted: bool) -> bool {
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
    let joined = list_with(headers.lines(name.as_str()), element);
    if let Ok(value) = HeaderValue::from_bytes(&joined) {
        headers.insert(name, value);
    }
}

pub(super) fn list_with<'a>(lines: impl Iterator<Item = &'a [u8]>, element: &str) -> Vec<u8> {
    let mut joined = Vec::new();
    for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
        joined.extend_from_slice(line);
        joined.extend_from_slice(b", ");
    }
    joined.extend_from_slice(element.as_bytes());
    joined
}

/// RFC 7239 section 4, with what RFC 9110 does not call a token quoted (section 6: IPv6 in brackets and quotes).
pub(super) fn forwarded_element(context: &ForwardContext<'_>) -> String {
    let mut element = String::with_capacity(64);
    let _ = match context.peer() {
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

fn append_via(headers: &mut HeaderMap, version: Version, received_by: &str) {
    append_to_list(headers, header::VIA, &via_element(version, received_by));
}

/// RFC 9110 section 7.6.3.
pub(super) fn via_element(version: Version, received_by: &str) -> String {
    let version = match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    };
    format!("{version} {received_by}")
}
