//! A node under test: the real binary on free ports, with a directory and a configuration of its own.

mod builder;
pub mod disks;
pub mod process;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

pub use self::builder::Builder;
use self::process::Process;
use crate::client::{Client, Response, fetch, get};
use crate::wait::{DEADLINE, wait_for, wait_until};

/// A running node; killed when dropped.
#[derive(Debug)]
pub struct TestNode {
    /// The first listener.
    pub data: SocketAddr,
    pub listeners: Vec<SocketAddr>,
    pub admin: SocketAddr,
    process: Process,
    directory: TempDir,
}

/// The addresses of a `ready data=A[,A] admin=A` line.
#[must_use]
pub fn parse_ready(line: &str) -> Option<(Vec<SocketAddr>, SocketAddr)> {
    let mut words = line.trim().strip_prefix("ready ")?.split(' ');
    let data = words.find_map(|w| w.strip_prefix("data="))?;
    let admin = words.find_map(|w| w.strip_prefix("admin="))?;
    Some((
        data.split(',').map(str::parse).collect::<Result<_, _>>().ok()?,
        admin.parse().ok()?,
    ))
}

impl TestNode {
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A node with default rules in front of an origin.
    #[must_use]
    pub fn before(origin: &crate::Origin) -> Self {
        Self::builder().origin(origin).start()
    }

    fn start(builder: &Builder) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().join("larder.toml");
        fs::write(&path, builder.text(directory.path())).expect("the configuration is written");
        let process = Process::start([Path::new("run"), Path::new("--config"), &path]);
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut node = Self {
            data: nowhere,
            listeners: Vec::new(),
            admin: nowhere,
            process,
            directory,
        };
        node.wait_ready();
        node
    }

    fn wait_ready(&mut self) {
        let (listeners, admin) = self.process.wait_line("`ready` line", DEADLINE, 0, parse_ready);
        self.data = *listeners.first().expect("a ready node listens");
        self.listeners = listeners;
        self.admin = admin;
    }

    /// Starts the binary again with the same configuration and directories, on new ports, once the last run has ended.
    ///
    /// # Panics
    /// Where the last run goes on.
    pub fn start_again(&mut self) {
        assert!(!self.process.is_running(), "the node still runs");
        let path = self.config_path();
        self.process = Process::start([Path::new("run"), Path::new("--config"), &path]);
        self.wait_ready();
    }

    #[must_use]
    pub fn connect(&self) -> Client {
        Client::connect(self.data)
    }

    /// One GET over a connection of its own.
    #[must_use]
    pub fn get(&self, host: &str, path: &str) -> Response {
        get(self.data, host, path)
    }

    /// One request over a connection of its own; `fields` are whole lines with their ends.
    #[must_use]
    pub fn fetch(&self, method: &str, host: &str, path: &str, fields: &str) -> Response {
        fetch(self.data, method, host, path, fields)
    }

    // The admin plane.

    /// The admin token.
    ///
    /// # Panics
    /// Where there is none.
    #[must_use]
    pub fn token(&self) -> String {
        let path = self.directory.path().join("state/admin.token");
        fs::read_to_string(path)
            .expect("the node wrote its token")
            .trim()
            .to_owned()
    }

    /// A call of the admin plane with its token; `body` is sent as JSON.
    #[must_use]
    pub fn admin_call(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        admin_call(self.admin, &self.token(), method, path, body)
    }

    #[must_use]
    pub fn admin_get(&self, path: &str) -> (u16, Value) {
        json_of(&self.admin_call("GET", path, None))
    }

    #[must_use]
    pub fn admin_post(&self, path: &str, body: &Value) -> (u16, Value) {
        json_of(&self.admin_call("POST", path, Some(body)))
    }

    /// Purges one URL; the job.
    ///
    /// # Panics
    /// Where that is refused.
    pub fn purge(&self, url: &str) -> Value {
        let (status, job) = self.admin_post("/api/v1/purges", &json!({"match": {"url": url}}));
        assert!(matches!(status, 200 | 202), "purge of {url}: {status} {job}");
        job
    }

    /// `GET /api/v1/stats`.
    ///
    /// # Panics
    /// Where that is refused.
    #[must_use]
    pub fn stats(&self) -> Value {
        let (status, stats) = self.admin_get("/api/v1/stats");
        assert_eq!(status, 200, "{stats}");
        stats
    }

    /// A figure of the statistics, see [`figure`].
    ///
    /// # Panics
    /// Where there is no such figure.
    #[must_use]
    pub fn figure(&self, path: &str) -> i64 {
        let stats = self.stats();
        figure(&stats, path).unwrap_or_else(|| panic!("no figure {path} in {stats:#}"))
    }

    /// Waits until a figure has a value.
    pub fn wait_figure(&self, path: &str, value: i64) {
        wait_until(&format!("{path} to be {value}"), || self.figure(path) == value);
    }

    // The process.

    #[must_use]
    pub const fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// SIGTERM, then waits for the end.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.process.wait(DEADLINE)
    }

    /// Resident memory.
    ///
    /// # Panics
    /// Where the process is gone.
    #[must_use]
    pub fn rss_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.pid())).expect("the node runs");
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix("VmRSS:"))
            .expect("a process has VmRSS");
        line.trim().trim_end_matches(" kB").parse().expect("VmRSS is a number")
    }

    /// Open file descriptors.
    ///
    /// # Panics
    /// Where the process is gone.
    #[must_use]
    pub fn open_files(&self) -> usize {
        let files = fs::read_dir(format!("/proc/{}/fd", self.process.pid()));
        files.expect("the node runs").count()
    }

    // Files.

    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.directory.path().join("larder.toml")
    }

    /// The configuration as it is on disk.
    ///
    /// # Panics
    /// Where it is gone.
    #[must_use]
    pub fn config_text(&self) -> String {
        fs::read_to_string(self.config_path()).expect("the configuration is there")
    }

    /// Replaces the configuration file; SIGHUP makes the node read it.
    ///
    /// # Panics
    /// Where it can't be written.
    pub fn rewrite_config(&self, text: &str) {
        let new = self.directory.path().join("larder.toml.new");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, self.config_path()))
            .expect("the file is replaced");
    }

    #[must_use]
    pub fn access_log_path(&self) -> PathBuf {
        self.directory.path().join("access.log")
    }

    /// The lines of the access log, when there are at least `n`.
    ///
    /// # Panics
    /// When the deadline passes first.
    #[must_use]
    pub fn wait_access_log(&self, n: usize) -> Vec<String> {
        wait_for(&format!("{n} lines in the access log"), DEADLINE, || {
            let text = fs::read_to_string(self.access_log_path()).ok()?;
            // A line is there when its end is.
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let lines: Vec<_> = whole.lines().map(str::to_owned).collect();
            (lines.len() >= n).then_some(lines)
        })
    }
}

