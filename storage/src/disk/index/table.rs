//! Records by their identity. They lie side by side, and the hash table holds their numbers alone: of a table that doubles,
//! up to half is empty, and what is empty here is four bytes instead of a record.

use hashbrown::HashTable;

use crate::disk::entry::Entry;

/// A full table grows by an eighth.
const GROWTH: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Table {
    numbers: HashTable<u32>,
    entries: Vec<Entry>,
}

/// The identity is a hash by itself; its highest bits chose the shard, and the table uses both ends.
const fn hash(short: u64) -> u64 {
    short.rotate_left(6)
}

fn has(entries: &[Entry], number: u32, short: u64) -> bool {
    entries.get(number as usize).is_some_and(|entry| entry.short == short)
}

impl Table {
    pub(super) fn get(&self, short: u64) -> Option<Entry> {
        let number = self
            .numbers
            .find(hash(short), |&number| has(&self.entries, number, short))?;
        self.entries.get(*number as usize).copied()
    }

    /// Returns what was there.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<Entry> {
        let entries = &mut self.entries;
        let found = self
            .numbers
            .find(hash(entry.short), |&number| has(entries, number, entry.short));
        if let Some(own) = found.and_then(|number| entries.get_mut(*number as usize)) {
            return Some(std::mem::replace(own, entry));
        }
        // A shard's share of the objects of one disk is far below what four bytes count.
        let number = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        if entries.len() == entries.capacity() {
            entries.reserve_exact(GROWTH.max(entries.len() / GROWTH));
        }
        entries.push(entry);
        let short_of = |&number: &u32| entries.get(number as usize).map_or(0, |entry| hash(entry.short));
        self.numbers.insert_unique(hash(entry.short), number, short_of);
        None
    }

    pub(super) fn remove(&mut self, short: u64) -> Option<Entry> {
        let entries = &mut self.entries;
        let found = self
            .numbers
            .find_entry(hash(short), |&number| has(entries, number, short));
        let (number, _) = found.ok()?.remove();
        let last = u32::try_from(entries.len() - 1).unwrap_or(u32::MAX);
        let removed = entries.swap_remove(number as usize);
        if let Some(moved) = entries.get(number as usize) {
            let own = self.numbers.find_mut(hash(moved.short), |&own| own == last);
            own.into_iter().for_each(|own| *own = number);
        }
        Some(removed)
    }

    /// Makes room for so many in all.
    pub(super) fn reserve(&mut self, count: usize) {
        let entries = &mut self.entries;
        let more = count.saturating_sub(entries.len());
        entries.reserve_exact(more);
        let short_of = |&number: &u32| entries.get(number as usize).map_or(0, |entry| hash(entry.short));
        self.numbers.reserve(more, short_of);
    }

    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// All of them, in no order.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Empties it.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        self.numbers = HashTable::new();
        std::mem::take(&mut self.entries)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::disk::entry::{BodyPlace, EntryKind, Parts, Place};

    fn entry(short: u64, used_secs: u64) -> Entry {
        Entry::new(Parts {
            short,
            kind: EntryKind::Object,
            head: Place { seq: 1, at: 0, len: 8 },
            body: BodyPlace::None,
            keep_until_secs: 0,
            used_secs,
            owner: 0,
        })
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec((0..3_u8, 0..40_u64, 0..100_000_u64), 0..400), room in 0..50_usize) {
            let mut table = Table::default();
            table.reserve(room);
            let mut map = HashMap::new();
            for (step, key, number) in steps {
                // Many with the same hash, and many that differ in the highest bits alone.
                let short = ((key % 7) << 58) | (key / 7);
                if step == 0 {
                    prop_assert_eq!(table.remove(short), map.remove(&short));
                } else {
                    let entry = entry(short, number);
                    prop_assert_eq!(table.insert(entry), map.insert(short, entry));
                }
                prop_assert_eq!(table.len(), map.len());
                prop_assert!(map.iter().all(|(short, entry)| table.get(*short) == Some(*entry)));
                prop_assert_eq!(table.get(u64::MAX), None);
            }
            let mut all = table.take();
            all.retain(|entry| map.remove(&entry.short) == Some(*entry));
            prop_assert!(map.is_empty() && table.len() == 0);
        }
    }
}
