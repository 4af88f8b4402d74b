//! What the answer to an unsafe method makes untrue (RFC 9111 section 4.4): what is stored for the target, and for what
//! `Location` and `Content-Location` name, as long as that is of the same origin. A foreign site can't be purged this way.

use http::{HeaderMap, Method, header};

use super::request::Request;
use crate::key;
use crate::routing::Vhost;
use crate::target::Target;

/// The key of a GET for a target of this vhost: rules may treat other methods in other ways. `raw`: as [`Target::normalise`]
/// takes it.
pub(crate) fn key_of_get(vhost: &Vhost, scheme: &str, authority: &[u8], raw: &[u8], fields: &HeaderMap) -> Vec<u8> {
    let mut target = Target::default();
    target.normalise(raw);
    if let Some(rule) = vhost.rule(&Method::GET, &target, fields) {
        rule.apply_query(&mut target);
    }
    let mut out = Vec::new();
    key::write(scheme, authority, target.as_bytes(), &vhost.name, &mut out);
    out
}

/// The keys to be purged, each once.
pub(super) fn keys(request: &Request, vhost: &Vhost, response: &HeaderMap) -> Vec<Vec<u8>> {
    let raw = origin_form(&request.raw_target);
    let named = [header::LOCATION, header::CONTENT_LOCATION].map(|name| response.get_all(name));
    let named = named.iter().flatten().filter_map(|value| {
        let value = value.as_bytes();
        resolve(value, request.scheme, request.authority.as_bytes(), raw)
    });
    // A rule may match by a field that this request has, or lacks.
    let (scheme, authority, none) = (request.scheme, request.authority.as_bytes(), HeaderMap::new());
    let mut keys: Vec<_> = std::iter::once(raw.to_vec())
        .chain(named)
        .flat_map(|raw| [&request.fields, &none].map(|fields| key_of_get(vhost, scheme, authority, &raw, fields)))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A target without what absolute-form has before its path.
fn origin_form(raw: &[u8]) -> &[u8] {
    match find(raw, b"://").filter(|_| raw.first() != Some(&b'/')) {
        Some(at) => {
            let rest = raw.get(at + 3..).unwrap_or_default();
            rest.get(authority_len(rest)..).unwrap_or_default()
        }
        None => raw,
    }
}

/// Path and query of a URI reference (RFC 3986 section 5.2), if it is of the same origin.
fn resolve(reference: &[u8], scheme: &str, authority: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let reference = reference.split(|&byte| byte == b'#').next().unwrap_or_default();
    if !reference.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let (own_scheme, rest) = match scheme_len(reference) {
        Some(len) => reference.split_at(len),
        None => (scheme.as_bytes(), reference),
    };
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    if let Some(absolute) = rest.strip_prefix(b"//") {
        let (host, target) = absolute.split_at(authority_len(absolute));
        let same = own_scheme.eq_ignore_ascii_case(scheme.as_bytes()) && is_same_host(host, scheme, authority);
        return same.then(|| target.to_vec());
    }
    if scheme_len(reference).is_some() {
        // Of no hierarchy, or of another scheme.
        return None;
    }
    let base_path = base.split(|&byte| byte == b'?').next().unwrap_or_default();
    Some(match rest.first() {
        None => base.to_vec(),
        Some(b'/') => rest.to_vec(),
        Some(b'?') => [base_path, rest].concat(),
        Some(_) => {
            let directory = base_path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
            [base_path.get(..directory).unwrap_or_default(), rest].concat()
        }
    })
}

/// Whether a reference's authority is the request's, which is in lower case and without its scheme's default port.
fn is_same_host(host: &[u8], scheme: &str, authority: &[u8]) -> bool {
    let default: &[u8] = if scheme == "https" { b":443" } else { b":80" };
    let host = host
        .strip_suffix(default)
        .or_else(|| host.strip_suffix(b":"))
        .unwrap_or(host);
    host.eq_ignore_ascii_case(authority)
}

/// Length of the scheme that a reference begins with.
fn scheme_len(reference: &[u8]) -> Option<usize> {
    let len = reference.iter().position(|byte| b":/?".contains(byte))?;
    let is_scheme = reference.get(len) == Some(&b':') && reference.first().is_some_and(u8::is_ascii_alphabetic);
    is_scheme.then_some(len)
}

fn authority_len(rest: &[u8]) -> usize {
    rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_within_their_origin() {
        let base: &[u8] = b"/a/b/c?x=1";
        let check = |reference: &str, expected: Option<&str>| {
            let found = resolve(reference.as_bytes(), "http", b"www.example.test", base);
            let found = found.map(|found| String::from_utf8(found).unwrap());
            assert_eq!(found.as_deref(), expected, "{reference:?}");
        };
        check("/d", Some("/d"));
        check("/d?y#z", Some("/d?y"));
        check("d", Some("/a/b/d"));
        check("../d", Some("/a/b/../d"));
        check("d:e/f", None);
        check("./d:e", Some("/a/b/./d:e"));
        check("?y=2", Some("/a/b/c?y=2"));
        check("", Some("/a/b/c?x=1"));
        check("http://www.example.test/d", Some("/d"));
        check("HTTP://WWW.example.test:80/d", Some("/d"));
        check("http://www.example.test", Some(""));
        check("http://www.example.test?y", Some("?y"));
        check("//www.example.test/d", Some("/d"));
        check("http://other.test/d", None);
        check("//other.test/d", None);
        check("https://www.example.test/d", None);
        check("http://www.example.test:81/d", None);
        check("http://www.example.test@other.test/d", None);
        check("mailto:a@www.example.test", None);
        check("/with space", None);
    }

    #[test]
    fn a_target_in_absolute_form_is_its_path() {
        for (raw, expected) in [
            ("/a?b", "/a?b"),
            ("http://h/a?b", "/a?b"),
            ("http://h?b", "?b"),
            ("http://h", ""),
            ("/a?u=http://h/x", "/a?u=http://h/x"),
        ] {
            assert_eq!(origin_form(raw.as_bytes()), expected.as_bytes(), "{raw}");
        }
    }
}
