//! Requests and answers whose framing or syntax is not beyond doubt (RFC 9112): refused, or sent on as exactly one message.

use larder_tests::client::{Client, raw, request};
use larder_tests::origin::Step;
use larder_tests::{End, Origin, Reply, TestNode};

/// An origin that answers everything, and a node before it.
fn open_house() -> (Origin, TestNode) {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("origin").cached("no-store")]);
    let node = TestNode::before(&origin);
    (origin, node)
}

/// Sends bytes that are to be refused, with a request behind them that must not be taken for one.
fn check_refused(origin: &Origin, node: &TestNode, bytes: &str, statuses: &[u16]) {
    origin.clear_log();
    let mut client = node.connect();
    let _ = client.try_send(bytes.to_owned() + &request("GET", "a.test", "/smuggled", ""));
    let answers: Vec<_> = client.read_all().iter().map(|r| r.status).collect();
    assert!(
        answers.len() == 1 && statuses.contains(&answers[0]),
        "{bytes:?}: answered {answers:?}"
    );
    let seen: Vec<_> = origin.log().iter().map(|r| r.target.clone()).collect();
    assert!(seen.is_empty(), "{bytes:?}: {seen:?} reached the origin");
    assert_eq!(origin.violations(), Vec::<String>::new());
}

fn post(lines: &str, body: &str) -> String {
    request("POST", "a.test", "/p", lines) + body
}

#[test]
fn b96_length_and_chunked_together_are_refused() {
    let (origin, node) = open_house();
    let both = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ];
    for lines in both {
        check_refused(&origin, &node, &post(lines, "0\r\n\r\n"), &[400]);
        check_refused(&origin, &node, &request("GET", "a.test", "/p", lines), &[400]);
    }
    for lines in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
    ] {
        check_refused(&origin, &node, &post(lines, "hello"), &[400]);
    }
    for length in [
        "+5",
        "-5",
        "0x5",
        "5 ",
        "5,",
        "5;",
        "five",
        "",
        "5 5",
        "99999999999999999999999",
        "5\t5",
        "\u{b9}",
    ] {
        if length.trim() != "5" {
            check_refused(
                &origin,
                &node,
                &post(&format!("Content-Length: {length}\r\n"), "hello"),
                &[400, 413],
            );
        }
    }
}

