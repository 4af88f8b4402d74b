//! Sizes, numbers and times that a client or an origin cannot exceed.

use std::time::{Duration, Instant};

use larder_tests::client::{raw, request};
use larder_tests::origin::Step;
use larder_tests::{Client, End, Origin, ReadError, Reply, TestNode, wait_until};

fn open_house(configure: impl FnOnce(larder_tests::Builder) -> larder_tests::Builder) -> (Origin, TestNode) {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("origin").cached("no-store")]);
    let node = configure(TestNode::builder().origin(&origin)).start();
    (origin, node)
}

#[test]
fn b101_large_heads_are_refused_by_name() {
    let (origin, node) = open_house(|b| b);
    let many: String = (0..10_000).map(|n| format!("X-{n}: y\r\n")).collect();
    let large = format!("X: {}\r\n", "y".repeat(1 << 20));
    let before = node.rss_kib();
    for (what, bytes, want) in [
        ("10 000 fields", request("GET", "a.test", "/p", &many), [431, 431]),
        (
            "101 fields",
            request("GET", "a.test", "/p", &"X: y\r\n".repeat(100)),
            [431, 431],
        ),
        ("a field of 1 MiB", request("GET", "a.test", "/p", &large), [431, 431]),
        (
            "a target of 64 KiB",
            request("GET", "a.test", &format!("/{}", "y".repeat(64 << 10)), ""),
            [414, 431],
        ),
    ] {
        let statuses: Vec<_> = raw(node.data, &bytes).iter().map(|r| r.status).collect();
        // The rest of what was sent may have reset the connection before the answer was read.
        assert!(
            statuses.is_empty() && bytes.len() > 100_000 || statuses.len() == 1 && want.contains(&statuses[0]),
            "{what}: {statuses:?}"
        );
    }
    assert!(origin.log().is_empty());
    let grown = node.rss_kib().saturating_sub(before);
    assert!(grown < 16 << 10, "memory grew by {grown} KiB");
    // What is within the limits goes through, whole.
    let lines: String = (0..90).map(|n| format!("X-{n}: {n}\r\n")).collect();
    let _ = node.fetch("GET", "a.test", "/p", &lines).expect(200, "origin");
    let forwarded = origin.last("/p");
    assert!((0..90).all(|n| forwarded.header(&format!("x-{n}")) == Some(n.to_string().as_str())));
}

#[test]
fn b101_large_answers_heads_are_bad_gateways() {
    let origin = Origin::start();
    let many: String = (0..10_000).map(|n| format!("X-{n}: y\r\n")).collect();
    let large = format!("X: {}\r\n", "y".repeat(1 << 20));
    for (path, lines) in [("/many", many), ("/large", large)] {
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{lines}\r\nhello");
        origin.on(path, [Reply::steps(vec![Step::send(reply), Step::Close])]);
    }
    let node = TestNode::before(&origin);
    for path in ["/many", "/large"] {
        let response = node.get("a.test", path);
        assert_eq!(response.status, 502, "{path}");
    }
}

#[test]
fn b101_a_body_above_the_limit_is_refused() {
    let (_origin, node) = open_house(|b| b.limits("body_bytes = \"1MiB\""));
    let mut client = node.connect();
    client.send(request("POST", "a.test", "/p", "Content-Length: 1048577\r\n"));
    assert_eq!(client.read_response().status, 413);
    let mut client = node.connect();
    let fields = "Content-Length: 1048577\r\nExpect: 100-continue\r\n";
    client.send(request("POST", "a.test", "/p", fields));
    let answer = client.read_response();
    assert!(
        answer.status == 413 && answer.interim.is_empty(),
        "told to go on, and then refused: {answer:?}"
    );
    let mut client = node.connect();
    client.send(request("POST", "a.test", "/p", "Transfer-Encoding: chunked\r\n"));
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(1 << 16));
    let taken = (0..64).take_while(|_| client.try_send(&chunk).is_ok()).count();
    match client.try_read_response("POST") {
        Ok(answer) => assert_eq!(answer.status, 413),
        Err(e) => assert!(taken < 64 || e == ReadError::Reset, "{e:?}"),
    }
    let body = "x".repeat(1 << 20);
    let mut client = node.connect();
    client.send(request("POST", "a.test", "/p", "Content-Length: 1048576\r\n") + &body);
    let _ = client.read_response().expect(200, "origin");
}

/// Waits for the node to end a connection; gives the status that it said before, and how long it took.
fn time_to_close(client: &mut Client, since: Instant) -> (Option<u16>, Duration) {
    let status = match client.try_read_response("GET") {
        Ok(response) => {
            assert!(client.is_closed(), "{response:?} and still open");
            Some(response.status)
        }
        Err(ReadError::Closed | ReadError::Reset) => None,
        Err(e) => panic!("{e:?}"),
    };
    (status, since.elapsed())
}

fn assert_about_a_second(took: Duration) {
    assert!(
        (Duration::from_millis(800)..Duration::from_secs(5)).contains(&took),
        "{took:?}"
    );
}

