//! What a newcomer does in the first minutes, with the demonstration that comes with the binary.

use std::net::SocketAddr;
use std::thread;

use larder_tests::client::{get, request};
use larder_tests::node::process::{Process, run_with};
use larder_tests::node::{admin_call, figure, json_of};
use larder_tests::{Client, DEADLINE, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

const TOKEN: &str = "a-token-for-the-first-minutes";

/// The demonstration on ports that are free, and the links that it printed.
struct Demo {
    process: Process,
    data: SocketAddr,
    admin: SocketAddr,
    links: Vec<Link>,
}

/// A printed URL in its parts.
#[derive(Debug, Clone, PartialEq)]
struct Link {
    url: String,
    authority: String,
    target: String,
}

impl Link {
    /// Every URL in a text, without what quotes or ends it.
    fn all(text: &str) -> Vec<Self> {
        let ends = |c: char| c.is_whitespace() || "'\"<>()|".contains(c);
        let urls = text
            .split("http://")
            .skip(1)
            .map(|rest| rest.split(ends).next().unwrap_or_default());
        let link = |rest: &str| {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            Self {
                url: format!("http://{rest}"),
                authority: authority.to_owned(),
                target: format!("/{path}"),
            }
        };
        urls.filter(|rest| rest.contains(':')).map(link).collect()
    }
}

/// The address in a line that begins with `what`.
fn address(line: &str, what: &str) -> Option<SocketAddr> {
    let url = line
        .trim_start()
        .strip_prefix(what)?
        .trim_start()
        .strip_prefix("http://")?;
    url.split('/').next()?.parse().ok()
}

impl Demo {
    fn start() -> Self {
        Self::start_with(&["--fresh"])
    }

    fn start_with(arguments: &[&str]) -> Self {
        let ports = ["demo", "--data-port", "0", "--admin-port", "0"];
        let mut process = Process::start_with([&ports, arguments].concat(), Some(TOKEN));
        let data = process.wait_line("address of the cache", DEADLINE, 0, |line| address(line, "cache"));
        let admin = process.wait_line("address of the dashboard", DEADLINE, 0, |line| {
            address(line, "dashboard")
        });
        wait_until("the links to be printed", || process.output().contains("larder purge"));
        let links = Link::all(&process.output());
        let ours = |link: &Link| link.authority.ends_with(&format!(":{}", data.port()));
        assert!(
            links.iter().any(|l| l.authority == admin.to_string()),
            "no link to the admin plane in {links:?}"
        );
        Self {
            links: links.into_iter().filter(ours).collect(),
            process,
            data,
            admin,
        }
    }

    /// The first printed link of a kind.
    fn link(&self, what: &str, is: impl Fn(&Link) -> bool) -> Link {
        let found = self.links.iter().find(|link| is(link)).cloned();
        found.unwrap_or_else(|| panic!("no link to {what} in\n{}", self.process.output()))
    }

    fn page(&self) -> Link {
        self.link("a page", |link| {
            !link.target.contains('?') && self.get(link).is_complete() && self.get(link).is_hit()
        })
    }

    fn get(&self, link: &Link) -> larder_tests::Response {
        get(self.data, &link.authority, &link.target)
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        json_of(&admin_call(self.admin, TOKEN, method, path, body))
    }

    fn stats(&self) -> Value {
        let (status, stats) = self.call("GET", "/api/v1/stats", None);
        assert_eq!(status, 200, "{stats}");
        stats
    }

    /// Requests to all origins.
    fn asked(&self) -> i64 {
        let stats = self.stats();
        let origins = stats["origins"].as_array().expect("origins");
        origins.iter().filter_map(|origin| origin["requests"].as_i64()).sum()
    }

    fn cli(&self, arguments: &[&str]) -> String {
        let admin = format!("http://{}", self.admin);
        let (code, output) = run_with(&[arguments, &["--admin", &admin]].concat(), Some(TOKEN), DEADLINE);
        assert_eq!(code, Some(0), "larder {arguments:?}:\n{output}");
        output
    }
}

#[test]
fn a_page_is_a_miss_and_then_a_hit() {
    let demo = Demo::start();
    let page = demo.link("a page", |link| {
        !link.target.contains('?') && !link.target.contains("slow")
    });
    let (miss, hit) = (demo.get(&page), demo.get(&page));
    assert_eq!(
        (miss.status, miss.cache(), hit.status, hit.cache()),
        (200, "MISS", 200, "HIT"),
        "{page:?}"
    );
    assert!(miss.body == hit.body && !hit.body.is_empty());
    assert!(hit.age().is_some_and(|age| age < 60), "{hit:?}");
    assert_eq!(
        hit.fields.all("date"),
        miss.fields.all("date"),
        "Date is that of the origin"
    );
    assert!(
        miss.header("cache-status").is_some_and(|s| s.contains("fwd=uri-miss")),
        "{miss:?}"
    );
    assert!(
        hit.header("cache-status").is_some_and(|s| s.contains("; hit")),
        "{hit:?}"
    );
    let bypass = get(demo.data, &page.authority, &format!("{}?nocache", page.target));
    assert_eq!((bypass.status, bypass.cache()), (200, "BYPASS"));
}

#[test]
fn twenty_clients_of_the_slow_page_are_one_request_at_the_origin() {
    let demo = Demo::start();
    let slow = demo.link("the slow page", |link| link.target.contains("slow"));
    let before = demo.asked();
    let data = demo.data;
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let slow = slow.clone();
            thread::spawn(move || get(data, &slow.authority, &slow.target))
        })
        .collect();
    let bodies: Vec<_> = clients
        .into_iter()
        .map(|client| client.join().expect("a client ends"))
        .collect();
    assert!(
        bodies
            .iter()
            .all(|r| r.status == 200 && r.is_complete() && r.body == bodies[0].body)
    );
    assert_eq!(demo.asked() - before, 1, "each asked for itself");
}

