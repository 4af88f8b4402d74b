//! The access log: one line for each request, in a known format, in a file that can be rotated.

use std::collections::HashSet;
use std::fs;

use larder_tests::client::{Client, raw, request};
use larder_tests::wait::wait_for;
use larder_tests::{DEADLINE, Origin, Reply, TestNode};
use rustix::process::Signal;
use serde_json::Value;

fn logging(format: &str) -> (Origin, TestNode) {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("hello").cached("max-age=60")]);
    let node = TestNode::builder().origin(&origin).access_log(format).start();
    (origin, node)
}

#[test]
fn combined_lines_are_as_other_servers_write_them() {
    let (_origin, node) = logging("combined");
    let fields = "User-Agent: agent/1 \"quoted\"\r\nReferer: http://r.test/\r\n";
    for _ in 0..2 {
        let _ = node.fetch("GET", "a.test", "/p?q=1", fields).expect(200, "hello");
    }
    let lines = node.wait_access_log(2);
    // Two workers may have written them: their lines have no common order.
    for status in ["MISS", "HIT"] {
        assert!(
            lines.iter().any(|line| line.contains(status)),
            "no {status} in {lines:?}"
        );
    }
    for line in &lines {
        // address - user [time] "request" status bytes "referrer" "agent" and more
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
        assert!(line.contains("] \"GET /p?q=1 HTTP/1.1\" 200 "), "{line}");
        assert!(line.contains("\"http://r.test/\""), "{line}");
        assert!(
            line.contains("agent/1 ") && !line.contains("agent/1 \"quoted\""),
            "a quote ends a field: {line}"
        );
    }
}

#[test]
fn json_lines_are_json_whatever_clients_send() {
    let (_origin, node) = logging("json");
    let fields = "User-Agent: \"\\</script>\u{1f600}\r\nReferer: \u{e4}\t\"x\r\n";
    let _ = node.fetch("GET", "a.test", "/p?%22\"'", fields);
    let _ = raw(
        node.data,
        b"GET /\xff HTTP/1.1\r\nHost: a.test\r\nUser-Agent: \xff\xfe\r\nConnection: close\r\n\r\n",
    );
    let _ = raw(node.data, b"\x16\x03\x01 nonsense\r\n\r\n");
    let _ = node.get("a.test", "/last").expect(200, "hello");
    let lines = wait_for("the last request in the log", DEADLINE, || {
        let lines = node.wait_access_log(1);
        lines.iter().any(|line| line.contains("/last")).then_some(lines)
    });
    for line in &lines {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(value.is_object(), "{line}");
    }
    let last = lines
        .iter()
        .find(|line| line.contains("/last"))
        .expect("it was waited for");
    for word in ["\"GET\"", "200", "a.test", "MISS", "127.0.0.1"] {
        assert!(last.contains(word), "no {word} in {last}");
    }
}

#[test]
fn each_request_has_one_line() {
    let (_origin, node) = logging("combined");
    let address = node.data;
    let clients: Vec<_> = (0..8)
        .map(|client| {
            std::thread::spawn(move || {
                let mut connection = Client::connect(address);
                for n in 0..125 {
                    let _ = connection.get("a.test", &format!("/{client}/{n}")).expect(200, "hello");
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("a client ends");
    }
    let lines = node.wait_access_log(1000);
    assert_eq!(lines.len(), 1000);
    let targets: HashSet<_> = lines.iter().filter_map(|line| line.split(' ').nth(6)).collect();
    assert_eq!(targets.len(), 1000, "lines are torn or doubled");
    assert_eq!(node.figure("log_lines_dropped"), 0);
}

#[test]
fn usr1_opens_the_file_anew() {
    let (_origin, node) = logging("combined");
    let _ = node.get("a.test", "/before").expect(200, "hello");
    let _ = node.wait_access_log(1);
    let rotated = node.directory().join("access.log.1");
    fs::rename(node.access_log_path(), &rotated).expect("the log is there");
    node.signal(Signal::USR1);
    let reopened = wait_for("the log to be opened anew", DEADLINE, || {
        let _ = node.get("a.test", "/after").expect(200, "hello");
        let text = fs::read_to_string(node.access_log_path()).ok()?;
        text.contains("/after").then_some(text)
    });
    assert!(!reopened.contains("/before"));
    assert!(
        fs::read_to_string(rotated)
            .expect("the rotated log")
            .contains("/before")
    );
}

#[test]
fn the_last_lines_are_written_at_the_stop() {
    let (_origin, mut node) = logging("combined");
    let mut client = node.connect();
    client.send(request("GET", "a.test", "/last", ""));
    let _ = client.read_response().expect(200, "hello");
    assert_eq!(node.stop().code(), Some(0));
    let text = fs::read_to_string(node.access_log_path()).expect("the log");
    assert!(text.contains("/last") && text.ends_with('\n'), "{text:?}");
}
