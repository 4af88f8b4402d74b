//! Bodies that end early, late or not at all, on either side: nobody gets a part for the whole, nothing stays stuck.

use std::thread;
use std::time::Duration;

use larder_tests::client::{get, request};
use larder_tests::origin::Step;
use larder_tests::{Client, End, Origin, Reply, TestNode, wait_until};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Bytes that differ from place to place, so that a shifted or torn body is seen.
fn pattern(n: usize) -> Vec<u8> {
    (0..n)
        .map(|i| u8::try_from((i * 31 + i / 251) % 251).expect("below 251"))
        .collect()
}

/// A node that keeps objects of a few megabytes.
fn roomy(origin: &Origin) -> TestNode {
    TestNode::builder()
        .origin(origin)
        .memory("max_size = \"256MiB\"\nmax_object = \"16MiB\"")
        .start()
}

/// Ways in which a chunked body ends before its end.
fn truncations() -> [(&'static str, Vec<Step>); 6] {
    let after_half = |rest: &[Step]| [&[Step::send(CHUNKED), Step::chunk("half")], rest].concat();
    [
        ("/close", after_half(&[Step::Close])),
        ("/reset", after_half(&[Step::gate("reset"), Step::Reset])),
        ("/in-size", after_half(&[Step::send("1"), Step::Close])),
        ("/bad-size", after_half(&[Step::send("zz\r\n"), Step::Close])),
        (
            "/in-data",
            vec![Step::send(CHUNKED), Step::send("a\r\nhalf"), Step::Close],
        ),
        ("/in-trailers", after_half(&[Step::send("0\r\nX: "), Step::Close])),
    ]
}

#[test]
fn b56_truncated_chunked_body_is_never_cached_as_whole() {
    let origin = Origin::start();
    let broken = truncations();
    for (path, steps) in &broken {
        let whole = Reply::ok("the whole").cached("max-age=60");
        origin.on(path, [Reply::steps(steps.clone()), whole]);
    }
    let node = TestNode::before(&origin);
    for (path, _) in &broken {
        let mut client = node.connect();
        client.send(request("GET", "a.test", path, ""));
        let first = client.read_head("GET").expect("a head");
        // The reset waits until what came before it has gone through.
        origin.open_gate("reset");
        let rest = client.read_to_end();
        assert!(
            first.status == 502 || !rest.ends_with(b"0\r\n\r\n"),
            "{path}: looks complete"
        );
        assert!(
            first.status == 502 || !first.fields.has("content-length"),
            "{path}: {first:?}"
        );
        assert_eq!(
            node.get("a.test", path).expect(200, "the whole").cache(),
            "MISS",
            "{path}"
        );
        assert!(node.get("a.test", path).expect(200, "the whole").is_hit(), "{path}");
        assert_eq!(origin.count(path), 2, "{path}");
    }
    node.wait_figure("total/not_stored/truncated", i64::try_from(broken.len()).expect("few"));
}

#[test]
fn b57_short_body_is_aborted_and_not_stored() {
    let origin = Origin::start();
    let short = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhello";
    origin.on(
        "/short",
        [
            Reply::steps(vec![Step::send(short), Step::Close]),
            Reply::ok("0123456789").cached("max-age=60"),
        ],
    );
    let node = TestNode::before(&origin);
    let first = node.get("a.test", "/short");
    assert!(first.status == 502 || first.end != End::Complete, "{first:?}");
    assert_eq!(node.get("a.test", "/short").expect(200, "0123456789").cache(), "MISS");
    assert!(node.get("a.test", "/short").expect(200, "0123456789").is_hit());
}

#[test]
fn b57_extra_bytes_are_no_answer_to_the_next_request() {
    let origin = Origin::start();
    let evil = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil";
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
    origin.on(
        "/extra",
        [Reply::raw(format!("{head}Content-Length: 5\r\n\r\nhello{evil}"))],
    );
    origin.on(
        "/chunked",
        [Reply::raw(format!("{CHUNKED}5\r\nhello\r\n0\r\n\r\n{evil}"))],
    );
    origin.on("/empty", [Reply::raw(format!("{head}Content-Length: 0\r\n\r\n{evil}"))]);
    origin.on(
        "/bodiless",
        [Reply::raw(format!("HTTP/1.1 204 No Content\r\n\r\n{evil}"))],
    );
    origin.on("/next", [Reply::ok("mine").cached("no-store")]);
    let node = TestNode::before(&origin);
    for (path, body) in [
        ("/extra", "hello"),
        ("/chunked", "hello"),
        ("/empty", ""),
        ("/bodiless", ""),
    ] {
        let before = origin.connections().total;
        let mut client = node.connect();
        let answer = client.get("a.test", path);
        assert_eq!((answer.text().as_str(), answer.is_complete()), (body, true), "{path}");
        for _ in 0..3 {
            let _ = client.get("a.test", "/next").expect(200, "mine");
        }
        assert!(
            origin.connections().total > before,
            "{path}: a poisoned connection was used again"
        );
    }
}

#[test]
fn b57_an_invalid_content_length_is_a_bad_gateway() {
    let origin = Origin::start();
    let bad = [
        "abc",
        "5, 6",
        "-1",
        "+5",
        "0x5",
        "",
        "5 5",
        "99999999999999999999999",
        "5\r\nContent-Length: 6",
        "5;",
    ];
    for (n, length) in bad.iter().enumerate() {
        let reply = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {length}\r\n\r\nhello");
        origin.on(&format!("/{n}"), [Reply::steps(vec![Step::send(reply), Step::Close])]);
    }
    let node = TestNode::before(&origin);
    for (n, length) in bad.iter().enumerate() {
        let path = format!("/{n}");
        let response = node.get("a.test", &path);
        assert_eq!(response.status, 502, "{length:?}: {response:?}");
        assert!(!node.get("a.test", &path).is_hit(), "{length:?}");
        assert!(origin.count(&path) >= 2, "{length:?}: something was stored");
    }
}

#[test]
fn b57_repeated_equal_lengths_are_refused_or_one() {
    let origin = Origin::start();
    for (path, lines) in [
        ("/list", "Content-Length: 5, 5"),
        ("/lines", "Content-Length: 5\r\nContent-Length: 5"),
    ] {
        origin.on(path, [Reply::raw(format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\nhello"))]);
    }
    let node = TestNode::before(&origin);
    for path in ["/list", "/lines"] {
        // RFC 9112 section 6.3 allows either; the client checks that it gets one framing.
        let response = node.get("a.test", path);
        let one = response.status == 200 && response.body == b"hello" && response.is_complete();
        assert!(response.status == 502 || one, "{path}: {response:?}");
    }
}

/// Starts a request, reads the head and a part of the body, and aborts.
fn leave_early(node: &TestNode, path: &str) {
    let mut client = node.connect();
    client.send(request("GET", "a.test", path, ""));
    assert_eq!(client.read_head("GET").expect("a head").status, 200);
    assert!(!client.read_bytes(1000).is_empty());
    client.abort();
}

#[test]
fn b59_a_lone_client_that_leaves_blocks_nothing() {
    let body = pattern(4 << 20);
    let origin = Origin::start();
    origin.on("/big", [Reply::ok(&body).cached("max-age=60").gate_at(1 << 20, "rest")]);
    let node = roomy(&origin);
    leave_early(&node, "/big");
    origin.open_gate("rest");
    let _ = node.get("a.test", "/big").expect(200, &body);
    let _ = node.get("a.test", "/big").expect(200, &body);
    node.wait_figure("cache/fills_active", 0);
    assert!(origin.count("/big") <= 2);
}

#[test]
fn b59_readers_that_stay_get_the_whole_when_the_first_leaves() {
    let body = pattern(4 << 20);
    let origin = Origin::start();
    origin.on("/big", [Reply::ok(&body).cached("max-age=60").gate_at(1 << 20, "rest")]);
    let node = roomy(&origin);
    let mut first = node.connect();
    first.send(request("GET", "a.test", "/big", ""));
    assert_eq!(first.read_head("GET").expect("a head").status, 200);
    let address = node.data;
    let others: Vec<_> = (0..3)
        .map(|_| thread::spawn(move || get(address, "a.test", "/big")))
        .collect();
    wait_until("three more requests", || node.figure("total/in_flight") >= 4);
    first.abort();
    wait_until("the first to be gone", || node.figure("total/in_flight") <= 3);
    origin.open_gate("rest");
    for other in others {
        let _ = other.join().expect("a client ends").expect(200, &body);
    }
    assert_eq!(origin.count("/big"), 1, "the fill that others waited for was given up");
    assert!(node.get("a.test", "/big").expect(200, &body).is_hit());
    node.wait_figure("cache/fills_active", 0);
}

#[test]
fn b59_a_client_that_leaves_before_the_head_blocks_nothing() {
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("body").cached("max-age=60").gate("head")]);
    let node = TestNode::before(&origin);
    let mut first = node.connect();
    first.send(request("GET", "a.test", "/p", ""));
    origin.wait_count("/p", 1);
    first.abort();
    origin.open_gate("head");
    let _ = node.get("a.test", "/p").expect(200, "body");
    node.wait_figure("cache/fills_active", 0);
    node.wait_figure("total/in_flight", 0);
}

#[test]
fn b59_a_client_that_reads_nothing_does_not_hold_up_the_others() {
    let body = pattern(8 << 20);
    let origin = Origin::start();
    origin.on("/big", [Reply::ok(&body).cached("max-age=60").gate_at(1 << 20, "rest")]);
    let node = roomy(&origin);
    let mut slow = node.connect();
    slow.send(request("GET", "a.test", "/big", ""));
    origin.wait_count("/big", 1);
    let address = node.data;
    let fast = thread::spawn(move || get(address, "a.test", "/big"));
    origin.open_gate("rest");
    let _ = fast.join().expect("a client ends").expect(200, &body);
    let _ = slow.read_response().expect(200, &body);
    assert!(origin.count("/big") <= 2);
}

#[test]
fn b60_readers_of_a_variant_in_the_making_get_all_of_it() {
    let (done, making) = (pattern(300_000), pattern(700_001));
    let origin = Origin::start();
    let bodies = (done.clone(), making.clone());
    origin.on_each("/v", move |request, _| {
        let reply = match request.header("x-v") {
            Some("making") => Reply::ok(&bodies.1).gate_at(100_000, "rest"),
            _ => Reply::ok(&bodies.0),
        };
        reply.cached("max-age=60").header("Vary", "X-V").steps_for("GET")
    });
    let node = TestNode::before(&origin);
    let _ = node.fetch("GET", "a.test", "/v", "X-V: done\r\n").expect(200, &done);
    let address = node.data;
    let ask = |variant: &'static str| {
        thread::spawn(move || {
            let fields = format!("X-V: {variant}\r\n");
            Client::connect(address)
                .send(request("GET", "a.test", "/v", &fields))
                .read_response()
        })
    };
    let readers: Vec<_> = (0..10).map(|_| ask("making")).collect();
    wait_until("ten requests", || node.figure("total/in_flight") >= 10);
    assert!(
        ask("done").join().expect("a client ends").expect(200, &done).is_hit(),
        "one variant waits for another"
    );
    origin.open_gate("rest");
    for reader in readers {
        let _ = reader.join().expect("a client ends").expect(200, &making);
    }
    assert!(
        node.fetch("GET", "a.test", "/v", "X-V: making\r\n")
            .expect(200, &making)
            .is_hit()
    );
}

#[test]
fn b60_an_abort_reaches_every_reader() {
    let origin = Origin::start();
    let steps = vec![Step::send(CHUNKED), Step::chunk("half"), Step::gate("cut"), Step::Close];
    origin.on("/p", [Reply::steps(steps), Reply::ok("whole").cached("max-age=60")]);
    let node = TestNode::before(&origin);
    let address = node.data;
    let mut first = node.connect();
    first.send(request("GET", "a.test", "/p", ""));
    assert_eq!(first.read_head("GET").expect("a head").status, 200);
    let readers: Vec<_> = (0..5)
        .map(|_| thread::spawn(move || get(address, "a.test", "/p")))
        .collect();
    wait_until("six requests", || node.figure("total/in_flight") >= 6);
    origin.open_gate("cut");
    for reader in readers {
        let response = reader.join().expect("a client ends");
        let whole = response.body == b"whole" && response.is_complete();
        assert!(
            whole || response.end != End::Complete || response.status == 502,
            "{response:?}"
        );
    }
    let _ = node.get("a.test", "/p").expect(200, "whole");
}

#[test]
fn b61_bodiless_answers_end_at_once() {
    let head = |status: &str, lines: &str| format!("HTTP/1.1 {status}\r\nCache-Control: max-age=60\r\n{lines}\r\n");
    let table = [
        ("/zero", "GET", 200, head("200 OK", "Content-Length: 0\r\n")),
        (
            "/no-chunks",
            "GET",
            200,
            head("200 OK", "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n",
        ),
        ("/204", "GET", 204, head("204 No Content", "")),
        (
            "/204-stray",
            "GET",
            204,
            head("204 No Content", "Content-Length: 5\r\n") + "stray",
        ),
        (
            "/204-chunked",
            "GET",
            204,
            head("204 No Content", "Transfer-Encoding: chunked\r\n") + "5\r\nstray\r\n0\r\n\r\n",
        ),
        ("/205", "GET", 205, head("205 Reset Content", "Content-Length: 0\r\n")),
        ("/head", "HEAD", 200, head("200 OK", "Content-Length: 1234\r\n")),
        (
            "/head-chunked",
            "HEAD",
            200,
            head("200 OK", "Transfer-Encoding: chunked\r\n"),
        ),
        ("/head-204", "HEAD", 204, head("204 No Content", "")),
    ];
    let origin = Origin::start();
    origin.on("/next", [Reply::ok("next").cached("no-store")]);
    for (path, _, _, raw) in &table {
        origin.on(path, [Reply::raw(raw)]);
    }
    let node = TestNode::before(&origin);
    for (path, method, status, _) in &table {
        for _ in 0..2 {
            let mut client = node.connect().patience(Duration::from_secs(5));
            client.send(request(method, "a.test", path, "") + &request("GET", "a.test", "/next", ""));
            let answer = client.read_response_to(method);
            assert_eq!((answer.status, answer.text().as_str()), (*status, ""), "{path}");
            let _ = client.read_response().expect(200, "next");
        }
    }
}

#[test]
fn b61_a_304_has_no_body_whatever_it_says() {
    let origin = Origin::start();
    origin.on_each("/p", |request, _| match request.header("if-none-match") {
        Some(_) => vec![Step::send(
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 1234\r\n\r\n",
        )],
        None => Reply::ok("full")
            .header("ETag", "\"a\"")
            .cached("no-store")
            .steps_for("GET"),
    });
    origin.on("/next", [Reply::ok("next").cached("no-store")]);
    let node = TestNode::before(&origin);
    let mut client = node.connect();
    client.send(request("GET", "a.test", "/p", "If-None-Match: \"a\"\r\n") + &request("GET", "a.test", "/next", ""));
    let answer = client.read_response();
    assert!(
        answer.status == 304 && answer.body.is_empty() || answer.body == b"full",
        "{answer:?}"
    );
    let _ = client.read_response().expect(200, "next");
}

#[test]
fn b63_trailers_end_a_body_and_never_become_headers() {
    let with = |trailers: &str| {
        let head =
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n";
        Reply::raw(format!("{head}5\r\nhello\r\n0\r\n{trailers}\r\n"))
    };
    let origin = Origin::start();
    origin.on("/plain", [with("X-Sum: 1\r\n")]);
    origin.on(
        "/forbidden",
        [with(
            "Content-Length: 3\r\nSet-Cookie: sid=1\r\nHost: evil.test\r\nTransfer-Encoding: x\r\n",
        )],
    );
    origin.on("/next", [Reply::ok("next").cached("no-store")]);
    let node = TestNode::before(&origin);
    for (path, forbidden) in [("/plain", false), ("/forbidden", true)] {
        let mut client = node.connect();
        let mut hits = 0;
        for _ in 0..3 {
            let Ok(answer) = client.send(request("GET", "a.test", path, "")).try_read_response("GET") else {
                break;
            };
            let refused = forbidden && (answer.status == 502 || answer.end != End::Complete);
            assert!(refused || answer.body == b"hello", "{path}: {answer:?}");
            for fields in [&answer.fields, &answer.trailers] {
                assert!(!fields.has("set-cookie") && !fields.has("host"), "{path}: {answer:?}");
            }
            assert!(!answer.fields.has("x-sum"), "{path}: {answer:?}");
            if refused {
                client = node.connect();
            } else {
                hits += usize::from(answer.is_hit());
            }
            let _ = client.get("a.test", "/next").expect(200, "next");
        }
        assert!(forbidden || hits == 2, "{path}");
    }
}

#[test]
fn b63_endless_trailers_end_in_an_abort() {
    let origin = Origin::start();
    let line = format!("X-T: {}\r\n", "x".repeat(1000));
    origin.on(
        "/huge",
        [Reply::raw(format!(
            "{CHUNKED}5\r\nhello\r\n0\r\n{}\r\n",
            line.repeat(1000)
        ))],
    );
    origin.on("/next", [Reply::ok("next").cached("no-store")]);
    let node = TestNode::before(&origin);
    let answer = node
        .connect()
        .send(request("GET", "a.test", "/huge", ""))
        .try_read_response("GET")
        .expect("a head");
    assert!(
        answer.end != End::Complete || answer.status == 502 || answer.trailers.is_empty(),
        "{:?}",
        answer.end
    );
    let _ = node.get("a.test", "/next").expect(200, "next");
}
