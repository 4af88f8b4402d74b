//! What a proxy may pass on, has to keep to itself, or answers alone: Expect, interim answers, upgrades, hop-by-hop fields.

use std::thread;
use std::time::{Duration, Instant};

use larder_tests::client::{raw, request};
use larder_tests::origin::Step;
use larder_tests::{End, Origin, Reply, TestNode};

const MEGABYTE: usize = 1 << 20;

fn expecting(fields: &str) -> String {
    request(
        "PUT",
        "a.test",
        "/p",
        &format!("Content-Length: {MEGABYTE}\r\n{fields}"),
    )
}

#[test]
fn b104_a_client_that_waits_for_100_gets_on() {
    let body = vec![b'x'; MEGABYTE];
    let silent = Reply::steps(vec![
        Step::ReadBody,
        Step::send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"),
    ]);
    let says_so = Reply::steps(vec![
        Step::send("HTTP/1.1 100 Continue\r\n\r\n"),
        Step::ReadBody,
        Step::send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"),
    ]);
    for reply in [silent, says_so] {
        let origin = Origin::start();
        origin.on("/p", [reply]);
        let node = TestNode::before(&origin);
        let start = Instant::now();
        let mut client = node.connect();
        client.send(expecting("Expect: 100-continue\r\n"));
        assert_eq!(client.read_bytes(25), b"HTTP/1.1 100 Continue\r\n\r\n");
        client.send(&body);
        let answer = client.read_response().expect(200, "done");
        assert!(answer.interim.is_empty(), "a second 100");
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        let forwarded = origin.last("/p");
        assert_eq!((forwarded.body.len(), forwarded.complete), (MEGABYTE, true));
        // The connection is at a message boundary.
        origin.on("/next", [Reply::ok("next").cached("no-store")]);
        let _ = client.get("a.test", "/next").expect(200, "next");
    }
}

#[test]
fn b104_a_final_answer_before_the_body_is_passed_on() {
    for (status, line) in [(417, "417 Expectation Failed"), (401, "401 Unauthorized")] {
        let origin = Origin::start();
        // A ReadBody that is never reached: the answer comes without waiting for the body.
        let answer = format!("HTTP/1.1 {line}\r\nContent-Length: 2\r\n\r\nno");
        origin.on(
            "/p",
            [Reply::steps(vec![Step::send(answer), Step::Close, Step::ReadBody])],
        );
        origin.on("/next", [Reply::ok("next").cached("no-store")]);
        let node = TestNode::before(&origin);
        let mut client = node.connect();
        client.send(expecting("Expect: 100-continue\r\n"));
        // Whether or not the node said 100 itself: the answer is that of the origin.
        let answer = client.read_response();
        assert_eq!((answer.status, answer.text().as_str()), (status, "no"));
        let _ = node.get("a.test", "/next").expect(200, "next");
    }
}

#[test]
fn b104_a_body_that_never_comes_holds_nothing() {
    let origin = Origin::start();
    origin
        .on("/p", [Reply::ok("done")])
        .on("/next", [Reply::ok("next").cached("no-store")]);
    let node = TestNode::before(&origin);
    let mut client = node.connect();
    client.send(expecting("Expect: 100-continue\r\n"));
    assert_eq!(client.read_bytes(25), b"HTTP/1.1 100 Continue\r\n\r\n");
    client.abort();
    let _ = node.get("a.test", "/next").expect(200, "next");
    node.wait_figure("total/in_flight", 0);
    assert!(origin.log().iter().all(|r| r.target == "/next" || !r.complete));
}

#[test]
fn b104_an_unknown_expectation_fails() {
    let origin = Origin::start();
    let node = TestNode::before(&origin);
    for expectation in ["junk", "100-continue, junk", "200-ok"] {
        let mut client = node.connect();
        client.send(expecting(&format!("Expect: {expectation}\r\n")));
        assert_eq!(client.read_response().status, 417, "{expectation}");
    }
    assert!(origin.log().is_empty());
}

