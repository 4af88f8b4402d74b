//! The memory tier: one weighted, scan-resistant table of records. It knows nothing of fills; whoever changes what is
//! under a key holds that key's lock (see `store`), only evictions come at any time.
//!
//! Records that leave the table are collected as [`Gone`] and released once no lock is held: that is where they are
//! counted, where a directory takes its variants along, and where their memory is freed.

mod table;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use self::table::{Evicted, Table};
use crate::key_hash::KeyHash;
use crate::object::{Body, Identity, Made, Object, Tier as FoundIn};
use crate::owners::{Holding, Owners};
use crate::record::{Directory, Listed, Listing, Probe, Record, RecordKey};
use crate::store::Lookup;
use crate::usage::Counters;
use crate::{Config, Head, NotKept, VaryRule};

/// What a finished fill hands in.
#[derive(Debug)]
pub(crate) struct Candidate<H, V> {
    pub(crate) key: Arc<[u8]>,
    pub(crate) head: Arc<H>,
    pub(crate) body: Body,
    pub(crate) vary: Option<(Arc<V>, Arc<[u8]>)>,
    pub(crate) begun: u64,
    pub(crate) identity: Option<Identity>,
    pub(crate) owner: u16,
}

impl<H, V> Clone for Candidate<H, V> {
    fn clone(&self) -> Self {
        Self {
            key: Arc::clone(&self.key),
            head: Arc::clone(&self.head),
            body: self.body.clone(),
            vary: self.vary.clone(),
            ..*self
        }
    }
}

/// Why a record left the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Evicted,
    Refused,
    Replaced,
    Capped,
    Purged,
    Removed,
}

/// Records on their way out.
#[derive(Debug)]
#[must_use = "records that left the table have to be released"]
pub(crate) struct Gone<H, V>(SmallVec<[(Record<H, V>, Cause); 2]>);

impl<H, V> Default for Gone<H, V> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

/// Objects that were released and the bytes they held.
#[derive(Debug)]
pub(crate) struct Tally<H> {
    /// Those that were in memory only.
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    /// Those that made room and are on no disk yet.
    pub(crate) homeless: Vec<Arc<Object<H>>>,
}

