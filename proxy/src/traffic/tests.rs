mod recording;
mod resets;
mod rows;

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::http1::RejectReason;
use crate::origin::FailureKind;
use crate::outcome::{CacheStatus, Forward, NotStored, Outcome};

/// Numbers that are no counters.
const GAUGES: [&str; 9] = [
    "active",
    "connections_active",
    "connections_idle",
    "fill_bytes",
    "fills_active",
    "in_flight",
    "memory_max",
    "memory_used",
    "objects",
];
const TIMES: [&str; 4] = ["epoch", "now_ms", "started_ms", "since_ms"];

const FIRST: WorkerId = WorkerId::new(0);

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn configure(traffic: &Traffic, vhosts: &[(&str, &[&str])], origins: &[(&str, &str)]) {
    let vhosts: Vec<_> = vhosts
        .iter()
        .map(|(name, rules)| ((*name).to_owned(), names(rules)))
        .collect();
    let origins: Vec<_> = origins
        .iter()
        .map(|(up, server)| ((*up).to_owned(), (*server).to_owned()))
        .collect();
    traffic.configure(&vhosts, &origins);
}

fn ending(outcome: Outcome) -> Ending {
    Ending {
        status: 200,
        outcome,
        bytes_received: 100,
        bytes_sent: 1000,
        duration_us: 70,
        origin_us: None,
        rule: 0,
    }
}

fn hit() -> Ending {
    ending(Outcome {
        cache: Some(CacheStatus::Hit),
        ..Outcome::NONE
    })
}

/// Endings that differ in all that is counted. Every cell is reached by some `n` below a few hundred.
fn ending_of(n: usize) -> Ending {
    let cycle = |length: usize| (!n.is_multiple_of(length + 1)).then(|| n % (length + 1) - 1);
    let forward = cycle(Forward::ALL.len()).map(|at| Forward::ALL[at]);
    let outcome = Outcome {
        cache: cycle(CacheStatus::ALL.len()).map(|at| CacheStatus::ALL[at]),
        forward,
        collapsed: n.is_multiple_of(3),
        ..Outcome::NONE
    };
    let bounds = BUCKETS_US.len() + 1;
    let latency = |n: usize| BUCKETS_US.get(n % bounds).copied().unwrap_or(40_000_000);
    Ending {
        status: [100, 200, 304, 404, 503][n % 5],
        outcome,
        bytes_received: n as u64,
        bytes_sent: 3 * n as u64,
        duration_us: latency(n / 11),
        origin_us: forward.map(|_| latency(n / 7)),
        rule: n / 9 % 3,
    }
}

/// Adds to every counter of these rows and of the connections.
fn count_everything(traffic: &Traffic, vhost: &VhostCounters, origin: &OriginCounters) {
    for n in 0..1200 {
        let worker = WorkerId::new(n % 4);
        vhost.record(worker, &ending_of(n));
        traffic.unknown().record(worker, &ending_of(n));
        origin.response(
            worker,
            [100, 200, 304, 404, 503][n % 5],
            BUCKETS_US.get(n % 19).copied().unwrap_or(40_000_000),
        );
    }
    for vhost in [vhost, traffic.unknown()] {
        vhost.record_stored(FIRST);
        NotStored::all().for_each(|why| vhost.record_not_stored(FIRST, why));
    }
    origin.attempt(FIRST);
    origin.connect(FIRST);
    origin.reuse(FIRST);
    origin.retry(FIRST);
    origin.sent(FIRST, 10);
    origin.received(FIRST, 20);
    FailureKind::ALL
        .into_iter()
        .for_each(|kind| origin.failure(FIRST, kind));
    let connections = traffic.connections();
    connections.accepted();
    connections.refused();
    connections.upgraded();
    TimeoutKind::ALL.into_iter().for_each(|kind| connections.timeout(kind));
    RejectReason::ALL
        .into_iter()
        .for_each(|reason| connections.malformed(reason));
}

fn gauges(now_ms: u64) -> Gauges {
    Gauges {
        now_ms,
        connections_active: 1,
        storage: Usage {
            used: 2,
            max: 3,
            objects: 4,
            variants: 5,
            fills_active: 6,
            fill_bytes: 7,
            inserted: 80,
            evicted: 90,
            refused: 100,
            purged: 110,
            variants_capped: 120,
            ..Usage::default()
        },
        upstreams: vec![(
            "app".to_owned(),
            crate::origin::Gauges {
                active: 13,
                idle: 14,
                queued: 15,
            },
        )],
        log_lines_dropped: 16,
    }
}

/// Every number of a snapshot by its path: `/vhosts/0/requests/responses/1`.
fn numbers(snapshot: &Snapshot) -> BTreeMap<String, u64> {
    fn walk(value: &Value, path: &str, into: &mut BTreeMap<String, u64>) {
        match value {
            Value::Number(number) => {
                into.insert(path.to_owned(), number.as_u64().expect("a count"));
            }
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, item)| walk(item, &format!("{path}/{index}"), into));
            }
            Value::Object(members) => {
                members
                    .iter()
                    .for_each(|(name, member)| walk(member, &format!("{path}/{name}"), into));
            }
            Value::String(_) | Value::Null | Value::Bool(_) => {}
        }
    }
    let mut into = BTreeMap::new();
    walk(
        &serde_json::to_value(snapshot).expect("a snapshot is JSON"),
        "",
        &mut into,
    );
    into
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `queued` is a gauge of origins.
fn is_counter(path: &str) -> bool {
    let name = name_of(path);
    !GAUGES.contains(&name) && !TIMES.contains(&name) && name != "queued"
}

fn counters(snapshot: &Snapshot) -> BTreeMap<String, u64> {
    numbers(snapshot)
        .into_iter()
        .filter(|(path, _)| is_counter(path))
        .collect()
}