#[test]
fn b105_early_hints_leave_the_final_answer_alone() {
    let origin = Origin::start();
    let reply = Reply::ok("final").cached("max-age=60").header("X-Final", "1");
    let hint = "Link: </style.css>; rel=preload\r\nX-Early: 1\r\n";
    origin.on(
        "/p",
        [reply.interim("103 Early Hints", hint).interim("103 Early Hints", hint)],
    );
    origin.on(
        "/199",
        [Reply::ok("final")
            .cached("max-age=60")
            .interim("199 Odd", "X-Early: 1\r\n")],
    );
    let node = TestNode::before(&origin);
    for path in ["/p", "/199"] {
        for hit in [false, true] {
            let answer = node.get("a.test", path).expect(200, "final");
            assert_eq!(answer.is_hit(), hit, "{path}");
            assert!(
                !answer.fields.has("link") && !answer.fields.has("x-early"),
                "{path}: {answer:?}"
            );
            assert!(!hit || answer.interim.is_empty(), "{path}: a stored interim answer");
        }
    }
    assert_eq!((origin.count("/p"), origin.count("/199")), (1, 1));
}

#[test]
fn b105_an_interim_answer_alone_is_no_answer() {
    let origin = Origin::start();
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    origin.on("/p", [Reply::steps(vec![Step::send(early), Step::Close])]);
    let node = TestNode::before(&origin);
    assert_eq!(node.get("a.test", "/p").status, 502);
}

#[test]
fn b105_an_unsolicited_101_is_a_bad_gateway() {
    let origin = Origin::start();
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    origin.on("/p", [Reply::steps(vec![Step::send(switch), Step::Echo])]);
    let node = TestNode::builder()
        .origin(&origin)
        .vhost("www", &["*"])
        .vhost_lines("upgrade = [\"websocket\"]")
        .start();
    let mut client = node.connect();
    client.send(request("GET", "a.test", "/p", ""));
    assert_eq!(client.read_response().status, 502);
}

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";

fn with_websockets(origin: &Origin) -> TestNode {
    TestNode::builder()
        .origin(origin)
        .vhost("www", &["*"])
        .vhost_lines("upgrade = [\"websocket\"]")
        .start()
}

#[test]
fn b106_a_tunnel_echoes_both_ways() {
    let origin = Origin::start();
    origin.on("/ws", [Reply::steps(vec![Step::send(SWITCH), Step::Echo])]);
    let node = with_websockets(&origin);
    let mut client = node.connect();
    client.send(request("GET", "a.test", "/ws", UPGRADE));
    let answer = client.read_head("GET").expect("a head");
    assert_eq!((answer.status, answer.header("upgrade")), (101, Some("websocket")));
    let sent: Vec<u8> = (0..10 * MEGABYTE)
        .map(|i| u8::try_from(i % 251).expect("below 251"))
        .collect();
    thread::scope(|scope| {
        let piece = 64 << 10;
        // Written ahead of the reader by one piece, so that no buffer on the way has to hold it all.
        let mut ahead = sent.chunks(piece);
        for expected in sent.chunks(piece) {
            if let Some(next) = ahead.next() {
                client.send(next);
            }
            assert!(
                client.read_bytes(expected.len()) == expected,
                "the tunnel changed bytes"
            );
        }
        scope.spawn(|| client.half_close()).join().expect("closes");
    });
    origin.wait_open_at_most(0);
    assert_eq!(node.figure("connections/upgraded"), 1);
}

#[test]
fn b106_without_a_101_there_is_no_tunnel() {
    let origin = Origin::start();
    origin.on("/200", [Reply::ok("plain").cached("no-store")]);
    origin.on("/426", [Reply::status(426, "no").cached("no-store")]);
    origin.on("/next", [Reply::ok("next").cached("no-store")]);
    let node = with_websockets(&origin);
    for (path, status, body) in [("/200", 200, "plain"), ("/426", 426, "no")] {
        let mut client = node.connect();
        client.send(request("GET", "a.test", path, UPGRADE));
        let _ = client.read_response().expect(status, body);
        if client.try_send(request("GET", "a.test", "/next", "")).is_ok()
            && let Ok(next) = client.try_read_response("GET")
        {
            let _ = next.expect(200, "next");
        }
    }
    assert_eq!(origin.violations(), Vec::<String>::new());
}

