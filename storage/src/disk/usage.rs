//! What a disk holds and has done, as numbers.

use std::path::PathBuf;

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

impl DiskCounters {
    /// Their names, in the order of [`Self::to_array`].
    pub const NAMES: [&str; 16] = [
        "hits",
        "misses",
        "written",
        "written_bytes",
        "read_bytes",
        "evicted",
        "reinserted",
        "expired",
        "inactive",
        "purged",
        "corrupt",
        "errors",
        "refused_busy",
        "refused_unavailable",
        "promoted",
        "demoted",
    ];

    /// All of them.
    #[must_use]
    pub const fn to_array(self) -> [u64; 16] {
        [
            self.hits,
            self.misses,
            self.written,
            self.written_bytes,
            self.read_bytes,
            self.evicted,
            self.reinserted,
            self.expired,
            self.inactive,
            self.purged,
            self.corrupt,
            self.errors,
            self.refused_busy,
            self.refused_unavailable,
            self.promoted,
            self.demoted,
        ]
    }

    /// From [`Self::to_array`].
    #[must_use]
    pub const fn from_array(counts: [u64; 16]) -> Self {
        let [
            hits,
            misses,
            written,
            written_bytes,
            read_bytes,
            evicted,
            reinserted,
            expired,
            inactive,
            purged,
            corrupt,
            errors,
            refused_busy,
            refused_unavailable,
            promoted,
            demoted,
        ] = counts;
        Self {
            hits,
            misses,
            written,
            written_bytes,
            read_bytes,
            evicted,
            reinserted,
            expired,
            inactive,
            purged,
            corrupt,
            errors,
            refused_busy,
            refused_unavailable,
            promoted,
            demoted,
        }
    }
}

/// What a disk has done since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskCounters {
    /// Lookups that found an object.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
    /// Objects written.
    pub written: u64,
    /// Bytes written, those that were moved included.
    pub written_bytes: u64,
    /// Bytes read for lookups.
    pub read_bytes: u64,
    /// Objects that went to make room.
    pub evicted: u64,
    /// Objects that were written again so that they stay.
    pub reinserted: u64,
    /// Objects dropped because their time was over.
    pub expired: u64,
    /// Objects dropped because nobody asked for them.
    pub inactive: u64,
    /// Objects that were purged.
    pub purged: u64,
    /// Records that were damaged.
    pub corrupt: u64,
    /// Operations that the disk failed.
    pub errors: u64,
    /// Objects not admitted because the queue was full.
    pub refused_busy: u64,
    /// Objects not admitted because the disk was degraded.
    pub refused_unavailable: u64,
    /// Objects that went up into memory on their second use, or at the start.
    pub promoted: u64,
    /// Objects that came down from memory because they were not on disk yet.
    pub demoted: u64,
}
