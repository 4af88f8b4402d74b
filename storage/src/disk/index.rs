//! The index in memory: where each record is, what waits to be written, and which variants a directory has. While it is
//! being loaded after a start, what is not in it may still be on disk, unless it is known to be gone.

mod shard;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use self::shard::Shard;
use super::entry::{BodyPlace, Entry, EntryKind};
use super::pending::Pending;
use crate::owners::{Holding, Owners};

/// Locks. With some of them two workers hardly ever meet.
const SHARDS: usize = 64;

/// What is known of a record.
#[derive(Debug, Clone)]
pub(crate) enum Look {
    Pending(Arc<Pending>),
    Entry(Entry),
    /// It is not there.
    Nothing,
    /// It is not in memory, and the index isn't complete.
    Unknown,
}

/// What a key varies on and which variants it has, as far as is known.
#[derive(Debug, Clone)]
pub(crate) struct Family {
    /// Part of the identity of each variant.
    pub(crate) stamp: u64,
    /// The rule, as it was encoded.
    pub(crate) vary: Arc<[u8]>,
    /// Least recently stored first.
    pub(crate) variants: Vec<u64>,
}

/// Objects that went, and their bytes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Removed {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Index {
    shards: Box<[Mutex<Shard>; SHARDS]>,
    loading: AtomicBool,
    /// Changes when everything is dropped, so that a load that began before does not bring it back.
    epoch: AtomicU64,
    objects: AtomicU64,
    live_bytes: AtomicU64,
    owners: Arc<Owners>,
    bodies: Mutex<Bodies>,
    /// A bug that tests put in.
    #[cfg(test)]
    pub(crate) counts_twice: AtomicBool,
}

/// The body files that records have.
#[derive(Debug, Default)]
struct Bodies {
    /// By the file's number, the record's place in the index.
    owned: HashMap<u64, u64, foldhash::fast::RandomState>,
    /// No record has them any more.
    orphans: Vec<u64>,
}

impl Index {
    pub(crate) fn new(owners: Arc<Owners>) -> Self {
        Self {
            shards: Box::new(std::array::from_fn(|_| Mutex::default())),
            loading: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            live_bytes: AtomicU64::new(0),
            owners,
            bodies: Mutex::default(),
            #[cfg(test)]
            counts_twice: AtomicBool::new(false),
        }
    }

