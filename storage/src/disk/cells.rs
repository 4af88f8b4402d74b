//! The cells behind [`DiskCounters`](super::DiskCounters).

use std::sync::atomic::{AtomicU64, Ordering};

use super::usage::DiskCounters;

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

macro_rules! cells {
    ($($name:ident),*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Cells {
            $(pub(crate) $name: Cell,)*
        }

        impl Cells {
            pub(crate) fn read(&self) -> DiskCounters {
                DiskCounters { $($name: self.$name.get(),)* }
            }
        }
    };
}

cells!(
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
    demoted
);
