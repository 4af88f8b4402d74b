//! What the store holds and has done, as numbers. Gauges are exact when nothing is in motion.

use std::sync::atomic::{AtomicU64, Ordering};

/// One reading of the store's gauges and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes stored, overhead included.
    pub used: u64,
    /// Bytes that may be stored.
    pub max: u64,
    /// Objects stored, variants included.
    pub objects: u64,
    /// Objects stored that are one of the variants of a key.
    pub variants: u64,
    /// Fills whose leader has not ended.
    pub fills_active: u64,
    /// Bytes reserved by fills that are to be stored.
    pub fill_bytes: u64,
    /// Objects stored since the start.
    pub inserted: u64,
    /// Objects that went to make room.
    pub evicted: u64,
    /// Objects that the tier would not take though they kept all bounds.
    pub refused: u64,
    /// Objects that were purged.
    pub purged: u64,
    /// Objects that went because their key had too many variants.
    pub variants_capped: u64,
}

/// The cells behind [`Usage`]. They change with stores and evictions only, never on a hit.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) objects: Counter,
    pub(crate) variants: Counter,
    pub(crate) fills_active: Counter,
    pub(crate) inserted: Counter,
    pub(crate) evicted: Counter,
    pub(crate) refused: Counter,
    pub(crate) purged: Counter,
    pub(crate) variants_capped: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
