//! The only place that names quick_cache: how its shards are sized, how it weighs, and what becomes of its evictions.

use std::fmt;
use std::marker::PhantomData;

use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};
use smallvec::SmallVec;

use crate::Config;
use crate::key_hash::KeyHash;
use crate::record::{Record, RecordKey};

pub(super) type Table<H, V> = Cache<RecordKey, Record<H, V>, Weigh, KeyHash, Hooks<H, V>>;

/// More shards than this no longer relieve any lock on the machines we know.
const SHARDS_MAX: u64 = 64;

/// Object size that the room for ghosts of evicted records is reckoned with; a tenfold error is harmless.
const OBJECT_BYTES_TYPICAL: u64 = 8 << 10;

/// A table below this many records a shard would be given fewer shards than asked for.
const RECORDS_PER_SHARD_MIN: u64 = 32;

pub(super) fn with_config<H, V>(config: &Config, hash: KeyHash) -> Table<H, V> {
    let shards = shards(config);
    let records = (config.max_size / OBJECT_BYTES_TYPICAL).max(shards * RECORDS_PER_SHARD_MIN);
    let mut options = OptionsBuilder::new();
    options
        .shards(usize::try_from(shards).unwrap_or(1))
        .estimated_items_capacity(usize::try_from(records).unwrap_or(usize::MAX))
        // It rounds a shard's share up; the sum must not exceed what was asked for.
        .weight_capacity(config.max_size / shards * shards);
    #[expect(clippy::expect_used, reason = "it only fails where a capacity was not set")]
    let options = options.build().expect("both capacities are set");
    Cache::with_options(options, Weigh, hash, Hooks(PhantomData))
}

/// A shard refuses what exceeds 0.97 of its share, and shares are not lent. One that holds eight of the largest objects
/// also evicts in reasonable steps. Rounded down to a power of two, since the table would round up.
fn shards(config: &Config) -> u64 {
    let share = config.max_object.saturating_mul(8).max(1);
    let shards = (config.max_size / share).clamp(1, SHARDS_MAX);
    1 << shards.ilog2()
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Weigh;

impl<H, V> Weighter<RecordKey, Record<H, V>> for Weigh {
    fn weight(&self, _: &RecordKey, record: &Record<H, V>) -> u64 {
        match record {
            Record::Object(object) => object.weight(),
            Record::Directory(directory) => directory.weight,
        }
    }
}

/// Hands evicted, replaced and refused records back to the caller instead of dropping them under the shard's lock.
pub(super) struct Hooks<H, V>(PhantomData<fn() -> (H, V)>);

impl<H, V> Clone for Hooks<H, V> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<H, V> fmt::Debug for Hooks<H, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

pub(super) struct Evicted<H, V>(pub(super) SmallVec<[(RecordKey, Record<H, V>); 2]>);

impl<H, V> Default for Evicted<H, V> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<H, V> Lifecycle<RecordKey, Record<H, V>> for Hooks<H, V> {
    type RequestState = Evicted<H, V>;

    fn on_evict(&self, state: &mut Evicted<H, V>, key: RecordKey, record: Record<H, V>) {
        state.0.push((key, record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_holds_eight_of_the_largest_objects_where_it_can() {
        let cases = [
            (0, 0, 1),
            (2 << 20, 1 << 20, 1),
            (64 << 20, 1 << 20, 8),
            (100 << 20, 1 << 20, 8),
            (256 << 20, 1 << 20, 32),
            (1 << 40, 1 << 20, 64),
            (1 << 20, 1 << 14, 8),
        ];
        for (max_size, max_object, expected) in cases {
            let config = Config {
                max_size,
                max_object,
                variants: 64,
            };
            assert_eq!(shards(&config), expected, "{config:?}");
            let table = with_config::<(), ()>(&config, KeyHash::default());
            assert_eq!(table.num_shards() as u64, expected, "{config:?}");
            assert!(table.capacity() <= max_size, "{config:?}");
        }
    }
}
