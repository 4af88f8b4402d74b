//! The counters of a virtual host and of its rules.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;

use super::Since;
use super::cells::{Slots, WorkerId, cell, part, since};
use super::latency::{self, CELLS};
use super::snapshot::{CacheCount, Requests, RuleSnapshot, VhostSnapshot};
use crate::outcome::{CacheStatus, Forward, NotStored, Outcome};

/// Where each counter is in a worker's slot.
mod at {
    use super::{CELLS, CacheStatus, Forward, NotStored};

    pub(super) const BYTES_RECEIVED: usize = 0;
    pub(super) const BYTES_SENT: usize = 1;
    pub(super) const RESPONSES: usize = 2;
    pub(super) const CLASSES: usize = 5;
    pub(super) const CACHE: usize = RESPONSES + CLASSES;
    pub(super) const CACHE_BYTES: usize = CACHE + CacheStatus::ALL.len();
    pub(super) const FORWARDED: usize = CACHE_BYTES + CacheStatus::ALL.len();
    pub(super) const NOT_STORED: usize = FORWARDED + Forward::ALL.len();
    pub(super) const STORED: usize = NOT_STORED + NotStored::COUNT;
    pub(super) const COLLAPSED: usize = STORED + 1;
    pub(super) const HIT: usize = COLLAPSED + 1;
    pub(super) const MISS: usize = HIT + CELLS;
    pub(super) const ORIGIN: usize = MISS + CELLS;
    pub(super) const COUNT: usize = ORIGIN + CELLS;

    pub(super) const RULE_REQUESTS: usize = 0;
    pub(super) const RULE_HITS: usize = 1;
    pub(super) const RULE_BYTES_SENT: usize = 2;
    pub(super) const RULE_COUNT: usize = 3;
}

type Counts = [u64; at::COUNT];
type RuleCounts = [u64; at::RULE_COUNT];

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
    rules: Vec<Arc<RuleCore>>,
}

#[derive(Debug)]
pub(super) struct VhostCore {
    pub(super) name: String,
    slots: Slots<{ at::COUNT }>,
    /// Signed: a worker may end what another one began.
    in_flight: AtomicI64,
    rules: Mutex<Vec<Arc<RuleCore>>>,
    baseline: Mutex<VhostBaseline>,
}

#[derive(Debug)]
struct VhostBaseline {
    counts: Counts,
    since_ms: u64,
}

#[derive(Debug)]
pub(super) struct RuleCore {
    name: String,
    slots: Slots<{ at::RULE_COUNT }>,
    baseline: Mutex<RuleCounts>,
}

/// A row as it is shown: the vhost and its present rules.
#[derive(Debug, Clone)]
pub(super) struct VhostRow {
    pub(super) core: Arc<VhostCore>,
    pub(super) rules: Vec<Arc<RuleCore>>,
}

pub(super) struct VhostReading {
    counts: Counts,
    rules: Vec<RuleCounts>,
}

/// A request in progress; its end is the drop.
#[derive(Debug)]
pub struct InFlight(Arc<VhostCore>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl VhostCounters ===

impl VhostCounters {
    pub(super) const fn new(core: Arc<VhostCore>, rules: Vec<Arc<RuleCore>>) -> Self {
        Self { core, rules }
    }

    pub(super) const fn core(&self) -> &Arc<VhostCore> {
        &self.core
    }

    /// A request that waits for something has begun. Hits are over before anyone could see them in progress.
    #[must_use]
    pub fn enter(&self) -> InFlight {
        self.core.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(&self.core))
    }

    /// A request has ended. To be called by the worker itself.
    pub fn record(&self, worker: WorkerId, ending: &Ending) {
        let slots = &self.core.slots;
        slots.add(worker, at::BYTES_RECEIVED, ending.bytes_received);
        slots.add(worker, at::BYTES_SENT, ending.bytes_sent);
        let class = usize::from(ending.status / 100).clamp(1, at::CLASSES);
        slots.add(worker, at::RESPONSES + class - 1, 1);
        let outcome = &ending.outcome;
        if let Some(cache) = outcome.cache {
            slots.add(worker, at::CACHE + cache as usize, 1);
            slots.add(worker, at::CACHE_BYTES + cache as usize, ending.bytes_sent);
            let histogram = if outcome.forward.is_none() { at::HIT } else { at::MISS };
            latency::record(slots, worker, histogram, ending.duration_us);
        }
        if let Some(forward) = outcome.forward {
            slots.add(worker, at::FORWARDED + forward as usize, 1);
        }
        if outcome.collapsed {
            slots.add(worker, at::COLLAPSED, 1);
        }
        if let Some(origin_us) = ending.origin_us {
            latency::record(slots, worker, at::ORIGIN, origin_us);
        }
        if let Some(rule) = self.rules.get(ending.rule) {
            rule.slots.add(worker, at::RULE_REQUESTS, 1);
            rule.slots.add(worker, at::RULE_BYTES_SENT, ending.bytes_sent);
            if outcome.cache == Some(CacheStatus::Hit) {
                rule.slots.add(worker, at::RULE_HITS, 1);
            }
        }
    }

    /// An answer has been stored.
    pub fn record_stored(&self, worker: WorkerId) {
        self.core.slots.add(worker, at::STORED, 1);
    }

    /// An answer has not been stored.
    pub fn record_not_stored(&self, worker: WorkerId, reason: NotStored) {
        self.core.slots.add(worker, at::NOT_STORED + reason.index(), 1);
    }
}

