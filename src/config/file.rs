//! The file as it is written: one struct per table, with its defaults. Nothing is resolved or compared here, and nothing is
//! required, so that one reading of a file finds as many faults as it has.
//!
//! The comments on the fields are the descriptions in the published schema.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{At, AutoOr, ByteSize, TimeSpan};

mod upstream;
mod vhost;

pub use upstream::{Balance, Health, Upstream, UpstreamServer, UpstreamTimeouts};
pub use vhost::{Condition, Heuristic, Key, Match, Override, Purge, Rule, SetCookie, Stale, Vhost};

pub(super) const STATE_DIR: &str = "/var/lib/larder";
pub(super) const ADMIN_LISTEN: &str = "127.0.0.1:9090";

/// Configuration of a Larder HTTP cache.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "Larder")]
pub struct File {
    /// Directory of what must survive a restart: the admin token, counters. An absolute path.
    pub state_dir: At<PathBuf>,
    /// Threads, log, deadlines and limits of the data plane.
    pub server: Server,
    /// Addresses of the data plane. At least one.
    pub listener: Vec<At<Listener>>,
    /// The admin plane: statistics, purges, metrics.
    pub admin: Admin,
    /// The cache.
    pub cache: Cache,
    /// Origins, by name.
    pub upstream: Vec<At<Upstream>>,
    /// Sites, by host name.
    pub vhost: Vec<At<Vhost>>,
}

impl Default for File {
    fn default() -> Self {
        Self {
            state_dir: PathBuf::from(STATE_DIR).into(),
            server: Server::default(),
            listener: Vec::new(),
            admin: Admin::default(),
            cache: Cache::default(),
            upstream: Vec::new(),
            vhost: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Worker threads; `"auto"` is one per core.
    pub workers: At<AutoOr>,
    /// How long requests in progress may go on after the stop signal.
    pub drain: At<TimeSpan>,
    /// Absent: no access log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log: Option<At<AccessLog>>,
    /// Deadlines of a client connection.
    pub timeouts: Timeouts,
    /// Bounds on what a client may ask for.
    pub limits: Limits,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            workers: AutoOr::Auto.into(),
            drain: TimeSpan::secs(30).into(),
            access_log: None,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AccessLog {
    /// An absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<At<PathBuf>>,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// The combined format of nginx and Apache, with the cache status at the end.
    #[default]
    Combined,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// From the first byte of a request head to its last.
    pub header: At<TimeSpan>,
    /// Between two requests on a connection.
    pub idle: At<TimeSpan>,
    /// Between two reads of a request body that bring something.
    pub body: At<TimeSpan>,
    /// Between two writes that the client takes.
    pub write: At<TimeSpan>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            header: TimeSpan::secs(10).into(),
            idle: TimeSpan::secs(75).into(),
            body: TimeSpan::secs(30).into(),
            write: TimeSpan::secs(30).into(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Request line and header fields together.
    pub head_bytes: At<ByteSize>,
    /// Header field lines of a request.
    pub headers: At<u32>,
    /// Request body.
    pub body_bytes: At<ByteSize>,
    /// Lowest rate of a request body, in bytes per second, once `timeouts.body` has passed; `"0"` for none.
    pub body_rate: At<ByteSize>,
    /// Client connections at once; `"auto"` follows from the limit on open files.
    pub connections: At<AutoOr>,
    /// Client connections at once from one address. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_per_client: Option<At<u32>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: ByteSize::kib(32).into(),
            headers: 100.into(),
            body_bytes: ByteSize::mib(16).into(),
            body_rate: ByteSize(512).into(),
            connections: AutoOr::Auto.into(),
            connections_per_client: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Listener {
    /// IP address and port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<At<String>>,
    /// Not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<At<Tls>>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    pub certificates: Vec<Certificate>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Certificate {
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// IP address and port. The token is in `{state_dir}/admin.token`.
    pub listen: At<String>,
    /// Not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialects: Option<At<Dialects>>,
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            listen: ADMIN_LISTEN.to_owned().into(),
            dialects: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dialects {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vts: Option<String>,
    pub control_by_get: bool,
    pub allow: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cache {
    /// Name of the cache zone in the statistics.
    pub name: At<String>,
    pub memory: Memory,
    /// Where objects are kept that are to outlive memory and a restart. None: memory only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk: Vec<At<Disk>>,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            name: "main".to_owned().into(),
            memory: Memory::default(),
            disk: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Objects with all that belongs to them; `"0"` switches the memory tier off.
    pub max_size: At<ByteSize>,
    /// Largest object that is stored. Absent: 1 MiB, or a 64th of `max_size` where that is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_object: Option<At<ByteSize>>,
    /// Variants (by `Vary`) kept of one URL.
    pub variants: At<u32>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            max_size: ByteSize::mib(256).into(),
            max_object: None,
            variants: 64.into(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Disk {
    /// An absolute path to a directory that is the cache's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<At<PathBuf>>,
    /// Everything below `path` together, the index included; at least 16 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<At<ByteSize>>,
    /// Space on the file system that is left to others. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_free: Option<At<ByteSize>>,
    /// Objects that nobody asked for in this time are dropped. Absent: seven days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactive: Option<At<TimeSpan>>,
}
