use larder_semantics::Fields;

use super::super::tests::{LIMITS, accepted, parse};
use super::*;

#[test]
fn versions_and_persistence() {
    let cases = [
        ("HTTP/1.1", "", true),
        ("HTTP/1.1", "Connection: close\r\n", false),
        ("HTTP/1.1", "Connection: Keep-Alive\r\n", true),
        ("HTTP/1.1", "Connection: x, CLOSE ,y\r\n", false),
        ("HTTP/1.1", "Connection: x\r\nConnection: close\r\n", false),
        ("HTTP/1.1", "Connection: closed\r\n", true),
        ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: keep-alive\r\n", true),
        ("HTTP/1.0", "Connection: keep-alive, close\r\n", false),
        ("HTTP/1.9", "", true),
    ];
    for (version, line, right) in cases {
        let request = format!("GET / {version}\r\nHost: a\r\n{line}\r\n");
        let seen = accepted(request.as_bytes());
        assert_eq!(seen.persistent, right, "{version} {line:?}");
        assert_eq!(seen.version == Version::Http10, version == "HTTP/1.0");
    }
}

#[test]
fn expectations() {
    let put = |version: &str, lines: &str| {
        parse(format!("PUT / {version}\r\nHost: a\r\nContent-Length: 1\r\n{lines}\r\n").as_bytes())
            .map(|seen| seen.unwrap().expect_continue)
    };
    assert_eq!(put("HTTP/1.1", ""), Ok(false));
    assert_eq!(put("HTTP/1.1", "Expect: 100-continue\r\n"), Ok(true));
    assert_eq!(put("HTTP/1.1", "EXPECT: 100-Continue \r\n"), Ok(true));
    // RFC 9110 section 10.1.1: such a client doesn't wait.
    assert_eq!(put("HTTP/1.0", "Expect: 100-continue\r\n"), Ok(false));
    for junk in ["junk", "", "100-continue, 100-continue", "100-continue;x"] {
        assert_eq!(
            put("HTTP/1.1", &format!("Expect: {junk}\r\n")),
            Err(RejectReason::UnknownExpectation),
            "{junk:?}"
        );
    }
}

#[test]
fn upgrade_needs_connection_and_http11() {
    let get =
        |version: &str, lines: &str| accepted(format!("GET / {version}\r\nHost: a\r\n{lines}\r\n").as_bytes()).upgrade;
    let websocket = Some(b"websocket".to_vec());
    assert_eq!(
        get("HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        websocket
    );
    assert_eq!(
        get("HTTP/1.1", "Upgrade: websocket\r\nConnection: keep-alive,upgrade\r\n"),
        websocket
    );
    assert_eq!(
        get(
            "HTTP/1.1",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n"
        ),
        websocket
    );
    assert_eq!(get("HTTP/1.1", "Upgrade: websocket\r\n"), None);
    assert_eq!(get("HTTP/1.1", "Connection: upgrade\r\n"), None);
    assert_eq!(get("HTTP/1.0", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), None);
}

#[test]
fn target_forms() {
    let show = |line: &str| {
        let request = format!("{line} HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut slots = FieldSlots::new();
        let (head, _) = super::parse(request.as_bytes(), &mut slots, &LIMITS).unwrap().unwrap();
        let kind = match head.target {
            Target::Origin(_) => "origin",
            Target::Absolute { scheme, .. } => scheme.name(),
            Target::Authority(_) => "authority",
            Target::Asterisk => "asterisk",
        };
        let path = String::from_utf8(head.target.path_and_query().to_vec()).unwrap();
        (kind, path, head.host.unwrap().as_sent().to_owned())
    };
    let right = |kind, path: &str, host: &str| (kind, path.to_owned(), host.to_owned());
    assert_eq!(show("GET /"), right("origin", "/", "h"));
    assert_eq!(show("GET //a.test/x"), right("origin", "//a.test/x", "h"));
    assert_eq!(
        show("get /a|{b}\\^`<>\"é?x=%zz"),
        right("origin", "/a|{b}\\^`<>\"é?x=%zz", "h")
    );
    assert_eq!(show("GET http://a.test/x?y:z@"), right("http", "/x?y:z@", "a.test"));
    assert_eq!(show("GET HtTpS://a.test"), right("https", "", "a.test"));
    assert_eq!(show("OPTIONS http://a.test?q"), right("http", "?q", "a.test"));
    assert_eq!(show("OPTIONS *"), right("asterisk", "", "h"));
    assert_eq!(show("CONNECT a.test:443"), right("authority", "", "a.test:443"));
}

#[test]
fn fields_are_found_without_case_and_in_order() {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nAccept: one\r\nX: y\r\nACCEPT:\t two \r\nAccepts: no\r\n\r\n";
    let mut slots = FieldSlots::new();
    let (head, _) = super::parse(request, &mut slots, &LIMITS).unwrap().unwrap();
    assert_eq!(head.lines("accept").collect::<Vec<_>>(), [&b"one"[..], b"two"]);
    assert_eq!(head.lines("absent").count(), 0);
}

#[test]
fn pipelined_heads_are_read_one_by_one() {
    let requests = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP";
    let first = accepted(requests);
    let second = accepted(&requests[first.consumed..]);
    assert_eq!((&first.target[..], &second.target[..]), (&b"/1"[..], &b"/2"[..]));
    assert_eq!(parse(&requests[first.consumed + second.consumed..]), Ok(None));
}
