//! The table of metrics. A new one is a new row; docs/metrics.md follows from it.

mod cache;

use larder_proxy::traffic::snapshot::{CacheCount, OriginSnapshot, Requests, RuleSnapshot};

use super::text::Samples;
use super::{Family, Kind, Reading};

/// All of them, in the order in which they are shown.
pub(super) fn all() -> impl Iterator<Item = &'static Family> {
    FAMILIES.iter().chain(cache::FAMILIES)
}

const FAMILIES: &[Family] = &[
    Family {
        name: "larder_build_info",
        kind: Kind::Gauge,
        labels: &["version"],
        help: "1, with the version of the program.",
        read: |_, samples| samples.put(&[env!("CARGO_PKG_VERSION")], 1),
    },
    Family {
        name: "larder_start_time_seconds",
        kind: Kind::Gauge,
        labels: &[],
        help: "When the process started, as Unix time.",
        read: |reading, samples| samples.put_time(&[], reading.totals.started_ms),
    },
    Family {
        name: "larder_config_info",
        kind: Kind::Gauge,
        labels: &["hash"],
        help: "1, with the hash of the configuration in force.",
        read: |reading, samples| samples.put(&[&reading.config.hash], 1),
    },
    Family {
        name: "larder_config_load_time_seconds",
        kind: Kind::Gauge,
        labels: &[],
        help: "When the configuration in force was loaded, as Unix time.",
        read: |reading, samples| samples.put_time(&[], reading.config.loaded_ms),
    },
    Family {
        name: "larder_config_reloads_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Reloads of the configuration that took effect.",
        read: |reading, samples| samples.put(&[], reading.config.reloads),
    },
    Family {
        name: "larder_config_reload_failures_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Reloads of the configuration that were refused.",
        read: |reading, samples| samples.put(&[], reading.config.reload_failures),
    },
    Family {
        name: "larder_config_last_reload_successful",
        kind: Kind::Gauge,
        labels: &[],
        help: "1 where the last reload took effect or there was none, else 0.",
        read: |reading, samples| samples.put(&[], u64::from(reading.config.last_reload_error.is_none())),
    },
    Family {
        name: "larder_audit_errors_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Audit lines that could not be written.",
        read: |reading, samples| samples.put(&[], reading.audit_errors),
    },
    Family {
        name: "larder_access_log_dropped_lines_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Lines of the access log that were dropped because the disk did not keep up.",
        read: |reading, samples| samples.put(&[], reading.totals.log_lines_dropped),
    },
    Family {
        name: "larder_connections_active",
        kind: Kind::Gauge,
        labels: &[],
        help: "Client connections that are open.",
        read: |reading, samples| samples.put(&[], reading.totals.connections.active),
    },
    Family {
        name: "larder_connections_accepted_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Client connections that were accepted.",
        read: |reading, samples| samples.put(&[], reading.totals.connections.accepted),
    },
    Family {
        name: "larder_connections_refused_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Client connections that were turned away at a limit.",
        read: |reading, samples| samples.put(&[], reading.totals.connections.refused),
    },
    Family {
        name: "larder_connections_upgraded_total",
        kind: Kind::Counter,
        labels: &[],
        help: "Client connections that became tunnels by an upgrade.",
        read: |reading, samples| samples.put(&[], reading.totals.connections.upgraded),
    },
    Family {
        name: "larder_connection_timeouts_total",
        kind: Kind::Counter,
        labels: &["kind"],
        help: "Client connections ended by a deadline, by kind of deadline.",
        read: |reading, samples| words(samples, &[], &reading.totals.connections.timeouts),
    },
    Family {
        name: "larder_malformed_requests_total",
        kind: Kind::Counter,
        labels: &["reason"],
        help: "Requests that broke the protocol, by reason.",
        read: |reading, samples| words(samples, &[], &reading.totals.connections.malformed),
    },
    Family {
        name: "larder_vhost_requests_total",
        kind: Kind::Counter,
        labels: &["vhost"],
        help: "Requests.",
        read: |reading, samples| each_vhost(reading, |name, requests| samples.put(&[name], requests.requests)),
    },
    Family {
        name: "larder_vhost_requests_in_flight",
        kind: Kind::Gauge,
        labels: &["vhost"],
        help: "Requests in progress.",
        read: |reading, samples| each_vhost(reading, |name, requests| samples.put(&[name], requests.in_flight)),
    },
    Family {
        name: "larder_vhost_received_bytes_total",
        kind: Kind::Counter,
        labels: &["vhost"],
        help: "Bytes from clients, heads included.",
        read: |reading, samples| each_vhost(reading, |name, requests| samples.put(&[name], requests.bytes_received)),
    },
    Family {
        name: "larder_vhost_sent_bytes_total",
        kind: Kind::Counter,
        labels: &["vhost"],
        help: "Bytes to clients, heads included.",
        read: |reading, samples| each_vhost(reading, |name, requests| samples.put(&[name], requests.bytes_sent)),
    },
    Family {
        name: "larder_vhost_responses_total",
        kind: Kind::Counter,
        labels: &["vhost", "code"],
        help: "Answers by class of status: 1xx to 5xx.",
        read: |reading, samples| each_vhost(reading, |name, requests| classes(samples, &[name], requests.responses)),
    },
    Family {
        name: "larder_vhost_cache_requests_total",
        kind: Kind::Counter,
        labels: &["vhost", "status"],
        help: "Requests by cache status: miss, bypass, expired, stale, updating, revalidated, hit, scarce.",
        read: |reading, samples| each_status(reading, |name, word, count| samples.put(&[name, word], count.requests)),
    },
    Family {
        name: "larder_vhost_cache_sent_bytes_total",
        kind: Kind::Counter,
        labels: &["vhost", "status"],
        help: "Bytes to clients by cache status.",
        read: |reading, samples| {
            each_status(reading, |name, word, count| {
                samples.put(&[name, word], count.bytes_sent)
            })
        },
    },
    Family {
        name: "larder_vhost_forwarded_total",
        kind: Kind::Counter,
        labels: &["vhost", "reason"],
        help: "Requests that went to the origin, by reason.",
        read: |reading, samples| each_vhost(reading, |name, requests| words(samples, &[name], &requests.forwarded)),
    },
    Family {
        name: "larder_vhost_not_stored_total",
        kind: Kind::Counter,
        labels: &["vhost", "reason"],
        help: "Answers of the origin that were not stored, by reason.",
        read: |reading, samples| each_vhost(reading, |name, requests| words(samples, &[name], &requests.not_stored)),
    },
    Family {
        name: "larder_vhost_stored_total",
        kind: Kind::Counter,
        labels: &["vhost"],
        help: "Answers of the origin that were stored.",
        read: |reading, samples| each_vhost(reading, |name, requests| samples.put(&[name], requests.stored)),
    },
    Family {
        name: "larder_vhost_collapsed_total",
        kind: Kind::Counter,
        labels: &["vhost"],
        help: "Requests that were answered from the fill of another one.",
        read: |reading, samples| each_vhost(reading, |name, requests| samples.put(&[name], requests.collapsed)),
    },
    Family {
        name: "larder_vhost_hit_duration_seconds",
        kind: Kind::Histogram,
        labels: &["vhost"],
        help: "Time from the head of a request to the last byte of its answer, where the cache answered.",
        read: |reading, samples| {
            each_vhost(reading, |name, requests| {
                samples.put_histogram(&[name], &requests.hit_latency)
            })
        },
    },
    Family {
        name: "larder_vhost_miss_duration_seconds",
        kind: Kind::Histogram,
        labels: &["vhost"],
        help: "The same where the origin was asked.",
        read: |reading, samples| {
            each_vhost(reading, |name, requests| {
                samples.put_histogram(&[name], &requests.miss_latency)
            })
        },
    },
    Family {
        name: "larder_vhost_origin_duration_seconds",
        kind: Kind::Histogram,
        labels: &["vhost"],
        help: "Time from a request to the origin to the head of its answer.",
        read: |reading, samples| {
            each_vhost(reading, |name, requests| {
                samples.put_histogram(&[name], &requests.origin_latency)
            })
        },
    },
    Family {
        name: "larder_rule_requests_total",
        kind: Kind::Counter,
        labels: &["vhost", "rule"],
        help: "Requests by the rule that they matched; the implicit last rule has no name.",
        read: |reading, samples| each_rule(reading, |names, rule| samples.put(names, rule.requests)),
    },
    Family {
        name: "larder_rule_hits_total",
        kind: Kind::Counter,
        labels: &["vhost", "rule"],
        help: "Hits by rule.",
        read: |reading, samples| each_rule(reading, |names, rule| samples.put(names, rule.hits)),
    },
    Family {
        name: "larder_rule_sent_bytes_total",
        kind: Kind::Counter,
        labels: &["vhost", "rule"],
        help: "Bytes to clients by rule.",
        read: |reading, samples| each_rule(reading, |names, rule| samples.put(names, rule.bytes_sent)),
    },
    Family {
        name: "larder_origin_requests_total",
        kind: Kind::Counter,
        labels: &["upstream", "server"],
        help: "Requests to an origin server.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put(names, origin.requests)),
    },
    Family {
        name: "larder_origin_responses_total",
        kind: Kind::Counter,
        labels: &["upstream", "server", "code"],
        help: "Answers of an origin server by class of status.",
        read: |reading, samples| each_origin(reading, |names, origin| classes(samples, names, origin.responses)),
    },
    Family {
        name: "larder_origin_sent_bytes_total",
        kind: Kind::Counter,
        labels: &["upstream", "server"],
        help: "Bytes to an origin server.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put(names, origin.bytes_sent)),
    },
    Family {
        name: "larder_origin_received_bytes_total",
        kind: Kind::Counter,
        labels: &["upstream", "server"],
        help: "Bytes from an origin server.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put(names, origin.bytes_received)),
    },
    Family {
        name: "larder_origin_failures_total",
        kind: Kind::Counter,
        labels: &["upstream", "server", "kind"],
        help: "Failed attempts, by kind.",
        read: |reading, samples| each_origin(reading, |names, origin| words(samples, names, &origin.failures)),
    },
    Family {
        name: "larder_origin_retries_total",
        kind: Kind::Counter,
        labels: &["upstream", "server"],
        help: "Attempts that were repeated.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put(names, origin.retries)),
    },
    Family {
        name: "larder_origin_connections_opened_total",
        kind: Kind::Counter,
        labels: &["upstream", "server"],
        help: "Connections that were opened to an origin server.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put(names, origin.connects)),
    },
    Family {
        name: "larder_origin_connections_reused_total",
        kind: Kind::Counter,
        labels: &["upstream", "server"],
        help: "Requests that were sent on a connection that had served one before.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put(names, origin.reused)),
    },
    Family {
        name: "larder_origin_connections_active",
        kind: Kind::Gauge,
        labels: &["upstream", "server"],
        help: "Connections in use.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put(names, origin.connections_active)),
    },
    Family {
        name: "larder_origin_connections_idle",
        kind: Kind::Gauge,
        labels: &["upstream", "server"],
        help: "Connections that are kept open.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put(names, origin.connections_idle)),
    },
    Family {
        name: "larder_origin_queued_requests",
        kind: Kind::Gauge,
        labels: &["upstream", "server"],
        help: "Requests that wait for a connection.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put(names, origin.queued)),
    },
    Family {
        name: "larder_origin_duration_seconds",
        kind: Kind::Histogram,
        labels: &["upstream", "server"],
        help: "Time from a request to the head of its answer.",
        read: |reading, samples| each_origin(reading, |names, origin| samples.put_histogram(names, &origin.latency)),
    },
];

