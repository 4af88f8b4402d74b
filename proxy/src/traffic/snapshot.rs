//! The figures as plain data: what stats, metrics and the command line show.

pub use larder_storage::OwnerUsage;
pub use larder_storage::disk::{DiskCounters, DiskState, DiskUsage};
use serde::Serialize;

/// One reading of every counter and gauge. Counters are those since `since` (the last reset, or the start).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// Grows by one with each reset of everything and each start without saved counters.
    pub epoch: u64,
    /// Unix time in milliseconds.
    pub now_ms: u64,
    pub started_ms: u64,
    pub connections: Connections,
    /// Sum over the vhosts and `_unknown`.
    pub total: Requests,
    /// In the order of the configuration; `_unknown` last.
    pub vhosts: Vec<VhostSnapshot>,
    pub origins: Vec<OriginSnapshot>,
    pub cache: CacheSnapshot,
    /// Lines of the access log that were dropped because the disk did not keep up.
    pub log_lines_dropped: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Connections {
    /// Open now (gauge).
    pub active: u64,
    pub accepted: u64,
    /// Turned away at a connection limit.
    pub refused: u64,
    /// Ended by a deadline, by kind.
    pub timeouts: Vec<(&'static str, u64)>,
    /// Requests that broke the protocol and were answered 4xx/5xx by the front, by reason.
    pub malformed: Vec<(&'static str, u64)>,
    /// Tunnels opened by an upgrade.
    pub upgraded: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VhostSnapshot {
    pub name: String,
    /// Unix time in milliseconds from which the counters count.
    pub since_ms: u64,
    pub requests: Requests,
    pub rules: Vec<RuleSnapshot>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RuleSnapshot {
    pub name: String,
    pub requests: u64,
    pub hits: u64,
    pub bytes_sent: u64,
}

/// Counters of one vhost, or of all.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Requests {
    pub requests: u64,
    /// In progress now (gauge).
    pub in_flight: u64,
    /// Head and body bytes from clients.
    pub bytes_received: u64,
    /// Head and body bytes to clients.
    pub bytes_sent: u64,
    /// Index 0 is 1xx.
    pub responses: [u64; 5],
    /// By `CacheStatus::ALL`, with the bytes sent.
    pub cache: Vec<(&'static str, CacheCount)>,
    /// By `Forward::ALL`.
    pub forwarded: Vec<(&'static str, u64)>,
    /// By `NotStored::all`.
    pub not_stored: Vec<(&'static str, u64)>,
    /// Answers taken into the cache.
    pub stored: u64,
    /// Requests that were answered from another one's fill.
    pub collapsed: u64,
    pub hit_latency: Histogram,
    pub miss_latency: Histogram,
    pub origin_latency: Histogram,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CacheCount {
    pub requests: u64,
    pub bytes_sent: u64,
}

/// Upper bounds are `traffic::BUCKETS_US`; the last count is of all that is above them. Not cumulative.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Histogram {
    pub counts: Vec<u64>,
    pub sum_us: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OriginSnapshot {
    /// Upstream name.
    pub upstream: String,
    /// `host:port`.
    pub server: String,
    pub since_ms: u64,
    pub requests: u64,
    pub responses: [u64; 5],
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Failed attempts by kind.
    pub failures: Vec<(&'static str, u64)>,
    pub retries: u64,
    pub connects: u64,
    pub reused: u64,
    /// Gauges.
    pub connections_active: u64,
    pub connections_idle: u64,
    pub queued: u64,
    pub latency: Histogram,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CacheSnapshot {
    pub name: String,
    pub since_ms: u64,
    /// Gauges.
    pub memory_used: u64,
    pub memory_max: u64,
    pub objects: u64,
    pub fills_active: u64,
    pub fill_bytes: u64,
    /// Counters.
    pub inserted: u64,
    pub evicted: u64,
    pub refused: u64,
    pub purged: u64,
    pub variants_capped: u64,
    /// The disks, in the order of the configuration. Their counters count since the last reset, as all do.
    #[serde(skip)]
    pub disks: Vec<DiskUsage>,
    /// What each vhost holds (gauges).
    #[serde(skip)]
    pub owners: Vec<OwnerUsage>,
}
