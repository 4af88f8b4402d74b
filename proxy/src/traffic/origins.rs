//! The counters of one origin server.

use super::cells::{Slots, WorkerId, cell, class, part};
use super::latency::{self, CELLS};
use super::snapshot::OriginSnapshot;
use crate::origin::{FailureKind, Gauges};

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
    pub(super) const FAILURES: usize = RESPONSES + 5;
    pub(super) const LATENCY: usize = FAILURES + FailureKind::ALL.len();
    pub(super) const COUNT: usize = LATENCY + CELLS;
}

/// Cells of an origin server.
pub(super) const COUNT: usize = at::COUNT;

/// Written by the workers' origin pools.
#[derive(Debug)]
pub struct OriginCounters {
    slots: Slots<COUNT>,
}

impl OriginCounters {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            slots: Slots::new(workers),
        }
    }

    /// A request is tried, or tried again.
    pub fn attempt(&self, worker: WorkerId) {
        self.slots.writer(worker).add(at::REQUESTS, 1);
    }

    pub fn connect(&self, worker: WorkerId) {
        self.slots.writer(worker).add(at::CONNECTS, 1);
    }

    pub fn reuse(&self, worker: WorkerId) {
        self.slots.writer(worker).add(at::REUSED, 1);
    }

    pub fn retry(&self, worker: WorkerId) {
        self.slots.writer(worker).add(at::RETRIES, 1);
    }

    pub fn failure(&self, worker: WorkerId, kind: FailureKind) {
        self.slots.writer(worker).add(at::FAILURES + kind as usize, 1);
    }

    /// A final head came, so long after the attempt began.
    pub fn response(&self, worker: WorkerId, status: u16, latency_us: u64) {
        let writer = self.slots.writer(worker);
        if let Some(class) = class(status) {
            writer.add(at::RESPONSES + class, 1);
        }
        latency::record(writer, at::LATENCY, latency_us);
    }

    pub fn sent(&self, worker: WorkerId, bytes: u64) {
        self.slots.writer(worker).add(at::BYTES_SENT, bytes);
    }

    pub fn received(&self, worker: WorkerId, bytes: u64) {
        self.slots.writer(worker).add(at::BYTES_RECEIVED, bytes);
    }

    pub(super) fn read(&self) -> [u64; COUNT] {
        self.slots.read()
    }
}

pub(super) fn show(upstream: &str, server: &str, since_ms: u64, counts: &[u64; COUNT], now: Gauges) -> OriginSnapshot {
    let failures = FailureKind::ALL.into_iter().enumerate();
    OriginSnapshot {
        upstream: upstream.to_owned(),
        server: server.to_owned(),
        since_ms,
        requests: cell(counts, at::REQUESTS),
        responses: part(counts, at::RESPONSES),
        bytes_sent: cell(counts, at::BYTES_SENT),
        bytes_received: cell(counts, at::BYTES_RECEIVED),
        failures: failures
            .map(|(index, kind)| (kind.name(), cell(counts, at::FAILURES + index)))
            .collect(),
        retries: cell(counts, at::RETRIES),
        connects: cell(counts, at::CONNECTS),
        reused: cell(counts, at::REUSED),
        connections_active: now.active,
        connections_idle: now.idle,
        queued: now.queued,
        latency: latency::show(counts, at::LATENCY),
    }
}