#[test]
fn an_answer_with_cookies_is_not_a_hit() {
    let demo = Demo::start();
    let cookie = demo.link("the page with cookies", |link| {
        link.target.contains("cookie") || link.target.contains("login")
    });
    for _ in 0..2 {
        let answer = demo.get(&cookie);
        assert!(
            answer.status == 200 && answer.fields.has("set-cookie") && !answer.is_hit(),
            "{answer:?}"
        );
    }
}

#[test]
fn a_purge_by_command_or_by_rest_makes_a_miss() {
    let demo = Demo::start();
    let page = demo.page();
    demo.cli(&["purge", &page.url]);
    assert_eq!(demo.get(&page).cache(), "MISS");
    assert_eq!(demo.get(&page).cache(), "HIT");
    let (status, job) = demo.call("POST", "/api/v1/purges", Some(&json!({"match": {"url": page.url}})));
    assert!(matches!(status, 200 | 202) && job["matched"] == 1, "{status} {job}");
    assert_eq!(demo.get(&page).cache(), "MISS");
    // Nothing to purge is no error.
    let nothing = json!({"match": {"url": format!("http://{}/nothing-here", page.authority)}});
    let (status, job) = demo.call("POST", "/api/v1/purges", Some(&nothing));
    assert!(status == 200 && job["matched"] == 0, "{status} {job}");
}

