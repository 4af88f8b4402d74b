use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Version};
use larder_semantics::{Fields, Vary};
use proptest::prelude::*;

use super::{CONDITIONAL, Sent};
use crate::origin::forward::{ForwardContext, request_headers};

const fn context(client_ip: IpAddr, trusted: bool) -> ForwardContext<'static> {
    ForwardContext {
        client_ip,
        scheme: "http",
        host: "www.example.test:8080",
        version: Version::HTTP_11,
        trusted,
        received_by: "larder",
    }
}

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

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

fn key(vary: &str, lines: &[(&str, &str)], context: ForwardContext<'_>) -> Vec<u8> {
    let vary = Vary::parse(&fields(&[("vary", vary)])).unwrap();
    let mut out = Vec::new();
    vary.variant_key(&Sent::new(&fields(lines), context), &mut out);
    out
}

#[test]
fn rfc9111_4_1_what_does_not_reach_the_origin_selects_nothing() {
    let untrusted = context(CLIENT, false);
    for (vary, lines) in [
        (
            "accept-language",
            &[("connection", "accept-language"), ("accept-language", "de")][..],
        ),
        (
            "accept-language",
            &[("connection", "close, Accept-Language"), ("accept-language", "de")],
        ),
        ("if-none-match", &[("if-none-match", "\"a\"")]),
        ("te, upgrade", &[("te", "trailers"), ("upgrade", "h2c")]),
        ("host", &[("host", "evil.test")]),
        ("x-forwarded-proto", &[("x-forwarded-proto", "https")]),
        ("x-forwarded-for", &[("x-forwarded-for", "6.6.6.6")]),
        ("forwarded", &[("forwarded", "for=6.6.6.6")]),
        (
            "x-real-ip, x_forwarded_for",
            &[("x-real-ip", "6.6.6.6"), ("x_forwarded_for", "6.6.6.6")],
        ),
    ] {
        assert_eq!(
            key(vary, lines, untrusted),
            key(vary, &[], untrusted),
            "{vary}: {lines:?}"
        );
    }
}

#[test]
fn rfc9111_4_1_what_reaches_the_origin_selects() {
    let untrusted = context(CLIENT, false);
    let german = [("accept-language", "de")];
    assert_ne!(
        key("accept-language", &german, untrusted),
        key("accept-language", &[], untrusted)
    );
    // A sender may not name Cookie in Connection: it reaches the origin all the same.
    let cookie = [("connection", "cookie"), ("cookie", "a=b")];
    assert_ne!(key("cookie", &cookie, untrusted), key("cookie", &[], untrusted));
    let told = [("x-forwarded-proto", "https"), ("x-forwarded-for", "203.0.113.1")];
    let trusted = context(CLIENT, true);
    assert_ne!(
        key("x-forwarded-proto", &told, trusted),
        key("x-forwarded-proto", &[], trusted)
    );
    assert_ne!(
        key("x-forwarded-for", &told, trusted),
        key("x-forwarded-for", &[], trusted)
    );
    // The proxy's own word differs by client.
    let other = context(IpAddr::from([192, 0, 2, 8]), false);
    assert_ne!(
        key("x-forwarded-for", &[], other),
        key("x-forwarded-for", &[], untrusted)
    );
    assert_eq!(key("via", &[], other), key("via", &[], untrusted));
}

const NAMES: [&str; 26] = [
    "connection",
    "accept-language",
    "cookie",
    "host",
    "via",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x_forwarded_for",
    "x-real-ip",
    "x_real_ip",
    "proxy",
    "expect",
    "te",
    "upgrade",
    "keep-alive",
    "content-length",
    "content_length",
    "if-none-match",
    "if-range",
    "range",
    "origin",
    "x-own",
    "accept",
];

fn any_line() -> impl Strategy<Value = (&'static str, String)> {
    let value = prop_oneof![
        "[ -~]{0,12}",
        prop::collection::vec(prop::sample::select(NAMES.to_vec()), 1..4).prop_map(|names| names.join(" ,")),
        Just(String::new()),
    ];
    (prop::sample::select(NAMES.to_vec()), value)
}

proptest! {
    #[test]
    fn the_view_shows_what_the_request_to_the_origin_would_hold(
        lines in prop::collection::vec(any_line(), 0..12), trusted: bool, ip: [u8; 4],
    ) {
        let client: HeaderMap = lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect();
        let context = context(IpAddr::from(ip), trusted);
        let mut real = request_headers(&client, &context);
        for name in &CONDITIONAL {
            real.remove(name);
        }
        let sent = Sent::new(&client, context);
        for name in NAMES {
            let shown: Vec<_> = sent.lines(name).collect();
            let held: Vec<_> = real.lines(name).collect();
            prop_assert_eq!(shown, held, "{}", name);
        }
    }
}
