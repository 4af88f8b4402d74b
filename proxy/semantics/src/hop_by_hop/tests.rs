use http::{HeaderName, header};

use super::{is_hop_by_hop, remove_hop_by_hop};
use crate::fields::header_map;

fn left(lines: &[(&str, &str)], protected: &[HeaderName]) -> Vec<String> {
    let mut fields = header_map(lines);
    remove_hop_by_hop(&mut fields, protected);
    let mut names: Vec<_> = fields.keys().map(ToString::to_string).collect();
    names.sort();
    names
}

#[test]
fn b107_rfc9110_7_6_1_fields_for_one_hop_are_removed() {
    let lines = [
        ("connection", "close, X-Tmp"),
        ("connection", "x-other , ,@@, X-Absent"),
        ("x-tmp", "1"),
        ("x-tmp", "2"),
        ("x-other", "1"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("http2-settings", "AA"),
        ("proxy-authenticate", "Basic"),
        ("proxy-authorization", "Basic x"),
        ("proxy-authentication-info", "x"),
        ("x-kept", "1"),
        ("www-authenticate", "Basic"),
    ];
    assert_eq!(left(&lines, &[]), ["www-authenticate", "x-kept"]);
}

#[test]
fn b107_a_client_cannot_nominate_away_end_to_end_fields() {
    let lines = [
        (
            "connection",
            "Host, X-Forwarded-For, Cookie, Authorization, Content-Length, cache-control, Set-Cookie, X-Mine, X-Secret",
        ),
        ("host", "a"),
        ("x-forwarded-for", "192.0.2.1"),
        ("cookie", "a=b"),
        ("authorization", "Bearer x"),
        ("content-length", "1"),
        ("cache-control", "private"),
        ("set-cookie", "a=b"),
        ("x-mine", "1"),
        ("x-secret", "1"),
    ];
    let x_mine = HeaderName::from_static("x-mine");
    let expected = [
        "authorization",
        "cache-control",
        "content-length",
        "cookie",
        "host",
        "set-cookie",
        "x-mine",
    ];
    assert_eq!(left(&lines, &[x_mine]), expected);
}

#[test]
fn protection_does_not_keep_what_is_for_one_hop_by_its_nature() {
    assert_eq!(
        left(
            &[("connection", "upgrade"), ("upgrade", "x")],
            &[header::UPGRADE, header::CONNECTION]
        ),
        [""; 0]
    );
}

#[test]
fn names_are_compared_without_case() {
    for name in [
        "Connection",
        "TE",
        "transfer-encoding",
        "Proxy-Authorization",
        "HTTP2-Settings",
    ] {
        assert!(is_hop_by_hop(name), "{name}");
    }
    for name in ["", "host", "cookie", "tee", "via"] {
        assert!(!is_hop_by_hop(name), "{name}");
    }
}