#[test]
fn b106_bytes_behind_an_upgrade_are_never_a_request() {
    let origin = Origin::start();
    origin.on("/no", [Reply::ok("plain").cached("no-store")]);
    origin.on("/yes", [Reply::steps(vec![Step::send(SWITCH), Step::Echo])]);
    let node = with_websockets(&origin);
    let smuggled = request("GET", "a.test", "/smuggled", "");
    // Refused: the request behind may be answered as a request of its own, by the node's own reading.
    let mut client = node.connect();
    client
        .send(request("GET", "a.test", "/no", UPGRADE) + &smuggled)
        .half_close();
    let first = client.read_response().expect(200, "plain");
    assert!(first.is_complete());
    // Switched: it belongs to the tunnel, and comes back from the echo.
    let mut client = node.connect();
    client.send(request("GET", "a.test", "/yes", UPGRADE) + &smuggled);
    assert_eq!(client.read_head("GET").expect("a head").status, 101);
    assert_eq!(client.read_bytes(smuggled.len()), smuggled.as_bytes());
    let smuggled = origin.log().into_iter().filter(|r| r.target == "/smuggled").count();
    assert!(smuggled <= 1, "{smuggled}");
    let after_switch = origin
        .log()
        .iter()
        .position(|r| r.target == "/yes")
        .map(|at| origin.log().split_off(at + 1));
    assert!(after_switch.is_some_and(|rest| rest.iter().all(|r| r.target != "/smuggled")));
}

#[test]
fn b106_other_protocols_and_vhosts_get_no_upgrade() {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("plain").cached("max-age=60")]);
    let plain = TestNode::before(&origin);
    let _ = plain.fetch("GET", "a.test", "/off", UPGRADE).expect(200, "plain");
    let node = with_websockets(&origin);
    let h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    let _ = node.fetch("GET", "a.test", "/h2c", h2c).expect(200, "plain");
    for path in ["/off", "/h2c"] {
        let forwarded = origin.last(path);
        for name in ["upgrade", "http2-settings"] {
            assert!(!forwarded.fields.has(name), "{path}: {name}");
        }
        assert!(
            forwarded
                .fields
                .all("connection")
                .iter()
                .all(|c| !c.to_ascii_lowercase().contains("upgrade")),
            "{path}"
        );
    }
    // A stored answer is of no use to an upgrade, and an upgrade fills nothing.
    let _ = node.get("a.test", "/cached").expect(200, "plain");
    assert!(
        !node
            .fetch("GET", "a.test", "/cached", UPGRADE)
            .expect(200, "plain")
            .is_hit()
    );
    let _ = node.fetch("GET", "a.test", "/fresh", UPGRADE).expect(200, "plain");
    assert!(!node.get("a.test", "/fresh").expect(200, "plain").is_hit());
}

#[test]
fn b106_connect_and_trace_are_not_allowed() {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("x")]);
    let node = with_websockets(&origin);
    for bytes in [
        format!(
            "CONNECT {} HTTP/1.1\r\nHost: {}\r\n\r\n",
            origin.address(),
            origin.address()
        ),
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nConnection: close\r\n\r\n".to_owned(),
        request("TRACE", "a.test", "/p", "Connection: close\r\nCookie: secret=1\r\n"),
        request("TRACK", "a.test", "/p", "Connection: close\r\n").replace("TRACK", "CONNECT"),
    ] {
        let mut client = node.connect();
        client.send(&bytes).half_close();
        let answer = client.try_read_response("GET").expect("an answer");
        let allowed = if bytes.starts_with("CONNECT /p") {
            vec![400, 405]
        } else {
            vec![405]
        };
        assert!(allowed.contains(&answer.status), "{bytes:?}: {answer:?}");
        assert!(!answer.text().contains("secret"), "{answer:?}");
    }
    assert!(origin.log().is_empty());
}

#[test]
fn b107_nominated_fields_of_an_answer_are_dropped() {
    let origin = Origin::start();
    let tmp = Reply::ok("x")
        .cached("max-age=60")
        .header("X-Tmp", "1")
        .header("X-Tmp-2", "1")
        .header("Keep-Alive", "timeout=9");
    origin.on(
        "/p",
        [tmp.header("Connection", "close, X-Tmp")
            .header("Connection", "x-tmp-2")
            .header("X-Kept", "1")],
    );
    let node = TestNode::before(&origin);
    for hit in [false, true] {
        let answer = node.get("a.test", "/p").expect(200, "x");
        assert_eq!(answer.is_hit(), hit);
        for name in ["x-tmp", "x-tmp-2", "keep-alive"] {
            assert!(!answer.fields.has(name), "{name}: {answer:?}");
        }
        assert_eq!(answer.header("x-kept"), Some("1"));
        assert!(
            answer.fields.all("connection").iter().all(|c| !c.contains("X-Tmp")),
            "{answer:?}"
        );
    }
}

