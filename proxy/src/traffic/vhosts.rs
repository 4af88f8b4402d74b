//! The counters of a virtual host and of its rules.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::cells::{Slots, WorkerId, cell, class, part};
use super::latency::{self, CELLS};
use super::snapshot::{CacheCount, Requests, RuleSnapshot};
use crate::outcome::{CacheStatus, Forward, NotStored, Outcome};

/// Where each counter is in a worker's slot. What a hit adds to comes first.
mod at {
    use super::{CELLS, CacheStatus, Forward, NotStored};

    pub(super) const BYTES_RECEIVED: usize = 0;
    /// By `CacheStatus`, and one more for answers without the cache. Requests and bytes sent are sums of these.
    pub(super) const REQUESTS: usize = 1;
    pub(super) const STATUSES: usize = CacheStatus::ALL.len() + 1;
    pub(super) const BYTES_SENT: usize = REQUESTS + STATUSES;
    pub(super) const RESPONSES: usize = BYTES_SENT + STATUSES;
    pub(super) const HIT: usize = RESPONSES + 5;
    pub(super) const MISS: usize = HIT + CELLS;
    pub(super) const ORIGIN: usize = MISS + CELLS;
    pub(super) const FORWARDED: usize = ORIGIN + CELLS;
    pub(super) const NOT_STORED: usize = FORWARDED + Forward::ALL.len();
    pub(super) const STORED: usize = NOT_STORED + NotStored::COUNT;
    pub(super) const COLLAPSED: usize = STORED + 1;
    pub(super) const COUNT: usize = COLLAPSED + 1;

    pub(super) const RULE_REQUESTS: usize = 0;
    pub(super) const RULE_HITS: usize = 1;
    pub(super) const RULE_BYTES_SENT: usize = 2;
    pub(super) const RULE_COUNT: usize = 3;
}

/// Cells of a vhost, and of a rule.
pub(super) const COUNT: usize = at::COUNT;
pub(super) const RULE_COUNT: usize = at::RULE_COUNT;

pub(super) type RuleSlots = Slots<RULE_COUNT>;

/// What one request adds to the counters when it has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    pub status: u16,
    pub outcome: Outcome,
    /// Head and body.
    pub bytes_received: u64,
    pub bytes_sent: u64,
    /// From the end of the request's head to the end of the answer.
    pub duration_us: u64,
    /// To the origin's head, where this request asked it.
    pub origin_us: Option<u64>,
    /// Index of its rule; beyond the last for the implicit one.
    pub rule: usize,
}

/// One vhost's counters with those of the rules that it has at present.
#[derive(Debug)]
pub struct VhostCounters {
    core: Arc<VhostCore>,
    rules: Vec<Arc<RuleSlots>>,
}

#[derive(Debug)]
pub(super) struct VhostCore {
    slots: Slots<COUNT>,
    /// Signed: an end may be seen before its beginning.
    in_flight: AtomicI64,
}

/// A request in progress; its end is the drop.
#[derive(Debug)]
pub struct InFlight(Arc<VhostCore>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl VhostCounters {
    pub(super) const fn new(core: Arc<VhostCore>, rules: Vec<Arc<RuleSlots>>) -> Self {
        Self { core, rules }
    }

    /// A request that waits for something has begun. Hits are over before anyone could see them in progress.
    #[must_use]
    pub fn enter(&self) -> InFlight {
        self.core.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(&self.core))
    }

    /// A request has ended. To be called by the worker itself.
    pub fn record(&self, worker: WorkerId, ending: &Ending) {
        let writer = self.core.slots.writer(worker);
        let Outcome {
            cache,
            forward,
            collapsed,
            ..
        } = ending.outcome;
        let status = cache.map_or(CacheStatus::ALL.len(), |cache| cache as usize);
        writer.add(at::BYTES_RECEIVED, ending.bytes_received);
        writer.add(at::REQUESTS + status, 1);
        writer.add(at::BYTES_SENT + status, ending.bytes_sent);
        if let Some(class) = class(ending.status) {
            writer.add(at::RESPONSES + class, 1);
        }
        if cache.is_some() {
            // Whatever waited for an origin is no hit to the one who waited.
            latency::record(
                writer,
                if forward.is_none() { at::HIT } else { at::MISS },
                ending.duration_us,
            );
        }
        if let Some(forward) = forward {
            writer.add(at::FORWARDED + forward as usize, 1);
        }
        if collapsed {
            writer.add(at::COLLAPSED, 1);
        }
        if let Some(origin_us) = ending.origin_us {
            latency::record(writer, at::ORIGIN, origin_us);
        }
        if let Some(rule) = self.rules.get(ending.rule) {
            let writer = rule.writer(worker);
            writer.add(at::RULE_REQUESTS, 1);
            writer.add(at::RULE_HITS, u64::from(cache == Some(CacheStatus::Hit)));
            writer.add(at::RULE_BYTES_SENT, ending.bytes_sent);
        }
    }

    /// An answer has been stored.
    pub fn record_stored(&self, worker: WorkerId) {
        self.core.slots.writer(worker).add(at::STORED, 1);
    }

    /// An answer has not been stored.
    pub fn record_not_stored(&self, worker: WorkerId, reason: NotStored) {
        self.core.slots.writer(worker).add(at::NOT_STORED + reason.index(), 1);
    }
}

impl VhostCore {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            slots: Slots::new(workers),
            in_flight: AtomicI64::new(0),
        }
    }

    pub(super) fn read(&self) -> [u64; COUNT] {
        self.slots.read()
    }

    pub(super) fn in_flight(&self) -> u64 {
        u64::try_from(self.in_flight.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

pub(super) fn show_rule(name: &str, counts: &[u64; RULE_COUNT]) -> RuleSnapshot {
    RuleSnapshot {
        name: name.to_owned(),
        requests: cell(counts, at::RULE_REQUESTS),
        hits: cell(counts, at::RULE_HITS),
        bytes_sent: cell(counts, at::RULE_BYTES_SENT),
    }
}

pub(super) fn show(counts: &[u64; COUNT], in_flight: u64) -> Requests {
    let requests: [u64; at::STATUSES] = part(counts, at::REQUESTS);
    let bytes_sent: [u64; at::STATUSES] = part(counts, at::BYTES_SENT);
    let by_status = CacheStatus::ALL.into_iter().zip(requests.into_iter().zip(bytes_sent));
    let forwarded = Forward::ALL
        .into_iter()
        .map(|why| (why.name(), cell(counts, at::FORWARDED + why as usize)));
    let not_stored = NotStored::all().map(|why| (why.name(), cell(counts, at::NOT_STORED + why.index())));
    Requests {
        requests: sum(&requests),
        in_flight,
        bytes_received: cell(counts, at::BYTES_RECEIVED),
        bytes_sent: sum(&bytes_sent),
        responses: part(counts, at::RESPONSES),
        cache: by_status
            .map(|(status, (requests, bytes_sent))| (status.word(), CacheCount { requests, bytes_sent }))
            .collect(),
        forwarded: forwarded.collect(),
        not_stored: not_stored.collect(),
        stored: cell(counts, at::STORED),
        collapsed: cell(counts, at::COLLAPSED),
        hit_latency: latency::show(counts, at::HIT),
        miss_latency: latency::show(counts, at::MISS),
        origin_latency: latency::show(counts, at::ORIGIN),
    }
}

fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}
