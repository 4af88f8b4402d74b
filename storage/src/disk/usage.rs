//! What a disk holds and has done, as numbers.

use std::path::PathBuf;

use super::counters::DiskCounters;

/// Whether a disk works.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DiskState {
    /// It does.
    #[default]
    Up,
    /// It is left out for a while, or works in part, for this reason; it recovers by itself.
    Degraded(String),
}

/// One reading of a disk's gauges and counters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskUsage {
    /// As configured.
    pub path: PathBuf,
    /// Whether it works.
    pub state: DiskState,
    /// Bytes allocated below `path`: segments, body files, index and snapshot.
    pub used: u64,
    /// Bytes that may be allocated.
    pub max: u64,
    /// Part of `used` that is the index: sled and the snapshot.
    pub index_bytes: u64,
    /// Bytes of the records that are alive, heads and bodies.
    pub live_bytes: u64,
    /// Objects, variants included.
    pub objects: u64,
    /// Bytes that wait to be written.
    pub queue_bytes: u64,
    /// Percent of the index that is in memory; `None` once it is complete.
    pub warming: Option<u8>,
    /// What it has done since the start.
    pub counters: DiskCounters,
}
