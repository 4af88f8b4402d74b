//! The cases of HTTP/1 syntax and framing, and the properties that hold for any bytes.

use std::ops::Range;

use proptest::prelude::*;

use super::RejectReason as R;
use super::reject::RejectReason;
use super::scan::{HeadLimits, HeadScan};
use super::{FieldSlots, Framing, Target, Version, head};

mod oracle;

pub(super) const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 32 * 1024,
    headers: 100,
    target_bytes: 8 * 1024,
};

/// A head that owns what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) target: Vec<u8>,
    pub(super) version: Version,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) host: Option<String>,
    pub(super) framing: Framing,
    pub(super) persistent: bool,
    pub(super) expect_continue: bool,
    pub(super) upgrade: Option<Vec<u8>>,
    pub(super) consumed: usize,
}

fn own(head: &super::RequestHead<'_, '_>, consumed: usize) -> Seen {
    let target = match head.target {
        Target::Origin(path) => path.to_vec(),
        Target::Absolute {
            scheme,
            authority,
            path_and_query,
        } => [
            scheme.name().as_bytes(),
            b"://",
            authority.as_sent().as_bytes(),
            path_and_query,
        ]
        .concat(),
        Target::Authority(authority) => authority.as_sent().as_bytes().to_vec(),
        Target::Asterisk => b"*".to_vec(),
    };
    Seen {
        method: head.method.to_owned(),
        target,
        version: head.version,
        headers: head
            .headers
            .iter()
            .map(|line| (line.name.to_owned(), line.value.to_vec()))
            .collect(),
        host: head.host.map(|host| {
            let mut out = Vec::new();
            host.write_normalised(80, &mut out);
            String::from_utf8(out).unwrap()
        }),
        framing: head.framing,
        persistent: head.persistent,
        expect_continue: head.expect_continue,
        upgrade: head.upgrade.map(<[u8]>::to_vec),
        consumed,
    }
}

pub(super) fn parse_within(bytes: &[u8], limits: &HeadLimits) -> Result<Option<Seen>, RejectReason> {
    match head::parse(bytes, &mut FieldSlots::new(), limits) {
        Ok(seen) => Ok(seen.map(|(head, consumed)| own(&head, consumed))),
        Err(reject) => {
            assert_eq!(reject.status, reject.reason.status());
            Err(reject.reason)
        }
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Option<Seen>, RejectReason> {
    parse_within(bytes, &LIMITS)
}

/// The head of a request that must be accepted.
pub(super) fn accepted(bytes: &[u8]) -> Seen {
    match parse(bytes) {
        Ok(Some(seen)) => seen,
        other => panic!("{:?} gave {other:?}", bytes.escape_ascii().to_string()),
    }
}

/// Like [`parse_within`], with the bytes arriving in pieces of the given sizes, again and again.
fn parse_in_pieces(bytes: &[u8], pieces: &[usize], limits: &HeadLimits) -> Result<Option<Seen>, RejectReason> {
    let mut scan = HeadScan::default();
    let mut sizes = pieces.iter().cycle();
    let mut have = 0;
    loop {
        if let Some(extent) = scan.advance(&bytes[..have], limits).map_err(|reject| reject.reason)? {
            let mut slots = FieldSlots::new();
            let head =
                head::parse_scanned(&bytes[..have], extent, &mut slots, limits).map_err(|reject| reject.reason)?;
            return Ok(Some(own(&head, extent.end)));
        }
        if have == bytes.len() {
            return Ok(None);
        }
        have = (have + sizes.next().unwrap()).min(bytes.len());
    }
}

fn refuse_all(payloads: &[(&[u8], RejectReason)]) {
    for (bytes, reason) in payloads {
        assert_eq!(parse(bytes), Err(*reason), "{}", bytes.escape_ascii());
    }
}

/// Requests that differ in every form that is allowed.
const VALID: [&[u8]; 12] = [
    b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
    b"\r\nGET /x?a=1&b=%20 HTTP/1.1\r\nhost: A.test:8080\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n",
    b"POST /form HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello",
    b"POST /up HTTP/1.1\r\nHost:a.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"GET http://a.test/x HTTP/1.1\r\nHost: b.test\r\n\r\n",
    b"GET HTTPS://[::1]:8443?q HTTP/1.1\r\nHost: \t[::1] \t\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\nX-Empty:\r\nX-Blank: \t \r\n\r\n",
    b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
    b"GET /old HTTP/1.0\r\n\r\n",
    b"GET /old HTTP/1.0\r\nHost: a.test\r\nConnection: Keep-Alive\r\nUser-Agent: \xc3\xa9\xff\r\n\r\n",
    b"GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"PUT /\xff\xc3 HTTP/1.7\r\nHost: a.test\r\nExpect: 100-Continue\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
];

#[test]
fn reasons_are_numbered_and_named_apart() {
    for (at, reason) in RejectReason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, at);
        assert!(
            RejectReason::ALL
                .iter()
                .filter(|other| other.name() == reason.name())
                .count()
                == 1
        );
        assert!((400..600).contains(&reason.status()));
    }
}

