//! What an unsafe request, or a purge, takes out of the cache: all of it, and nothing else.

use larder_tests::{Origin, Reply, TestNode};

/// An origin where every path answers GET with the same page, and another method with what the test says.
fn node_with(reply: &Reply) -> (Origin, TestNode) {
    let origin = Origin::start();
    let reply = reply.clone();
    origin.on_each("*", move |request, _| {
        let page = Reply::ok("page").cached("max-age=60");
        let reply = if request.method == "GET" { &page } else { &reply };
        reply.steps_for(&request.method)
    });
    let node = TestNode::builder()
        .origin(&origin)
        .rule("match = { path = \"/**\", method = [\"GET\"] }\nkey = { ignore_query = [\"utm\"] }")
        .start();
    (origin, node)
}

/// Which of these paths are still stored after one request with another method.
fn left_after(reply: &Reply, method: &str, target: &str, paths: &[&str]) -> Vec<String> {
    let (_origin, node) = node_with(reply);
    for path in paths {
        assert_eq!(node.get("a.test", path).cache(), "MISS", "{path}");
        assert_eq!(node.get("a.test", path).cache(), "HIT", "{path}");
    }
    let _ = node.fetch(method, "a.test", target, "Content-Length: 0\r\n");
    let is_left = |path: &&&str| node.get("a.test", path).is_hit();
    paths.iter().filter(is_left).map(|path| (*path).to_owned()).collect()
}

#[test]
fn b18_an_unsafe_method_invalidates_its_target_unless_it_fails() {
    for method in ["POST", "PUT", "DELETE", "M-SEARCH"] {
        for (status, left) in [(200, 1), (204, 1), (303, 1), (404, 2), (500, 2)] {
            let reply = Reply::status(status, "");
            let paths = left_after(&reply, method, "/x", &["/x", "/y"]);
            assert_eq!(paths.len(), left, "{method} {status}: {paths:?} are left");
        }
    }
    // As the key of a GET has it, whatever the rule for this method does.
    assert_eq!(
        left_after(&Reply::ok(""), "POST", "/x?utm=1", &["/x", "/x?a"]),
        ["/x?a"]
    );
    for safe in ["HEAD", "OPTIONS"] {
        assert_eq!(left_after(&Reply::ok(""), safe, "/x", &["/x"]), ["/x"], "{safe}");
    }
}

#[test]
fn b18_location_and_content_location_count_within_their_origin() {
    let all = ["/dir/x", "/made", "/dir/near", "/far"];
    let after =
        |name: &str, value: &str| left_after(&Reply::status(201, "").header(name, value), "POST", "/dir/x", &all);
    for name in ["Location", "Content-Location"] {
        assert_eq!(after(name, "/made"), ["/dir/near", "/far"], "{name}");
        assert_eq!(after(name, "near"), ["/made", "/far"], "{name}");
        assert_eq!(
            after(name, "http://a.test/made?utm=2#top"),
            ["/dir/near", "/far"],
            "{name}"
        );
        for foreign in [
            "http://b.test/made",
            "https://a.test/made",
            "//b.test/far",
            "http://a.test:81/far",
        ] {
            assert_eq!(
                after(name, foreign),
                ["/made", "/dir/near", "/far"],
                "{name}: {foreign}"
            );
        }
    }
}

#[test]
fn b18_another_vhost_keeps_what_a_foreign_location_names() {
    let origin = Origin::start();
    origin.on_each("*", |request, _| {
        let reply = if request.method == "GET" {
            Reply::ok("page").cached("max-age=60")
        } else {
            Reply::ok("").header("Content-Location", "http://b.test/x")
        };
        reply.steps_for(&request.method)
    });
    let node = TestNode::builder()
        .upstream("app", origin.address())
        .vhost("one", &["a.test"])
        .vhost("two", &["b.test"])
        .start();
    for host in ["a.test", "b.test"] {
        assert_eq!(node.get(host, "/x").cache(), "MISS");
    }
    let _ = node.fetch("POST", "a.test", "/x", "Content-Length: 0\r\n");
    assert_eq!(node.get("b.test", "/x").cache(), "HIT");
    assert_eq!(node.get("a.test", "/x").cache(), "MISS");
}

#[test]
fn b22_a_purge_and_an_unsafe_method_remove_every_variant() {
    let origin = Origin::start();
    origin.on_each("*", |request, _| {
        let body = request.header("accept-encoding").unwrap_or("identity").to_owned();
        let reply = Reply::ok(&body).cached("max-age=60").header("Vary", "Accept-Encoding");
        let reply = match body.as_str() {
            "gzip" | "br" => reply.header("Content-Encoding", &body),
            _ => reply,
        };
        reply.steps_for(&request.method)
    });
    let node = TestNode::builder().origin(&origin).disk("64MiB").start();
    let ask = || {
        ["", "Accept-Encoding: gzip\r\n", "Accept-Encoding: br\r\n"].map(|fields| {
            let answer = node.fetch("GET", "a.test", "/v", fields);
            answer.cache().to_owned()
        })
    };
    assert_eq!(
        (ask(), ask()),
        (["MISS"; 3].map(String::from), ["HIT"; 3].map(String::from))
    );
    assert_eq!(node.purge("http://a.test/v")["matched"], 3);
    assert_eq!(
        (ask(), ask()),
        (["MISS"; 3].map(String::from), ["HIT"; 3].map(String::from))
    );
    let _ = node.fetch("DELETE", "a.test", "/v", "");
    assert_eq!(ask(), ["MISS"; 3].map(String::from));
}
