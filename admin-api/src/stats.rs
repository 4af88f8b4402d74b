//! The figures as the API shows them: the names of the snapshot, with maps by word instead of lists of pairs, and what
//! is derived from them. Times are in the unit of their name, sizes in bytes.

mod cache;

use std::collections::BTreeMap;

pub use cache::{CacheStats, DiskStats, VhostCacheStats};
use larder_proxy::traffic::snapshot::{
    Connections, Histogram, OriginSnapshot, Requests, RuleSnapshot, Snapshot, VhostSnapshot,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Every figure, read at one moment. Counters are those since `since_ms` of their row; gauges are never reset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// Grows by one with each reset of everything and each start without saved counters. A difference of two readings
    /// means something only where this is the same in both.
    pub epoch: u64,
    /// When this was read: Unix time in milliseconds.
    pub now_ms: u64,
    /// When the process started: Unix time in milliseconds.
    pub started_ms: u64,
    /// Upper bounds of the buckets of every latency, in microseconds, ascending.
    pub latency_bounds_us: Vec<u64>,
    pub connections: ConnectionStats,
    /// Sum over the vhosts and `_unknown`.
    pub total: RequestStats,
    /// In the order of the configuration; `_unknown`, for requests that no vhost answers for, is last.
    pub vhosts: Vec<VhostStats>,
    pub origins: Vec<OriginStats>,
    pub cache: CacheStats,
    /// Lines of the access log that were dropped because the disk did not keep up.
    pub log_lines_dropped: u64,
}

/// Client connections.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConnectionStats {
    /// Open now (gauge).
    pub active: u64,
    pub accepted: u64,
    /// Turned away at a connection limit.
    pub refused: u64,
    /// Ended by a deadline, by kind of deadline.
    pub timeouts: BTreeMap<String, u64>,
    /// Requests that broke the protocol, by reason.
    pub malformed: BTreeMap<String, u64>,
    /// Tunnels opened by an upgrade.
    pub upgraded: u64,
}

/// One vhost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VhostStats {
    pub name: String,
    /// Unix time in milliseconds from which the counters count.
    pub since_ms: u64,
    pub requests: RequestStats,
    /// In the order of the configuration.
    pub rules: Vec<RuleStats>,
}

/// One rule of a vhost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuleStats {
    /// Empty for the implicit last rule.
    pub name: String,
    pub requests: u64,
    pub hits: u64,
    pub bytes_sent: u64,
}

/// Requests of one vhost, or of all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RequestStats {
    pub requests: u64,
    /// In progress now (gauge).
    pub in_flight: u64,
    /// Head and body bytes from clients.
    pub bytes_received: u64,
    /// Head and body bytes to clients.
    pub bytes_sent: u64,
    pub responses: ResponseClasses,
    /// By cache status: `MISS`, `BYPASS`, `EXPIRED`, `STALE`, `UPDATING`, `REVALIDATED`, `HIT`, `SCARCE`.
    pub cache: BTreeMap<String, StatusStats>,
    /// HIT, STALE and UPDATING (answered without waiting for the origin) over all in `cache`; 0 to 1, null before the
    /// first request.
    #[schema(required)]
    pub hit_ratio: Option<f64>,
    /// Requests that went to the origin, by reason.
    pub forwarded: BTreeMap<String, u64>,
    /// Answers of the origin that were not stored, by reason.
    pub not_stored: BTreeMap<String, u64>,
    /// Answers taken into the cache.
    pub stored: u64,
    /// Requests that were answered from another one's fill.
    pub collapsed: u64,
    /// From the request's head to the answer's last byte, where the cache answered.
    pub hit_latency: Latency,
    /// The same where the origin was asked.
    pub miss_latency: Latency,
    /// From the request to the origin to the head of its answer.
    pub origin_latency: Latency,
}

/// Answers by the first digit of their status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResponseClasses {
    #[serde(rename = "1xx")]
    pub informational: u64,
    #[serde(rename = "2xx")]
    pub successful: u64,
    #[serde(rename = "3xx")]
    pub redirection: u64,
    #[serde(rename = "4xx")]
    pub client_error: u64,
    #[serde(rename = "5xx")]
    pub server_error: u64,
}

/// Requests with one cache status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusStats {
    pub requests: u64,
    pub bytes_sent: u64,
}

