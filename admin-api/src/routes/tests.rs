use std::collections::HashSet;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use http::{Request, StatusCode};
use http_body::Frame;
use serde_json::{Value, json};

use super::openapi_json;
use crate::fixture::{Answer, Console, SECRET, bearer, plain};
use crate::{Phase, Scope, Stats};

const OPEN: [&str; 4] = ["/healthz", "/readyz", "/api/openapi.json", "/api/v1/version"];

/// Every documented call with its method, and names filled in.
fn documented() -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    let mut calls = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            calls.push((
                method.to_uppercase(),
                path.replace("{name}", "www").replace("{id}", "x"),
            ));
        }
    }
    calls
}

fn assert_problem(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!(answer.status.as_u16(), status, "{:?}", answer.body);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!(answer.header("cache-control"), "no-store");
    let problem = answer.json();
    assert_eq!(problem["code"], code);
    assert_eq!(problem["status"], status);
    assert_eq!(problem["type"], format!("urn:larder:problem:{code}"));
    assert!(!problem["title"].as_str().unwrap().is_empty() && !problem["detail"].as_str().unwrap().is_empty());
    problem
}

#[test]
fn the_document_is_the_committed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    if std::env::var_os("LARDER_BLESS").is_some() {
        std::fs::write(&path, openapi_json()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == openapi_json(),
        "regenerate it: larder openapi > admin-api/openapi.json"
    );
}

