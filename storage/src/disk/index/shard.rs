//! One part of the index, behind one lock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hashbrown::HashTable;

use super::Family;
use crate::disk::entry::Entry;
use crate::disk::pending::Pending;

type ByShort<T> = HashMap<u64, T, foldhash::fast::RandomState>;

#[derive(Debug, Default)]
pub(super) struct Shard {
    table: HashTable<Entry>,
    pending: ByShort<Arc<Pending>>,
    families: ByShort<Family>,
    /// Removed while the index is loaded.
    dead: HashSet<u64, foldhash::fast::RandomState>,
}

/// The identity is a hash by itself; its highest bits chose the shard, and the table uses both ends.
const fn place(short: u64) -> u64 {
    short.rotate_left(6)
}

impl Shard {
    pub(super) fn get(&self, short: u64) -> Option<Entry> {
        self.table.find(place(short), |entry| entry.short == short).copied()
    }

    /// Returns what was there.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<Entry> {
        let found = self.table.find_mut(place(entry.short), |own| own.short == entry.short);
        if let Some(own) = found {
            return Some(std::mem::replace(own, entry));
        }
        self.table
            .insert_unique(place(entry.short), entry, |own| place(own.short));
        None
    }

    pub(super) fn remove(&mut self, short: u64) -> Option<Entry> {
        let found = self.table.find_entry(place(short), |own| own.short == short);
        found.ok().map(|occupied| occupied.remove().0)
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.table.iter().copied().collect()
    }

    pub(super) fn drain(&mut self) -> (Vec<Entry>, Vec<Arc<Pending>>) {
        let entries = self.table.drain().collect();
        self.families.clear();
        self.dead.clear();
        (entries, self.pending.drain().map(|(_, pending)| pending).collect())
    }

    pub(super) fn pending(&self, short: u64) -> Option<&Arc<Pending>> {
        self.pending.get(&short)
    }

    pub(super) fn set_pending(&mut self, short: u64, pending: Arc<Pending>) {
        self.pending.insert(short, pending);
    }

    pub(super) fn clear_pending(&mut self, short: u64) -> Option<Arc<Pending>> {
        self.pending.remove(&short)
    }

    pub(super) fn is_dead(&self, short: u64) -> bool {
        self.dead.contains(&short)
    }

    pub(super) fn set_dead(&mut self, short: u64) {
        self.dead.insert(short);
    }

    pub(super) fn forget_dead(&mut self) {
        self.dead = HashSet::default();
    }

    pub(super) fn family(&self, directory: u64) -> Option<&Family> {
        self.families.get(&directory)
    }

    pub(super) fn family_mut(&mut self, directory: u64) -> Option<&mut Family> {
        self.families.get_mut(&directory)
    }

    pub(super) fn put_family(&mut self, directory: u64, family: Family) -> Option<Family> {
        self.families.insert(directory, family)
    }

    pub(super) fn take_family(&mut self, directory: u64) -> Option<Family> {
        self.families.remove(&directory)
    }
}
