//! What may be stored, for how long, and for whom (RFC 9111 sections 3, 4.2 and 5).

use std::time::Duration;

use larder_tests::wait::wait_for;
use larder_tests::{Fields, Origin, Reply, Response, TestNode};

/// Asks twice for each path, which has one reply; says how often the origin was asked and gives the second answer.
fn twice(node: &TestNode, origin: &Origin, path: &str) -> (usize, Response) {
    let first = node.get("a.test", path);
    let second = node.get("a.test", path);
    assert_eq!(first.body, second.body, "{path}: two bodies");
    (origin.count(path), second)
}

/// Serves each field block at a path of its own under 200, asks twice, and compares how often the origin was asked.
fn check_asked(table: &[(&str, usize)], rule: Option<&str>) {
    let origin = Origin::start();
    let path = |n: usize| format!("/{n}");
    for (n, (lines, _)) in table.iter().enumerate() {
        let reply = lines.split('\n').fold(Reply::ok("body"), |reply, line| {
            let (name, value) = line.split_once(": ").expect("a field line");
            reply.header(name, value)
        });
        origin.on(&path(n), [reply]);
    }
    let mut builder = TestNode::builder().origin(&origin);
    if let Some(rule) = rule {
        builder = builder.rule(rule);
    }
    let node = builder.start();
    let wrong: Vec<_> = table
        .iter()
        .enumerate()
        .filter_map(|(n, (lines, want))| {
            let (asked, second) = twice(&node, &origin, &path(n));
            let hit = if *want == 1 { "HIT" } else { "no hit" };
            let right = asked == *want && second.is_hit() == (*want == 1);
            (!right).then(|| {
                format!(
                    "{lines:?}: asked {asked}, wanted {want} and {hit}, got {}",
                    second.cache()
                )
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn b01_set_cookie_is_not_stored_by_default() {
    let origin = Origin::start();
    origin.on_each("/p", |_, n| {
        let reply = Reply::ok(n.to_string()).cached("public, max-age=60");
        reply
            .header("Set-Cookie", &format!("sid={n}; HttpOnly"))
            .steps_for("GET")
    });
    let node = TestNode::before(&origin);
    for n in 1..=2 {
        let response = node.get("a.test", "/p").expect(200, n.to_string());
        assert_eq!(
            response.header("set-cookie"),
            Some(format!("sid={n}; HttpOnly").as_str())
        );
        assert!(!response.is_hit(), "{response:?}");
    }
    assert_eq!(origin.count("/p"), 2);
}

#[test]
fn b01_a_stripped_cookie_reaches_only_the_client_that_filled() {
    let origin = Origin::start();
    origin.on(
        "/p",
        [Reply::ok("1")
            .cached("max-age=60")
            .header("Set-Cookie", "sid=1")
            .header("Set-Cookie", "b=2")],
    );
    let node = TestNode::builder()
        .origin(&origin)
        .rule("set_cookie = \"strip\"")
        .start();
    assert_eq!(
        node.get("a.test", "/p").expect(200, "1").fields.all("set-cookie"),
        ["sid=1", "b=2"]
    );
    let hit = node.get("a.test", "/p").expect(200, "1");
    assert!(hit.is_hit() && !hit.fields.has("set-cookie"), "{hit:?}");
    assert_eq!(origin.count("/p"), 1);
}

#[test]
fn b01_a_cookie_of_a_304_is_not_merged_into_what_is_stored() {
    let origin = Origin::start();
    origin.on_each("/p", |request, n| {
        let reply = match (n, request.header("if-none-match")) {
            // Stale on arrival, with a validator.
            (1, _) => Reply::ok("v").cached("max-age=60").age(100),
            (_, Some(_)) => Reply::status(304, "")
                .cached("max-age=60")
                .header("Set-Cookie", "sid=304"),
            (_, None) => Reply::ok("v").cached("max-age=60"),
        };
        reply.header("ETag", "\"v\"").steps_for(&request.method)
    });
    let node = TestNode::builder()
        .origin(&origin)
        .rule("set_cookie = \"store\"")
        .start();
    for _ in 0..2 {
        let _ = node.get("a.test", "/p").expect(200, "v");
    }
    let hit = node.get("a.test", "/p").expect(200, "v");
    assert!(hit.is_hit() && !hit.fields.has("set-cookie"), "{hit:?}");
}

#[test]
fn b02_an_answer_to_authorization_is_shared_only_where_it_says_so() {
    let origin = Origin::start();
    let shareable = [
        ("max-age=60", false),
        ("public, max-age=60", true),
        ("s-maxage=60", true),
        ("must-revalidate, max-age=60", true),
    ];
    for (n, (directives, _)) in shareable.iter().enumerate() {
        let reply = Reply::ok(*directives).cached(directives);
        origin
            .on(&format!("/with/{n}"), [reply.clone()])
            .on(&format!("/without/{n}"), [reply]);
    }
    let node = TestNode::before(&origin);
    for (n, (directives, shared)) in shareable.iter().enumerate() {
        let path = format!("/with/{n}");
        let _ = node
            .fetch("GET", "a.test", &path, "Authorization: Bearer x\r\n")
            .expect(200, directives);
        let anonymous = node.get("a.test", &path).expect(200, directives);
        assert_eq!(
            (anonymous.is_hit(), origin.count(&path)),
            (*shared, if *shared { 1 } else { 2 }),
            "{directives}"
        );
    }
    // A stored anonymous answer is not given to a request with Authorization, whom the origin may want to answer otherwise,
    // unless what it says of sharing covers such requests (RFC 9111 section 3.5).
    for (n, (directives, shared)) in shareable.iter().enumerate() {
        let path = format!("/without/{n}");
        let _ = node.get("a.test", &path).expect(200, directives);
        let authorized = node
            .fetch("GET", "a.test", &path, "Authorization: Bearer x\r\n")
            .expect(200, directives);
        if !authorized.is_hit() {
            assert_eq!(origin.last(&path).header("authorization"), Some("Bearer x"));
        }
        assert_eq!(authorized.is_hit(), *shared, "{directives}: {authorized:?}");
    }
}

#[test]
fn b05_s_maxage_goes_before_max_age() {
    check_asked(
        &[
            ("Cache-Control: max-age=0, s-maxage=30", 1),
            ("Cache-Control: s-maxage=0, max-age=30", 2),
        ],
        None,
    );
}

#[test]
fn b06_huge_lifetimes_saturate() {
    let nines = "9".repeat(30);
    let origin = Origin::start();
    let numbers = [
        "2147483647",
        "2147483648",
        "4294967297",
        "18446744073709551616",
        "99999999999999999999",
        &nines,
    ];
    for number in numbers {
        let value = format!("max-age={number}, stale-while-revalidate={number}, stale-if-error={number}");
        origin.on(&format!("/{number}"), [Reply::ok("x").cached(&value)]);
    }
    let node = TestNode::before(&origin);
    for number in numbers {
        let (asked, second) = twice(&node, &origin, &format!("/{number}"));
        assert!(asked == 1 && second.is_hit(), "{number}: {second:?}");
        assert!(
            second.age().is_some_and(|age| age < 60),
            "{number}: {:?}",
            second.header("age")
        );
        let status = second.header("cache-status").expect("Cache-Status");
        let ttl: i64 = status
            .split("ttl=")
            .nth(1)
            .and_then(|t| t.split(';').next()?.trim().parse().ok())
            .expect("a ttl");
        assert!(ttl > 1_000_000_000, "{number}: {status}");
    }
}

#[test]
fn b06_a_huge_age_is_stale() {
    check_asked(
        &[
            ("Cache-Control: max-age=60\nAge: 99999999999999999999", 2),
            ("Cache-Control: max-age=60\nAge: 18446744073709551616", 2),
        ],
        None,
    );
}

#[test]
fn b07_an_invalid_lifetime_is_stale_and_never_the_default() {
    check_asked(
        &[
            ("Cache-Control: max-age=60", 1),
            ("Cache-Control: max-age=60,\tpublic", 1),
            ("Cache-Control: max-age=-1", 2),
            ("Cache-Control: max-age=1.5", 2),
            ("Cache-Control: max-age=abc", 2),
            ("Cache-Control: max-age", 2),
            ("Cache-Control: max-age=", 2),
            ("Cache-Control: foo=\", max-age=60,\", max-age=0", 2),
            ("Cache-Control: max-age=60\nCache-Control: no-store", 2),
            ("Cache-Control: max-age=60\nCache-Control: s-maxage=0", 2),
            ("X-Nothing: said", 1),
        ],
        Some("ttl = { 200 = \"1h\" }"),
    );
}

#[test]
fn b08_max_age_wins_over_expires_in_any_order() {
    check_asked(
        &[
            ("Expires: Thu, 01 Jan 1970 00:00:00 GMT\nCache-Control: max-age=60", 1),
            ("Cache-Control: max-age=60\nExpires: Thu, 01 Jan 1970 00:00:00 GMT", 1),
        ],
        None,
    );
}

#[test]
fn b09_an_invalid_expires_is_expired() {
    check_asked(
        &[
            ("Expires: 0", 2),
            ("Expires: -1", 2),
            ("Expires: ", 2),
            ("Expires: Thu, 18-Aug-50 02:01:18 GMT", 2),
            ("Expires: Thu, 18 Aug 2050 02:01:18 UTC", 2),
            ("Expires: Thu, 18 Aug 2050 02:01:18 AEST", 2),
            ("Expires: Thu 18 Aug 2050 02:01:18 GMT", 2),
            ("Expires: Thu, 18 Aug 2050 2:01:18 GMT", 2),
            ("Expires: Thu, 18 Aug 50 02:01:18 GMT", 2),
            // The three valid forms (RFC 9110 section 5.6.7).
            ("Expires: Thu, 18 Aug 2050 02:01:18 GMT", 1),
            ("Expires: Thu Aug 18 02:01:18 2050", 1),
            ("Expires: Thursday, 18-Aug-50 02:01:18 GMT", 1),
        ],
        Some("ttl = { 200 = \"1h\" }"),
    );
}

#[test]
fn b10_age_of_an_upstream_cache_counts() {
    check_asked(
        &[
            ("Cache-Control: max-age=3600\nAge: 3500", 1),
            ("Cache-Control: max-age=3600\nAge: 3600", 2),
            ("Cache-Control: max-age=3600\nAge: 99999999999", 2),
            // Invalid: ignored. A list: its first value.
            ("Cache-Control: max-age=3600\nAge: -1", 1),
            ("Cache-Control: max-age=3600\nAge: abc", 1),
            ("Cache-Control: max-age=3600\nAge: 1.5", 1),
            ("Cache-Control: max-age=3600\nAge: 0, 0", 1),
            ("Cache-Control: max-age=3600\nAge: 7\nAge: 3600", 1),
            ("Cache-Control: max-age=3600\nAge: 3600\nAge: 7", 2),
        ],
        None,
    );
}

#[test]
fn b10_a_hit_is_at_least_as_old_as_it_came() {
    let origin = Origin::start();
    origin.on("/old", [Reply::ok("x").cached("max-age=3600").age(3500)]);
    let node = TestNode::before(&origin);
    let (_, hit) = twice(&node, &origin, "/old");
    assert!(
        hit.is_hit() && hit.age().is_some_and(|age| (3500..3560).contains(&age)),
        "{hit:?}"
    );
    assert_eq!(hit.fields.all("age").len(), 1);
}

#[test]
fn b12_a_hit_has_the_stored_date_and_an_age() {
    let origin = Origin::start();
    origin.on(
        "/p",
        [Reply::ok("x").cached("max-age=600").date_ago(100).header("X-Kept", "1")],
    );
    let node = TestNode::before(&origin);
    let miss = node.get("a.test", "/p").expect(200, "x");
    let hit = node.get("a.test", "/p").expect(200, "x");
    assert_eq!((miss.cache(), hit.cache()), ("MISS", "HIT"));
    assert!(miss.header("date").is_some());
    assert_eq!(hit.fields.all("date"), miss.fields.all("date"));
    assert!(hit.age().is_some_and(|age| (100..160).contains(&age)), "{hit:?}");
    assert_eq!(hit.header("x-kept"), Some("1"));
    assert!(hit.header("cache-status").is_some_and(|s| s.contains("hit")), "{hit:?}");
}

#[test]
fn b12_age_goes_through_where_nothing_is_stored() {
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("x").cached("no-store").age(42)]);
    let node = TestNode::before(&origin);
    let response = node.get("a.test", "/p").expect(200, "x");
    assert_eq!(response.fields.all("age"), ["42"]);
}

/// Answers `status` once and then 200; the second answer must be the origin's.
fn check_error_is_not_kept(rule: Option<&str>, statuses: &[u16], lines: &[(&str, &str)]) {
    let origin = Origin::start();
    for status in statuses {
        let error = lines
            .iter()
            .fold(Reply::status(*status, "trouble"), |reply, (name, value)| {
                reply.header(name, value)
            });
        origin.on(&format!("/{status}"), [error, Reply::ok("well")]);
    }
    let mut builder = TestNode::builder().origin(&origin);
    if let Some(rule) = rule {
        builder = builder.rule(rule);
    }
    let node = builder.start();
    for status in statuses {
        let path = format!("/{status}");
        let _ = node.get("a.test", &path).expect(*status, "trouble");
        let second = node.get("a.test", &path).expect(200, "well");
        assert!(!second.is_hit() && origin.count(&path) == 2, "{status} was kept");
    }
}

#[test]
fn b14_errors_without_a_lifetime_are_not_stored() {
    check_error_is_not_kept(None, &[404, 405, 410, 500, 502, 503, 504, 299, 999], &[]);
}

#[test]
fn b14_a_ttl_is_for_its_status_only() {
    let rule = Some("ttl = { 200 = \"1h\", 404 = \"1h\", 502 = \"1h\" }");
    check_error_is_not_kept(rule, &[299, 403, 410, 500, 503, 504, 999], &[]);
    check_error_is_not_kept(rule, &[404, 502], &[("Cache-Control", "no-store")]);
    check_error_is_not_kept(rule, &[404, 502], &[("Cache-Control", "private")]);
}

#[test]
fn b14_a_negative_ttl_holds_and_ends() {
    let origin = Origin::start();
    for status in [404, 502] {
        origin.on(&format!("/{status}"), [Reply::status(status, "no"), Reply::ok("well")]);
    }
    let node = TestNode::builder()
        .origin(&origin)
        .rule("ttl = { 404 = \"1s\", 502 = \"1h\" }")
        .start();
    for status in [404, 502] {
        let path = format!("/{status}");
        let _ = node.get("a.test", &path).expect(status, "no");
        assert!(node.get("a.test", &path).expect(status, "no").is_hit(), "{status}");
        assert_eq!(origin.count(&path), 1);
    }
    wait_for(
        "the origin to be asked again after the ttl",
        Duration::from_secs(5),
        || {
            let response = node.get("a.test", "/404");
            (response.status == 200).then_some(())
        },
    );
    assert_eq!(origin.count("/404"), 2);
}

fn no_cache_requests() -> [&'static str; 2] {
    ["Cache-Control: no-cache\r\n", "Pragma: no-cache\r\n"]
}

#[test]
fn b17_a_reload_of_a_client_does_not_reach_the_origin_by_default() {
    for lines in no_cache_requests() {
        let origin = Origin::start();
        origin.on(
            "/p",
            [Reply::ok("1").cached("max-age=60"), Reply::ok("2").cached("max-age=60")],
        );
        let node = TestNode::before(&origin);
        // It may fill the cache, too.
        let _ = node.fetch("GET", "a.test", "/p", lines).expect(200, "1");
        assert!(node.fetch("GET", "a.test", "/p", lines).expect(200, "1").is_hit());
        assert!(node.get("a.test", "/p").expect(200, "1").is_hit());
        assert_eq!(origin.count("/p"), 1);
    }
}

#[test]
fn b17_an_honoured_reload_refreshes_what_is_stored() {
    for lines in no_cache_requests() {
        let origin = Origin::start();
        origin.on(
            "/p",
            [Reply::ok("1").cached("max-age=60"), Reply::ok("2").cached("max-age=60")],
        );
        let node = TestNode::builder()
            .origin(&origin)
            .rule("honour_no_cache = true")
            .start();
        let _ = node.get("a.test", "/p").expect(200, "1");
        let _ = node.fetch("GET", "a.test", "/p", lines).expect(200, "2");
        assert!(
            node.get("a.test", "/p").expect(200, "2").is_hit(),
            "{lines:?} stopped the storing"
        );
        assert_eq!(origin.count("/p"), 2);
    }
}

#[test]
fn connection_fields_of_an_answer_are_not_in_a_hit() {
    let origin = Origin::start();
    let reply = Reply::ok("x")
        .cached("max-age=60")
        .header("Connection", "X-Tmp")
        .header("X-Tmp", "1");
    origin.on("/p", [reply.header("Keep-Alive", "timeout=5").header("X-Kept", "1")]);
    let node = TestNode::before(&origin);
    let (_, hit) = twice(&node, &origin, "/p");
    let leaked = |fields: &Fields| ["x-tmp", "keep-alive"].iter().any(|name| fields.has(name));
    assert!(
        hit.is_hit() && !leaked(&hit.fields) && hit.fields.has("x-kept"),
        "{hit:?}"
    );
}