/// A latency histogram over `latency_bounds_us`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Latency {
    /// One per bound, not cumulative, and one for all that is above the last bound.
    pub counts: Vec<u64>,
    /// Sum of all measured, in microseconds.
    pub sum_us: u64,
    /// Number of all measured.
    pub count: u64,
    /// Median in microseconds, interpolated within its bucket; null where nothing was measured. Where it lies above the
    /// last bound, that bound.
    #[schema(required)]
    pub p50_us: Option<u64>,
    /// The same for 99 of 100.
    #[schema(required)]
    pub p99_us: Option<u64>,
}

/// One origin server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OriginStats {
    /// Name of the upstream.
    pub upstream: String,
    /// `host:port`.
    pub server: String,
    /// Unix time in milliseconds from which the counters count.
    pub since_ms: u64,
    pub requests: u64,
    pub responses: ResponseClasses,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Failed attempts by kind.
    pub failures: BTreeMap<String, u64>,
    pub retries: u64,
    /// Connections opened.
    pub connects: u64,
    /// Requests sent on a connection that had served one before.
    pub reused: u64,
    /// Gauge.
    pub connections_active: u64,
    /// Gauge.
    pub connections_idle: u64,
    /// Requests that wait for a connection (gauge).
    pub queued: u64,
    /// From the request to the head of its answer.
    pub latency: Latency,
}

impl Stats {
    /// `bounds_us` are those of [`crate::Appliance::latency_bounds_us`].
    #[must_use]
    pub fn new(snapshot: &Snapshot, bounds_us: &[u64]) -> Self {
        Self {
            epoch: snapshot.epoch,
            now_ms: snapshot.now_ms,
            started_ms: snapshot.started_ms,
            latency_bounds_us: bounds_us.to_vec(),
            connections: ConnectionStats::new(&snapshot.connections),
            total: RequestStats::new(&snapshot.total, bounds_us),
            vhosts: snapshot
                .vhosts
                .iter()
                .map(|vhost| VhostStats::new(vhost, bounds_us))
                .collect(),
            origins: snapshot
                .origins
                .iter()
                .map(|origin| OriginStats::new(origin, bounds_us))
                .collect(),
            cache: CacheStats::new(&snapshot.cache),
            log_lines_dropped: snapshot.log_lines_dropped,
        }
    }
}

impl ConnectionStats {
    fn new(from: &Connections) -> Self {
        Self {
            active: from.active,
            accepted: from.accepted,
            refused: from.refused,
            timeouts: by_word(&from.timeouts),
            malformed: by_word(&from.malformed),
            upgraded: from.upgraded,
        }
    }
}

impl VhostStats {
    fn new(from: &VhostSnapshot, bounds_us: &[u64]) -> Self {
        Self {
            name: from.name.clone(),
            since_ms: from.since_ms,
            requests: RequestStats::new(&from.requests, bounds_us),
            rules: from.rules.iter().map(RuleStats::new).collect(),
        }
    }
}

impl RuleStats {
    fn new(from: &RuleSnapshot) -> Self {
        Self {
            name: from.name.clone(),
            requests: from.requests,
            hits: from.hits,
            bytes_sent: from.bytes_sent,
        }
    }
}

impl RequestStats {
    fn new(from: &Requests, bounds_us: &[u64]) -> Self {
        let status = |count: &larder_proxy::traffic::snapshot::CacheCount| StatusStats {
            requests: count.requests,
            bytes_sent: count.bytes_sent,
        };
        Self {
            requests: from.requests,
            in_flight: from.in_flight,
            bytes_received: from.bytes_received,
            bytes_sent: from.bytes_sent,
            responses: ResponseClasses::new(from.responses),
            cache: from
                .cache
                .iter()
                .map(|(word, count)| ((*word).to_owned(), status(count)))
                .collect(),
            hit_ratio: hit_ratio(from),
            forwarded: by_word(&from.forwarded),
            not_stored: by_word(&from.not_stored),
            stored: from.stored,
            collapsed: from.collapsed,
            hit_latency: Latency::new(&from.hit_latency, bounds_us),
            miss_latency: Latency::new(&from.miss_latency, bounds_us),
            origin_latency: Latency::new(&from.origin_latency, bounds_us),
        }
    }
}

