//! One part of the index, behind one lock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Family;
use super::table::Table;
use crate::disk::entry::Entry;
use crate::disk::pending::Pending;

type ByShort<T> = HashMap<u64, T, foldhash::fast::RandomState>;

#[derive(Debug, Default)]
pub(super) struct Shard {
    table: Table,
    pending: ByShort<Arc<Pending>>,
    families: ByShort<Family>,
    /// Removed while the index is loaded.
    dead: HashSet<u64, foldhash::fast::RandomState>,
}

impl Shard {
    pub(super) fn get(&self, short: u64) -> Option<Entry> {
        self.table.get(short)
    }

    /// Returns what was there.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<Entry> {
        self.table.insert(entry)
    }

    pub(super) fn remove(&mut self, short: u64) -> Option<Entry> {
        self.table.remove(short)
    }

    pub(super) fn reserve(&mut self, count: usize) {
        self.table.reserve(count);
    }

    pub(super) const fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.table.entries().to_vec()
    }

    pub(super) fn drain(&mut self) -> (Vec<Entry>, Vec<Arc<Pending>>) {
        self.families.clear();
        self.dead.clear();
        let pending = self.pending.drain().map(|(_, pending)| pending).collect();
        (self.table.take(), pending)
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