#[test]
fn b107_a_client_cannot_remove_what_the_proxy_sets() {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("x").cached("no-store")]);
    let node = TestNode::before(&origin);
    let lines = "Connection: Host, X-Forwarded-For, X-Forwarded-Host, Via, X-Mine\r\nX-Mine: 1\r\nX-Yours: 1\r\n\
        TE: gzip\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\n";
    let _ = node.fetch("GET", "a.test", "/p", lines).expect(200, "x");
    let forwarded = origin.last("/p");
    assert_eq!(forwarded.fields.all("host"), ["a.test"]);
    assert_eq!(forwarded.fields.all("x-forwarded-for"), ["127.0.0.1"]);
    for name in ["x-forwarded-host", "via", "x-yours"] {
        assert!(forwarded.fields.has(name), "{name} is gone");
    }
    for name in ["x-mine", "keep-alive", "proxy-connection", "proxy-authorization", "te"] {
        assert!(!forwarded.fields.has(name), "{name} went on");
    }
    let cut = "Connection: Content-Length, Transfer-Encoding\r\nContent-Length: 5\r\n";
    let mut client = node.connect();
    client.send(request("POST", "a.test", "/body", cut) + "hello");
    let answer = client.read_response();
    assert!(
        answer.status == 400 || origin.last("/body").body == b"hello",
        "{answer:?}"
    );
    assert_eq!(origin.violations(), Vec::<String>::new());
}

#[test]
fn head_and_old_clients_are_served_as_they_expect() {
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("hello").cached("max-age=60").chunked()]);
    origin.on("/n", [Reply::ok("hello").cached("no-store").chunked()]);
    let node = TestNode::before(&origin);
    assert_ne!(node.fetch("HEAD", "a.test", "/p", "").expect(200, "").cache(), "HIT");
    assert_eq!(
        node.get("a.test", "/p").expect(200, "hello").cache(),
        "MISS",
        "a HEAD filled the cache"
    );
    let head = node.fetch("HEAD", "a.test", "/p", "").expect(200, "");
    assert!(head.is_hit());
    for path in ["/p", "/n"] {
        // HTTP/1.0 knows no chunks: a length, or until the end of the connection.
        let answers = raw(node.data, format!("GET {path} HTTP/1.0\r\nHost: a.test\r\n\r\n"));
        assert_eq!(answers.len(), 1, "{path}");
        assert_eq!(
            (answers[0].text().as_str(), &answers[0].end),
            ("hello", &End::Complete),
            "{path}"
        );
        assert!(!answers[0].fields.has("transfer-encoding"), "{path}");
    }
    let mut client = node.connect();
    client.send("GET /p HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n");
    let _ = client.read_response().expect(200, "hello");
}

#[test]
fn b47_head_on_a_miss_has_the_length_of_get_and_no_body() {
    let origin = Origin::start();
    origin.on("/length", [Reply::ok("ten bytes.").cached("max-age=60")]);
    origin.on("/chunked", [Reply::ok("ten bytes.").cached("no-store").chunked()]);
    let node = TestNode::before(&origin);
    let mut client = node.connect();
    // Pipelined: a body after a HEAD would be read as the next answer.
    for path in ["/length", "/chunked"] {
        client.send(request("HEAD", "a.test", path, ""));
        client.send(request("GET", "a.test", path, ""));
    }
    for (path, length) in [("/length", Some("10")), ("/chunked", None)] {
        let head = client.read_response_to("HEAD").expect(200, "");
        assert_eq!(head.header("content-length"), length, "{path}");
        assert!(!head.fields.has("transfer-encoding"), "{path}");
        let _ = client.read_response().expect(200, "ten bytes.");
    }
    let hit = node.fetch("HEAD", "a.test", "/length", "").expect(200, "");
    assert!(hit.is_hit() && hit.header("content-length") == Some("10"), "{hit:?}");
}

#[test]
fn a_range_on_what_is_not_stored_is_passed_and_not_stored() {
    let origin = Origin::start();
    origin.on_each("/r", |request, _| match request.header("range") {
        Some(_) => {
            let part = Reply::status(206, "0123")
                .cached("max-age=60")
                .header("Content-Range", "bytes 0-3/10");
            part.steps_for(&request.method)
        }
        None => Reply::ok("0123456789").cached("max-age=60").steps_for(&request.method),
    });
    let node = TestNode::before(&origin);
    let _ = node
        .fetch("GET", "a.test", "/r", "Range: bytes=0-3\r\n")
        .expect(206, "0123");
    assert_eq!(origin.last("/r").header("range"), Some("bytes=0-3"));
    assert_eq!(node.get("a.test", "/r").expect(200, "0123456789").cache(), "MISS");
}
