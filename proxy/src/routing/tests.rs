use http::{HeaderMap, Method};

use super::*;
use crate::config::{Condition, Match, PathPattern};

fn upstream_settings() -> config::Upstream {
    config::Upstream {
        name: "app".into(),
        address: "127.0.0.1:1".into(),
        keepalive: 1,
        connections: 1,
        queue: 1,
        timeouts: config::UpstreamTimeouts {
            connect: std::time::Duration::from_secs(1),
            first_byte: std::time::Duration::from_secs(1),
            between_bytes: std::time::Duration::from_secs(1),
            total: None,
        },
    }
}

fn vhost(name: &str, hosts: Vec<HostPattern>, rules: Vec<config::Rule>) -> config::Vhost {
    config::Vhost {
        name: name.into(),
        hosts,
        upstream: 0,
        purge: None,
        upgrade: Vec::new(),
        trusted_proxies: Vec::new(),
        rules,
    }
}

fn compile(vhosts: Vec<config::Vhost>) -> Router {
    let traffic = Traffic::new(1, "main", 0);
    Router::compile(
        &Live {
            upstreams: vec![upstream_settings()],
            vhosts,
        },
        &traffic,
        None,
    )
    .unwrap()
}

#[test]
fn exact_beats_longest_wildcard_beats_default() {
    let router = compile(vec![
        vhost("exact", vec![HostPattern::Exact("a.example.test".into())], vec![]),
        vhost("long", vec![HostPattern::Suffix(".b.example.test".into())], vec![]),
        vhost("short", vec![HostPattern::Suffix(".example.test".into())], vec![]),
        vhost("any", vec![HostPattern::Any], vec![]),
    ]);
    let table = [
        ("a.example.test", "exact"),
        ("x.b.example.test", "long"),
        ("b.example.test", "short"),
        ("x.y.example.test", "short"),
        ("example.test", "any"),
        ("", "any"),
    ];
    for (host, expected) in table {
        assert_eq!(router.vhost(host.as_bytes()).unwrap().name, expected, "{host}");
    }
}

#[test]
fn without_a_default_an_unknown_host_has_no_vhost() {
    let router = compile(vec![vhost("one", vec![HostPattern::Exact("a.test".into())], vec![])]);
    assert!(router.vhost(b"b.test").is_none());
}

#[test]
fn the_first_rule_that_matches_in_all_it_names_wins() {
    let rule = |name: &str, matches: Match| config::Rule {
        name: name.into(),
        matches,
        ..config::Rule::default()
    };
    let glob = |g: &str| Some(PathPattern::Glob(g.into()));
    let router = compile(vec![vhost(
        "any",
        vec![HostPattern::Any],
        vec![
            rule(
                "posts",
                Match {
                    path: glob("/a/**"),
                    methods: vec![Method::POST],
                    condition: None,
                },
            ),
            rule(
                "both",
                Match {
                    path: glob("/a/**"),
                    methods: vec![],
                    condition: Some(Condition {
                        query: vec!["x".into()],
                        cookie: vec!["sid".into()],
                        header: vec![],
                    }),
                },
            ),
            rule(
                "rest",
                Match {
                    path: glob("/a/**"),
                    methods: vec![],
                    condition: None,
                },
            ),
        ],
    )]);
    let vhost = router.vhost(b"any").unwrap();
    let mut cookie = HeaderMap::new();
    cookie.insert("cookie", "a=1; sid=2".parse().unwrap());
    let none = HeaderMap::new();
    let table = [
        (Method::POST, "/a/b", &none, "posts"),
        (Method::GET, "/a/b?x", &cookie, "both"),
        (Method::GET, "/a/b?x=1", &none, "rest"),
        (Method::GET, "/a/b?y=1", &cookie, "rest"),
        (Method::GET, "/b", &cookie, ""),
    ];
    for (method, raw, fields, expected) in table {
        let mut target = Target::default();
        target.normalise(raw.as_bytes());
        assert_eq!(
            vhost.rule(&method, &target, fields).unwrap().name,
            expected,
            "{method} {raw}"
        );
    }
}
