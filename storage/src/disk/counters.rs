//! What a disk has done, counted. One list makes the cells, their reading, and the names under which others show them.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Cell(AtomicU64);

impl Cell {
    pub(crate) fn up(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a disk has done since the start.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct DiskCounters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl DiskCounters {
            /// Their names, in the order of [`Self::to_array`].
            pub const NAMES: [&str; COUNT] = [$(stringify!($name)),*];

            /// All of them.
            #[must_use]
            pub const fn to_array(self) -> [u64; COUNT] {
                [$(self.$name),*]
            }

            /// From [`Self::to_array`].
            #[must_use]
            pub const fn from_array(counts: [u64; COUNT]) -> Self {
                let [$($name),*] = counts;
                Self { $($name),* }
            }
        }

        /// The counters as they are counted.
        #[derive(Debug, Default)]
        pub(crate) struct Cells {
            $(pub(crate) $name: Cell,)*
        }

        impl Cells {
            pub(crate) fn read(&self) -> DiskCounters {
                DiskCounters { $($name: self.$name.get(),)* }
            }
        }

        const COUNT: usize = [$(stringify!($name)),*].len();
    };
}

counters! {
    /// Lookups that found an object.
    hits,
    /// Lookups that found none.
    misses,
    /// Objects written.
    written,
    /// Bytes written, those that were moved included.
    written_bytes,
    /// Bytes read for lookups.
    read_bytes,
    /// Objects that went to make room.
    evicted,
    /// Objects that were written again so that they stay.
    reinserted,
    /// Objects dropped because their time was over.
    expired,
    /// Objects dropped because nobody asked for them.
    inactive,
    /// Objects that were purged.
    purged,
    /// Records that were damaged.
    corrupt,
    /// Operations that the disk failed.
    errors,
    /// Objects not admitted because the queue was full.
    refused_busy,
    /// Objects not admitted because the disk was degraded.
    refused_unavailable,
    /// Objects that went up into memory on their second use, or at the start.
    promoted,
    /// Objects that came down from memory because they were not on disk yet.
    demoted,
}
