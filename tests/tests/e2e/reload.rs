//! SIGHUP: new rules and vhosts, the same connections, objects and counters; or nothing at all.

use larder_tests::{Origin, Reply, TestNode, wait_until};
use rustix::process::Signal;

/// A figure of `/metrics` without labels.
fn metric(node: &TestNode, name: &str) -> Option<f64> {
    let text = node.admin_call("GET", "/metrics", None).text();
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Sends SIGHUP and waits until one more reload was refused.
fn reload_in_vain(node: &TestNode) {
    let failures = || metric(node, "larder_config_reload_failures_total").unwrap_or(0.0);
    let before = failures();
    node.signal(Signal::HUP);
    wait_until("the reload to be refused", || failures() > before);
}

#[test]
fn a_reload_keeps_connections_objects_and_counters() {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("x").cached("max-age=60")]);
    let node = TestNode::builder().origin(&origin).vhost("a", &["a.test"]).start();
    let mut client = node.connect();
    let _ = client.get("a.test", "/p").expect(200, "x");
    let _ = client.get("a.test", "/p").expect(200, "x");
    let text = node.config_text();
    let more = "[[vhost]]\nname = \"b\"\nhosts = [\"b.test\"]\nupstream = \"app\"\n[[vhost.rule]]\nname = \"skip\"\nbypass = { query = [\"nocache\"] }\n";
    node.rewrite_config(&format!("{text}\n{more}"));
    node.signal(Signal::HUP);
    wait_until("the new vhost to serve", || node.get("b.test", "/p").status == 200);
    assert!(
        client.get("a.test", "/p").expect(200, "x").is_hit(),
        "the object is gone"
    );
    assert_eq!(node.get("b.test", "/p?nocache").expect(200, "x").cache(), "BYPASS");
    // A request is counted when its answer is sent, which the client may see first.
    node.wait_figure("vhosts/a/requests/requests", 3);
    wait_until("the new vhost's requests to be counted", || {
        node.figure("vhosts/b/requests/requests") >= 2
    });
    // And back: the vhost goes, the rest stays.
    node.rewrite_config(&text);
    node.signal(Signal::HUP);
    wait_until("the vhost to be gone", || node.get("b.test", "/p").status != 200);
    assert!(client.get("a.test", "/p").expect(200, "x").is_hit());
}

#[test]
fn a_bad_file_changes_nothing() {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("x").cached("max-age=60")]);
    let mut node = TestNode::builder().origin(&origin).vhost("a", &["a.test"]).start();
    let mut client = node.connect();
    let _ = client.get("a.test", "/p").expect(200, "x");
    let good = node.config_text();
    let renamed = good.replace("a.test", "b.test");
    for bad in [
        format!("{renamed}\n[[vhost]]\nname = \"c\"\nhosts = [\"c.test\"]\nupstream = \"nowhere\"\n"),
        format!("{renamed}\nnonsense"),
        String::new(),
        // What holds until the process ends can't be reloaded, and takes nothing else with it.
        renamed.replace("64MiB", "32MiB"),
    ] {
        node.rewrite_config(&bad);
        reload_in_vain(&node);
        assert!(client.get("a.test", "/p").expect(200, "x").is_hit(), "{bad}");
        assert_ne!(node.get("b.test", "/p").status, 200, "a part of it was taken: {bad}");
    }
    assert!(node.process().is_running());
    node.rewrite_config(&renamed);
    node.signal(Signal::HUP);
    wait_until("a good file to be taken after all", || {
        node.get("b.test", "/p").status == 200
    });
}

#[test]
fn requests_in_progress_end_as_they_began() {
    let origin = Origin::start();
    let other = Origin::start();
    origin.on("/slow", [Reply::ok("old").cached("max-age=60").gate("slow")]);
    other.on("/slow", [Reply::ok("new").cached("max-age=60")]);
    let node = TestNode::builder().origin(&origin).vhost("a", &["a.test"]).start();
    let mut client = node.connect();
    client.send(larder_tests::client::request("GET", "a.test", "/slow", ""));
    origin.wait_count("/slow", 1);
    let text = node
        .config_text()
        .replace(&origin.address().to_string(), &other.address().to_string());
    node.rewrite_config(&text);
    node.signal(Signal::HUP);
    wait_until("the reload", || {
        metric(&node, "larder_config_reloads_total") == Some(1.0)
    });
    origin.open_gate("slow");
    let _ = client.read_response().expect(200, "old");
    let _ = client.get("a.test", "/elsewhere").expect(404, "no script");
    assert_eq!(other.count("/elsewhere"), 1, "the connection still uses the old origin");
}

#[test]
fn many_reloads_under_load_lose_nothing() {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("x").cached("max-age=60")]);
    let node = TestNode::builder().origin(&origin).vhost("a", &["a.test"]).start();
    let address = node.data;
    let load = std::thread::spawn(move || {
        let mut client = larder_tests::Client::connect(address);
        (0..2_000)
            .map(|n| client.get("a.test", &format!("/{}", n % 50)).expect(200, "x"))
            .count()
    });
    for _ in 0..50 {
        node.signal(Signal::HUP);
        let _ = node.get("a.test", "/0").expect(200, "x");
    }
    assert_eq!(load.join().expect("the load ends"), 2_000);
    wait_until("every request to be counted", || {
        node.figure("vhosts/a/requests/requests") == 2_050
    });
}
