//! What the store holds and has done, as numbers. Gauges are exact when nothing is in motion.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::DiskUsage;

/// One reading of the store's gauges and counters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes stored in memory, overhead included.
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
    /// The disks, in the order of the configuration.
    pub disks: Vec<DiskUsage>,
    /// By owner, in the order in which they were first seen.
    pub owners: Vec<OwnerUsage>,
}

/// What one owner (vhost) holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnerUsage {
    /// As the key names it.
    pub name: String,
    /// Objects in memory.
    pub memory_objects: u64,
    /// Bytes in memory, overhead included.
    pub memory_bytes: u64,
    /// Objects on disk.
    pub disk_objects: u64,
    /// Bytes on disk, heads and bodies.
    pub disk_bytes: u64,
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
