//! Latency histograms with fixed buckets.

use super::cells::{Slots, WorkerId, cell, part};
use super::snapshot::Histogram;

/// Upper bounds in microseconds, inclusive. From a memory hit (tens of microseconds) to the timeouts of origins.
pub const BUCKETS_US: [u64; 18] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000,
];

/// Cells of one histogram: a count for each bucket, one for what is above them, and the sum.
pub(super) const CELLS: usize = BUCKETS_US.len() + 2;

/// Counts one value into the histogram whose cells begin at `from`. Hits end in the first buckets, so a scan is cheapest.
pub(super) fn record<const N: usize>(slots: &Slots<N>, worker: WorkerId, from: usize, value_us: u64) {
    let bucket = BUCKETS_US
        .iter()
        .position(|&bound| value_us <= bound)
        .unwrap_or(BUCKETS_US.len());
    slots.add(worker, from + bucket, 1);
    slots.add(worker, from + CELLS - 1, value_us);
}

pub(super) fn show(counts: &[u64], from: usize) -> Histogram {
    Histogram {
        counts: part(counts, from, CELLS - 1).to_vec(),
        sum_us: cell(counts, from + CELLS - 1),
    }
}