#[tokio::test]
async fn the_document_has_every_call_and_every_call_answers() {
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    let calls = documented();
    for expected in [
        "GET /healthz",
        "GET /readyz",
        "GET /api/v1/version",
        "GET /api/openapi.json",
        "GET /api/v1/stats",
        "POST /api/v1/stats/reset",
        "GET /api/v1/vhosts",
        "GET /api/v1/vhosts/www",
        "GET /api/v1/origins",
        "GET /api/v1/cache",
        "POST /api/v1/purges",
        "GET /api/v1/purges",
        "GET /api/v1/purges/x",
        "GET /metrics",
        "GET /api/v1/audit",
    ] {
        assert!(
            calls
                .iter()
                .any(|(method, path)| format!("{method} {path}") == expected),
            "{expected}"
        );
    }
    let codes = document["components"]["schemas"]["Code"]["oneOf"]
        .as_array()
        .map_or_else(
            || {
                document["components"]["schemas"]["Code"]["enum"]
                    .as_array()
                    .unwrap()
                    .len()
            },
            Vec::len,
        );
    assert_eq!(codes, 17, "every code is in the document");

    let console = Console::new();
    let mut operations = HashSet::<String>::new();
    for (method, path) in calls {
        let answer = match &*method {
            "GET" => console.get(&path).await,
            _ => console.post(&path, "{}").await,
        };
        let is_unrouted = answer.status == StatusCode::METHOD_NOT_ALLOWED
            || (answer.status == StatusCode::NOT_FOUND && answer.json()["code"] == "not-found");
        assert!(
            !is_unrouted && !answer.status.is_server_error(),
            "{method} {path}: {}",
            answer.status
        );
        let operation = path.replace("/www", "/{name}").replace("/x", "/{id}");
        let operation = &document["paths"][&operation][method.to_lowercase()];
        assert!(
            operations.insert(operation["operationId"].to_string()),
            "{method} {path}: an id of its own"
        );
        assert_eq!(
            operation["security"].is_array(),
            !OPEN.contains(&&*path),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn b117_nothing_but_the_open_calls_without_a_valid_token() {
    let console = Console::new();
    let near = format!("Bearer {}", SECRET.to_uppercase());
    let json = ("content-type", "application/json");
    for (method, path) in documented() {
        let is_open = OPEN.contains(&&*path);
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer wrong",
            &near,
            "Basic YWRtaW46YWRtaW4=",
            SECRET,
            "Bearer \u{e4}",
        ] {
            let answer = console
                .send(&method, &path, &[json, ("authorization", wrong)], "{}")
                .await;
            if is_open {
                assert_eq!(answer.status, StatusCode::OK, "{path}");
            } else {
                assert_problem(&answer, 401, "unauthorized");
                assert!(answer.header("www-authenticate").starts_with("Bearer"));
            }
        }
        let missing = console.send(&method, &path, &[json], "{}").await;
        assert_eq!(missing.status == StatusCode::UNAUTHORIZED, !is_open, "{path}");
        let twice = [json, ("authorization", &*bearer()), ("authorization", "Bearer wrong")];
        let twice = console.send(&method, &path, &twice, "{}").await;
        assert_eq!(twice.status == StatusCode::UNAUTHORIZED, !is_open, "{path}");
        let lower = format!("bearer {SECRET}");
        let right = console
            .send(&method, &path, &[json, ("authorization", &lower)], "{}")
            .await;
        assert_ne!(right.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    // No token in the query, and an open path is open for reading only.
    assert_problem(
        &console
            .send("GET", &format!("/api/v1/stats?token={SECRET}"), &[], "")
            .await,
        401,
        "unauthorized",
    );
    assert_problem(
        &console.send("POST", "/healthz", &[json], "{}").await,
        401,
        "unauthorized",
    );
    assert_problem(&console.send("GET", "/nowhere", &[], "").await, 401, "unauthorized");
    assert!(console.pantry.resets.lock().is_empty());
}

#[tokio::test]
async fn b117_no_change_by_get_or_from_another_site() {
    let console = Console::new();
    let get = console.get("/api/v1/stats/reset?scope=all").await;
    assert_problem(&get, 405, "method-not-allowed");
    assert_eq!(get.header("allow"), "POST");

    let token = bearer();
    let base = [("authorization", &*token), ("content-type", "application/json")];
    let body = r#"{"scope":"all"}"#;
    for foreign in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "http://evil.test"),
        ("origin", "http://localhost:3000"),
        ("origin", "null"),
    ] {
        let answer = console
            .send("POST", "/api/v1/stats/reset", &[base[0], base[1], foreign], body)
            .await;
        assert_problem(&answer, 403, "cross-site");
    }
    for form in [
        "application/x-www-form-urlencoded",
        "text/plain",
        "multipart/form-data; boundary=x",
        "",
    ] {
        let headers = [base[0], ("content-type", form)];
        let answer = console.send("POST", "/api/v1/stats/reset", &headers, body).await;
        assert_problem(&answer, 415, "unsupported-media-type");
    }
    assert!(console.pantry.resets.lock().is_empty());

    for own in [
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-site", "none"),
        ("origin", "http://localhost:9090"),
    ] {
        let answer = console
            .send("POST", "/api/v1/stats/reset", &[base[0], base[1], own], body)
            .await;
        assert_eq!(answer.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn b117_only_own_hosts_are_answered() {
    let console = Console::new();
    let check = async |uri: &str, hosts: &[&str], expected: StatusCode| {
        let mut request = Request::builder().uri(uri);
        for host in hosts {
            request = request.header("host", *host);
        }
        let answer = console.raw(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, expected, "{uri} {hosts:?}");
        if expected != StatusCode::OK {
            assert_problem(&answer, 403, "host-not-allowed");
        }
    };
    for path in OPEN.into_iter().chain(["/", "/app.js"]) {
        check(path, &["localhost:9090"], StatusCode::OK).await;
        check(path, &["127.0.0.1:9090"], StatusCode::OK).await;
        check(path, &["evil.test"], StatusCode::FORBIDDEN).await;
        check(path, &[], StatusCode::FORBIDDEN).await;
        check(path, &["localhost", "localhost"], StatusCode::FORBIDDEN).await;
    }
    check("http://localhost:9090/healthz", &["localhost:9090"], StatusCode::OK).await;
    check("http://evil.test/healthz", &["localhost:9090"], StatusCode::FORBIDDEN).await;
    check("http://localhost:9090/healthz", &["evil.test"], StatusCode::FORBIDDEN).await;
}

/// Asks for a change that is refused.
async fn refused(console: &Console, path: &str, body: &str, status: u16, code: &str, position: Value) {
    let problem = assert_problem(&console.post(path, body).await, status, code);
    assert_eq!(problem["position"], position, "{body:.80}");
}

#[tokio::test]
async fn a_refused_reset_says_why_and_where() {
    let console = Console::new();
    let at = |line: usize, column: usize| json!({"line": line, "column": column});
    let name = json!({"pointer": "/name"});
    for (body, status, code, position) in [
        ("", 400, "invalid-json", at(1, 0)),
        ("{\n\"scope\" \"all\"}", 400, "invalid-json", at(2, 9)),
        (r#"["all", null]"#, 422, "invalid-body", at(1, 0)),
        (r#"{"scope":"none"}"#, 422, "invalid-body", at(1, 15)),
        (r#"{"scope":"all","x":1}"#, 422, "invalid-body", at(1, 18)),
        (r#"{"scope":"vhost"}"#, 422, "invalid-body", name.clone()),
        (r#"{"scope":"all","name":"x"}"#, 422, "invalid-body", name.clone()),
        (r#"{"scope":"vhost","name":"x"}"#, 404, "unknown-name", name.clone()),
        (r#"{"scope":"origin","name":"x"}"#, 404, "unknown-name", name.clone()),
    ] {
        refused(&console, "/api/v1/stats/reset", body, status, code, position).await;
    }
    assert!(console.pantry.resets.lock().is_empty());
}

#[tokio::test]
async fn what_this_version_cannot_purge_is_told() {
    let console = Console::new();
    let purges = "/api/v1/purges";
    let at = |pointer: &str| json!({ "pointer": pointer });
    for (member, value) in [
        ("urls", "[\"http://a/\"]"),
        ("prefix", "\"http://a/\""),
        ("wildcard", "\"http://a/*\""),
        ("regex", "\"a\""),
        ("host", "\"a\""),
        ("tag", "\"a\""),
        ("tags", "[\"a\"]"),
        ("all", "true"),
    ] {
        let body = format!(r#"{{"match":{{"{member}":{value}}}}}"#);
        refused(
            &console,
            purges,
            &body,
            422,
            "not-supported",
            at(&format!("/match/{member}")),
        )
        .await;
    }
    for (rest, pointer) in [
        (r#""mode":"soft""#, "/mode"),
        (r#""dry_run":true"#, "/dry_run"),
        (r#""vhost":"www""#, "/vhost"),
        (r#""refresh":{"hottest":1}"#, "/refresh"),
    ] {
        let body = format!(r#"{{"match":{{"url":"http://www.example.test/"}},{rest}}}"#);
        refused(&console, purges, &body, 422, "not-supported", at(pointer)).await;
    }
}

#[tokio::test]
async fn a_refused_purge_says_why_and_where() {
    let console = Console::new();
    let deep = format!(r#"{{"match":{{"tag":{}"#, "[".repeat(50_000));
    let long = format!(r#"{{"match":{{"url":"http://a/{}"}}}}"#, "x".repeat(9000));
    let large = " ".repeat((64 << 10) + 1);
    let at = |column: usize| json!({"line": 1, "column": column});
    let member = |pointer: &str| json!({ "pointer": pointer });
    let byte = |offset: usize| json!({"pointer": "/match/url", "offset": offset});
    for (body, status, code, position) in [
        (&*deep, 400, "invalid-json", at(142)),
        (r#"{"match":["http://a/"]}"#, 422, "invalid-body", at(9)),
        (r#"{"match":{"tag":"a"},"match":{}}"#, 422, "invalid-body", at(28)),
        (r#"{"match":{}}"#, 422, "invalid-body", member("/match")),
        (
            r#"{"match":{"url":"http://a/","tag":"a"}}"#,
            422,
            "invalid-body",
            member("/match"),
        ),
        (&*long, 422, "invalid-body", member("/match/url")),
        (r#"{"match":{"url":"/a"}}"#, 422, "invalid-url", byte(0)),
        (r#"{"match":{"url":"ftp://a/"}}"#, 422, "unknown-scheme", byte(0)),
        (r#"{"match":{"url":"http://a/"}}"#, 422, "no-vhost", byte(7)),
        (&*large, 413, "body-too-large", Value::Null),
    ] {
        refused(&console, "/api/v1/purges", body, status, code, position).await;
    }
}

#[tokio::test]
async fn every_other_refusal_is_a_problem() {
    let console = Console::new();
    refused(&console, "/api/v1/nothing", "{}", 404, "not-found", Value::Null).await;
    refused(&console, "/api/v1/stats", "{}", 405, "method-not-allowed", Value::Null).await;
    refused(&console, "/app.js", "{}", 405, "method-not-allowed", Value::Null).await;
    refused(&console, "/", "{}", 405, "method-not-allowed", Value::Null).await;

    for (path, status, code) in [
        ("/api/v1/vhosts/nobody", 404, "unknown-name"),
        ("/api/v1/vhosts/%ff", 400, "invalid-request"),
        ("/api/v1/purges/x", 404, "unknown-name"),
        ("/api/v1/purges?limit=0", 400, "invalid-request"),
        ("/api/v1/purges?limit=x", 400, "invalid-request"),
        ("/api/v1/audit?limti=1", 400, "invalid-request"),
        ("/api/v2", 404, "not-found"),
    ] {
        assert_problem(&console.get(path).await, status, code);
    }
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "GETX"] {
        let headers = [("authorization", &*bearer()), ("content-type", "application/json")];
        let answer = console.send(method, "/api/v1/stats", &headers, "").await;
        assert_problem(&answer, 405, "method-not-allowed");
        assert_eq!(answer.header("allow"), "GET,HEAD", "{method}");
    }
}

/// A body that never comes.
struct Silence;

impl http_body::Body for Silence {
    type Data = bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let console = Console::new();
    let request = Request::post("/api/v1/purges")
        .header("host", "localhost")
        .header("authorization", bearer())
        .header("content-type", "application/json");
    let answer = console.raw(request.body(Body::new(Silence)).unwrap()).await;
    assert_problem(&answer, 408, "body-timeout");
}

#[tokio::test]
async fn b73_a_purge_tells_what_it_did() {
    let console = Console::new();
    let url = "http://www.example.test/a?b=1";
    console.pantry.objects.lock().insert(url.to_owned(), vec![100, 23]);
    let body = json!({"match": {"url": url}, "mode": "hard", "reason": "deploy 42"}).to_string();

    let first = console.post("/api/v1/purges", &body).await;
    assert_eq!(first.status, StatusCode::OK);
    let first = first.json();
    for (member, expected) in [
        ("state", json!("done")),
        ("mode", json!("hard")),
        ("url", json!(url)),
        ("matched", json!(2)),
        ("bytes", json!(123)),
        ("vhosts", json!({"www": 2})),
        ("samples", json!([url])),
        ("key", json!("www.example.test/a?b=1")),
        ("fence", json!(42)),
        ("reason", json!("deploy 42")),
        ("token", json!("admin")),
    ] {
        assert_eq!(first[member], expected, "{member}");
    }
    assert!(first.get("hint").is_none());

    let again = console.post("/api/v1/purges", &body).await;
    assert_eq!(again.status, StatusCode::OK, "absent is no error");
    let again = again.json();
    assert_eq!(
        (&again["matched"], &again["samples"], &again["fence"]),
        (&json!(0), &json!([]), &json!(43))
    );
    assert!(again["hint"].is_string());

    let list = console.get("/api/v1/purges").await.json();
    assert_eq!(list["purges"], json!([again, first]));
    assert_eq!(
        console.get("/api/v1/purges?limit=1").await.json()["purges"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let path = format!("/api/v1/purges/{}", first["id"].as_str().unwrap());
    assert_eq!(console.get(&path).await.json(), first);
}

#[tokio::test]
async fn the_purges_that_are_kept_are_bounded() {
    let console = Console::new();
    for _ in 0..1005 {
        let body = r#"{"match":{"url":"http://www.example.test/"}}"#;
        assert_eq!(console.post("/api/v1/purges", body).await.status, StatusCode::OK);
    }
    let list = console.get("/api/v1/purges").await.json();
    let list = list["purges"].as_array().unwrap();
    assert_eq!((list.len(), &list[999]["fence"]), (1000, &json!(47)));
}

#[tokio::test]
async fn b79_a_reset_answers_with_the_figures_as_they_were() {
    let console = Console::new();
    let before = console.get("/api/v1/stats").await.json();
    let metrics = console.get("/metrics").await.body;
    let reset = console.post("/api/v1/stats/reset", r#"{"scope":"all"}"#).await;
    assert_eq!(reset.json(), before);

    let after = console.get("/api/v1/stats").await.json();
    assert_eq!(after["epoch"].as_u64(), before["epoch"].as_u64().map(|epoch| epoch + 1));
    assert_eq!(after["total"]["requests"], 0);
    assert_eq!(after["total"]["in_flight"], 2, "gauges stay");
    assert_eq!(console.get("/metrics").await.body, metrics, "metrics never fall");

    for (body, scope) in [
        (r#"{"scope":"vhost","name":"www"}"#, Scope::Vhost("www".to_owned())),
        (r#"{"scope":"origin","name":"app"}"#, Scope::Origin("app".to_owned())),
        (r#"{"scope":"cache"}"#, Scope::Cache),
    ] {
        assert_eq!(console.post("/api/v1/stats/reset", body).await.status, StatusCode::OK);
        assert_eq!(console.pantry.resets.lock().last(), Some(&scope));
    }
}

#[tokio::test]
async fn the_figures_have_the_names_of_the_contract() {
    let console = Console::new();
    let stats = console.get("/api/v1/stats").await;
    let typed: Stats = serde_json::from_slice(&stats.body).unwrap();
    assert_eq!(typed, Stats::new(&plain(), crate::fixture::BOUNDS_US));
    let stats = stats.json();
    let members: Vec<_> = stats.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = [
        "epoch",
        "now_ms",
        "started_ms",
        "latency_bounds_us",
        "connections",
        "total",
        "vhosts",
        "origins",
        "cache",
        "log_lines_dropped",
    ];
    expected.sort_unstable();
    assert_eq!(members, expected);
    let www = &stats["vhosts"][0];
    assert_eq!(
        www["requests"]["cache"]["HIT"],
        json!({"requests": 10, "bytes_sent": 10})
    );
    assert_eq!(www["requests"]["cache"].as_object().unwrap().len(), 8);
    assert_eq!(
        www["requests"]["responses"],
        json!({"1xx": 0, "2xx": 10, "3xx": 0, "4xx": 0, "5xx": 10})
    );
    assert_eq!(www["requests"]["hit_ratio"], 0.375);
    assert_eq!(www["requests"]["forwarded"]["uri-miss"], 10);
    assert_eq!(www["requests"]["hit_latency"]["counts"], json!([10, 0, 10, 1]));
    assert_eq!(www["requests"]["hit_latency"]["count"], 21);
    assert_eq!(stats["connections"]["timeouts"], json!({"header": 10, "idle": 10}));

    assert_eq!(&console.get("/api/v1/vhosts/www").await.json(), www);
    assert_eq!(console.get("/api/v1/vhosts").await.json()["vhosts"], stats["vhosts"]);
    assert_eq!(console.get("/api/v1/origins").await.json()["origins"], stats["origins"]);
    assert_eq!(console.get("/api/v1/cache").await.json(), stats["cache"]);
}

#[tokio::test]
async fn readiness_follows_the_phase() {
    let console = Console::new();
    for (phase, status, word) in [
        (Phase::Starting, 503, "starting"),
        (Phase::Ready, 200, "ready"),
        (Phase::Draining, 503, "draining"),
    ] {
        *console.pantry.phase.lock() = phase;
        let answer = console.send("GET", "/readyz", &[], "").await;
        assert_eq!(answer.status.as_u16(), status);
        let expected = json!({
            "ready": status == 200, "phase": word, "tiers": [{"name": "memory", "state": "up"}]
        });
        assert_eq!(answer.json(), expected);
        assert_eq!(
            console.send("GET", "/healthz", &[], "").await.json(),
            json!({"alive": true})
        );
    }
}

#[tokio::test]
async fn the_version_keeps_the_error_for_those_with_a_token() {
    let console = Console::new();
    let open = console.send("GET", "/api/v1/version", &[], "").await.json();
    assert_eq!(open["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(open["config"]["last_reload_ok"], false);
    assert!(open["config"].get("last_reload_error").is_none());
    let known = console.get("/api/v1/version").await.json();
    assert_eq!(known["config"]["last_reload_error"], "/etc/larder.toml: line 3");
}

#[tokio::test]
async fn every_change_that_is_asked_for_leaves_a_line() {
    let console = Console::new();
    console.post("/api/v1/stats/reset", r#"{"scope":"all"}"#).await;
    console.post("/api/v1/purges", r#"{"match":{"url":"http://a/"}}"#).await;
    console.post("/api/v1/purges", "not json").await;
    console
        .send(
            "POST",
            "/api/v1/stats/reset",
            &[("authorization", "Bearer wrong")],
            r#"{"scope":"all"}"#,
        )
        .await;
    console
        .send(
            "POST",
            "/api/v1/purges",
            &[("authorization", &bearer()), ("sec-fetch-site", "cross-site")],
            "",
        )
        .await;
    console
        .raw(
            Request::post("/api/v1/purges")
                .header("host", "evil.test")
                .body(Body::empty())
                .unwrap(),
        )
        .await;
    console.get("/api/v1/stats").await;

    let lines = console.audit_lines();
    let brief: Vec<_> = lines
        .iter()
        .map(|line| {
            json!([
                line["token"],
                line["action"],
                line["status"],
                line["code"],
                line["parameters"]
            ])
        })
        .collect();
    let expected = [
        json!(["admin", "POST /api/v1/stats/reset", 200, null, {"scope": "all"}]),
        json!(["admin", "POST /api/v1/purges", 422, "no-vhost", {"match": {"url": "http://a/"}}]),
        json!(["admin", "POST /api/v1/purges", 400, "invalid-json", "not json"]),
        json!([null, "POST /api/v1/stats/reset", 401, "unauthorized", null]),
        json!(["admin", "POST /api/v1/purges", 403, "cross-site", null]),
        json!([null, "POST /api/v1/purges", 403, "host-not-allowed", null]),
    ];
    assert_eq!(brief, expected);

    let mut entries = console.get("/api/v1/audit").await.json()["entries"]
        .as_array()
        .unwrap()
        .clone();
    entries.reverse();
    assert_eq!(entries, lines);
    let text = std::fs::read_to_string(console.state_dir().join("audit.log")).unwrap();
    assert!(!text.contains(SECRET));
}

#[tokio::test]
async fn a_change_goes_on_where_its_line_cannot_be_written() {
    let console = Console::new();
    let path = console.state_dir().join("audit.log");
    // Larger than a log may be, with a directory in the way of the rename.
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(33 << 20)
        .unwrap();
    std::fs::create_dir(path.with_extension("log.1")).unwrap();
    let answer = console.post("/api/v1/stats/reset", r#"{"scope":"all"}"#).await;
    assert_eq!(answer.status, StatusCode::OK);
    let metrics = String::from_utf8(console.get("/metrics").await.body.to_vec()).unwrap();
    assert!(metrics.contains("\nlarder_audit_errors_total 1\n"));
    assert_eq!(
        console.get("/api/v1/audit").await.json()["entries"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn b116_every_answer_keeps_browsers_strict() {
    let console = Console::new();
    for path in [
        "/",
        "/app.js",
        "/style.css",
        "/healthz",
        "/api/v1/stats",
        "/metrics",
        "/nowhere",
    ] {
        let answer = console.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        let policy = answer.header("content-security-policy");
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.starts_with("default-src"),
            "{path}"
        );
        assert!(!policy.contains("unsafe"), "{path}");
    }
    let page = console.send("GET", "/", &[], "").await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (StatusCode::OK, "text/html; charset=utf-8")
    );
    let known = console
        .send("GET", "/", &[("if-none-match", page.header("etag"))], "")
        .await;
    assert_eq!((known.status, known.body.len()), (StatusCode::NOT_MODIFIED, 0));
}