#[test]
fn b96_content_length_beside_transfer_encoding_is_refused() {
    refuse_all(&[
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            R::LengthAndChunked,
        ),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            R::LengthAndChunked,
        ),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
            R::LengthAndChunked,
        ),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: gzip\r\ncontent-length: 5\r\n\r\n",
            R::LengthAndChunked,
        ),
    ]);
}

#[test]
fn b97_obfuscated_transfer_encoding_is_refused() {
    let payloads: [(&str, RejectReason); 22] = [
        ("Transfer-Encoding: ,chunked", R::BadTransferEncoding),
        ("Transfer-Encoding: chunked,", R::BadTransferEncoding),
        ("Transfer-Encoding: chunked, identity", R::BadTransferEncoding),
        ("Transfer-Encoding: identity", R::BadTransferEncoding),
        ("Transfer-Encoding: identity, chunked", R::UnsupportedTransferEncoding),
        ("Transfer-Encoding: gzip, chunked", R::UnsupportedTransferEncoding),
        ("Transfer-Encoding: gzip", R::BadTransferEncoding),
        ("Transfer-Encoding: chunked, chunked", R::BadTransferEncoding),
        ("Transfer-Encoding: xchunked", R::BadTransferEncoding),
        ("Transfer-Encoding: chunkedx", R::BadTransferEncoding),
        ("Transfer-Encoding: \"chunked\"", R::BadTransferEncoding),
        ("Transfer-Encoding: chunked;q=1", R::BadTransferEncoding),
        ("Transfer-Encoding:", R::BadTransferEncoding),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            R::BadTransferEncoding,
        ),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            R::BadTransferEncoding,
        ),
        ("Transfer-Encoding : chunked", R::SpaceBeforeColon),
        ("Transfer-Encoding\t: chunked", R::SpaceBeforeColon),
        (" Transfer-Encoding: chunked", R::ObsFold),
        ("Transfer-Encoding: \x0bchunked", R::ControlByte),
        ("Transfer-Encoding: chunked\0", R::ControlByte),
        ("Transfer-Encoding:\r\n chunked", R::ObsFold),
        ("X: y\nTransfer-Encoding: chunked", R::BareLf),
    ];
    for (line, reason) in payloads {
        let request = format!("POST / HTTP/1.1\r\nHost: a.test\r\n{line}\r\n\r\n0\r\n\r\n");
        assert_eq!(parse(request.as_bytes()), Err(reason), "{line:?}");
    }
    let in_http10 = b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    refuse_all(&[(in_http10, R::TransferEncodingInHttp10)]);
    for line in ["Chunked", "chunked", "CHUNKED", " \tchunked\t "] {
        let request = format!("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding:{line}\r\n\r\n");
        assert_eq!(accepted(request.as_bytes()).framing, Framing::Chunked, "{line:?}");
    }
}

#[test]
fn content_length_is_digits_on_one_line() {
    for (value, right) in [("0", 0), ("5", 5), ("0005", 5), ("18446744073709551615", u64::MAX)] {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {value}\r\n\r\n");
        assert_eq!(
            accepted(request.as_bytes()).framing,
            Framing::Length(right),
            "{value:?}"
        );
    }
    let bad = [
        "",
        "+5",
        "-1",
        "5,5",
        "5, 5",
        "0x5",
        "5 5",
        "5;",
        "five",
        "18446744073709551616",
        "\u{665}",
        "1e3",
        "1_0",
    ];
    for value in bad {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {value}\r\n\r\n");
        assert_eq!(parse(request.as_bytes()), Err(R::BadContentLength), "{value:?}");
    }
    for second in ["5", "6"] {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\ncontent-length: {second}\r\n\r\n");
        assert_eq!(parse(request.as_bytes()), Err(R::DuplicateContentLength));
    }
}

