use std::net::IpAddr;

use http::header::{HeaderMap, HeaderName};
use http::{HeaderValue, Version};

use super::{ForwardContext, request_headers, response_headers, via_count};

fn context(trusted: bool) -> ForwardContext<'static> {
    ForwardContext {
        client_ip: IpAddr::from([192, 0, 2, 7]),
        scheme: "https",
        host: "www.example.test:8443",
        version: Version::HTTP_11,
        trusted,
        received_by: "larder",
    }
}

fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| {
            (
                name.parse::<HeaderName>().unwrap(),
                value.parse::<HeaderValue>().unwrap(),
            )
        })
        .collect()
}

/// The values of one field, and that they stand in one line.
fn line<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let lines: Vec<_> = headers.get_all(name).iter().collect();
    assert_eq!(lines.len(), 1, "{name}: {lines:?}");
    lines[0].to_str().unwrap()
}

#[test]
fn the_proxy_says_who_asked_and_for_what() {
    let sent = request_headers(
        &fields(&[("host", "other.test"), ("accept-encoding", "br"), ("x-own", "1")]),
        &context(false),
    );
    assert_eq!(line(&sent, "host"), "www.example.test:8443");
    assert_eq!(line(&sent, "x-forwarded-for"), "192.0.2.7");
    assert_eq!(line(&sent, "x-forwarded-proto"), "https");
    assert_eq!(line(&sent, "x-forwarded-host"), "www.example.test:8443");
    assert_eq!(
        line(&sent, "forwarded"),
        "for=192.0.2.7;host=\"www.example.test:8443\";proto=https"
    );
    assert_eq!(line(&sent, "via"), "1.1 larder");
    assert_eq!(line(&sent, "accept-encoding"), "br");
    assert_eq!(line(&sent, "x-own"), "1");
    assert_eq!(sent.len(), 8);
}

const POISON: [(&str, &str); 22] = [
    ("x-forwarded-for", "evil.test"),
    ("x-forwarded-for", "6.6.6.6"),
    ("x-forwarded-host", "evil.test"),
    ("x-forwarded-proto", "evil.test"),
    ("x-forwarded-port", "evil.test"),
    ("x-forwarded-prefix", "/evil.test"),
    ("x-forwarded-server", "evil.test"),
    ("forwarded", "for=evil.test;host=evil.test"),
    ("x-real-ip", "evil.test"),
    ("x-original-url", "/evil.test"),
    ("x-rewrite-url", "/evil.test"),
    ("x-host", "evil.test"),
    ("x-http-host-override", "evil.test"),
    ("x-http-method-override", "DELETE evil.test"),
    ("x-http-method", "evil.test"),
    ("x-method-override", "evil.test"),
    ("x_forwarded_host", "evil.test"),
    ("x-forwarded_host", "evil.test"),
    ("x_original_url", "/evil.test"),
    ("proxy", "http://evil.test"),
    ("expect", "evil.test"),
    ("te", "evil.test"),
];

#[test]
fn b35_nothing_of_a_client_that_is_not_trusted_passes_for_a_proxys_word() {
    let sent = request_headers(&fields(&POISON), &context(false));
    for (name, value) in &sent {
        assert!(!value.to_str().unwrap().contains("evil.test"), "{name}: {value:?}");
    }
    assert_eq!(line(&sent, "x-forwarded-for"), "192.0.2.7");
    assert!(!sent.contains_key("x-forwarded-port"));
}