fn each_vhost(reading: &Reading<'_>, mut put: impl FnMut(&str, &Requests)) {
    for vhost in &reading.totals.vhosts {
        put(&vhost.name, &vhost.requests);
    }
}

/// With the status in lower case, as Prometheus users know it from nginx's exporters.
fn each_status(reading: &Reading<'_>, mut put: impl FnMut(&str, &str, &CacheCount)) {
    each_vhost(reading, |name, requests| {
        for (word, count) in &requests.cache {
            put(name, &word.to_ascii_lowercase(), count);
        }
    });
}

fn each_rule(reading: &Reading<'_>, mut put: impl FnMut(&[&str], &RuleSnapshot)) {
    for vhost in &reading.totals.vhosts {
        for rule in &vhost.rules {
            put(&[&vhost.name, &rule.name], rule);
        }
    }
}

fn each_origin(reading: &Reading<'_>, mut put: impl FnMut(&[&str], &OriginSnapshot)) {
    for origin in &reading.totals.origins {
        put(&[&origin.upstream, &origin.server], origin);
    }
}

fn words(samples: &mut Samples<'_>, labels: &[&str], counts: &[(&'static str, u64)]) {
    for (word, count) in counts {
        samples.put(&[labels, &[word]].concat(), *count);
    }
}

fn classes(samples: &mut Samples<'_>, labels: &[&str], counts: [u64; 5]) {
    for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(counts) {
        samples.put(&[labels, &[class]].concat(), count);
    }
}
