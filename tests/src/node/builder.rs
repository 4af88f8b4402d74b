//! Writes the configuration of a test node: the smallest file that serves, plus what a test adds.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::TestNode;
use super::disks::disk_path;
use crate::origin::Origin;

/// What a node is started with. Raw text is TOML and goes where its method says.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    listeners: usize,
    server: String,
    timeouts: String,
    limits: String,
    access_log: Option<String>,
    admin: String,
    memory: Option<String>,
    disks: Vec<Disk>,
    upstreams: Vec<(String, SocketAddr)>,
    upstream_timeouts: String,
    vhosts: Vec<Vhost>,
    more: String,
}

#[derive(Debug, Clone)]
struct Disk {
    /// Below the node's own directory where there is none.
    path: Option<PathBuf>,
    lines: String,
}

#[derive(Debug, Clone)]
struct Vhost {
    name: String,
    hosts: Vec<String>,
    upstream: String,
    lines: String,
    rules: String,
}

impl Builder {
    /// The upstream `app`, which vhosts use unless told otherwise.
    #[must_use]
    pub fn origin(self, origin: &Origin) -> Self {
        self.upstream("app", origin.address())
    }

    #[must_use]
    pub fn upstream(mut self, name: &str, address: SocketAddr) -> Self {
        self.upstreams.push((name.to_owned(), address));
        self
    }

    /// Lines of `[upstream.timeouts]`, for every upstream.
    #[must_use]
    pub fn upstream_timeouts(mut self, lines: &str) -> Self {
        self.upstream_timeouts = lines.to_owned();
        self
    }

    /// A vhost on upstream `app`. Without any, `www` takes every host.
    #[must_use]
    pub fn vhost(self, name: &str, hosts: &[&str]) -> Self {
        self.vhost_on(name, hosts, "app")
    }

    #[must_use]
    pub fn vhost_on(mut self, name: &str, hosts: &[&str], upstream: &str) -> Self {
        self.vhosts.push(Vhost {
            name: name.to_owned(),
            hosts: hosts.iter().map(|&h| h.to_owned()).collect(),
            upstream: upstream.to_owned(),
            lines: String::new(),
            rules: String::new(),
        });
        self
    }

    /// Lines of the vhost that was named last.
    #[must_use]
    pub fn vhost_lines(mut self, lines: &str) -> Self {
        let vhost = self.last_vhost();
        vhost.lines.push_str(lines);
        vhost.lines.push('\n');
        self
    }

    /// A rule of the vhost that was named last, by its lines.
    #[must_use]
    pub fn rule(mut self, lines: &str) -> Self {
        let vhost = self.last_vhost();
        let n = vhost.rules.matches("[[vhost.rule]]").count() + 1;
        let _ = writeln!(vhost.rules, "[[vhost.rule]]\nname = \"r{n}\"\n{lines}");
        self
    }

    fn last_vhost(&mut self) -> &mut Vhost {
        if self.vhosts.is_empty() {
            *self = std::mem::take(self).vhost("www", &["*"]);
        }
        self.vhosts.last_mut().expect("there is one now")
    }

    /// That many listeners instead of one.
    #[must_use]
    pub const fn listeners(mut self, n: usize) -> Self {
        self.listeners = n;
        self
    }

    /// Lines of `[server]`.
    #[must_use]
    pub fn server(mut self, lines: &str) -> Self {
        self.server = lines.to_owned();
        self
    }

    /// Lines of `[server.timeouts]`.
    #[must_use]
    pub fn timeouts(mut self, lines: &str) -> Self {
        self.timeouts = lines.to_owned();
        self
    }

    /// Lines of `[server.limits]`.
    #[must_use]
    pub fn limits(mut self, lines: &str) -> Self {
        self.limits = lines.to_owned();
        self
    }

    /// An access log, `combined` or `json`.
    #[must_use]
    pub fn access_log(mut self, format: &str) -> Self {
        self.access_log = Some(format.to_owned());
        self
    }