#[test]
fn b36_a_trusted_peers_lines_are_joined_and_the_peer_appended() {
    let client = fields(&[
        ("x-forwarded-for", "203.0.113.1, 203.0.113.2"),
        ("x-forwarded-for", "203.0.113.3"),
        ("x-forwarded-host", "shop.test"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-port", "81"),
        ("forwarded", "for=203.0.113.1"),
        ("forwarded", "for=203.0.113.3"),
        ("via", "1.0 fred"),
        ("via", "2 (no) barney"),
        ("x-original-url", "/kept"),
        ("x_forwarded_for", "disguised"),
        ("proxy", "httpoxy"),
    ]);
    let sent = request_headers(&client, &context(true));
    assert_eq!(
        line(&sent, "x-forwarded-for"),
        "203.0.113.1, 203.0.113.2, 203.0.113.3, 192.0.2.7"
    );
    assert_eq!(line(&sent, "x-forwarded-host"), "shop.test");
    assert_eq!(line(&sent, "x-forwarded-proto"), "http");
    assert_eq!(line(&sent, "x-forwarded-port"), "81");
    assert_eq!(
        line(&sent, "forwarded"),
        "for=203.0.113.1, for=203.0.113.3, for=192.0.2.7;host=\"www.example.test:8443\";proto=https"
    );
    assert_eq!(line(&sent, "via"), "1.0 fred, 2 (no) barney, 1.1 larder");
    assert_eq!(line(&sent, "x-original-url"), "/kept");
    assert!(!sent.contains_key("x_forwarded_for") && !sent.contains_key("proxy"));
}

#[test]
fn addresses_are_written_as_their_fields_want_them() {
    for (address, plain, forwarded) in [
        ("192.0.2.7", "192.0.2.7", "for=192.0.2.7"),
        ("2001:db8::1", "2001:db8::1", "for=\"[2001:db8::1]\""),
        ("::ffff:192.0.2.7", "192.0.2.7", "for=192.0.2.7"),
    ] {
        let context = ForwardContext {
            client_ip: address.parse().unwrap(),
            host: "a\"b\\",
            ..context(false)
        };
        let sent = request_headers(&HeaderMap::new(), &context);
        assert_eq!(line(&sent, "x-forwarded-for"), plain);
        assert_eq!(
            line(&sent, "forwarded"),
            format!("{forwarded};host=\"a\\\"b\\\\\";proto=https")
        );
    }
}

#[test]
fn b107_connection_fields_and_nominated_fields_go_and_others_can_not_be_nominated() {
    let client = fields(&[
        ("connection", "Host, X-Forwarded-For, Cookie, close"),
        ("connection", "X-Tmp,, Authorization ,Cache-Control, not a name"),
        ("keep-alive", "1"),
        ("proxy-connection", "keep-alive"),
        ("proxy-authorization", "Basic x"),
        ("upgrade", "h2c"),
        ("http2-settings", "x"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("transfer-encoding", "chunked"),
        ("content-length", "5"),
        ("cookie", "a=b"),
        ("authorization", "Bearer x"),
        ("cache-control", "no-store"),
        ("x-tmp", "1"),
        ("x-tmp", "2"),
        ("close", "is a field too"),
    ]);
    let sent = request_headers(&client, &context(false));
    let mut names: Vec<_> = sent.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "authorization",
            "cache-control",
            "cookie",
            "forwarded",
            "host",
            "via",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
        ]
    );
}

#[test]
fn b107_answers() {
    let mut headers = fields(&[
        ("connection", "close, X-Tmp, Set-Cookie, Cache-Control, Vary"),
        ("x-tmp", "1"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("cache-control", "private"),
        ("vary", "cookie"),
        ("transfer-encoding", "chunked"),
        ("keep-alive", "timeout=5"),
        ("content-length", "5"),
        ("via", "1.1 app"),
    ]);
    response_headers(&mut headers, Version::HTTP_10, "larder");
    let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["cache-control", "content-length", "set-cookie", "vary", "via"]);
    assert_eq!(headers.get_all("set-cookie").iter().count(), 2);
    assert_eq!(line(&headers, "via"), "1.1 app, 1.0 larder");
}

#[test]
fn a_loop_shows_in_via() {
    for (lines, count) in [
        (&[][..], 0),
        (&["1.1 other"][..], 0),
        (&["1.1 larder"][..], 1),
        (&["1.1 larder, 1.0 fred, HTTP/2  Larder (x)", "1.1\tlarder"][..], 3),
        (&["larder", "1.1 larder2", "larder 1.1"][..], 0),
    ] {
        let headers: HeaderMap = lines
            .iter()
            .map(|line| (http::header::VIA, HeaderValue::from_static(line)))
            .collect();
        assert_eq!(via_count(&headers, "larder"), count, "{lines:?}");
    }
}