    fn shard(&self, short: u64) -> MutexGuard<'_, Shard> {
        #[expect(clippy::indexing_slicing, reason = "the index is a remainder of the length")]
        self.shards[(short >> 58) as usize % SHARDS].lock()
    }

    pub(crate) fn objects(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// From here on what is missing is unknown.
    pub(crate) fn begin_load(&self) {
        self.loading.store(true, Ordering::Release);
    }

    /// From here on what is missing is not there.
    pub(crate) fn end_load(&self) {
        self.loading.store(false, Ordering::Release);
        for shard in &*self.shards {
            shard.lock().forget_dead();
        }
    }

    pub(crate) fn look(&self, short: u64) -> Look {
        let shard = self.shard(short);
        if let Some(pending) = shard.pending(short) {
            return Look::Pending(Arc::clone(pending));
        }
        match shard.get(short) {
            Some(entry) => Look::Entry(entry),
            None if self.is_loading() && !shard.is_dead(short) => Look::Unknown,
            None => Look::Nothing,
        }
    }

    /// The record that is on disk.
    pub(crate) fn get(&self, short: u64) -> Option<Entry> {
        self.shard(short).get(short)
    }

    /// Whether this very record is what is stored, and nothing newer waits.
    pub(crate) fn is_current(&self, entry: Entry) -> bool {
        let shard = self.shard(entry.short);
        shard.pending(entry.short).is_none() && shard.get(entry.short).is_some_and(|own| own.is_same(entry))
    }

    /// Something waits to be written in place of what is there.
    pub(crate) fn put_pending(&self, pending: &Arc<Pending>) {
        let short = pending.id.short();
        self.shard(short).set_pending(short, Arc::clone(pending));
    }

    pub(crate) fn is_pending(&self, pending: &Arc<Pending>) -> bool {
        let short = pending.id.short();
        self.shard(short)
            .pending(short)
            .is_some_and(|own| Arc::ptr_eq(own, pending))
    }

    pub(crate) fn pending_of(&self, short: u64) -> Option<Arc<Pending>> {
        self.shard(short).pending(short).cloned()
    }

    /// Forgets that a key had variants, and drops them.
    pub(crate) fn drop_family(&self, directory: u64) {
        let family = self.shard(directory).take_family(directory);
        for variant in family.into_iter().flat_map(|family| family.variants) {
            self.remove_one(variant);
        }
    }

    /// It was written; `false` if it is not wanted any more.
    pub(crate) fn settle(&self, pending: &Arc<Pending>, entry: Entry) -> bool {
        let mut shard = self.shard(entry.short);
        let wanted = shard.pending(entry.short).is_some_and(|own| Arc::ptr_eq(own, pending));
        if wanted {
            shard.clear_pending(entry.short);
            // Who was asked for before is so still.
            let old = shard.insert(entry);
            self.account(old, Some(entry));
        }
        wanted
    }

    /// It is not wanted any more; what is stored stays.
    pub(crate) fn withdraw(&self, pending: &Arc<Pending>) {
        let short = pending.id.short();
        let mut shard = self.shard(short);
        if shard.pending(short).is_some_and(|own| Arc::ptr_eq(own, pending)) {
            shard.clear_pending(short);
        }
    }

    /// It can't be written: what was there before is out of date and goes as well.
    pub(crate) fn give_up(&self, pending: &Arc<Pending>) -> bool {
        let short = pending.id.short();
        let mut shard = self.shard(short);
        let wanted = shard.pending(short).is_some_and(|own| Arc::ptr_eq(own, pending));
        if wanted {
            shard.clear_pending(short);
            let old = shard.remove(short);
            self.account(old, None);
        }
        wanted
    }

    /// Takes in what lies on disk, unless something newer is known. `epoch`: of when it was read.
    pub(crate) fn adopt(&self, entry: Entry, epoch: u64) -> bool {
        let mut shard = self.shard(entry.short);
        let vacant =
            shard.get(entry.short).is_none() && shard.pending(entry.short).is_none() && !shard.is_dead(entry.short);
        let adopted = vacant && self.epoch() == epoch;
        if adopted {
            shard.insert(entry);
            self.account(None, Some(entry));
        }
        adopted
    }

    /// The log says that it was removed; what came after is in the index already.
    pub(crate) fn was_removed(&self, short: u64) {
        let mut shard = self.shard(short);
        if shard.get(short).is_none() && shard.pending(short).is_none() && self.is_loading() {
            shard.set_dead(short);
        }
    }

    /// Puts `new` in the place of `old`, if that is still there.
    pub(crate) fn exchange(&self, old: Entry, new: Entry) -> bool {
        let mut shard = self.shard(old.short);
        let same = shard.get(old.short).is_some_and(|own| own.is_same(old));
        if same {
            let old = shard.insert(new);
            self.account(old, Some(new));
        }
        same
    }

    /// It was asked for. Tells whether that is the second time since it was written.
    pub(crate) fn touch(&self, entry: Entry, now_secs: u64) -> bool {
        let mut shard = self.shard(entry.short);
        let Some(own) = shard.get(entry.short).filter(|own| own.is_same(entry)) else {
            return false;
        };
        shard.insert(own.touched(now_secs));
        own.is_used()
    }

    /// Something is asked for in memory that is here as well.
    pub(crate) fn touch_short(&self, short: u64, now_secs: u64) {
        let mut shard = self.shard(short);
        if let Some(own) = shard.get(short) {
            shard.insert(own.touched(now_secs));
        }
    }

    /// Removes what is under an id and, if that is a directory, its variants.
    pub(crate) fn remove(&self, short: u64) -> Removed {
        let mut removed = self.remove_one(short);
        let family = self.shard(short).take_family(short);
        for variant in family.into_iter().flat_map(|family| family.variants) {
            let one = self.remove_one(variant);
            removed.objects += one.objects;
            removed.bytes += one.bytes;
        }
        removed
    }

    fn remove_one(&self, short: u64) -> Removed {
        let mut shard = self.shard(short);
        let pending = shard.clear_pending(short);
        let old = shard.remove(short);
        if self.is_loading() {
            shard.set_dead(short);
        }
        self.account(old, None);
        let is_object = old.map_or_else(
            || {
                pending
                    .as_ref()
                    .is_some_and(|pending| pending.kind != EntryKind::Directory)
            },
            |entry| entry.kind() != EntryKind::Directory,
        );
        let bytes = old.map_or_else(|| pending.map_or(0, |pending| pending.weight()), Entry::bytes);
        Removed {
            objects: is_object.into(),
            bytes: if is_object { bytes } else { 0 },
        }
    }

    /// Removes this very record.
    pub(crate) fn remove_if_same(&self, entry: Entry) -> bool {
        let mut shard = self.shard(entry.short);
        let same = shard.get(entry.short).is_some_and(|own| own.is_same(entry));
        if same {
            let old = shard.remove(entry.short);
            if self.is_loading() {
                shard.set_dead(entry.short);
            }
            if entry.kind() == EntryKind::Directory {
                shard.take_family(entry.short);
            }
            self.account(old, None);
        }
        same
    }

    /// Drops everything.
    pub(crate) fn clear(&self) -> Removed {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.end_load();
        let mut removed = Removed::default();
        for shard in &*self.shards {
            let (entries, pending) = shard.lock().drain();
            for entry in entries {
                self.account(Some(entry), None);
                if entry.kind() != EntryKind::Directory {
                    removed.objects += 1;
                    removed.bytes += entry.bytes();
                }
            }
            removed.objects += pending
                .iter()
                .filter(|pending| pending.kind != EntryKind::Directory)
                .count() as u64;
        }
        removed
    }

    /// What is known of a key's variants.
    pub(crate) fn family(&self, directory: u64) -> Option<Family> {
        self.shard(directory).family(directory).cloned()
    }

    /// A directory was made, or read. What is known of the same one stays.
    pub(crate) fn set_family(&self, directory: u64, stamp: u64, vary: Arc<[u8]>) {
        let old = {
            let mut shard = self.shard(directory);
            if shard.family(directory).is_some_and(|own| own.stamp == stamp) {
                return;
            }
            let family = Family {
                stamp,
                vary,
                variants: Vec::new(),
            };
            shard.put_family(directory, family)
        };
        // The variants of another rule can't be found any more.
        for variant in old.into_iter().flat_map(|family| family.variants) {
            self.remove_one(variant);
        }
    }

    /// Lists a variant as the newest one. Returns what has to go so that there are at most `max`.
    pub(crate) fn list_variant(&self, directory: u64, stamp: u64, variant: u64, max: usize) -> Vec<u64> {
        let mut shard = self.shard(directory);
        let Some(family) = shard.family_mut(directory).filter(|family| family.stamp == stamp) else {
            return Vec::new();
        };
        family.variants.retain(|own| *own != variant);
        family.variants.push(variant);
        if family.variants.len() <= max {
            return Vec::new();
        }
        // Some of them may have gone by themselves.
        let listed = std::mem::take(&mut family.variants);
        drop(shard);
        let mut alive: Vec<u64> = listed
            .into_iter()
            .filter(|&own| own == variant || self.knows(own))
            .collect();
        let excess = alive.len().saturating_sub(max);
        let gone: Vec<u64> = alive.drain(..excess).collect();
        if let Some(family) = self
            .shard(directory)
            .family_mut(directory)
            .filter(|family| family.stamp == stamp)
        {
            alive.append(&mut family.variants);
            family.variants = alive;
        }
        gone
    }

    fn knows(&self, short: u64) -> bool {
        let shard = self.shard(short);
        shard.pending(short).is_some() || shard.get(short).is_some()
    }

    /// Whether a directory has a variant that is stored.
    pub(crate) fn has_variants(&self, directory: u64) -> bool {
        let variants = self.family(directory).map(|family| family.variants);
        variants.is_none_or(|variants| variants.into_iter().any(|variant| self.knows(variant)))
    }

    /// Number of shards that [`Self::copy_shard`] knows.
    pub(crate) const fn shards(&self) -> usize {
        SHARDS
    }

    /// Records that are on disk, directories among them.
    pub(crate) fn records(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Makes room for so many records, so that none is moved while they come.
    pub(crate) fn reserve(&self, records: u64) {
        // Identities are spread evenly: hardly any shard gets a 32nd more than its share.
        let share = usize::try_from(records / SHARDS as u64).unwrap_or(0);
        for shard in &*self.shards {
            shard.lock().reserve(share + share / 32);
        }
    }

    /// The records of one shard, in no order. Shards are ordered by the identity's highest bits.
    pub(crate) fn copy_shard(&self, number: usize) -> Vec<Entry> {
        self.shards
            .get(number)
            .map(|shard| shard.lock().entries())
            .unwrap_or_default()
    }

    /// The record that has this body file.
    pub(crate) fn with_file(&self, number: u64) -> Option<Entry> {
        let short = self.bodies.lock().owned.get(&number).copied()?;
        self.get(short)
    }

    /// A body file that will get no record.
    pub(crate) fn orphan(&self, number: u64) {
        self.bodies.lock().orphans.push(number);
    }

    /// The body files that lost their records since the last call.
    pub(crate) fn take_orphans(&self) -> Vec<u64> {
        std::mem::take(&mut self.bodies.lock().orphans)
    }

    /// Keeps the accounts. Called with the shard locked, so that no two changes of a record are told in the wrong order.
    fn account(&self, old: Option<Entry>, new: Option<Entry>) {
        if let Some(entry) = new {
            let objects = u64::from(entry.kind() != EntryKind::Directory);
            self.objects.fetch_add(objects, Ordering::Relaxed);
            self.live_bytes.fetch_add(entry.bytes(), Ordering::Relaxed);
            self.owners.gain(Holding::Disk, entry.owner(), objects, entry.bytes());
        }
        #[cfg(test)]
        let old = old.filter(|_| !(self.counts_twice.load(Ordering::Relaxed) && new.is_some()));
        if let Some(entry) = old {
            let objects = u64::from(entry.kind() != EntryKind::Directory);
            self.objects.fetch_sub(objects, Ordering::Relaxed);
            self.live_bytes.fetch_sub(entry.bytes(), Ordering::Relaxed);
            self.owners.lose(Holding::Disk, entry.owner(), objects, entry.bytes());
        }
        self.account_file(old, new);
    }

    fn account_file(&self, old: Option<Entry>, new: Option<Entry>) {
        let number = |entry: Option<Entry>| match entry?.body() {
            BodyPlace::File { number, .. } => Some(number),
            _ => None,
        };
        let (old, has) = (number(old), number(new));
        if old == has {
            return;
        }
        let mut bodies = self.bodies.lock();
        if let Some((number, entry)) = has.zip(new) {
            bodies.owned.insert(number, entry.short);
        }
        if let Some(number) = old
            && bodies.owned.remove(&number).is_some()
        {
            bodies.orphans.push(number);
        }
    }
}