#[test]
fn b103_a_head_that_does_not_end_is_given_up() {
    let (origin, node) = open_house(|b| b.timeouts("header = \"1s\""));
    let start = Instant::now();
    let mut stuck: Vec<_> = (0..100).map(|_| node.connect()).collect();
    for client in &mut stuck {
        client.send("GET /p HTTP/1.1\r\nHost: a");
    }
    // A byte now and then does not extend the deadline: it is of the whole head.
    let mut trickling = node.connect().patience(Duration::from_millis(150));
    trickling.send("GET /p HTTP/1.1\r\nX: ");
    let trickled = loop {
        match trickling.try_read_response("GET") {
            Err(ReadError::TimedOut) => {
                let _ = trickling.try_send("x");
                assert!(start.elapsed() < Duration::from_secs(5), "still trickling");
            }
            Ok(response) => break Some(response.status),
            Err(_) => break None,
        }
    };
    assert!(matches!(trickled, None | Some(408)), "{trickled:?}");
    assert_about_a_second(start.elapsed());
    let _ = node.get("a.test", "/well").expect(200, "origin");
    for client in &mut stuck {
        let (status, took) = time_to_close(client, start);
        assert!(matches!(status, None | Some(408)), "{status:?}");
        assert_about_a_second(took);
    }
    assert_eq!(origin.count("/p"), 0);
    drop((stuck, trickling));
    wait_until("every connection to be gone", || node.figure("connections/active") == 0);
}

#[test]
fn b103_an_idle_connection_is_closed() {
    let (_origin, node) = open_house(|b| b.timeouts("idle = \"1s\""));
    let (mut fresh, mut used) = (node.connect(), node.connect());
    let _ = used.get("a.test", "/p").expect(200, "origin");
    let start = Instant::now();
    for client in [&mut used, &mut fresh] {
        let (status, took) = time_to_close(client, start);
        assert!(matches!(status, None | Some(408)), "{status:?}");
        assert!(took < Duration::from_secs(12), "{took:?}");
    }
}

#[test]
fn b103_a_body_that_does_not_come_is_given_up() {
    let (origin, node) = open_house(|b| b.timeouts("body = \"1s\""));
    for fields in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut client = node.connect();
        client.send(request("POST", "a.test", "/p", fields) + "5\r\nhello\r\n");
        let start = Instant::now();
        let (status, took) = time_to_close(&mut client, start);
        assert!(matches!(status, None | Some(408)), "{status:?}");
        assert_about_a_second(took);
    }
    assert!(origin.log().iter().all(|r| !r.complete));
}

#[test]
fn b103_a_reader_that_stalls_is_dropped() {
    let origin = Origin::start();
    let body = vec![b'x'; 12 << 20];
    origin.on("/big", [Reply::ok(&body).cached("max-age=60")]);
    let memory = "max_size = \"256MiB\"\nmax_object = \"16MiB\"";
    let node = TestNode::builder()
        .origin(&origin)
        .memory(memory)
        .timeouts("write = \"1s\"")
        .start();
    let _ = node.get("a.test", "/big").expect(200, &body);
    let mut stalled: Vec<_> = (0..10).map(|_| node.connect()).collect();
    for client in &mut stalled {
        client.shrink_window();
        client.send(request("GET", "a.test", "/big", ""));
    }
    wait_until("the stalled readers to be dropped", || {
        node.figure("connections/active") == 0
    });
    for client in &mut stalled {
        let end = client.try_read_response("GET").map(|r| r.end);
        assert!(!matches!(end, Ok(End::Complete)), "{end:?}");
    }
    let _ = node.get("a.test", "/big").expect(200, &body);
}

#[test]
fn b103_connections_of_one_client_are_capped() {
    let (_origin, node) = open_house(|b| b.limits("connections_per_client = 10"));
    let mut held: Vec<_> = (0..10).map(|_| node.connect()).collect();
    for client in &mut held {
        let _ = client.get("a.test", "/p").expect(200, "origin");
    }
    for _ in 0..20 {
        let mut more = node.connect();
        let _ = more.try_send(request("GET", "a.test", "/p", ""));
        let answer = more.try_read_response("GET").map(|r| r.status);
        assert!(
            matches!(answer, Ok(429 | 503) | Err(ReadError::Closed | ReadError::Reset)),
            "{answer:?}"
        );
    }
    let mut other = Client::connect_from("127.0.0.2".parse().expect("an address"), node.data).expect("a connection");
    let _ = other.get("a.test", "/p").expect(200, "origin");
    drop(held.pop());
    wait_until("the freed place to be given", || {
        let mut client = node.connect();
        let _ = client.try_send(request("GET", "a.test", "/p", ""));
        client.try_read_response("GET").is_ok_and(|r| r.status == 200)
    });
}

#[test]
fn b103_the_admin_listener_does_not_wait_for_ever_either() {
    let (_origin, node) = open_house(|b| b.timeouts("header = \"1s\""));
    let mut stuck = Client::connect(node.admin).patience(Duration::from_secs(15));
    stuck.send("GET /healthz HTTP/1.1\r\nHost: a");
    let (status, _) = time_to_close(&mut stuck, Instant::now());
    assert!(matches!(status, None | Some(400 | 408)), "{status:?}");
}
