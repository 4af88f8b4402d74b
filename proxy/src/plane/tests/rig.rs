//! A data plane, its origin and a client, all on loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use larder_storage::disk::DiskConfig;

use crate::DataPlane;
use crate::config::{Boot, HostPattern, Limits, Live, PurgeMethod, Rule, Timeouts, Upstream, UpstreamTimeouts, Vhost};
use crate::server::listen;

/// Far above what anything here takes: reaching it is a hang.
const DEADLINE: Duration = Duration::from_secs(10);

pub(super) struct Settings {
    pub(super) rules: Vec<Rule>,
    pub(super) disks: Vec<DiskConfig>,
    /// Largest object that memory takes.
    pub(super) max_object: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            disks: Vec::new(),
            max_object: 1 << 20,
        }
    }
}

pub(super) struct Rig {
    pub(super) plane: DataPlane,
    asked: Arc<AtomicUsize>,
}

pub(super) struct Reply {
    pub(super) head: String,
    pub(super) body: String,
}

impl Rig {
    /// `origin` is given the head of each request and returns the whole answer.
    pub(super) fn new(settings: Settings, origin: impl Fn(&str) -> String + Send + 'static) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let address = serve(origin, Arc::clone(&asked));
        let listener = listen::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let plane = DataPlane::start(
            boot(settings.disks, settings.max_object),
            &live(address, settings.rules),
            vec![listener],
        )
        .unwrap();
        Self { plane, asked }
    }

    /// Requests that came to the origin.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Of something here, with the host that clients ask for.
    pub(super) fn url(path: &str) -> String {
        format!("http://a.test{path}")
    }

    pub(super) fn get(&self, path: &str, fields: &str) -> Reply {
        self.ask("GET", path, fields)
    }

    pub(super) fn ask(&self, method: &str, path: &str, fields: &str) -> Reply {
        let mut stream = TcpStream::connect(self.plane.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Reply {
            head: format!("{head}\r\n"),
            body: body.to_owned(),
        }
    }
}

impl Reply {
    pub(super) fn status(&self) -> &str {
        field(&self.head, "x-cache-status").unwrap_or("-")
    }

    pub(super) fn code(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

pub(super) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// Runs a future on a runtime of its own.
pub(super) fn wait<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, future).await.expect("hangs") })
}

/// Changes the first place in each file of a cache where `text` lies.
pub(super) fn damage_bodies(cache: &Path, text: &[u8]) {
    for directory in ["segments", "bodies"] {
        for entry in std::fs::read_dir(cache.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            if let Some(at) = memchr::memmem::find(&bytes, text) {
                bytes[at] ^= 1;
                std::fs::write(&path, bytes).unwrap();
            }
        }
    }
}

/// One connection for each request; the thread ends with the process.
fn serve(origin: impl Fn(&str) -> String + Send + 'static, asked: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            asked.fetch_add(1, Ordering::SeqCst);
            let head = String::from_utf8(head).unwrap();
            let answer = origin(&head).replacen("\r\n", "\r\nConnection: close\r\n", 1);
            let end = if head.starts_with("HEAD ") {
                answer.find("\r\n\r\n").unwrap() + 4
            } else {
                answer.len()
            };
            // Whoever does not read it has been stopped.
            let _ = stream.write_all(&answer.as_bytes()[..end]);
        }
    });
    address
}

fn boot(disks: Vec<DiskConfig>, max_object: u64) -> Boot {
    Boot {
        workers: 1,
        listeners: Vec::new(),
        timeouts: Timeouts {
            header: DEADLINE,
            idle: DEADLINE,
            body: DEADLINE,
            write: DEADLINE,
        },
        limits: Limits {
            head_bytes: 32 << 10,
            headers: 100,
            body_bytes: 1 << 20,
            body_rate: 1,
            connections: 100,
            connections_per_client: None,
        },
        access_log: None,
        cache_name: "main".to_owned(),
        memory: larder_storage::Config {
            max_object,
            ..larder_storage::Config::with_max_size(64 << 20)
        },
        disks,
        drain: DEADLINE,
    }
}

fn live(origin: SocketAddr, rules: Vec<Rule>) -> Live {
    let networks = || vec!["127.0.0.0/8".parse().unwrap()];
    Live {
        upstreams: vec![Upstream {
            name: "app".to_owned(),
            address: origin.to_string(),
            keepalive: 1,
            connections: 10,
            queue: 10,
            timeouts: UpstreamTimeouts {
                connect: DEADLINE,
                first_byte: DEADLINE,
                between_bytes: DEADLINE,
                total: None,
            },
        }],
        vhosts: vec![Vhost {
            name: "www".to_owned(),
            hosts: vec![HostPattern::Any],
            upstream: 0,
            purge: Some(PurgeMethod {
                method: http::Method::from_bytes(b"PURGE").unwrap(),
                allow: networks(),
            }),
            upgrade: Vec::new(),
            trusted_proxies: Vec::new(),
            rules,
        }],
    }
}
