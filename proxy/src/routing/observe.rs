//! From what an origin pool tells to the counters of one worker.

use std::sync::Arc;

use crate::origin::{FailureKind, Observe, Upstream};
use crate::traffic::{OriginCounters, Traffic, WorkerId};

/// One worker's view of one origin server's counters.
struct Counting {
    counters: Arc<OriginCounters>,
    worker: WorkerId,
}

pub(super) fn by_worker(traffic: &Traffic, upstream: &Upstream) -> Vec<Arc<dyn Observe>> {
    let counters = traffic.origin(upstream.name(), upstream.address());
    (0..traffic.workers())
        .map(|index| {
            Arc::new(Counting {
                counters: Arc::clone(&counters),
                worker: WorkerId::new(index),
            }) as Arc<dyn Observe>
        })
        .collect()
}

impl Observe for Counting {
    fn attempt(&self) {
        self.counters.attempt(self.worker);
    }

    fn connect(&self) {
        self.counters.connect(self.worker);
    }

    fn reuse(&self) {
        self.counters.reuse(self.worker);
    }

    fn retry(&self) {
        self.counters.retry(self.worker);
    }

    fn failure(&self, kind: FailureKind) {
        self.counters.failure(self.worker, kind);
    }

    fn response(&self, status: u16, latency_us: u64) {
        self.counters.response(self.worker, status, latency_us);
    }

    fn sent(&self, bytes: u64) {
        self.counters.sent(self.worker, bytes);
    }

    fn received(&self, bytes: u64) {
        self.counters.received(self.worker, bytes);
    }
}
