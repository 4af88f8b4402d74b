//! The counters of one origin server.

use parking_lot::Mutex;

use super::cells::{Slots, WorkerId, cell, part, since};
use super::latency::{self, CELLS};
use super::snapshot::OriginSnapshot;
use super::{Gauges, Since};
use crate::origin::FailureKind;

/// Where each counter is in a worker's slot.
mod at {
    use super::{CELLS, FailureKind};

    pub(super) const REQUESTS: usize = 0;
    pub(super) const BYTES_SENT: usize = 1;
    pub(super) const BYTES_RECEIVED: usize = 2;
    pub(super) const RETRIES: usize = 3;
    pub(super) const CONNECTS: usize = 4;
    pub(super) const REUSED: usize = 5;
    pub(super) const RESPONSES: usize = 6;
    pub(super) const CLASSES: usize = 5;
    pub(super) const FAILURES: usize = RESPONSES + CLASSES;
    pub(super) const LATENCY: usize = FAILURES + FailureKind::ALL.len();
    pub(super) const COUNT: usize = LATENCY + CELLS;
}

/// Written by the workers' origin pools.
#[derive(Debug)]
pub struct OriginCounters {
    pub(super) upstream: String,
    pub(super) server: String,
    slots: Slots<{ at::COUNT }>,
    baseline: Mutex<OriginBaseline>,
}

#[derive(Debug)]
struct OriginBaseline {
    counts: OriginReading,
    since_ms: u64,
}

pub(super) type OriginReading = [u64; at::COUNT];

impl OriginCounters {
    pub(super) fn new(upstream: &str, server: &str, workers: usize, since_ms: u64) -> Self {
        Self {
            upstream: upstream.to_owned(),
            server: server.to_owned(),
            slots: Slots::new(workers),
            baseline: Mutex::new(OriginBaseline {
                counts: [0; at::COUNT],
                since_ms,
            }),
        }
    }

    /// A request is tried, or tried again.
    pub fn attempt(&self, worker: WorkerId) {
        self.slots.add(worker, at::REQUESTS, 1);
    }

    pub fn connect(&self, worker: WorkerId) {
        self.slots.add(worker, at::CONNECTS, 1);
    }

    pub fn reuse(&self, worker: WorkerId) {
        self.slots.add(worker, at::REUSED, 1);
    }

    pub fn retry(&self, worker: WorkerId) {
        self.slots.add(worker, at::RETRIES, 1);
    }

    pub fn failure(&self, worker: WorkerId, kind: FailureKind) {
        if let Some(at) = FailureKind::ALL.iter().position(|known| *known == kind) {
            self.slots.add(worker, at::FAILURES + at, 1);
        }
    }

    /// A final head came, so long after the attempt began.
    pub fn response(&self, worker: WorkerId, status: u16, latency_us: u64) {
        let class = usize::from(status / 100).clamp(1, at::CLASSES);
        self.slots.add(worker, at::RESPONSES + class - 1, 1);
        latency::record(&self.slots, worker, at::LATENCY, latency_us);
    }

    pub fn sent(&self, worker: WorkerId, bytes: u64) {
        self.slots.add(worker, at::BYTES_SENT, bytes);
    }

    pub fn received(&self, worker: WorkerId, bytes: u64) {
        self.slots.add(worker, at::BYTES_RECEIVED, bytes);
    }

    pub(super) fn read(&self) -> OriginReading {
        self.slots.read()
    }

    pub(super) fn rebase(&self, reading: &OriginReading, now_ms: u64) {
        *self.baseline.lock() = OriginBaseline {
            counts: *reading,
            since_ms: now_ms,
        };
    }

    pub(super) fn show(
        &self,
        reading: &OriginReading,
        from: Since,
        started_ms: u64,
        gauges: &Gauges,
    ) -> OriginSnapshot {
        let baseline = self.baseline.lock();
        let (counts, since_ms) = match from {
            Since::Reset => (since(reading, &baseline.counts), baseline.since_ms),
            Since::Start => (*reading, started_ms),
        };
        drop(baseline);
        let mut responses = [0; at::CLASSES];
        responses.copy_from_slice(part(&counts, at::RESPONSES, at::CLASSES));
        let failures = FailureKind::ALL.iter().enumerate();
        let now = gauges
            .upstreams
            .iter()
            .find(|(name, _)| *name == self.upstream)
            .map(|(_, now)| *now)
            .unwrap_or_default();
        OriginSnapshot {
            upstream: self.upstream.clone(),
            server: self.server.clone(),
            since_ms,
            requests: cell(&counts, at::REQUESTS),
            responses,
            bytes_sent: cell(&counts, at::BYTES_SENT),
            bytes_received: cell(&counts, at::BYTES_RECEIVED),
            failures: failures
                .map(|(at, kind)| (kind.name(), cell(&counts, at::FAILURES + at)))
                .collect(),
            retries: cell(&counts, at::RETRIES),
            connects: cell(&counts, at::CONNECTS),
            reused: cell(&counts, at::REUSED),
            connections_active: now.active,
            connections_idle: now.idle,
            queued: now.queued,
            latency: latency::show(&counts, at::LATENCY),
        }
    }
}
