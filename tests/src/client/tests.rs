use super::*;
use crate::origin::{Origin, Reply, Step};

#[test]
fn answers_are_read_by_their_framing_on_one_connection() {
    let origin = Origin::start();
    origin.on("/length", [Reply::ok("hello").header("X-A", "1").header("X-A", "2")]);
    origin.on("/chunked", [Reply::ok("x".repeat(100_000)).chunked()]);
    origin.on("/none", [Reply::status(204, "")]);
    origin.on(
        "/early",
        [Reply::ok("late").interim("103 Early Hints", "Link: </a>\r\n")],
    );
    origin.on(
        "/trailers",
        [Reply::raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n",
        )],
    );
    origin.on("/close", [Reply::ok("to the end").until_close()]);
    let mut client = Client::connect(origin.address());

    let response = client.get("a", "/length").expect(200, "hello");
    assert_eq!(
        (response.reason.as_str(), response.fields.all("x-a")),
        ("OK", vec!["1", "2"])
    );
    let _ = client.get("a", "/chunked").expect(200, "x".repeat(100_000));
    let _ = client.get("a", "/none").expect(204, "");
    let early = client.get("a", "/early").expect(200, "late");
    assert_eq!(early.interim.len(), 1);
    assert_eq!(early.interim[0].fields.get("link"), Some("</a>"));
    let trailed = client.get("a", "/trailers").expect(200, "a");
    assert_eq!(trailed.trailers.get("x-sum"), Some("1"));
    let head = client
        .send(request("HEAD", "a", "/length", ""))
        .read_response_to("HEAD")
        .expect(200, "");
    assert_eq!(head.header("content-length"), Some("5"));
    let _ = client.get("a", "/close").expect(200, "to the end");
    assert!(client.is_closed());
    assert_eq!(origin.violations(), Vec::<String>::new());
}

#[test]
fn every_kind_of_end_is_told_apart() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let origin = Origin::start();
    origin.on("/short", [Reply::steps(vec![Step::send(head), Step::Close])]);
    origin.on(
        "/reset",
        [Reply::steps(vec![Step::send(head), Step::gate("reset"), Step::Reset])],
    );
    origin.on(
        "/no-last",
        [Reply::steps(vec![Step::send(chunk), Step::chunk("hello"), Step::Close])],
    );
    origin.on("/bad-size", [Reply::raw(format!("{chunk}zz\r\n"))]);
    origin.on("/nothing", [Reply::steps(vec![Step::Close])]);
    origin.on("/silent", [Reply::steps(vec![Step::Stop])]);
    origin.on(
        "/two",
        [Reply::raw(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        )],
    );
    let address = origin.address();

    assert_eq!(get(address, "a", "/short").end, End::Truncated);
    assert_eq!(get(address, "a", "/no-last").end, End::Truncated);
    assert!(matches!(get(address, "a", "/bad-size").end, End::Malformed(_)));
    let mut client = Client::connect(address);
    client.send(request("GET", "a", "/reset", ""));
    let head = client.read_head("GET").expect("a head");
    assert_eq!(head.status, 200);
    assert_eq!(client.read_bytes(5), b"hello");
    origin.open_gate("reset");
    assert_eq!(client.try_read_response("GET"), Err(ReadError::Reset));
    let ask = |path: &str, patience| {
        let mut client = Client::connect(address).patience(patience);
        client.send(request("GET", "a", path, "")).try_read_response("GET")
    };
    assert_eq!(ask("/nothing", DEADLINE), Err(ReadError::Closed));
    assert_eq!(ask("/silent", Duration::from_millis(50)), Err(ReadError::TimedOut));
    assert!(matches!(ask("/two", DEADLINE), Err(ReadError::Malformed(_))));
}