impl<H> Default for Tally<H> {
    fn default() -> Self {
        Self {
            objects: 0,
            bytes: 0,
            homeless: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Tier<H, V> {
    table: Table<H, V>,
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    owners: Arc<Owners>,
    directory_id: AtomicU64,
}

impl<H: Head, V: VaryRule> Tier<H, V> {
    pub(crate) fn new(config: Config, hash: KeyHash, owners: Arc<Owners>) -> Self {
        Self {
            table: table::with_config(&config, hash),
            config,
            counters: Counters::default(),
            owners,
            directory_id: AtomicU64::new(0),
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.table.weight()
    }

    #[inline]
    pub(crate) fn lookup(&self, key: &[u8], variant: impl FnOnce(&V, &mut Vec<u8>)) -> Lookup<H> {
        match self.table.get(&Probe::Primary(key)) {
            None => Lookup::Nothing,
            Some(Record::Object(object)) => Lookup::Found(object),
            Some(Record::Directory(directory)) => with_scratch(|name| {
                variant(&directory.vary, name);
                match self.table.get(&Probe::Variant(directory.listing.id, name)) {
                    Some(Record::Object(object)) => Lookup::Found(object),
                    _ => Lookup::NoVariant,
                }
            }),
        }
    }

    /// Stores what a fill made, in place of what was there.
    pub(crate) fn put(&self, candidate: Candidate<H, V>, gone: &mut Gone<H, V>) -> Result<Arc<Object<H>>, NotKept> {
        let Candidate {
            key,
            head,
            body,
            vary,
            begun,
            identity,
            owner,
        } = candidate;
        let current = self.table.peek(&Probe::Primary(&key));
        let Some((vary, variant)) = vary else {
            expect_older(current.as_ref(), begun)?;
            let made = Made {
                key_len: key.len(),
                head,
                body,
                listed: None,
                begun,
                identity,
                owner,
            };
            return self.put_object(RecordKey::Primary(key), Arc::new(Object::new(made)), gone);
        };
        let listing = match current {
            Some(Record::Directory(directory)) if directory.vary == vary => Arc::clone(&directory.listing),
            other => {
                expect_older(other.as_ref(), begun)?;
                self.put_directory(&key, vary, begun, gone)?
            }
        };
        let listed = Listed {
            listing: Arc::clone(&listing),
            variant,
        };
        let made = Made {
            key_len: key.len(),
            head,
            body,
            listed: Some(listed),
            begun,
            identity,
            owner,
        };
        self.put_variant(&listing, Arc::new(Object::new(made)), gone)
    }

    /// The same body under a new head, if `current` is still what is stored.
    pub(crate) fn replace(
        &self,
        key: &[u8],
        current: &Arc<Object<H>>,
        (head, begun): (Arc<H>, u64),
        gone: &mut Gone<H, V>,
    ) -> Result<Arc<Object<H>>, NotKept> {
        let current = &self.stored(key, current).ok_or(NotKept::Replaced)?;
        let made = Made {
            key_len: key.len(),
            head,
            body: current.body.clone(),
            listed: None,
            begun,
            identity: current.identity,
            owner: current.owner,
        };
        let Some(listed) = &current.listed else {
            return self.put_object(RecordKey::Primary(key.into()), Arc::new(Object::new(made)), gone);
        };
        let successor = Listed {
            listing: Arc::clone(&listed.listing),
            variant: Arc::from(&*listed.variant),
        };
        let made = Made {
            listed: Some(successor),
            ..made
        };
        self.put_variant(&listed.listing, Arc::new(Object::new(made)), gone)
    }

    /// The object in memory that is the same answer: itself, or what went up of the one that was found on disk.
    fn stored(&self, key: &[u8], object: &Arc<Object<H>>) -> Option<Arc<Object<H>>> {
        let found = |probe: &Probe<'_>| match self.table.peek(probe) {
            Some(Record::Object(found)) if found.is_same(object) => Some(found),
            _ => None,
        };
        if let Some(listed) = &object.listed {
            return found(&Probe::Variant(listed.listing.id, &listed.variant));
        }
        match self.table.peek(&Probe::Primary(key)) {
            // What was found on disk does not know its place up here.
            Some(Record::Directory(directory)) if object.tier() == FoundIn::Disk => {
                let names = directory.listing.names.lock().clone();
                let mut names = names.into_iter().flatten();
                names.find_map(|name| found(&Probe::Variant(directory.listing.id, &name)))
            }
            _ => found(&Probe::Primary(key)),
        }
    }

    pub(crate) fn remove_if_same(&self, key: &[u8], object: &Arc<Object<H>>, gone: &mut Gone<H, V>) -> bool {
        let Some(object) = &self.stored(key, object) else {
            return false;
        };
        let probe = match &object.listed {
            None => Probe::Primary(key),
            Some(listed) => Probe::Variant(listed.listing.id, &listed.variant),
        };
        let removed = self.table.remove_if(&probe, |record| record.is_object(object));
        let found = removed.is_some();
        gone.0.extend(removed.map(|(_, record)| (record, Cause::Removed)));
        found
    }

    /// Whether what a fill made is newer than what is there.
    pub(crate) fn expect_older(&self, candidate: &Candidate<H, V>) -> Result<(), NotKept> {
        let vary = candidate.vary.as_ref().map(|(vary, name)| (&**vary, &**name));
        let probe = self.table.peek(&Probe::Primary(&candidate.key));
        let current = match (&probe, vary) {
            (Some(Record::Directory(directory)), Some((vary, name))) if *directory.vary == *vary => {
                self.table.peek(&Probe::Variant(directory.listing.id, name))
            }
            _ => probe,
        };
        expect_older(current.as_ref(), candidate.begun)
    }

    /// Takes out what a newer answer makes out of date, without storing that.
    pub(crate) fn remove(
        &self,
        key: &[u8],
        vary: Option<(&V, &[u8])>,
        begun: u64,
        gone: &mut Gone<H, V>,
    ) -> Result<(), NotKept> {
        let probe = Probe::Primary(key);
        let current = self.table.peek(&probe);
        let probe = match (&current, vary) {
            (Some(Record::Directory(directory)), Some((vary, name))) if *directory.vary == *vary => {
                Probe::Variant(directory.listing.id, name)
            }
            _ => probe,
        };
        expect_older(self.table.peek(&probe).as_ref(), begun)?;
        let removed = self.table.remove(&probe);
        gone.0.extend(removed.map(|(_, record)| (record, Cause::Removed)));
        Ok(())
    }

    /// Whether this very object is what is stored.
    pub(crate) fn is_stored(&self, key: &[u8], object: &Arc<Object<H>>) -> bool {
        self.stored(key, object).is_some_and(|own| Arc::ptr_eq(&own, object))
    }

    /// Whether anything is under a key.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.table.peek(&Probe::Primary(key)).is_some()
    }

    /// Places in the disk's index of the objects that are on disk as well.
    pub(crate) fn on_disk(&self) -> Vec<u64> {
        let objects = self.table.iter().filter_map(|(_, record)| match record {
            Record::Object(object) if object.homeless.get().is_none() => object.identity,
            _ => None,
        });
        objects.map(|identity| identity.id.short()).collect()
    }

    /// Takes out what is under a key: the object, or the directory whose variants follow it on release.
    pub(crate) fn purge(&self, key: &[u8], gone: &mut Gone<H, V>) {
        if let Some((_, record)) = self.table.remove(&Probe::Primary(key)) {
            gone.0.push((record, Cause::Purged));
        }
    }

    /// Takes out everything that was there when it began.
    pub(crate) fn take_all(&self) -> Gone<H, V> {
        Gone(self.table.drain().map(|(_, record)| (record, Cause::Purged)).collect())
    }

    /// A new directory in place of whatever was there.
    fn put_directory(
        &self,
        key: &Arc<[u8]>,
        vary: Arc<V>,
        begun: u64,
        gone: &mut Gone<H, V>,
    ) -> Result<Arc<Listing>, NotKept> {
        let id = self.directory_id.fetch_add(1, Ordering::Relaxed);
        let directory = Arc::new(Directory::new(id, key.len(), vary, begun));
        let listing = Arc::clone(&directory.listing);
        let taken = self.insert(RecordKey::Primary(Arc::clone(key)), Record::Directory(directory), gone);
        taken.then_some(listing).ok_or(NotKept::Refused)
    }

    fn put_object(
        &self,
        key: RecordKey,
        object: Arc<Object<H>>,
        gone: &mut Gone<H, V>,
    ) -> Result<Arc<Object<H>>, NotKept> {
        // Counted before it can be evicted again, so that no gauge passes below zero.
        self.counters.objects.up();
        if object.listed.is_some() {
            self.counters.variants.up();
        }
        self.owners.gain(Holding::Memory, object.owner, 1, object.weight());
        if !self.insert(key, Record::Object(Arc::clone(&object)), gone) {
            return Err(NotKept::Refused);
        }
        self.counters.inserted.up();
        Ok(object)
    }

    fn put_variant(
        &self,
        listing: &Listing,
        object: Arc<Object<H>>,
        gone: &mut Gone<H, V>,
    ) -> Result<Arc<Object<H>>, NotKept> {
        let Some(listed) = &object.listed else {
            return Err(NotKept::Refused);
        };
        let (key, variant) = (listed.key(), Arc::clone(&listed.variant));
        let mut names = listing.names.lock();
        // The directory was evicted since it was looked up, which is rare: this object is not kept, the next one is.
        let Some(names) = names.as_mut() else {
            return Err(NotKept::Refused);
        };
        expect_older(self.table.peek(&key).as_ref(), object.begun)?;
        let object = self.put_object(key, object, gone)?;
        names.retain(|name| *name != variant);
        names.push_back(variant);
        if names.len() > self.config.variants.max(1) {
            self.drop_oldest(listing.id, names, gone);
        }
        Ok(object)
    }

    fn drop_oldest(&self, id: u64, names: &mut VecDeque<Arc<[u8]>>, gone: &mut Gone<H, V>) {
        let oldest = names.pop_front();
        let removed = oldest.and_then(|name| self.table.remove(&Probe::Variant(id, &name)));
        gone.0.extend(removed.map(|(_, record)| (record, Cause::Capped)));
    }

    /// `false` if the table would not take it.
    fn insert(&self, key: RecordKey, record: Record<H, V>, gone: &mut Gone<H, V>) -> bool {
        let mut evicted = Evicted::default();
        self.table
            .insert_with_lifecycle(key.clone(), record.clone(), &mut evicted);
        let mut taken = true;
        for (old_key, old) in evicted.0 {
            let cause = if old.is(&record) {
                taken = false;
                Cause::Refused
            } else if old_key == key {
                Cause::Replaced
            } else {
                Cause::Evicted
            };
            gone.0.push((old, cause));
        }
        taken
    }

    /// Counts and frees what left the table. No lock may be held.
    pub(crate) fn release(&self, gone: Gone<H, V>) -> Tally<H> {
        let mut tally = Tally::default();
        for (record, cause) in gone.0 {
            match record {
                Record::Object(object) => {
                    if let Some(listed) = &object.listed {
                        listed.forget();
                    }
                    self.release_object(&object, cause, &mut tally);
                }
                Record::Directory(directory) => {
                    for name in directory.listing.retire() {
                        let removed = self.table.remove(&Probe::Variant(directory.listing.id, &name));
                        if let Some((_, Record::Object(object))) = removed {
                            self.release_object(&object, cause, &mut tally);
                        }
                    }
                    tally.bytes += directory.weight;
                }
            }
        }
        tally
    }

    fn release_object(&self, object: &Arc<Object<H>>, cause: Cause, tally: &mut Tally<H>) {
        self.counters.objects.down();
        if object.listed.is_some() {
            self.counters.variants.down();
        }
        self.owners.lose(Holding::Memory, object.owner, 1, object.weight());
        let is_homeless = object.homeless.get().is_some();
        if is_homeless && cause == Cause::Evicted {
            tally.homeless.push(Arc::clone(object));
        }
        if is_homeless || object.identity.is_none() {
            tally.objects += 1;
            tally.bytes += object.weight();
        }
        match cause {
            Cause::Evicted => self.counters.evicted.up(),
            Cause::Refused => self.counters.refused.up(),
            Cause::Capped => self.counters.variants_capped.up(),
            Cause::Purged => self.counters.purged.up(),
            Cause::Replaced | Cause::Removed => {}
        }
    }
}

/// What a fill that began later has brought is not replaced.
fn expect_older<H, V>(current: Option<&Record<H, V>>, begun: u64) -> Result<(), NotKept> {
    let newest = match current {
        None => 0,
        Some(Record::Object(object)) => object.begun,
        Some(Record::Directory(directory)) => directory.begun,
    };
    (newest <= begun).then_some(()).ok_or(NotKept::Replaced)
}

/// Lends a buffer that is kept from call to call. A call inside of another gets one of its own.
pub(crate) fn with_scratch<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    /// Larger ones are not kept: four times a variant key of a full header block would be unusual.
    const KEPT_BYTES: usize = 64 << 10;
    thread_local! {
        static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    SCRATCH.with(|cell| {
        let mut buffer = cell.take();
        buffer.clear();
        let result = f(&mut buffer);
        if buffer.capacity() <= KEPT_BYTES {
            cell.set(buffer);
        }
        result
    })
}
