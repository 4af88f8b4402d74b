//! What makes two requests the same, and what a client can't smuggle into an answer for others.

use std::collections::HashSet;

use larder_tests::client::{raw, request};
use larder_tests::origin::Step;
use larder_tests::{LoggedRequest, Origin, Reply, TestNode};

/// Answers with what `show` makes of the request, for a minute.
fn reflecting(show: impl Fn(&LoggedRequest) -> String + Send + Sync + 'static) -> Origin {
    let origin = Origin::start();
    origin.on_each("*", move |request, _| reply(request, show(request)));
    origin
}

fn reply(request: &LoggedRequest, body: String) -> Vec<Step> {
    Reply::ok(body).cached("max-age=60").steps_for(&request.method)
}

#[test]
fn b30_hosts_and_vhosts_never_share_an_object() {
    let show = |name: &'static str| move |r: &LoggedRequest| format!("{name}:{}", r.header("host").unwrap_or_default());
    let (one, two) = (reflecting(show("one")), reflecting(show("two")));
    let node = TestNode::builder()
        .upstream("one", one.address())
        .upstream("two", two.address())
        .vhost_on("a", &["a.test", "b.test"], "one")
        .vhost_on("c", &["c.test", "*.d.test"], "two")
        .listeners(2)
        .start();
    let want = [
        ("a.test", "one"),
        ("b.test", "one"),
        ("c.test", "two"),
        ("x.d.test", "two"),
        ("y.d.test", "two"),
    ];
    let mut seen = HashSet::new();
    for round in 0..2 {
        for (host, origin) in want {
            for listener in &node.listeners {
                let response =
                    larder_tests::client::get(*listener, host, "/same").expect(200, format!("{origin}:{host}"));
                assert!(round == 0 || response.is_hit(), "{host}");
                seen.insert(response.body);
            }
        }
    }
    assert_eq!(seen.len(), want.len());
}

#[test]
fn b31_the_authority_of_an_absolute_target_is_the_host() {
    let origin = reflecting(|r| r.header("host").unwrap_or_default().to_owned());
    let node = TestNode::before(&origin);
    let response = node
        .fetch("GET", "b.test", "http://a.test/x?q=1", "")
        .expect(200, "a.test");
    assert_eq!(response.cache(), "MISS");
    let forwarded = origin.last("/x");
    assert_eq!(
        (forwarded.target.as_str(), forwarded.fields.all("host")),
        ("/x?q=1", vec!["a.test"])
    );
    assert!(node.get("a.test", "/x?q=1").expect(200, "a.test").is_hit());
    assert!(!node.get("b.test", "/x?q=1").expect(200, "b.test").is_hit());
}

#[test]
fn b31_an_absolute_target_cannot_reach_another_vhost_by_its_host() {
    let (one, two) = (reflecting(|_| "one".to_owned()), reflecting(|_| "two".to_owned()));
    let node = TestNode::builder()
        .upstream("one", one.address())
        .upstream("two", two.address())
        .vhost_on("a", &["a.test"], "one")
        .vhost_on("b", &["b.test"], "two")
        .start();
    let _ = node.fetch("GET", "b.test", "http://a.test/", "").expect(200, "one");
    let _ = node.get("b.test", "/").expect(200, "two");
    let _ = node.fetch("GET", "b.test", "HTTP://A.test:80/", "").expect(200, "one");
}

#[test]
fn b32_spellings_of_a_host_are_one_key() {
    let origin = reflecting(|r| r.header("host").unwrap_or_default().to_owned());
    let node = TestNode::before(&origin);
    let _ = node.get("example.test", "/").expect(200, "example.test");
    for host in [
        "EXAMPLE.test",
        "example.test.",
        "example.test:80",
        "Example.Test.:80",
        "example.test:080",
    ] {
        let response = node.get(host, "/").expect(200, "example.test");
        assert!(response.is_hit(), "{host}: {response:?}");
    }
    assert_eq!(origin.count("/"), 1);
    // Another port is another site; an address literal is a host.
    for host in ["example.test:8080", "[::1]:80", "[::1]:8080", "127.0.0.1"] {
        let response = node.get(host, "/");
        assert_eq!((response.status, response.is_hit()), (200, false), "{host}");
    }
}

