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

impl<const N: usize> Slot<N> {
    fn zero() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// N counters for each worker, and once more for whoever is none of them.
#[derive(Debug)]
pub(super) struct Slots<const N: usize> {
    workers: Box<[Slot<N>]>,
    others: Slot<N>,
}

/// The cells of one worker, ready to be added to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writer<'a, const N: usize> {
    cells: &'a [AtomicU64; N],
    /// Nobody else writes these cells.
    is_sole: bool,
}

impl<const N: usize> Slots<N> {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Slot::zero()).collect(),
            others: Slot::zero(),
        }
    }

    /// To be called by that worker's thread only: it is the one writer of its slot.
    pub(super) fn writer(&self, worker: WorkerId) -> Writer<'_, N> {
        match self.workers.get(worker.0) {
            Some(slot) => Writer {
                cells: &slot.0,
                is_sole: true,
            },
            None => self.shared_writer(),
        }
    }

    /// For any thread.
    pub(super) const fn shared_writer(&self) -> Writer<'_, N> {
        Writer {
            cells: &self.others.0,
            is_sole: false,
        }
    }

    /// The sum over all slots, each cell read once.
    pub(super) fn read(&self) -> [u64; N] {
        let mut sums = [0; N];
        for slot in self.workers.iter().chain([&self.others]) {
            for (sum, cell) in sums.iter_mut().zip(&slot.0) {
                *sum = u64::wrapping_add(*sum, cell.load(Ordering::Relaxed));
            }
        }
        sums
    }
}

impl<const N: usize> Writer<'_, N> {
    pub(super) fn add(self, cell: usize, count: u64) {
        let Some(cell) = self.cells.get(cell) else { return };
        if self.is_sole {
            // A sole writer needs no read-modify-write, which would cost twenty times as much.
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
        } else {
            cell.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// Whether figures are since the last reset or since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Reset,
    Start,
}

/// What was read last, and what is subtracted since the last reset. What is shown and what becomes the baseline are the same
/// numbers, so no count is lost between the two.
#[derive(Debug)]
pub(super) struct Reading<const N: usize> {
    now: [u64; N],
    baseline: [u64; N],
}

impl<const N: usize> Default for Reading<N> {
    fn default() -> Self {
        Self {
            now: [0; N],
            baseline: [0; N],
        }
    }
}

impl<const N: usize> Reading<N> {
    pub(super) const fn set(&mut self, now: [u64; N]) {
        self.now = now;
    }

    /// Counts begin anew. A baseline never falls: a reading that was taken before another reset's must not bring back what
    /// that one returned.
    pub(super) fn rebase(&mut self) {
        for (baseline, now) in self.baseline.iter_mut().zip(&self.now) {
            *baseline = (*baseline).max(*now);
        }
    }

    pub(super) fn counts(&self, since: Since) -> [u64; N] {
        let mut counts = self.now;
        if since == Since::Reset {
            for (count, baseline) in counts.iter_mut().zip(&self.baseline) {
                *count = count.saturating_sub(*baseline);
            }
        }
        counts
    }

    /// Takes over the counts of a row that is given up.
    pub(super) fn absorb(&mut self, other: &Self) {
        add_all(&mut self.now, &other.now);
        add_all(&mut self.baseline, &other.baseline);
    }
}

pub(super) fn add_all(sums: &mut [u64], counts: &[u64]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(*count);
    }
}

/// A part of a row of counts, as an array of its own.
pub(super) fn part<const M: usize>(counts: &[u64], from: usize) -> [u64; M] {
    counts
        .get(from..)
        .and_then(|tail| tail.first_chunk())
        .copied()
        .unwrap_or([0; M])
}

pub(super) fn cell(counts: &[u64], at: usize) -> u64 {
    counts.get(at).copied().unwrap_or_default()
}

/// The class of a status from 100 to 599: 0 is 1xx.
pub(super) const fn class(status: u16) -> Option<usize> {
    match status {
        100..=599 => Some(status as usize / 100 - 1),
        _ => None,
    }
}
