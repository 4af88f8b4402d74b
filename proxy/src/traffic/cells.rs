//! Cells that one worker writes and anyone reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The place of a worker, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerId(usize);

impl WorkerId {
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self(index)
    }

    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }
}

/// 128: two lines, since the prefetcher fetches them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Slot<const N: usize>([AtomicU64; N]);

/// N counters for each worker.
#[derive(Debug)]
pub(super) struct Slots<const N: usize>(Box<[Slot<N>]>);

impl<const N: usize> Slots<N> {
    pub(super) fn new(workers: usize) -> Self {
        Self(
            (0..workers)
                .map(|_| Slot(std::array::from_fn(|_| AtomicU64::new(0))))
                .collect(),
        )
    }

    /// To be called by the worker itself only: it is the one writer of its slot, so no read-modify-write is needed.
    pub(super) fn add(&self, worker: WorkerId, cell: usize, count: u64) {
        if let Some(cell) = self.0.get(worker.0).and_then(|slot| slot.0.get(cell)) {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
        }
    }

    /// The sum over all workers, each cell read once.
    pub(super) fn read(&self) -> [u64; N] {
        let mut sums = [0_u64; N];
        for slot in &self.0 {
            for (sum, cell) in sums.iter_mut().zip(&slot.0) {
                *sum = sum.wrapping_add(cell.load(Ordering::Relaxed));
            }
        }
        sums
    }
}

/// What counts from now on start from.
pub(super) fn since<const N: usize>(now: &[u64; N], base: &[u64; N]) -> [u64; N] {
    let mut counts = *now;
    for (count, base) in counts.iter_mut().zip(base) {
        *count = count.saturating_sub(*base);
    }
    counts
}

/// A part of a row of counts; empty where the row is shorter.
pub(super) fn part(counts: &[u64], from: usize, length: usize) -> &[u64] {
    counts.get(from..from + length).unwrap_or_default()
}

pub(super) fn cell(counts: &[u64], at: usize) -> u64 {
    counts.get(at).copied().unwrap_or_default()
}