#[test]
fn b100_malformed_heads_are_refused() {
    refuse_all(&[
        (b"GET / HTTP/1.1\nHost: a\r\n\r\n", R::BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", R::BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\n", R::BareLf),
        (b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", R::BareLf),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rY: b\r\n\r\n", R::BareCr),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\r\n\r\n", R::BareCr),
        (b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", R::BareCr),
        (b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", R::BareCr),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", R::ControlByte),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n", R::ControlByte),
        (b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", R::ControlByte),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n", R::ControlByte),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n folded\r\n\r\n", R::ObsFold),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tfolded: z\r\n\r\n", R::ObsFold),
        (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", R::ObsFold),
        (b"GET / HTTP/1.1\r\n\tX: y\r\nHost: a\r\n\r\n", R::ObsFold),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n",
            R::SpaceBeforeColon,
        ),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 5\r\n\r\n",
            R::SpaceBeforeColon,
        ),
        (b"GET / HTTP/1.1\r\nHost: a\r\n: v\r\n\r\n", R::EmptyName),
        (b"GET / HTTP/1.1\r\n: v\r\nHost: a\r\n\r\n", R::EmptyName),
        (b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", R::NoColon),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n", R::BadName),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX\xff: z\r\n\r\n", R::BadName),
        (b"GET / HTTP/1.1\r\nHost: a\r\n(x): z\r\n\r\n", R::BadName),
        (b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", R::BadRequestLine),
        (b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", R::BadRequestLine),
        (b"\x16\x03\x01\x02\x00", R::ControlByte),
    ]);
}

#[test]
fn request_lines_are_read_strictly() {
    let lines: [(&[u8], RejectReason); 33] = [
        (b"GET  / HTTP/1.1", R::BadRequestLine),
        (b"GET /  HTTP/1.1", R::BadRequestLine),
        (b"GET / HTTP/1.1 ", R::BadRequestLine),
        (b"GET /a b HTTP/1.1", R::BadRequestLine),
        (b"GET /", R::BadRequestLine),
        (b"GET", R::BadRequestLine),
        (b"GET HTTP/1.1", R::BadRequestLine),
        (b"GET\t/ HTTP/1.1", R::BadMethod),
        (b"GET /\t HTTP/1.1", R::BadTarget),
        (b"GET /\x0b HTTP/1.1", R::ControlByte),
        (b"GE(T / HTTP/1.1", R::BadMethod),
        (b"G\xc3\x89T / HTTP/1.1", R::BadMethod),
        (b"\"GET\" / HTTP/1.1", R::BadMethod),
        (b"GET / http/1.1", R::BadVersion),
        (b"GET / HTTP/1.", R::BadVersion),
        (b"GET / HTTP/1.10", R::BadVersion),
        (b"GET / HTTP/01.1", R::BadVersion),
        (b"GET / HTTP/1,1", R::BadVersion),
        (b"GET / HTTPS/1.1", R::BadVersion),
        (b"GET / ", R::BadVersion),
        (b"GET / HTTP/2.0", R::UnsupportedVersion),
        (b"GET / HTTP/0.9", R::UnsupportedVersion),
        (b"PRI * HTTP/2.0", R::UnsupportedVersion),
        (b"GET /#top HTTP/1.1", R::BadTarget),
        (b"GET x HTTP/1.1", R::BadTarget),
        (b"GET ?q HTTP/1.1", R::BadTarget),
        (b"GET * HTTP/1.1", R::BadTarget),
        (b"GET a.test:80 HTTP/1.1", R::BadTarget),
        (b"GET ftp://a.test/ HTTP/1.1", R::BadTarget),
        (b"GET http:/a.test/ HTTP/1.1", R::BadTarget),
        (b"GET http://u@a.test/ HTTP/1.1", R::BadTarget),
        (b"CONNECT a.test HTTP/1.1", R::BadTarget),
        (b"CONNECT /x HTTP/1.1", R::BadTarget),
    ];
    for (line, reason) in lines {
        let request = [line, b"\r\nHost: a.test\r\n\r\n"].concat();
        assert_eq!(parse(&request), Err(reason), "{}", line.escape_ascii());
    }
}

#[test]
fn b101_heads_beyond_a_limit_are_refused() {
    let repeat = |text: &str, times| text.repeat(times).into_bytes();
    let host = b"GET / HTTP/1.1\r\nHost: a\r\n";
    let cases: [(Vec<u8>, RejectReason); 9] = [
        (
            [&host[..], &repeat("X: y\r\n", 10_000), b"\r\n"].concat(),
            R::TooManyHeaders,
        ),
        (
            [&host[..], &repeat("X: y\r\n", 100), b"\r\n"].concat(),
            R::TooManyHeaders,
        ),
        (
            [&host[..], b"X: ", &repeat("y", 1 << 20), b"\r\n\r\n"].concat(),
            R::HeadTooLarge,
        ),
        ([&host[..], b"X: ", &repeat("y", 32 * 1024)].concat(), R::HeadTooLarge),
        ([&host[..], &repeat("y", 32 * 1024), b": x"].concat(), R::HeadTooLarge),
        (
            [b"GET /", &repeat("u", 64 * 1024)[..], b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat(),
            R::TargetTooLong,
        ),
        (
            [b"GET /", &repeat("u", 8 * 1024)[..], b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat(),
            R::TargetTooLong,
        ),
        (
            [&repeat("G", 65)[..], b" / HTTP/1.1\r\nHost: a\r\n\r\n"].concat(),
            R::MethodTooLong,
        ),
        (repeat("G", 64 * 1024), R::MethodTooLong),
    ];
    for (bytes, reason) in cases {
        let shown = bytes[..40].escape_ascii().to_string();
        assert_eq!(parse(&bytes), Err(reason), "{shown}");
        assert_eq!(
            parse_in_pieces(&bytes, &[1000], &LIMITS),
            Err(reason),
            "{shown} in pieces"
        );
    }
    let lines = [&host[..], &repeat("X: y\r\n", 99), b"\r\n"].concat();
    assert_eq!(accepted(&lines).headers.len(), 100);
    let target = [
        b"GET /",
        &repeat("u", 8 * 1024 - 1)[..],
        b" HTTP/1.1\r\nHost: a\r\n\r\n",
    ]
    .concat();
    assert_eq!(accepted(&target).target.len(), 8 * 1024);
    let rest = 32 * 1024 - host.len() - "X: \r\n\r\n".len();
    let whole = [&host[..], b"X: ", &repeat("y", rest), b"\r\n\r\n"].concat();
    assert_eq!(accepted(&whole).consumed, 32 * 1024);
}

#[test]
fn limits_leave_room_for_both_target_and_fields() {
    let derive = |head_bytes| {
        let limits = crate::config::Limits {
            head_bytes,
            headers: 100,
            body_bytes: 0,
            body_rate: 0,
            connections: 1,
            connections_per_client: None,
        };
        HeadLimits::from(&limits).target_bytes
    };
    assert_eq!([4096, 16_384, 65_536].map(derive), [4096, 8192, 32_768]);
}

#[test]
fn b31_authority_of_an_absolute_target_overrides_host() {
    let seen = accepted(b"GET http://A.test:80/x?y HTTP/1.1\r\nHost: b.test\r\n\r\n");
    assert_eq!(seen.host.as_deref(), Some("a.test"));
    let seen = accepted(b"GET http://a.test:8080 HTTP/1.0\r\n\r\n");
    assert_eq!(seen.host.as_deref(), Some("a.test:8080"));
    refuse_all(&[
        (b"GET http://a.test/ HTTP/1.1\r\n\r\n", R::MissingHost),
        (b"GET http://a.test/ HTTP/1.1\r\nHost: a b\r\n\r\n", R::BadHost),
        (
            b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
            R::DuplicateHost,
        ),
    ]);
}

#[test]
fn b32_host_is_normalised_or_refused() {
    let normal = [
        ("EXAMPLE.test", "example.test"),
        ("example.test", "example.test"),
        ("example.test.", "example.test"),
        ("example.test:80", "example.test"),
        ("example.test:", "example.test"),
        ("example.test:8080", "example.test:8080"),
        ("[::1]:80", "[::1]"),
        ("[0:0::0001]:81", "[::1]:81"),
    ];
    for (host, right) in normal {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(accepted(request.as_bytes()).host.as_deref(), Some(right), "{host:?}");
    }
    for host in [
        "",
        "u@example.test",
        "a b",
        "example.test:99999",
        ":80",
        "a,b",
        "a/b",
        "a?b",
        "a\\b",
        "[::1",
        ".",
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(parse(request.as_bytes()), Err(R::BadHost), "{host:?}");
        let request = format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n");
        assert_eq!(parse(request.as_bytes()), Err(R::BadHost), "{host:?} in 1.0");
    }
    refuse_all(&[
        (b"GET / HTTP/1.1\r\n\r\n", R::MissingHost),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", R::DuplicateHost),
        (b"GET / HTTP/1.0\r\nHost: a\r\nhOST: b\r\n\r\n", R::DuplicateHost),
        (b"GET / HTTP/1.1\r\nHost: exa\0mple\r\n\r\n", R::ControlByte),
    ]);
    assert_eq!(accepted(b"GET / HTTP/1.0\r\n\r\n").host, None);
}

#[test]
fn b37_framing_of_a_get_is_told() {
    let seen = accepted(b"GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nq=poison1");
    assert_eq!((seen.framing, seen.consumed), (Framing::Length(9), 47));
    assert_eq!(accepted(VALID[0]).framing, Framing::None);
}

/// A head reads the same wherever it is cut, accepted or refused.
fn same_in_pieces(bytes: &[u8], limits: &HeadLimits) {
    let whole = parse_within(bytes, limits);
    for pieces in [&[1][..], &[2], &[3, 1, 7]] {
        assert_eq!(
            parse_in_pieces(bytes, pieces, limits),
            whole,
            "{} by {pieces:?}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn heads_read_the_same_split_at_any_byte() {
    for bytes in VALID {
        let whole = accepted(bytes);
        for at in 0..bytes.len() {
            assert_eq!(
                parse_in_pieces(bytes, &[at.max(1), bytes.len()], &LIMITS),
                Ok(Some(whole.clone()))
            );
            let right = (at >= whole.consumed).then(|| whole.clone());
            assert_eq!(parse(&bytes[..at]), Ok(right), "{}", bytes[..at].escape_ascii());
        }
        same_in_pieces(bytes, &LIMITS);
    }
}

/// What was accepted is one message, to another reader and when it is written again.
fn same_to_oracle(bytes: &[u8]) {
    let told = match parse(bytes) {
        Ok(Some(seen)) => seen,
        Ok(None) => return,
        Err(reason) => {
            let beyond_syntax = matches!(
                reason,
                R::BadTarget
                    | R::MissingHost
                    | R::DuplicateHost
                    | R::BadHost
                    | R::UnknownExpectation
                    | R::TooManyHeaders
                    | R::MethodTooLong
            );
            assert!(
                beyond_syntax || oracle::read(bytes).is_none(),
                "{reason:?} for {}",
                bytes.escape_ascii()
            );
            return;
        }
    };
    let read = oracle::read(bytes);
    let mut read = read.unwrap_or_else(|| panic!("accepted, but malformed: {}", bytes.escape_ascii()));
    if !read.target.starts_with(b"/") && read.method != b"CONNECT" {
        // The front tells a scheme as a value, so its case is gone.
        let scheme = read.target.iter().position(|byte| *byte == b':').unwrap_or_default();
        read.target[..scheme].make_ascii_lowercase();
    }
    assert_eq!(
        (told.method.as_bytes(), &told.target[..], told.consumed),
        (&read.method[..], &read.target[..], read.end)
    );
    let fields: Vec<_> = told
        .headers
        .iter()
        .map(|(n, v)| (n.to_ascii_lowercase().into_bytes(), v.clone()))
        .collect();
    assert_eq!(fields, read.fields);
    let framing = match (read.length, read.chunked) {
        (Some(length), false) => Framing::Length(length),
        (None, chunked) => {
            if chunked {
                Framing::Chunked
            } else {
                Framing::None
            }
        }
        (Some(_), true) => panic!("two framings"),
    };
    assert_eq!(told.framing, framing);

    same_when_written_again(told, read);
}

fn same_when_written_again(told: Seen, read: oracle::Message) {
    let version: &[u8] = if told.version == Version::Http11 {
        b"HTTP/1.1"
    } else {
        b"HTTP/1.0"
    };
    let mut again = [told.method.as_bytes(), b" ", &told.target, b" ", version, b"\r\n"].concat();
    for (name, value) in &told.headers {
        again.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    again.extend_from_slice(b"\r\n");
    let mut right = read;
    right.minor = u8::from(told.version == Version::Http11);
    right.end = again.len();
    assert_eq!(oracle::read(&again), Some(right));
    assert_eq!(
        parse(&again),
        Ok(Some(Seen {
            consumed: again.len(),
            ..told
        }))
    );
}

#[test]
fn valid_heads_are_one_message_to_another_reader() {
    for bytes in VALID {
        accepted(bytes);
        same_to_oracle(bytes);
    }
}

/// Bytes that parsers differ on, and some that they don't.
const SPICE: &[u8] = b"\r\n\0 \t:,;#?/*@[].\x0b\x7f\x80\xff0519aGTX-_=\"";
const SPLICES: [&[u8]; 14] = [
    b"\r\n",
    b"\r\n\r\n",
    b"\r\n ",
    b"\n",
    b"\r",
    b"Content-Length: 5\r\n",
    b"Content-Length: 6, 6\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Host: c.test\r\n",
    b"Connection: close\r\n",
    b" HTTP/1.1",
    b"http://",
    b": ",
];

#[derive(Debug, Clone)]
enum Edit {
    Replace(usize, u8),
    Insert(usize, u8),
    Remove(Range<usize>),
    Splice(usize, &'static [u8]),
}

fn edit() -> impl Strategy<Value = Edit> {
    let byte = || prop_oneof![8 => prop::sample::select(SPICE), 1 => any::<u8>()];
    prop_oneof![
        (any::<usize>(), byte()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        (any::<usize>(), byte()).prop_map(|(at, byte)| Edit::Insert(at, byte)),
        (0..200_usize, 1..6_usize).prop_map(|(at, len)| Edit::Remove(at..at + len)),
        (any::<usize>(), prop::sample::select(&SPLICES[..])).prop_map(|(at, bytes)| Edit::Splice(at, bytes)),
    ]
}

/// A splice goes where a line begins, one time in two: elsewhere it is seldom more than noise.
fn apply(bytes: &mut Vec<u8>, edit: &Edit) {
    let len = bytes.len();
    match edit {
        Edit::Replace(at, byte) if len > 0 => bytes[at % len] = *byte,
        Edit::Replace(..) => {}
        Edit::Insert(at, byte) => bytes.insert(at % (len + 1), *byte),
        Edit::Remove(range) => drop(bytes.drain(range.start.min(len)..range.end.min(len))),
        Edit::Splice(at, splice) => {
            let lines: Vec<_> = (1..len).filter(|at| bytes[at - 1] == b'\n').collect();
            let at = if at % 2 == 0 && !lines.is_empty() {
                lines[at / 2 % lines.len()]
            } else {
                at % (len + 1)
            };
            drop(bytes.splice(at..at, splice.iter().copied()));
        }
    }
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    (prop::sample::select(&VALID[..]), prop::collection::vec(edit(), 0..4)).prop_map(|(bytes, edits)| {
        let mut bytes = bytes.to_vec();
        edits.iter().for_each(|edit| apply(&mut bytes, edit));
        bytes
    })
}

pub(super) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn mutated_heads_are_one_message_or_none(bytes in mutated()) {
        same_to_oracle(&bytes);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(prop_oneof![prop::sample::select(SPICE), any::<u8>()], 0..120)) {
        same_to_oracle(&bytes);
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn mutated_heads_read_the_same_in_pieces(bytes in mutated()) {
        same_in_pieces(&bytes, &LIMITS);
        same_in_pieces(&bytes, &HeadLimits { head_bytes: 90, headers: 2, target_bytes: 12 });
    }
}
