//! Latency histograms with fixed buckets.

use super::cells::{Writer, cell, part};
use super::snapshot::Histogram;

/// Upper bounds in microseconds, inclusive. From a memory hit (tens of microseconds) to the timeouts of origins. Each is at
/// least twice the one before.
pub const BUCKETS_US: [u64; 18] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000,
];

/// Buckets, with the one above all bounds.
const BUCKETS: usize = BUCKETS_US.len() + 1;

/// Cells of one histogram: its buckets and the sum.
pub(super) const CELLS: usize = BUCKETS + 1;

/// Counts one value into the histogram whose cells begin at `from`.
pub(super) fn record<const N: usize>(writer: Writer<'_, N>, from: usize, value_us: u64) {
    writer.add(from + bucket(value_us), 1);
    writer.add(from + BUCKETS, value_us);
}

pub(super) fn show(counts: &[u64], from: usize) -> Histogram {
    Histogram {
        counts: part::<BUCKETS>(counts, from).to_vec(),
        sum_us: cell(counts, from + BUCKETS),
    }
}

/// Values of one bit length span a factor of two, so at most one bound lies among them: one comparison is enough.
fn bucket(value_us: u64) -> usize {
    let length = u64::BITS - value_us.leading_zeros();
    let first = FIRST.get(length as usize).copied().unwrap_or_default();
    first + usize::from(BUCKETS_US.get(first).is_some_and(|bound| value_us > *bound))
}

/// The bucket of the smallest value of each bit length.
const FIRST: [usize; 65] = first_buckets();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which would refuse an index beyond the end"
)]
const fn first_buckets() -> [usize; 65] {
    let mut first = [0; 65];
    let mut length = 1;
    while length < first.len() {
        let smallest = 1_u64 << (length - 1);
        let mut bucket = first[length - 1];
        while bucket < BUCKETS_US.len() && BUCKETS_US[bucket] < smallest {
            bucket += 1;
        }
        first[length] = bucket;
        length += 1;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_a_scan() {
        let scan = |value| {
            BUCKETS_US
                .iter()
                .position(|&bound| value <= bound)
                .unwrap_or(BUCKETS_US.len())
        };
        let edges = BUCKETS_US.iter().flat_map(|&bound| [bound - 1, bound, bound + 1]);
        let powers = (0..64)
            .map(|bit| 1_u64 << bit)
            .flat_map(|power| [power - 1, power, power.saturating_add(1)]);
        for value in (0..200_000).chain(edges).chain(powers).chain([u64::MAX]) {
            assert_eq!(bucket(value), scan(value), "{value}");
        }
        assert!(BUCKETS_US.windows(2).all(|pair| pair[1] >= 2 * pair[0]));
    }
}
