//! How often keys were asked for, in fixed memory: what decides whether an answer is worth storing at all. It may forget a key,
//! which then has to be asked for again some times; it takes no lock and is used from all threads.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::key_hash::KeyHash;

/// Slots of one set: a key can be in any of them.
const WAYS: usize = 4;

/// Sets. With four slots of eight bytes each they take 512 KiB, and keep 64 Ki keys.
const SETS: usize = 16 * 1024;

/// Bits of a slot that count; the others tell whose it is.
const COUNT_BITS: u32 = 16;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;

/// Attempts to change a slot. Each that fails is one that another thread was faster at.
const ATTEMPTS: usize = 8;

/// The counts. Nothing is allocated before the first one.
#[derive(Default)]
pub struct UseCounts {
    hasher: KeyHash,
    /// Fingerprint above, count below; 0 where nobody is.
    slots: OnceLock<Box<[AtomicU64]>>,
}

impl fmt::Debug for UseCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UseCounts").finish_non_exhaustive()
    }
}

impl UseCounts {
    /// Largest number that [`Self::count`] tells; more uses are not counted.
    pub const MAX: u32 = COUNT_MAX as u32;

    /// Counts one use of a key. Tells how many there were, this one included, as far as it remembers.
    pub fn count(&self, key: &[u8]) -> u32 {
        self.count_hash(self.hasher.hash_one(key))
    }

    fn count_hash(&self, hash: u64) -> u32 {
        let slots = self
            .slots
            .get_or_init(|| std::iter::repeat_with(AtomicU64::default).take(SETS * WAYS).collect());
        // The low bits choose the set, the high ones are the fingerprint: it is never that of an empty slot.
        let begin = hash as usize % SETS * WAYS;
        let fingerprint = (hash >> COUNT_BITS | 1) << COUNT_BITS;
        let set = slots.get(begin..begin + WAYS).unwrap_or_default();
        for _ in 0..ATTEMPTS {
            if let Some(count) = count_in(set, fingerprint) {
                return count;
            }
        }
        1
    }
}

/// Counts in the slot of `fingerprint`, or gives it one; `None` where another thread changed it meanwhile.
fn count_in(set: &[AtomicU64], fingerprint: u64) -> Option<u32> {
    let mut least: Option<(&AtomicU64, u64)> = None;
    for slot in set {
        let value = slot.load(Ordering::Relaxed);
        if value & !COUNT_MAX == fingerprint {
            let count = (value & COUNT_MAX).saturating_add(1).min(COUNT_MAX);
            return exchange(slot, value, fingerprint | count).then_some(count as u32);
        }
        if least.is_none_or(|(_, other)| value & COUNT_MAX < other & COUNT_MAX) {
            least = Some((slot, value));
        }
    }
    let (slot, value) = least?;
    if !exchange(slot, value, fingerprint | 1) {
        return None;
    }
    if value != 0 {
        // The set is full. Whoever was popular once must not keep its place for ever.
        set.iter().filter(|other| !std::ptr::eq(*other, slot)).for_each(age);
    }
    Some(1)
}

/// Halves a count; one that was changed meanwhile is in use and stays.
fn age(slot: &AtomicU64) {
    let value = slot.load(Ordering::Relaxed);
    let halved = value & !COUNT_MAX | (value & COUNT_MAX).div_ceil(2);
    exchange(slot, value, halved);
}

fn exchange(slot: &AtomicU64, from: u64, to: u64) -> bool {
    slot.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash of the set `set`, with a fingerprint that no other `number` has.
    const fn hash(set: u64, number: u64) -> u64 {
        number << 32 | set
    }

    #[test]
    fn every_use_counts_and_keys_are_told_apart() {
        let uses = UseCounts::default();
        for expected in 1..=5 {
            assert_eq!(uses.count_hash(hash(7, 1)), expected);
            assert_eq!(uses.count_hash(hash(7, 2)), expected);
            assert_eq!(uses.count_hash(hash(8, 1)), expected);
        }
    }

    #[test]
    fn a_key_counts_by_its_bytes() {
        let uses = UseCounts::default();
        assert_eq!((1..=3).map(|_| uses.count(b"key")).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn the_least_used_of_a_full_set_is_forgotten() {
        let uses = UseCounts::default();
        for number in 1..=4 {
            for _ in 0..number * 2 {
                uses.count_hash(hash(0, number));
            }
        }
        assert_eq!(uses.count_hash(hash(0, 5)), 1, "a new one has a place at once");
        // The first had two uses and is gone; the others are halved.
        assert_eq!(uses.count_hash(hash(0, 4)), 5);
        assert_eq!(uses.count_hash(hash(0, 3)), 4);
        assert_eq!(uses.count_hash(hash(0, 2)), 3);
        assert_eq!(uses.count_hash(hash(0, 5)), 2);
        assert_eq!(uses.count_hash(hash(0, 1)), 1);
    }

    #[test]
    fn a_count_ends_at_its_largest() {
        let uses = UseCounts::default();
        let last = (0..UseCounts::MAX + 10).map(|_| uses.count_hash(hash(3, 9))).last();
        assert_eq!(last, Some(UseCounts::MAX));
        assert_eq!(uses.count_hash(hash(3, 8)), 1, "its neighbour is untouched");
    }

    #[test]
    fn threads_lose_no_use_of_a_key_that_is_there() {
        let uses = UseCounts::default();
        uses.count_hash(hash(1, 1));
        let told: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..100).map(|_| uses.count_hash(hash(1, 1))).max().unwrap_or(0)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
        });
        // An attempt that fails eight times in a row is not counted; nothing is counted twice.
        assert!((100..=401).contains(&told), "{told}");
    }
}