    /// Lines of `[admin]`.
    #[must_use]
    pub fn admin(mut self, lines: &str) -> Self {
        self.admin = lines.to_owned();
        self
    }

    /// Lines of `[cache.memory]` instead of 64 MiB.
    #[must_use]
    pub fn memory(mut self, lines: &str) -> Self {
        self.memory = Some(lines.to_owned());
        self
    }

    /// One more disk of that size, in a directory of the node's own.
    #[must_use]
    pub fn disk(self, max_size: &str) -> Self {
        self.disk_in(None, max_size)
    }

    /// One more disk of that size, in that directory.
    #[must_use]
    pub fn disk_at(self, path: &Path, max_size: &str) -> Self {
        self.disk_in(Some(path), max_size)
    }

    fn disk_in(mut self, path: Option<&Path>, max_size: &str) -> Self {
        self.disks.push(Disk {
            path: path.map(Path::to_owned),
            // A machine that is short of space fails no test before it has none.
            lines: format!("max_size = {max_size:?}\nmin_free = \"0\"\n"),
        });
        self
    }

    /// Lines of the disk that was named last.
    ///
    /// # Panics
    /// Where none was.
    #[must_use]
    pub fn disk_lines(mut self, lines: &str) -> Self {
        let disk = self.disks.last_mut().expect("a disk was named");
        disk.lines.push_str(lines);
        disk.lines.push('\n');
        self
    }

    /// Whole tables at the end.
    #[must_use]
    pub fn config(mut self, text: &str) -> Self {
        self.more.push_str(text);
        self.more.push('\n');
        self
    }

    /// The file, with everything it names below `directory`.
    #[must_use]
    pub fn text(&self, directory: &Path) -> String {
        let mut text = format!(
            "state_dir = {:?}\n\n[server]\nworkers = 2\n{}\n",
            directory.join("state"),
            self.server
        );
        if let Some(format) = &self.access_log {
            let path = directory.join("access.log");
            let _ = writeln!(text, "[server.access_log]\npath = {path:?}\nformat = {format:?}\n");
        }
        for (table, lines) in [("server.timeouts", &self.timeouts), ("server.limits", &self.limits)] {
            if !lines.is_empty() {
                let _ = writeln!(text, "[{table}]\n{lines}\n");
            }
        }
        for _ in 0..self.listeners.max(1) {
            text.push_str("[[listener]]\naddress = \"127.0.0.1:0\"\n\n");
        }
        let memory = self.memory.as_deref().unwrap_or("max_size = \"64MiB\"");
        let _ = writeln!(
            text,
            "[admin]\nlisten = \"127.0.0.1:0\"\n{}\n\n[cache.memory]\n{memory}\n",
            self.admin
        );
        for (n, disk) in self.disks.iter().enumerate() {
            let path = disk.path.clone().unwrap_or_else(|| disk_path(directory, n));
            let _ = writeln!(text, "[[cache.disk]]\npath = {path:?}\n{}", disk.lines);
        }
        for (name, address) in &self.upstreams {
            let _ = writeln!(
                text,
                "[[upstream]]\nname = {name:?}\nservers = [{{ address = \"{address}\" }}]"
            );
            if !self.upstream_timeouts.is_empty() {
                let _ = writeln!(text, "[upstream.timeouts]\n{}", self.upstream_timeouts);
            }
            text.push('\n');
        }
        let everything = Self::default().vhost("www", &["*"]).vhosts;
        for vhost in if self.vhosts.is_empty() {
            &everything
        } else {
            &self.vhosts
        } {
            let Vhost {
                name,
                hosts,
                upstream,
                lines,
                rules,
            } = vhost;
            let _ = writeln!(
                text,
                "[[vhost]]\nname = {name:?}\nhosts = {hosts:?}\nupstream = {upstream:?}\n{lines}{rules}"
            );
        }
        text + &self.more
    }

    /// Starts the node and waits until it serves.
    ///
    /// # Panics
    /// Where it does not, with all it printed.
    #[must_use]
    pub fn start(self) -> TestNode {
        TestNode::start(&self)
    }
}
