//! SIGTERM: what is in progress ends well, nothing new begins, and it ends in time.

use std::time::{Duration, Instant};

use larder_tests::client::request;
use larder_tests::{Client, DEADLINE, Origin, Reply, TestNode, wait_until};
use rustix::process::Signal;

#[test]
fn requests_in_progress_are_finished() {
    let origin = Origin::start();
    let body = "x".repeat(200_000);
    origin.on(
        "/slow",
        [Reply::ok(&body).cached("max-age=60").gate_at(100_000, "rest")],
    );
    let mut node = TestNode::before(&origin);
    let mut client = node.connect();
    client.send(request("GET", "a.test", "/slow", ""));
    let mut idle = node.connect();
    let _ = idle.get("a.test", "/other").expect(404, "no script");
    origin.wait_count("/slow", 1);
    node.signal(Signal::TERM);
    assert!(idle.is_closed(), "an idle connection is kept");
    wait_until("new connections to be refused", || {
        // Accepted by the kernel and never served is as good as refused.
        Client::try_connect(node.data).map_or(true, |client| client.patience(Duration::from_millis(100)).is_closed())
    });
    assert!(node.process().is_running(), "it ended before its requests");
    origin.open_gate("rest");
    let _ = client.read_response().expect(200, &body);
    let status = node.process().wait(DEADLINE);
    assert_eq!(status.code(), Some(0), "{status:?}");
}

#[test]
fn an_idle_node_ends_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let origin = Origin::start();
        let mut node = TestNode::before(&origin);
        let mut idle = node.connect();
        let _ = idle.get("a.test", "/p").expect(404, "no script");
        let start = Instant::now();
        node.signal(signal);
        let status = node.process().wait(DEADLINE);
        assert_eq!(status.code(), Some(0), "{signal:?}: {status:?}");
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{signal:?}: {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn the_drain_has_an_end() {
    let origin = Origin::start();
    origin.on("/never", [Reply::ok("x").gate("never")]);
    let mut node = TestNode::builder().origin(&origin).server("drain = \"1s\"").start();
    let mut client = node.connect();
    client.send(request("GET", "a.test", "/never", ""));
    origin.wait_count("/never", 1);
    let start = Instant::now();
    node.signal(Signal::TERM);
    let _ = node.process().wait(DEADLINE);
    let took = start.elapsed();
    assert!(
        (Duration::from_millis(800)..Duration::from_secs(5)).contains(&took),
        "{took:?}"
    );
    assert!(client.try_read_response("GET").is_err());
}

#[test]
fn a_node_can_be_started_again_in_its_place() {
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("x").cached("max-age=60")]);
    let mut node = TestNode::before(&origin);
    let token = node.token();
    let _ = node.get("a.test", "/p").expect(200, "x");
    // The ports as they were given, for the second run.
    let text = node.config_text();
    let fixed =
        text.replacen("127.0.0.1:0", &node.data.to_string(), 1)
            .replacen("127.0.0.1:0", &node.admin.to_string(), 1);
    assert_eq!(node.stop().code(), Some(0));
    node.rewrite_config(&fixed);
    let path = node.config_path();
    let path = path.to_str().expect("a plain path");
    let mut second = larder_tests::node::process::Process::start(["run", "--config", path]);
    let (data, admin) = second.wait_line("`ready` line", DEADLINE, 0, larder_tests::node::parse_ready);
    assert_eq!((data[0], admin), (node.data, node.admin));
    assert_eq!(node.token(), token, "the token was made anew");
    let _ = node.get("a.test", "/p").expect(200, "x");
    second.signal(Signal::TERM);
    assert_eq!(second.wait(DEADLINE).code(), Some(0));
}