impl ResponseClasses {
    const fn new(from: [u64; 5]) -> Self {
        let [informational, successful, redirection, client_error, server_error] = from;
        Self {
            informational,
            successful,
            redirection,
            client_error,
            server_error,
        }
    }
}

impl Latency {
    fn new(from: &Histogram, bounds_us: &[u64]) -> Self {
        Self {
            counts: from.counts.clone(),
            sum_us: from.sum_us,
            count: from.counts.iter().sum(),
            p50_us: quantile_us(&from.counts, bounds_us, 0.5),
            p99_us: quantile_us(&from.counts, bounds_us, 0.99),
        }
    }
}

impl OriginStats {
    fn new(from: &OriginSnapshot, bounds_us: &[u64]) -> Self {
        Self {
            upstream: from.upstream.clone(),
            server: from.server.clone(),
            since_ms: from.since_ms,
            requests: from.requests,
            responses: ResponseClasses::new(from.responses),
            bytes_sent: from.bytes_sent,
            bytes_received: from.bytes_received,
            failures: by_word(&from.failures),
            retries: from.retries,
            connects: from.connects,
            reused: from.reused,
            connections_active: from.connections_active,
            connections_idle: from.connections_idle,
            queued: from.queued,
            latency: Latency::new(&from.latency, bounds_us),
        }
    }
}

fn by_word(pairs: &[(&'static str, u64)]) -> BTreeMap<String, u64> {
    pairs.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
}

fn hit_ratio(from: &Requests) -> Option<f64> {
    let all: u64 = from.cache.iter().map(|(_, count)| count.requests).sum();
    let hits: u64 = from
        .cache
        .iter()
        .filter(|(word, _)| matches!(*word, "HIT" | "STALE" | "UPDATING"))
        .map(|(_, count)| count.requests)
        .sum();
    // Exact up to 2^53 requests.
    (all > 0).then(|| hits as f64 / all as f64)
}

/// As Prometheus' `histogram_quantile` does it: as if the values of a bucket were spread evenly over it.
fn quantile_us(counts: &[u64], bounds_us: &[u64], quantile: f64) -> Option<u64> {
    let all: u64 = counts.iter().sum();
    if all == 0 {
        return None;
    }
    let rank = all as f64 * quantile;
    let (mut below, mut lower) = (0_u64, 0_u64);
    for (count, upper) in counts.iter().zip(bounds_us) {
        if *count > 0 && (below + count) as f64 >= rank {
            let share = (rank - below as f64) / *count as f64;
            return Some(lower + ((upper.saturating_sub(lower)) as f64 * share) as u64);
        }
        below += count;
        lower = *upper;
    }
    bounds_us.last().copied()
}

#[cfg(test)]
mod tests {
    use larder_proxy::traffic::snapshot::CacheCount;

    use super::*;

    #[test]
    fn the_hit_ratio_counts_what_did_not_wait_for_the_origin() {
        let check = |cache: &[(&'static str, u64)], expected: Option<f64>| {
            let count = |requests| CacheCount {
                requests,
                bytes_sent: 0,
            };
            let cache = cache.iter().map(|(word, requests)| (*word, count(*requests))).collect();
            assert_eq!(
                hit_ratio(&Requests {
                    cache,
                    ..Requests::default()
                }),
                expected
            );
        };
        check(&[], None);
        check(&[("HIT", 0), ("MISS", 0)], None);
        check(&[("HIT", 3), ("MISS", 1)], Some(0.75));
        check(
            &[("STALE", 1), ("UPDATING", 1), ("REVALIDATED", 1), ("BYPASS", 1)],
            Some(0.5),
        );
        check(&[("MISS", 1)], Some(0.0));
    }

    #[test]
    fn quantiles_lie_in_their_bucket() {
        let bounds = [100, 200, 400];
        let check = |counts: &[u64], quantile: f64, expected: Option<u64>| {
            assert_eq!(
                quantile_us(counts, &bounds, quantile),
                expected,
                "{counts:?} {quantile}"
            );
        };
        check(&[], 0.5, None);
        check(&[0, 0, 0, 0], 0.5, None);
        check(&[10, 0, 0, 0], 0.5, Some(50));
        check(&[0, 10, 0, 0], 0.5, Some(150));
        check(&[5, 0, 5, 0], 0.99, Some(396));
        check(&[0, 0, 0, 1], 0.5, Some(400));
    }
}