/// A call of an admin plane.
#[must_use]
pub fn admin_call(to: SocketAddr, token: &str, method: &str, path: &str, body: Option<&Value>) -> Response {
    let body = body.map(Value::to_string).unwrap_or_default();
    let json = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let fields = if body.is_empty() { "" } else { &json };
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {to}\r\nAuthorization: Bearer {token}\r\n{fields}\r\n");
    Client::connect(to).send(head + &body).read_response_to(method)
}

/// Status and body of an answer in JSON; `null` where the body is none.
#[must_use]
pub fn json_of(response: &Response) -> (u16, Value) {
    (
        response.status,
        serde_json::from_slice(&response.body).unwrap_or_default(),
    )
}

/// A number by its path, e.g. `total/cache/HIT/requests`. A step goes into an object by key, into a list by the `name` or the
/// first element of its members, or by number.
#[must_use]
pub fn figure(stats: &Value, path: &str) -> Option<i64> {
    path.split('/').try_fold(stats, step)?.as_i64()
}

fn step<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.iter().find(|(name, _)| same(name, key)).map(|(_, value)| value),
        Value::Array(list) => list
            .iter()
            .find_map(|item| match item {
                Value::Array(pair) if pair.first()?.as_str().is_some_and(|name| same(name, key)) => pair.get(1),
                Value::Object(map) if map.get("name")?.as_str().is_some_and(|name| same(name, key)) => Some(item),
                _ => None,
            })
            .or_else(|| list.get(key.parse::<usize>().ok()?)),
        _ => None,
    }
}

/// Words are the same whatever their case, and whichever way their parts are joined.
fn same(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    plain(a) == plain(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_read() {
        let (data, admin) = parse_ready("ready data=127.0.0.1:80,[::1]:81 admin=127.0.0.1:9090").expect("a ready line");
        assert_eq!(data, ["127.0.0.1:80".parse().unwrap(), "[::1]:81".parse().unwrap()]);
        assert_eq!(admin, "127.0.0.1:9090".parse().unwrap());
        assert_eq!(parse_ready("not ready data=127.0.0.1:80 admin=127.0.0.1:9090"), None);
    }

    #[test]
    fn figures_are_found_in_objects_pairs_and_named_lists() {
        let stats = json!({"total": {"cache": [["HIT", {"requests": 3}]], "responses": [0, 7]}, "vhosts": [{"name": "www", "n": 1}]});
        for (path, want) in [
            ("total/cache/HIT/requests", Some(3)),
            ("total/responses/1", Some(7)),
            ("vhosts/www/n", Some(1)),
            ("x", None),
        ] {
            assert_eq!(figure(&stats, path), want, "{path}");
        }
    }

    #[test]
    fn a_configuration_holds_what_was_asked_for() {
        let origin = crate::Origin::start();
        let text = TestNode::builder()
            .origin(&origin)
            .access_log("json")
            .timeouts("header = \"1s\"")
            .vhost("shop", &["shop.test"])
            .rule("ttl_force = true")
            .rule("set_cookie = \"strip\"")
            .text(Path::new("/t"));
        for piece in [
            "path = \"/t/access.log\"",
            "[server.timeouts]\nheader = \"1s\"",
            "hosts = [\"shop.test\"]",
            "name = \"r2\"\nset_cookie",
        ] {
            assert!(text.contains(piece), "no {piece:?} in\n{text}");
        }
        assert!(!text.contains("\"www\""));
    }
}