// === impl VhostCore ===

impl VhostCore {
    pub(super) fn new(name: &str, workers: usize, since_ms: u64) -> Self {
        Self {
            name: name.to_owned(),
            slots: Slots::new(workers),
            in_flight: AtomicI64::new(0),
            rules: Mutex::default(),
            baseline: Mutex::new(VhostBaseline {
                counts: [0; at::COUNT],
                since_ms,
            }),
        }
    }

    pub(super) fn rule(&self, name: &str, workers: usize) -> Arc<RuleCore> {
        let mut rules = self.rules.lock();
        if let Some(known) = rules.iter().find(|rule| rule.name == name) {
            return Arc::clone(known);
        }
        let baseline = Mutex::new([0; at::RULE_COUNT]);
        let rule = Arc::new(RuleCore {
            name: name.to_owned(),
            slots: Slots::new(workers),
            baseline,
        });
        rules.push(Arc::clone(&rule));
        rule
    }
}

// === impl VhostRow ===

impl VhostRow {
    pub(super) fn read(&self) -> VhostReading {
        VhostReading {
            counts: self.core.slots.read(),
            rules: self.rules.iter().map(|rule| rule.slots.read()).collect(),
        }
    }

    pub(super) fn rebase(&self, reading: &VhostReading, now_ms: u64) {
        *self.core.baseline.lock() = VhostBaseline {
            counts: reading.counts,
            since_ms: now_ms,
        };
        for (rule, counts) in self.rules.iter().zip(&reading.rules) {
            *rule.baseline.lock() = *counts;
        }
    }

    pub(super) fn show(&self, reading: &VhostReading, from: Since, started_ms: u64) -> VhostSnapshot {
        let baseline = self.core.baseline.lock();
        let (counts, since_ms) = match from {
            Since::Reset => (since(&reading.counts, &baseline.counts), baseline.since_ms),
            Since::Start => (reading.counts, started_ms),
        };
        drop(baseline);
        let in_flight = u64::try_from(self.core.in_flight.load(Ordering::Relaxed)).unwrap_or(0);
        let rules = self
            .rules
            .iter()
            .zip(&reading.rules)
            .map(|(rule, counts)| rule.show(counts, from))
            .collect();
        VhostSnapshot {
            name: self.core.name.clone(),
            since_ms,
            requests: requests(&counts, in_flight),
            rules,
        }
    }
}

impl RuleCore {
    fn show(&self, reading: &RuleCounts, from: Since) -> RuleSnapshot {
        let counts = match from {
            Since::Reset => since(reading, &self.baseline.lock()),
            Since::Start => *reading,
        };
        RuleSnapshot {
            name: self.name.clone(),
            requests: cell(&counts, at::RULE_REQUESTS),
            hits: cell(&counts, at::RULE_HITS),
            bytes_sent: cell(&counts, at::RULE_BYTES_SENT),
        }
    }
}

fn requests(counts: &Counts, in_flight: u64) -> Requests {
    let mut responses = [0; at::CLASSES];
    responses.copy_from_slice(part(counts, at::RESPONSES, at::CLASSES));
    let cache = CacheStatus::ALL.into_iter().map(|status| {
        let requests = cell(counts, at::CACHE + status as usize);
        (
            status.word(),
            CacheCount {
                requests,
                bytes_sent: cell(counts, at::CACHE_BYTES + status as usize),
            },
        )
    });
    let forwarded = Forward::ALL
        .into_iter()
        .map(|why| (why.name(), cell(counts, at::FORWARDED + why as usize)));
    let not_stored = NotStored::all().map(|why| (why.name(), cell(counts, at::NOT_STORED + why.index())));
    Requests {
        requests: responses.iter().sum(),
        in_flight,
        bytes_received: cell(counts, at::BYTES_RECEIVED),
        bytes_sent: cell(counts, at::BYTES_SENT),
        responses,
        cache: cache.collect(),
        forwarded: forwarded.collect(),
        not_stored: not_stored.collect(),
        stored: cell(counts, at::STORED),
        collapsed: cell(counts, at::COLLAPSED),
        hit_latency: latency::show(counts, at::HIT),
        miss_latency: latency::show(counts, at::MISS),
        origin_latency: latency::show(counts, at::ORIGIN),
    }
}

impl Requests {
    /// All counters at zero, in the order in which they are shown.
    pub(super) fn zero() -> Self {
        requests(&[0; at::COUNT], 0)
    }

    /// Adds another row to this one.
    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.in_flight += other.in_flight;
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
        self.stored += other.stored;
        self.collapsed += other.collapsed;
        add_all(&mut self.responses, &other.responses);
        for ((_, sum), (_, count)) in self.cache.iter_mut().zip(&other.cache) {
            sum.requests += count.requests;
            sum.bytes_sent += count.bytes_sent;
        }
        for (sums, counts) in [
            (&mut self.forwarded, &other.forwarded),
            (&mut self.not_stored, &other.not_stored),
        ] {
            for ((_, sum), (_, count)) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        self.hit_latency.add(&other.hit_latency);
        self.miss_latency.add(&other.miss_latency);
        self.origin_latency.add(&other.origin_latency);
    }
}

impl super::snapshot::Histogram {
    fn add(&mut self, other: &Self) {
        add_all(&mut self.counts, &other.counts);
        self.sum_us += other.sum_us;
    }
}

fn add_all(sums: &mut [u64], counts: &[u64]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}
