//! What the data plane is told, resolved and validated: no file format, no defaults of a file, no cross references by name
//! that could dangle. `Boot` holds until the process ends; `Live` can be replaced while it runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use ipnet::IpNet;
use larder_semantics::Policy;

/// Fixed for the life of the process. A reload that changes any of it is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Boot {
    /// Number of worker threads, at least 1.
    pub workers: usize,
    /// At least one.
    pub listeners: Vec<SocketAddr>,
    pub timeouts: Timeouts,
    pub limits: Limits,
    pub access_log: Option<AccessLog>,
    /// Name of the cache zone (`[cache] name`).
    pub cache_name: String,
    pub memory: larder_storage::Config,
    /// Disks of the cache; none for memory only.
    pub disks: Vec<larder_storage::disk::DiskConfig>,
    /// How long connections may go on after the stop signal.
    pub drain: Duration,
}

/// Deadlines of a client connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first byte of a request head to its last.
    pub header: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// Between two reads of a request body that bring something.
    pub body: Duration,
    /// Between two writes that are taken by the client.
    pub write: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Request line and field section together, in bytes.
    pub head_bytes: usize,
    /// Field lines in a head.
    pub headers: usize,
    /// Request body in bytes.
    pub body_bytes: u64,
    /// Lowest rate of a request body in bytes per second, over the time since it began, after `Timeouts::body` has passed.
    pub body_rate: u64,
    /// Client connections at once.
    pub connections: usize,
    /// Client connections at once from one address; `None` for no limit.
    pub connections_per_client: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLog {
    pub path: PathBuf,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Combined,
    Json,
}

/// What a reload replaces as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    pub upstreams: Vec<Upstream>,
    pub vhosts: Vec<Vhost>,
}

/// One origin server with its connection pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    pub name: String,
    /// `host:port`, resolved when a connection is opened.
    pub address: String,
    /// Idle connections kept per worker.
    pub keepalive: usize,
    /// Connections at once, over all workers.
    pub connections: usize,
    /// Requests that may wait for a connection, over all workers.
    pub queue: usize,
    pub timeouts: UpstreamTimeouts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamTimeouts {
    /// To open a connection, time in the queue included.
    pub connect: Duration,
    /// From the end of the request to the head of the answer.
    pub first_byte: Duration,
    /// Between two reads of the answer's body.
    pub between_bytes: Duration,
    /// From the first attempt to the last byte of the answer.
    pub total: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Vhost {
    pub name: String,
    pub hosts: Vec<HostPattern>,
    /// Index into [`Live::upstreams`].
    pub upstream: usize,
    pub purge: Option<PurgeMethod>,
    /// Protocols that may be upgraded to, lower case (`websocket`). Empty: `Upgrade` is removed.
    pub upgrade: Vec<String>,
    /// Forward the client's `X-Forwarded-*` and `Forwarded` where it comes from here; from elsewhere they are overwritten.
    pub trusted_proxies: Vec<IpNet>,
    /// First match wins; where none matches, [`Rule::default`] is used.
    pub rules: Vec<Rule>,
}

/// A host name in lower case, without port or trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    Exact(String),
    /// `*.example.test`: any name that ends in `.example.test`; the string is `.example.test`.
    Suffix(String),
    /// `*` or `default = true`.
    Any,
}

/// The `PURGE` method on the data port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeMethod {
    pub method: Method,
    pub allow: Vec<IpNet>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rule {
    /// Its row in the statistics; empty for the implicit last rule.
    pub name: String,
    pub matches: Match,
    pub policy: Policy,
    pub key: KeyParts,
    /// Skip the lookup: status BYPASS. The answer may still be stored.
    pub bypass: Condition,
    /// Do not store the answer.
    pub no_store: Condition,
    /// Requests for a URL before its answer is stored (`proxy_cache_min_uses`); 0 and 1 store at once. Until then: SCARCE.
    pub min_uses: u32,
    /// Honour `Cache-Control: no-cache` and `Pragma: no-cache` of clients. Off, since it lets anyone load the origin.
    pub honour_request_no_cache: bool,
}

/// All that is given must match.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Match {
    pub path: Option<PathPattern>,
    /// Empty: any.
    pub methods: Vec<Method>,
    /// Here all that is named must be present.
    pub condition: Option<Condition>,
}

/// Matched against the normalised path without the query.
#[derive(Debug, Clone)]
pub enum PathPattern {
    /// A glob in which `*` stays within a segment and `**` does not.
    Glob(String),
    Prefix(String),
    Regex(String),
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Glob(a), Self::Glob(b)) | (Self::Prefix(a), Self::Prefix(b)) | (Self::Regex(a), Self::Regex(b)) => {
                a == b
            }
            _ => false,
        }
    }
}

/// Holds where any of the named things is present in the request (in [`Match`]: all of them). Empty: never.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    pub query: Vec<String>,
    pub cookie: Vec<String>,
    /// Lower case.
    pub header: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyParts {
    /// Globs of parameter names that are left out of the key and of the forwarded query.
    pub ignore_query: Vec<String>,
    /// Where given, only these parameters stay.
    pub keep_query: Option<Vec<String>>,
    /// Sort parameters by name; those of one name keep their order.
    pub sort_query: bool,
}