#[test]
fn b96_an_answer_with_both_is_read_as_chunked_and_not_stored() {
    let origin = Origin::start();
    for (path, lines) in [
        ("/length-first", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
        ("/chunked-first", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
    ] {
        let reply = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{lines}\r\n5\r\nhello\r\n0\r\n\r\n");
        origin.on(path, [Reply::raw(reply)]);
    }
    let node = TestNode::before(&origin);
    for path in ["/length-first", "/chunked-first"] {
        for n in 1..=2 {
            let response = node.get("a.test", path);
            assert!(!response.is_hit() && origin.count(path) == n, "{path}: stored");
            // The client itself refuses an answer with two framings.
            let right = response.body == b"hello" && response.is_complete();
            assert!(right || response.status == 502, "{path}: {response:?}");
        }
    }
}

#[test]
fn b97_only_chunked_is_a_transfer_encoding() {
    let (origin, node) = open_house();
    let body = "5\r\nhello\r\n0\r\n\r\n";
    let bad = [
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: chunked,",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunkedx",
        "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: identity",
        "Transfer-Encoding:",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        " Transfer-Encoding: chunked",
        "Transfer-Encoding: \u{b}chunked",
        "Transfer-Encoding: chunked\u{b}",
        "Transfer-Encoding: \0chunked",
        "X: y\rTransfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "Transfer-Encoding:\r\n chunked",
    ];
    for line in bad {
        check_refused(&origin, &node, &post(&format!("{line}\r\n"), body), &[400, 501]);
    }
    let old = format!("POST /p HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    check_refused(&origin, &node, &old, &[400, 501]);
}

#[test]
fn b97_chunked_in_any_case_and_with_white_space_is_one_clean_message() {
    let (origin, node) = open_house();
    for line in [
        "Transfer-Encoding: chunked",
        "transfer-encoding:Chunked",
        "TRANSFER-ENCODING: CHUNKED",
        "Transfer-Encoding: chunked\t",
        "Transfer-Encoding: \t chunked  ",
    ] {
        let mut client = node.connect();
        client.send(post(&format!("{line}\r\n"), "5\r\nhello\r\n0\r\n\r\n"));
        let _ = client.read_response().expect(200, "origin");
        let forwarded = origin.last("/p");
        assert_eq!(
            (forwarded.body.as_slice(), forwarded.complete),
            (&b"hello"[..], true),
            "{line}"
        );
        let framings = forwarded.fields.all("transfer-encoding").len() + forwarded.fields.all("content-length").len();
        assert_eq!(framings, 1, "{line}");
    }
    assert_eq!(origin.violations(), Vec::<String>::new());
}

const BAD_CHUNKS: [&str; 22] = [
    "5these-bytes\r\nhello\r\n0\r\n\r\n",
    "-5\r\nhello\r\n0\r\n\r\n",
    "+5\r\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "-0x0\r\n\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "5\r\nhello0\r\n\r\n",
    "5\r\nhello\r\r\n0\r\n\r\n",
    "5\rhello\r\n0\r\n\r\n",
    "5\r\r\nhello\r\n0\r\n\r\n",
    "5;a\rb\r\nhello\r\n0\r\n\r\n",
    "5;a\nb\r\nhello\r\n0\r\n\r\n",
    "5;a\0b\r\nhello\r\n0\r\n\r\n",
    "\r\nhello\r\n0\r\n\r\n",
    " 5\r\nhello\r\n0\r\n\r\n",
    ";x\r\nhello\r\n0\r\n\r\n",
    "g\r\nhello\r\n0\r\n\r\n",
    "10000000000000000\r\nhello\r\n0\r\n\r\n",
    "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "5_0\r\nhello\r\n0\r\n\r\n",
    "5,\r\nhello\r\n0\r\n\r\n",
];

#[test]
fn b99_bad_chunks_in_a_request_are_refused() {
    let (origin, node) = open_house();
    for body in BAD_CHUNKS {
        origin.clear_log();
        // The head may have gone on before the body was read; what may not happen is a whole message, or another one.
        let answers = raw(
            node.data,
            post("Transfer-Encoding: chunked\r\n", body) + &request("GET", "a.test", "/smuggled", ""),
        );
        let statuses: Vec<_> = answers.iter().map(|r| r.status).collect();
        assert_eq!(statuses, [400], "{body:?}");
        assert!(
            origin.log().iter().all(|r| r.target == "/p" && !r.complete),
            "{body:?}: {:?}",
            origin.log()
        );
    }
    let trailers = [
        "X : y\r\n",
        "X\r\n",
        " X: y\r\n",
        "X: a\rb\r\n",
        ": y\r\n",
        "X: a\0b\r\n",
    ];
    for trailer in trailers {
        let answers = raw(
            node.data,
            post(
                "Transfer-Encoding: chunked\r\n",
                &format!("5\r\nhello\r\n0\r\n{trailer}\r\n"),
            ),
        );
        assert_eq!(
            answers.iter().map(|r| r.status).collect::<Vec<_>>(),
            [400],
            "{trailer:?}"
        );
    }
}

#[test]
fn b99_bad_chunks_in_an_answer_are_aborted_and_not_stored() {
    let origin = Origin::start();
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (n, body) in BAD_CHUNKS.iter().enumerate() {
        let steps = vec![Step::send(head), Step::send(body), Step::Close];
        origin.on(
            &format!("/{n}"),
            [Reply::steps(steps), Reply::ok("well").cached("max-age=60")],
        );
    }
    let node = TestNode::before(&origin);
    for (n, body) in BAD_CHUNKS.iter().enumerate() {
        let path = format!("/{n}");
        let first = node.get("a.test", &path);
        assert!(
            first.status == 502 || first.end != End::Complete || first.body == b"hello",
            "{body:?}: {first:?}"
        );
        let second = node.get("a.test", &path);
        assert!(
            second.text() == "well" || second.text() == "hello",
            "{body:?}: {second:?}"
        );
        // Only what was read as a whole message may have been stored.
        assert!(!second.is_hit() || first.is_complete(), "{body:?}: {second:?}");
    }
}

#[test]
fn b99_chunk_extensions_are_limited_and_tiny_chunks_are_fine() {
    let (origin, node) = open_house();
    let mut client = node.connect();
    let chunked = "Transfer-Encoding: chunked\r\n";
    client.send(post(chunked, "5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n"));
    let _ = client.read_response().expect(200, "origin");
    assert_eq!(origin.last("/p").body, b"hello");
    client.send(post(chunked, &("1\r\nx\r\n".repeat(100_000) + "0\r\n\r\n")));
    let _ = client.read_response().expect(200, "origin");
    assert_eq!(origin.last("/p").body.len(), 100_000);

    // Up to 64 MiB of one extension, then of many small ones: it must be refused long before the end.
    for piece in [
        "x".repeat(64 << 10),
        format!("1;{}\r\nx\r\n", "y".repeat(1000)).repeat(64),
    ] {
        let mut client = node.connect();
        client.send(post(chunked, if piece.starts_with('x') { "5;" } else { "" }));
        let taken = (0..1024).take_while(|_| client.try_send(&piece).is_ok()).count();
        assert!(taken < 1024, "64 MiB of extensions were taken");
        if let Ok(answer) = client.try_read_response("GET") {
            assert_eq!(answer.status, 400);
        }
    }
    assert!(origin.log().iter().all(|r| r.target == "/p"));
}

#[test]
fn b100_malformed_heads_are_refused() {
    let (origin, node) = open_house();
    let get = |lines: &str| request("GET", "a.test", "/p", lines);
    let bad = [
        "GET /p HTTP/1.1\nHost: a.test\n\n".to_owned(),
        "GET /p HTTP/1.1\r\nHost: a.test\nX: y\r\n\r\n".to_owned(),
        "GET /p HTTP/1.1\nHost: a.test\r\n\r\n".to_owned(),
        get("X: a\rY: b\r\n"),
        get("X: a\r\r\n"),
        get("X: a\0b\r\n"),
        get("X: a\u{1}b\r\n"),
        get("X: a\u{7f}b\r\n"),
        get("X: a\r\n folded\r\n"),
        get("X: a\r\n\tfolded\r\n"),
        get("Content-Length : 0\r\n"),
        get("X\t: a\r\n"),
        get(": v\r\n"),
        get("no colon\r\n"),
        get("X y: a\r\n"),
        get("X\"y: a\r\n"),
        get("X(y): a\r\n"),
        get("\u{e4}: a\r\n"),
        "GET /p HTTP/1.1\r\n X: leading\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /p HTTP/1.1\r\n\tX: leading\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET  /p HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /p  HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /p HTTP/1.1 \r\nHost: a.test\r\n\r\n".to_owned(),
        "GET\t/p HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        " GET /p HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /a b HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /a\0b HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET p HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET * HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /p#fragment HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "G@T /p HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /p HTTP/1.10\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /p http/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /p HTTP/11\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET /p\r\nHost: a.test\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0\r\n\r\n".to_owned(),
    ];
    for bytes in bad {
        check_refused(&origin, &node, &bytes, &[400]);
    }
    for version in ["HTTP/2.0", "HTTP/3.0", "HTTP/0.9"] {
        check_refused(
            &origin,
            &node,
            &format!("GET /p {version}\r\nHost: a.test\r\n\r\n"),
            &[400, 505],
        );
    }
}

#[test]
fn b100_a_head_that_trickles_in_is_one_head() {
    let (origin, node) = open_house();
    let mut client = node.connect();
    for byte in request("GET", "a.test", "/p", "X: y\r\n").bytes() {
        client.send([byte]);
    }
    let _ = client.read_response().expect(200, "origin");
    // Empty lines before a request are skipped (RFC 9112 section 2.2).
    client.send("\r\n".to_owned() + &request("GET", "a.test", "/p", ""));
    let _ = client.read_response().expect(200, "origin");
    assert_eq!(origin.count("/p"), 2);
}

#[test]
fn b100_malformed_answers_reach_nobody() {
    let origin = Origin::start();
    let answer = |lines: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{lines}\r\nhello");
    let bad = [
        answer("X: a\0b\r\n"),
        answer("X: a\rY: b\r\n"),
        answer(": v\r\n"),
        answer("no colon\r\n"),
        answer("X y: a\r\n"),
        answer("X: a\r\n folded\r\n"),
        answer("X : a\r\n"),
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello".to_owned(),
        "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        "HTTP/1.1 abc OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        "HTTP/3.0 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        "ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
        "hello".to_owned(),
        String::new(),
    ];
    for (n, bytes) in bad.iter().enumerate() {
        origin.on(&format!("/{n}"), [Reply::steps(vec![Step::send(bytes), Step::Close])]);
    }
    let node = TestNode::before(&origin);
    for (n, bytes) in bad.iter().enumerate() {
        // The client is strict: what was let through was made clean first.
        let answer = node
            .connect()
            .send(request("GET", "a.test", &format!("/{n}"), ""))
            .try_read_response("GET");
        let answer = answer.unwrap_or_else(|e| panic!("{bytes:?}: {e:?}"));
        let clean = answer.status == 200 && answer.body == b"hello";
        assert!(answer.status == 502 || clean, "{bytes:?}: {answer:?}");
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::start();
    origin.on_each("*", |request, _| {
        Reply::ok(&request.target)
            .cached(if request.target.ends_with('h') {
                "max-age=60"
            } else {
                "no-store"
            })
            .steps_for("GET")
    });
    let node = TestNode::before(&origin);
    let _ = node.get("a.test", "/h").expect(200, "/h");
    let targets: Vec<_> = (0..64)
        .map(|n| if n % 3 == 0 { "/h".to_owned() } else { format!("/{n}") })
        .collect();
    let mut client: Client = node.connect();
    client.send(
        targets
            .iter()
            .map(|t| request("GET", "a.test", t, ""))
            .collect::<String>(),
    );
    for target in &targets {
        let _ = client.read_response().expect(200, target);
    }
}
