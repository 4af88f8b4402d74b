//! What goes wrong around a node: its configuration, its ports, its origins, and crowds of clients.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use larder_tests::client::{raw, request};
use larder_tests::node::process::run;
use larder_tests::origin::Step;
use larder_tests::{Client, DEADLINE, End, Origin, Reply, TestNode, wait_until};

const SMALLEST: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
    [[upstream]]\nname = \"app\"\nservers = [{ address = \"127.0.0.1:1\" }]\n\
    [[vhost]]\nname = \"www\"\nhosts = [\"*\"]\nupstream = \"app\"\n";

/// Writes a file below a directory of its own and gives it to `check` and to `run`.
fn refused(text: &str) -> [(Option<i32>, String); 2] {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("larder.toml");
    let state = directory.path().join("state");
    std::fs::write(&path, format!("state_dir = {state:?}\n{text}")).expect("the file is written");
    let path = path.to_str().expect("a plain path");
    ["check", "run"].map(|command| run(&[command, "--config", path], DEADLINE))
}

#[test]
fn a_wrong_configuration_is_refused_with_all_its_errors() {
    let table: [(&str, &[&str]); 6] = [
        ("workres = 2\n", &["workres"]),
        (
            "[[vhost]]\nname = \"b\"\nhosts = [\"b.test\"]\nupstream = \"nowhere\"\n",
            &["nowhere"],
        ),
        ("[server.timeouts]\nheader = \"soon\"\n", &["soon"]),
        (
            "[[vhost]]\nname = \"www\"\nhosts = [\"c.test\"]\nupstream = \"app\"\n",
            &["www"],
        ),
        (
            "[server.limits]\nhead_bytes = \"1 parsec\"\n[server.timeouts]\nidle = \"never\"\n",
            &["parsec", "never"],
        ),
        ("[[listener]\n", &["larder.toml"]),
    ];
    for (lines, words) in table {
        // Top level keys come before the tables.
        let text = if lines.starts_with('[') {
            format!("{SMALLEST}{lines}")
        } else {
            format!("{lines}{SMALLEST}")
        };
        for (code, output) in refused(&text) {
            assert!(code.is_some_and(|code| code != 0), "{lines:?}: exit {code:?}\n{output}");
            for word in words {
                assert!(output.contains(word), "{lines:?}: no {word:?} in\n{output}");
            }
            assert!(!output.contains("panicked"), "{output}");
        }
    }
}

#[test]
fn a_missing_configuration_is_named() {
    for command in ["check", "run"] {
        let (code, output) = run(&[command, "--config", "/nowhere/larder.toml"], DEADLINE);
        assert!(
            code.is_some_and(|code| code != 0) && output.contains("/nowhere/larder.toml"),
            "{code:?}\n{output}"
        );
    }
}

#[test]
fn a_good_configuration_is_accepted() {
    let origin = Origin::start();
    let node = TestNode::before(&origin);
    let path = node.config_path();
    let (code, output) = run(&["check", "--config", path.to_str().expect("a plain path")], DEADLINE);
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let admin_taken = {
        let (data, admin) = SMALLEST.split_once("[admin]").expect("it has an admin table");
        format!("{data}[admin]{}", admin.replacen("127.0.0.1:0", &address, 1))
    };
    for text in [SMALLEST.replacen("127.0.0.1:0", &address, 1), admin_taken] {
        let [_, (code, output)] = refused(&text);
        assert!(
            code.is_some_and(|code| code != 0) && output.contains(&address),
            "{code:?}\n{output}"
        );
    }
}

#[test]
fn a_state_directory_in_use_is_a_clear_error() {
    let origin = Origin::start();
    let mut node = TestNode::before(&origin);
    let config = node.config_path();
    let arguments = ["run", "--config", config.to_str().expect("a plain path")];
    let (code, output) = run(&arguments, DEADLINE);
    assert!(
        code == Some(1) && output.contains("in use by another larder") && output.contains("state_dir"),
        "{code:?}\n{output}"
    );
    // A killed process does not keep it.
    node.kill();
    node.start_again();
}

#[test]
fn a_dead_origin_is_a_bad_gateway_at_once() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a port that was free");
    let node = TestNode::builder().upstream("app", closed).start();
    let start = Instant::now();
    let answer = node.get("a.test", "/p");
    assert_eq!(answer.status, 502);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(node.get("a.test", "/p").status, 502, "and it is not stored");
    assert!(node.get("a.test", "/p").cache() != "HIT");
}

#[test]
fn an_origin_that_comes_back_is_used_again() {
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("1").cached("no-store")]);
    let node = TestNode::before(&origin);
    for _ in 0..3 {
        let _ = node.get("a.test", "/p").expect(200, "1");
        // Idle connections of the node are stale now; a GET may be tried again (RFC 9110 section 9.2.2).
        origin.close_connections();
        origin.wait_open_at_most(0);
    }
    let _ = node.get("a.test", "/p").expect(200, "1");
}

