//! The figures against what a client has counted itself.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use larder_tests::{Origin, Reply, TestNode};
use serde_json::json;

/// Sends the bytes on a connection of its own and counts what comes back to its end.
fn answered_bytes(address: SocketAddr, bytes: &[u8]) -> usize {
    let mut socket = TcpStream::connect(address).expect("the node listens");
    socket.write_all(bytes).expect("the node takes it");
    socket.shutdown(Shutdown::Write).expect("the connection is open");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("the node ends the connection")
}

#[test]
fn requests_and_bytes_are_those_that_the_client_counts() {
    let origin = Origin::start();
    origin.on("*", [Reply::ok(vec![b'x'; 100_000]).cached("max-age=60")]);
    let node = TestNode::before(&origin);
    let get = "GET /p HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let post = "POST /q HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello";
    // Bytes to send, and the requests that they are.
    let sent = [
        (get.to_owned(), 1),
        (get.repeat(7), 7),
        (post.to_owned() + get + post, 3),
        ("HEAD /p HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(), 1),
        ("GET /p HTTP/1.0\r\nHost: a.test\r\n\r\n".to_owned(), 1),
        ("GET /p HTTP/1.1\r\nHost: no host\r\n\r\n".to_owned(), 1),
        ("TRACE /p HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(), 1),
        ("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(), 1),
    ];
    let (mut requests, mut received, mut answered) = (0, 0, 0);
    for (bytes, count) in &sent {
        answered += answered_bytes(node.data, bytes.as_bytes());
        received += bytes.len();
        requests += count;
    }
    let figure = |path: &str| usize::try_from(node.figure(path)).expect("a count");
    node.wait_figure("total/requests", requests);
    assert_eq!(figure("total/bytes_received"), received);
    assert_eq!(figure("total/bytes_sent"), answered);
    let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
    let by_class: usize = classes
        .iter()
        .map(|class| figure(&format!("total/responses/{class}")))
        .sum();
    assert_eq!(i64::try_from(by_class).expect("a count"), requests);
    assert_eq!(figure("total/cache/HIT/requests"), figure("total/hit_latency/count"));

    let (status, before) = node.admin_post("/api/v1/stats/reset", &json!({"scope": "all"}));
    assert_eq!((status, before["total"]["requests"].as_i64()), (200, Some(requests)));
    assert_eq!((figure("total/requests"), figure("total/bytes_sent")), (0, 0));
    assert_eq!(figure("cache/objects"), 1, "a gauge was reset");
}