#[test]
fn b32_a_bad_host_is_refused_and_the_connection_closed() {
    let origin = reflecting(|_| String::new());
    let node = TestNode::before(&origin);
    let bad = [
        "",
        "Host: a.test\r\nHost: a.test\r\n",
        "Host: a.test\r\nHost: b.test\r\n",
        "Host: u@example.test\r\n",
        "Host: a b\r\n",
        "Host:\r\n",
        "Host: \r\n",
        "Host: a.test:99999\r\n",
        "Host: a.test:x\r\n",
        "Host: a.test:-1\r\n",
        "Host: a.test:80:80\r\n",
        "Host: exa\0mple\r\n",
        "Host: a.test/path\r\n",
        "Host: a.test, b.test\r\n",
        "Host: [::1\r\n",
        "Host: [zz]\r\n",
        "Host: a\tb\r\n",
        "Host: ex\u{e4}mple\r\n",
        "Host : a.test\r\n",
    ];
    for lines in bad {
        let answers = raw(
            node.data,
            format!("GET / HTTP/1.1\r\n{lines}\r\nGET /behind HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        );
        let statuses: Vec<_> = answers.iter().map(|r| r.status).collect();
        assert_eq!(statuses, [400], "{lines:?}");
    }
    assert!(origin.log().is_empty());
}

#[test]
fn b34_queries_are_left_alone_unless_a_rule_says_so() {
    let origin = reflecting(|r| r.target.clone());
    let node = TestNode::before(&origin);
    let targets = [
        "/?b=2&a=1",
        "/?a=1&b=2",
        "/?a=1&utm_source=x",
        "/?a=1&a=2",
        "/?a=2&a=1",
        "/?a=1;utm_source=x",
        "/?a",
        "/?a=",
        "/",
    ];
    for round in 0..2 {
        for target in targets {
            let response = node.get("a.test", target).expect(200, target);
            assert_eq!(response.is_hit(), round == 1, "{target}");
        }
    }
}

#[test]
fn b34_what_is_dropped_from_the_key_is_dropped_from_the_request() {
    let origin = reflecting(|r| r.target.clone());
    let node = TestNode::builder()
        .origin(&origin)
        .rule("key = { ignore_query = [\"utm_*\", \"fbclid\"] }")
        .start();
    for (target, forwarded, hit) in [
        ("/p?a=1&utm_source=x", "/p?a=1", false),
        ("/p?a=1", "/p?a=1", true),
        ("/p?utm_medium=y&a=1&fbclid=z", "/p?a=1", true),
        ("/p?a=1&a=2", "/p?a=1&a=2", false),
        ("/p?a=2&a=1", "/p?a=2&a=1", false),
        // Only `&` separates parameters.
        ("/p?a=1;utm_source=x", "/p?a=1;utm_source=x", false),
    ] {
        let response = node.get("a.test", target).expect(200, forwarded);
        assert_eq!(response.is_hit(), hit, "{target}");
    }
    // However an encoded name is judged, key and request agree.
    let cloaked = node
        .get("a.test", "/q?a=1&%75tm_source=x")
        .expect(200, origin.last("/q").target);
    let clean = node.get("a.test", "/q?a=1").expect(200, "/q?a=1");
    assert!(!cloaked.is_hit() && (!clean.is_hit() || cloaked.body == clean.body));
}

#[test]
fn b34_sorting_and_keeping_are_opt_in() {
    let origin = reflecting(|r| r.target.clone());
    let node = TestNode::builder()
        .origin(&origin)
        .rule("match = { path = \"/sort/**\" }\nkey = { sort_query = true }")
        .rule("match = { path = \"/keep/**\" }\nkey = { keep_query = [\"a\"] }")
        .start();
    let first = node.get("a.test", "/sort/x?b=2&a=1&a=0");
    let second = node.get("a.test", "/sort/x?a=1&a=0&b=2");
    assert!(second.is_hit() && first.body == second.body, "{second:?}");
    assert!(
        !node.get("a.test", "/sort/x?a=0&a=1&b=2").is_hit(),
        "values of one name keep their order"
    );
    let _ = node.get("a.test", "/keep/x?b=2&a=1").expect(200, "/keep/x?a=1");
    assert!(
        node.get("a.test", "/keep/x?a=1&c=3")
            .expect(200, "/keep/x?a=1")
            .is_hit()
    );
}

/// Fields that frameworks trust and caches do not key on.
const POISON: &str = "X-Forwarded-Host: evil.test\r\nX-Forwarded-Proto: evil.test\r\nX-Forwarded-For: evil.test\r\n\
    X-Forwarded-Port: evil.test\r\nForwarded: for=1.2.3.4;host=evil.test\r\nX-Original-URL: /evil.test\r\n\
    X-Rewrite-URL: /evil.test\r\nX-HTTP-Method-Override: evil.test\r\n";

#[test]
fn b35_forwarding_fields_of_a_client_do_not_poison() {
    let names = [
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-for",
        "x-forwarded-port",
        "forwarded",
        "x-original-url",
        "x-rewrite-url",
        "x-http-method-override",
    ];
    let origin = reflecting(move |r| names.map(|name| format!("{name}={:?}\n", r.fields.all(name))).concat());
    let node = TestNode::before(&origin);
    let poisoned = node.fetch("GET", "a.test", "/p", POISON);
    let clean = node.get("a.test", "/p");
    assert!(clean.is_hit());
    for response in [poisoned, clean] {
        assert!(!response.text().contains("evil.test"), "{}", response.text());
    }
    let forwarded = origin.last("/p");
    assert_eq!(forwarded.fields.all("x-forwarded-host"), ["a.test"]);
    assert_eq!(forwarded.fields.all("x-forwarded-proto"), ["http"]);
    for name in ["x-original-url", "x-rewrite-url", "x-http-method-override"] {
        assert!(!forwarded.fields.has(name), "{name}");
    }
}

#[test]
fn b36_forwarded_for_is_one_line_that_ends_in_the_peer() {
    let lines = "X-Forwarded-For: 1.1.1.1\r\nX-Other: 1\r\nX-Forwarded-For: 2.2.2.2\r\n";
    for (trusted, want) in [
        ("", "127.0.0.1"),
        ("trusted_proxies = [\"127.0.0.1/32\"]", "1.1.1.1, 2.2.2.2, 127.0.0.1"),
    ] {
        let origin = reflecting(|_| String::new());
        let node = TestNode::builder()
            .origin(&origin)
            .vhost("www", &["*"])
            .vhost_lines(trusted)
            .start();
        let _ = node.fetch("GET", "a.test", "/p", lines).expect(200, "");
        assert_eq!(origin.last("/p").fields.all("x-forwarded-for"), [want], "{trusted}");
    }
}

#[test]
fn b37_a_get_with_a_body_neither_fills_nor_uses_the_cache() {
    let origin = reflecting(|r| format!("body={}", String::from_utf8_lossy(&r.body)));
    let node = TestNode::before(&origin);
    let mut client = node.connect();
    client.send(request("GET", "a.test", "/x", "Content-Length: 8\r\n") + "q=poison");
    let poisoned = client.read_response().expect(200, "body=q=poison");
    assert!(!poisoned.is_hit());
    client.send(request("GET", "a.test", "/x", "Transfer-Encoding: chunked\r\n") + "8\r\nq=poison\r\n0\r\n\r\n");
    let _ = client.read_response().expect(200, "body=q=poison");
    let clean = client.get("a.test", "/x").expect(200, "body=");
    assert_eq!(clean.cache(), "MISS");
    client.send(request("GET", "a.test", "/x", "Content-Length: 8\r\n") + "q=poison");
    assert!(
        !client.read_response().expect(200, "body=q=poison").is_hit(),
        "a hit would ignore the body"
    );
    assert!(client.get("a.test", "/x").expect(200, "body=").is_hit());
    client.send(request("HEAD", "a.test", "/y", "Content-Length: 8\r\n") + "q=poison");
    let _ = client.read_response_to("HEAD").expect(200, "");
    assert_eq!(client.get("a.test", "/y").expect(200, "body=").cache(), "MISS");
    assert_eq!(origin.violations(), Vec::<String>::new());
}

/// A rule by extension with a forced lifetime, the trap of web cache deception.
fn deceivable(more: &str) -> String {
    format!("match = {{ path = \"/**/*.css\" }}\nttl = {{ 200 = \"1h\" }}\nttl_force = true\n{more}")
}

const DECEPTIONS: [&str; 6] = [
    "/account/x.css",
    "/account;x.css",
    "/account%0ax.css",
    "/account%23.css",
    "/account/..%2fstatic/x.css",
    "/account/../static/x.css",
];

#[test]
fn b38_a_forced_lifetime_does_not_store_private_pages() {
    for (name, value) in [
        ("Cache-Control", "no-store"),
        ("Cache-Control", "private"),
        ("Set-Cookie", "sid=1"),
    ] {
        let origin = Origin::start();
        origin.on_each("*", move |request, _| {
            let who = request.header("cookie").unwrap_or("nobody").to_owned();
            Reply::ok(format!("page of {who}"))
                .header(name, value)
                .header("Content-Type", "text/html")
                .steps_for("GET")
        });
        let node = TestNode::builder().origin(&origin).rule(&deceivable("")).start();
        for path in DECEPTIONS {
            let victim = node.fetch("GET", "a.test", path, "Cookie: victim=secret\r\n");
            let attacker = node.get("a.test", path);
            assert!(
                !attacker.text().contains("secret") && !attacker.is_hit(),
                "{value}, {path}: {attacker:?}"
            );
            assert!(
                victim.status == 400 || victim.text().contains("secret"),
                "{path}: {victim:?}"
            );
        }
    }
}

#[test]
fn b38_the_rule_works_and_a_second_flag_is_needed_for_more() {
    let origin = Origin::start();
    origin.on("/a/forced.css", [Reply::ok("x").cached("max-age=0")]);
    origin.on("/a/kept.css", [Reply::ok("x").cached("no-store")]);
    let node = TestNode::builder()
        .origin(&origin)
        .rule(&deceivable("override = [\"no-store\"]"))
        .start();
    for path in ["/a/forced.css", "/a/kept.css"] {
        let _ = node.get("a.test", path).expect(200, "x");
        assert!(node.get("a.test", path).expect(200, "x").is_hit(), "{path}");
    }
}

#[test]
fn b38_rules_match_the_path_that_is_forwarded() {
    let origin = reflecting(|r| r.target.clone());
    let node = TestNode::builder()
        .origin(&origin)
        .rule("match = { path = \"/static/**\" }\nbypass = { query = [\"nocache\"] }")
        .start();
    // Dot segments are resolved, or left alone, but for the rule and for the origin alike.
    let response = node.get("a.test", "/static/../private/x?nocache");
    assert!(matches!(response.status, 200 | 400), "{response:?}");
    if response.status == 200 {
        let forwarded = response.text();
        assert_eq!(
            response.cache() == "BYPASS",
            forwarded.starts_with("/static/"),
            "{forwarded}: {}",
            response.cache()
        );
    }
}