#[test]
fn figures_show_both_vhosts_and_a_reset_zeroes_them() {
    let demo = Demo::start();
    let page = demo.page();
    let (status, vhosts) = demo.call("GET", "/api/v1/vhosts", None);
    let rows = vhosts["vhosts"].as_array().expect("a list of vhosts");
    let names: Vec<_> = rows
        .iter()
        .filter_map(|row| row["name"].as_str())
        .filter(|n| *n != "_unknown")
        .collect();
    assert_eq!((status, names.len()), (200, 2), "{vhosts}");
    let printed = demo.cli(&["stats"]);
    assert!(names.iter().all(|name| printed.contains(name)), "{printed}");
    assert!(figure(&demo.stats(), "total/requests").is_some_and(|n| n > 0));

    let (status, before) = demo.call("POST", "/api/v1/stats/reset", Some(&json!({"scope": "all"})));
    assert_eq!(status, 200);
    assert!(figure(&before, "total/requests").is_some_and(|n| n > 0), "{before:#}");
    let after = demo.stats();
    for path in [
        "total/requests",
        "total/cache/HIT/requests",
        "total/bytes_sent",
        "cache/inserted",
    ] {
        assert_eq!(figure(&after, path), Some(0), "{path}");
    }
    assert!(demo.get(&page).is_hit(), "a reset of figures is no purge");
    assert_eq!(figure(&demo.stats(), "total/requests"), Some(1));
}

#[test]
fn the_admin_plane_describes_itself_and_wants_a_token() {
    let demo = Demo::start();
    let (status, document) = demo.call("GET", "/api/openapi.json", None);
    assert_eq!(status, 200);
    assert!(
        document["openapi"].as_str().is_some_and(|v| v.starts_with("3.1")),
        "{}",
        document["openapi"]
    );
    for path in [
        "/api/v1/purges",
        "/api/v1/stats",
        "/api/v1/stats/reset",
        "/api/v1/vhosts",
    ] {
        assert!(document["paths"][path].is_object(), "{path} is not described");
    }
    let metrics = admin_call(demo.admin, TOKEN, "GET", "/metrics", None);
    assert!(
        metrics.status == 200 && metrics.text().contains("larder_vhost_requests_total"),
        "{}",
        metrics.text()
    );
    for token in ["", "wrong"] {
        let refused = admin_call(demo.admin, token, "GET", "/api/v1/stats", None);
        assert_eq!(refused.status, 401, "{token:?}");
        assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    }
    let by_get = admin_call(demo.admin, TOKEN, "GET", "/api/v1/stats/reset", None);
    assert_eq!(by_get.status, 405, "a reset by GET");
    // The data port is no way to the admin plane.
    let mut client = Client::connect(demo.data);
    let target = format!("http://{}/api/v1/stats", demo.admin);
    client.send(request(
        "GET",
        &demo.admin.to_string(),
        &target,
        &format!("Authorization: Bearer {TOKEN}\r\n"),
    ));
    let answer = client.read_response();
    assert!(!answer.text().contains("epoch"), "{answer:?}");
}

/// By its name, since the port is another one every time.
const HOST: &str = "www.example.test";

#[test]
fn a_second_demonstration_is_warm_unless_a_fresh_one_is_wanted() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().to_str().expect("a plain path");
    let mut first = Demo::start_with(&["--directory", path]);
    assert_eq!(get(first.data, HOST, "/about").cache(), "MISS");
    // One process at a time has a directory.
    let (code, output) = run_with(&["demo", "--directory", path], Some(TOKEN), DEADLINE);
    assert!(
        code == Some(1) && output.contains("in use by another larder"),
        "{output}"
    );
    first.process.signal(Signal::TERM);
    let _ = first.process.wait(DEADLINE);
    let second = Demo::start_with(&["--directory", path]);
    let warm = get(second.data, HOST, "/about");
    assert!(warm.is_hit() && warm.is_complete(), "{warm:?}");
    let fresh = Demo::start();
    assert_eq!(get(fresh.data, HOST, "/about").cache(), "MISS");
}

#[test]
fn the_demonstration_ends_cleanly() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut demo = Demo::start();
        let page = demo.page();
        let mut client = Client::connect(demo.data);
        let _ = client.get(&page.authority, &page.target);
        demo.process.signal(signal);
        let status = demo.process.wait(DEADLINE);
        assert_eq!(status.code(), Some(0), "{signal:?}: {status:?}");
    }
}