#[test]
fn an_origin_that_is_silent_times_out() {
    let origin = Origin::start();
    let half = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhello";
    origin.on("/head", [Reply::steps(vec![Step::Stop])]);
    origin.on("/body", [Reply::steps(vec![Step::send(half), Step::Stop])]);
    let node = TestNode::builder()
        .origin(&origin)
        .upstream_timeouts("first_byte = \"1s\"\nbetween_bytes = \"1s\"")
        .start();
    let start = Instant::now();
    assert_eq!(node.get("a.test", "/head").status, 504);
    let stalled = node.get("a.test", "/body");
    assert!(stalled.status == 504 || stalled.end != End::Complete, "{stalled:?}");
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}

#[test]
fn an_origin_that_breaks_off_is_seen_by_the_client() {
    let origin = Origin::start();
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1000000\r\n\r\n";
    origin.on(
        "/cut",
        [Reply::steps(vec![Step::send(head), Step::Fill(500_000), Step::Close])],
    );
    origin.on("/nothing", [Reply::steps(vec![Step::Close])]);
    origin.on(
        "/half-head",
        [Reply::steps(vec![Step::send("HTTP/1.1 200 OK\r\nX: "), Step::Close])],
    );
    let node = TestNode::before(&origin);
    for _ in 0..2 {
        let cut = node.get("a.test", "/cut");
        assert!(
            cut.status == 502 || (cut.end != End::Complete && cut.body.len() <= 500_000),
            "{:?}",
            cut.end
        );
        assert_eq!(node.get("a.test", "/half-head").status, 502);
        assert_eq!(node.get("a.test", "/nothing").status, 502);
    }
    assert!(origin.count("/cut") >= 2);
}

#[test]
fn a_post_is_never_sent_twice() {
    let origin = Origin::start();
    origin.on("/warm", [Reply::ok("x").cached("no-store")]);
    origin.on("/post", [Reply::steps(vec![Step::ReadBody, Step::Close])]);
    let node = TestNode::before(&origin);
    let _ = node.get("a.test", "/warm").expect(200, "x");
    let mut client = node.connect();
    client.send(request("POST", "a.test", "/post", "Content-Length: 5\r\n") + "hello");
    assert_eq!(client.read_response().status, 502);
    assert_eq!(origin.count("/post"), 1);
}

#[test]
fn a_head_that_is_too_large_is_refused_and_nobody_else_notices() {
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("x").cached("max-age=60")]);
    let node = TestNode::builder()
        .origin(&origin)
        .limits("head_bytes = \"4KiB\"\nheaders = 20")
        .start();
    let mut other = node.connect();
    let _ = other.get("a.test", "/p").expect(200, "x");
    for lines in [format!("X: {}\r\n", "y".repeat(8 << 10)), "X: y\r\n".repeat(25)] {
        let answers = raw(node.data, request("GET", "a.test", "/p", &lines));
        assert_eq!(answers.iter().map(|r| r.status).collect::<Vec<_>>(), [431]);
    }
    assert!(other.get("a.test", "/p").expect(200, "x").is_hit());
}

/// A source address for the n-th connection, so that no address runs out of ports.
fn source(n: usize) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, u8::try_from(2 + n % 8).expect("small")).into()
}

#[test]
fn twenty_thousand_connections_meet_a_cap() {
    const CAP: usize = 500;
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("x").cached("max-age=60")]);
    let node = TestNode::builder()
        .origin(&origin)
        .limits(&format!("connections = {CAP}"))
        .start();
    let mut inside = node.connect();
    let _ = inside.get("a.test", "/p").expect(200, "x");
    let before = node.rss_kib();
    // Those that are refused are closed by the node; this side keeps the last few thousand open all the same.
    let mut held = std::collections::VecDeque::new();
    for n in 0..20_000 {
        if held.len() >= 4_000 {
            held.pop_front();
        }
        if let Ok(client) = Client::connect_from(source(n), node.data) {
            held.push_back(client);
        }
    }
    assert!(
        inside.get("a.test", "/p").expect(200, "x").is_hit(),
        "a client inside suffers"
    );
    let grown = node.rss_kib().saturating_sub(before);
    assert!(grown < 32 << 10, "memory grew by {grown} KiB");
    let active = node.figure("connections/active");
    assert!(active <= i64::try_from(CAP).expect("small"), "{active} connections");
    assert!(node.figure("connections/refused") > 0);
    drop(held);
    wait_until("a newcomer to be served again", || {
        let Ok(mut client) = Client::try_connect(node.data) else {
            return false;
        };
        let _ = client.try_send(request("GET", "a.test", "/p", ""));
        matches!(client.try_read_response("GET"), Ok(r) if r.status == 200)
    });
}

#[test]
fn clients_that_vanish_leave_nothing_behind() {
    let origin = Origin::start();
    origin.on("/slow", [Reply::ok("x").cached("no-store").gate("slow")]);
    let node = TestNode::before(&origin);
    for n in 0..200 {
        let mut client = node.connect();
        match n % 4 {
            0 => {}
            1 => drop(client.try_send("GET /slow HT")),
            2 => drop(client.try_send(request("GET", "a.test", "/slow", ""))),
            _ => drop(client.try_send(request("POST", "a.test", "/slow", "Content-Length: 9\r\n") + "abc")),
        }
        client.abort();
    }
    origin.open_gate("slow");
    wait_until("every connection to be gone", || node.figure("connections/active") == 0);
    node.wait_figure("total/in_flight", 0);
    let _ = node.get("a.test", "/slow").expect(200, "x");
}
