//! The front page: lookups, who leads and who joins a fill, and the lock of each key under which fills are committed and
//! keys are purged.
//!
//! Order of locks: a key's stripe, then a fill's state or a directory's list, then the table's own. Nothing is released,
//! woken or freed under a stripe.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::budget::Budget;
use crate::disk::disks::{self, Disks};
use crate::disk::id::Id;
use crate::disk::index::Removed;
use crate::disk::{Disk, Durably, OpenError, Patience, Upstairs};
use crate::fill::leader::Leader;
use crate::fill::reader::{Reader, fits};
use crate::fill::readers::Owner;
use crate::fill::{Fill, Wakes};
use crate::key_hash::KeyHash;
use crate::object::Object;
use crate::on_disk::later::Later;
use crate::on_disk::refill;
use crate::options::OwnerOf;
use crate::owners::Owners;
use crate::tier::{Candidate, Gone, Tier};
use crate::{Config, Head, NotKept, Options, Usage, VaryRule};

/// Locks for the keys of fills in flight. With some hundred of them two workers hardly ever meet.
const STRIPES: usize = 256;

/// What is stored for a request.
#[derive(Debug)]
pub enum Lookup<H> {
    /// An object for it.
    Found(Arc<Object<H>>),
    /// Only objects for other values of what the key varies on.
    NoVariant,
    /// Nothing.
    Nothing,
}

/// Which fills a request may join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Any that may turn out to be for it.
    Any,
    /// Only those which are known to be for it: after a `Retry`, so that it never waits in vain twice.
    Answered,
    /// None; and nobody may join its own.
    Never,
}

/// How a request that found nothing of use goes on.
#[derive(Debug)]
pub enum Begin<H: Head, V: VaryRule> {
    /// It asks the origin. The leader goes to a task of its own, the reader stays with the client.
    Lead(Leader<H, V>, Reader<H, V>),
    /// It reads along.
    Join(Reader<H, V>),
    /// It was stored meanwhile.
    Found(Arc<Object<H>>),
}

/// What a purge did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purged {
    /// Objects that are gone.
    pub variants: u64,
    /// Bytes they held: on disk, or in memory where they were not on disk.
    pub bytes: u64,
    /// Number of this purge; later ones have higher numbers.
    pub fence: u64,
}

/// Puts together what a purge did in memory and on the disks.
fn purged(
    fence: u64,
    (variants, bytes): (u64, u64),
    on_disk: impl IntoIterator<Item = (Removed, Durably)>,
) -> (Purged, Vec<Durably>) {
    let mut purged = Purged { variants, bytes, fence };
    let mut told = Vec::new();
    for (removed, durably) in on_disk {
        purged.variants += removed.objects;
        purged.bytes += removed.bytes;
        told.push(durably);
    }
    (purged, told)
}

async fn durably(purged: Purged, told: Vec<Durably>) -> Result<Purged, NotDurable> {
    for durably in told {
        noted(purged, durably.await)?;
    }
    Ok(purged)
}

fn noted<E>(purged: Purged, told: Result<Result<(), String>, E>) -> Result<(), NotDurable> {
    let noted = told.unwrap_or_else(|_| Err("the disk is stopped".to_owned()));
    noted.map_err(|why| NotDurable { purged, why })
}

/// A purge is in effect, but not noted on disk: a restart might bring back what it removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the purge is in effect, but {why}: purge again once the disk is well")]
pub struct NotDurable {
    /// What it did.
    pub purged: Purged,
    /// What is wrong with the disk.
    pub why: String,
}

/// The memory tier and the fills in flight. Clones share the same store.
pub struct Store<H: Head, V: VaryRule> {
    shared: Arc<Shared<H, V>>,
}

type Fills<H, V> = HashMap<Arc<[u8]>, SmallVec<[Arc<Fill<H, V>>; 1]>, KeyHash>;

pub(crate) struct Shared<H, V> {
    pub(crate) tier: Tier<H, V>,
    /// Set once, when the store is opened.
    disks: OnceLock<Disks>,
    owners: Arc<Owners>,
    owner_of: OwnerOf,
    stopped: AtomicBool,
    /// What is to be offered to the disks again.
    pub(crate) later: Later<H>,
    pub(crate) budget: Arc<Budget>,
    hasher: KeyHash,
    stripes: Box<[Mutex<Fills<H, V>>; STRIPES]>,
    fence: AtomicU64,
    begun: AtomicU64,
}

impl<H: Head, V: VaryRule> Clone for Store<H, V> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<H: Head, V: VaryRule> fmt::Debug for Store<H, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

impl<H: Head, V: VaryRule> Store<H, V> {
    /// A store over its disks, warm with what they hold. It serves from the first moment.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let store = Self::with(options.memory, KeyHash::default(), options.owner_of);
        if options.disks.is_empty() {
            return Ok(store);
        }
        let common = disks::common(options, &store.shared.owners)?;
        let (tell, loaded) = mpsc::channel();
        let opened = Disks::open(&options.disks, &common, |number| {
            let (tell, shared) = (tell.clone(), Arc::downgrade(&store.shared));
            Upstairs {
                // Nobody listens where there is no memory to refill.
                loaded: Box::new(move || {
                    let _ = tell.send(number);
                }),
                residents: Box::new(move || shared.upgrade().map_or_else(Vec::new, |shared| shared.tier.on_disk())),
            }
        })?;
        // It is set here alone.
        let _ = store.shared.disks.set(opened);
        if options.memory.max_size > 0 {
            refill::start(Arc::downgrade(&store.shared), tell, loaded).map_err(OpenError::Thread)?;
        }
        Ok(store)
    }

    /// An empty store in memory only.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::with_hash(config, KeyHash::default())
    }

    pub(crate) fn with_hash(config: Config, hasher: KeyHash) -> Self {
        Self::with(config, hasher, |_| b"")
    }

    fn with(config: Config, hasher: KeyHash, owner_of: OwnerOf) -> Self {
        let owners = Arc::new(Owners::default());
        let stripes = Box::new(std::array::from_fn(|_| {
            Mutex::new(HashMap::with_hasher(hasher.clone()))
        }));
        Self {
            shared: Arc::new(Shared {
                tier: Tier::new(config, hasher.clone(), Arc::clone(&owners)),
                disks: OnceLock::new(),
                owners,
                owner_of,
                stopped: AtomicBool::new(false),
                later: Later::default(),
                budget: Budget::new(config.fill_budget()),
                hasher,
                stripes,
                fence: AtomicU64::new(0),
                begun: AtomicU64::new(0),
            }),
        }
    }

    /// What is stored for a request. `variant` appends the request's variant key under the rule it is given; it is
    /// called only where the key has variants. Nothing is allocated and no lock is taken for writing.
    #[inline]
    pub fn get(&self, key: &[u8], variant: impl FnOnce(&V, &mut Vec<u8>)) -> Lookup<H> {
        self.shared.tier.lookup(key, variant)
    }

    /// What the disks have for a request that [`Self::get`] found nothing for, as far as that can be told without waiting
    /// for a disk; `None` where it can't be, and [`Self::load`] is to be asked.
    pub fn load_now(&self, key: &[u8], variant: impl FnOnce(&V, &mut Vec<u8>)) -> Option<Lookup<H>> {
        self.shared.load_now(key, variant)
    }

    /// What the disks have for a request that [`Self::get`] found nothing for. Usable on any runtime.
    pub async fn load(&self, key: &[u8], variant: impl FnOnce(&V, &mut Vec<u8>)) -> Lookup<H> {
        let found = self.shared.load(key, variant, Patience::Blocking).await;
        found.unwrap_or(Lookup::Nothing)
    }

    /// [`Self::purge`] that survives a crash: effective at once, and on disk when the future resolves.
    ///
    /// # Errors
    /// It is in effect, but a disk failed to note it, so that a restart might bring the object back.
    pub async fn purge_durably(&self, key: &[u8]) -> Result<Purged, NotDurable> {
        let (purged, told) = self.begin_purge(key);
        durably(purged, told).await
    }

    /// [`Self::clear`] that survives a crash.
    ///
    /// # Errors
    /// As for [`Self::purge_durably`].
    pub async fn clear_durably(&self) -> Result<Purged, NotDurable> {
        let (purged, told) = self.begin_clear();
        durably(purged, told).await
    }

    /// Writes out what waits for the disks and ends their threads. What is stored after that stays in memory.
    pub fn stop(&self) {
        self.shared.offer_the_rest();
        self.shared.stopped.store(true, Ordering::Release);
        for disk in self.shared.disks().all() {
            disk.stop();
        }
    }

    /// Joins or begins a fill for a request that found nothing of use. `seen` is the object that it found and cannot
    /// use: another one that was stored meanwhile is returned instead of asking the origin again. `variant` is as for
    /// [`Self::get`] and must not call the store.
    pub fn begin(
        &self,
        key: &[u8],
        join: Join,
        seen: Option<&Arc<Object<H>>>,
        mut variant: impl FnMut(&V, &mut Vec<u8>),
    ) -> Begin<H, V> {
        let mut stripe = self.shared.stripe(key);
        if join != Join::Never {
            if let Lookup::Found(object) = self.shared.tier.lookup(key, &mut variant)
                && !seen.is_some_and(|seen| Arc::ptr_eq(seen, &object))
            {
                return Begin::Found(object);
            }
            let fills = stripe.get(key).map_or(&[][..], |fills| fills);
            if let Some(reader) = join_one_of(fills, join, &mut variant) {
                return Begin::Join(reader);
            }
        }
        if join != Join::Never && self.shared.is_news(key, seen.map(|seen| &**seen)) {
            // It went to the disk alone, between the lookup and now.
            drop(stripe);
            if let Some(Lookup::Found(object)) = self.shared.load_now(key, &mut variant) {
                return Begin::Found(object);
            }
            stripe = self.shared.stripe(key);
        }
        let (leader, reader) = self.shared.lead(&mut stripe, key, join);
        drop(stripe);
        Begin::Lead(Leader::new(Arc::clone(&self.shared), leader), reader)
    }

    /// Removes the object under a key, or all its variants, from both tiers, and sees to it that no fill which began before is
    /// stored or joined any more. A crash right after may bring back what is on disk: see [`Self::purge_durably`].
    pub fn purge(&self, key: &[u8]) -> Purged {
        self.begin_purge(key).0
    }

    fn begin_purge(&self, key: &[u8]) -> (Purged, Vec<Durably>) {
        let mut gone = Gone::default();
        let mut stripe = self.shared.stripe(key);
        let doomed = stripe.remove(key);
        let mut wakes = Wakes::default();
        for fill in doomed.iter().flatten() {
            wakes.append(fill.doom());
        }
        self.shared.tier.purge(key, &mut gone);
        let fence = self.shared.next_fence();
        let id = Id::of_key(key);
        let on_disk = self.shared.disks().of(id).map(|disk| disk.purge(id, fence));
        drop(stripe);
        wakes.wake();
        let tally = self.shared.tier.release(gone);
        purged(fence, (tally.objects, tally.bytes), on_disk)
    }

    /// [`Self::purge`] for every key.
    pub fn clear(&self) -> Purged {
        self.begin_clear().0
    }

    fn begin_clear(&self) -> (Purged, Vec<Durably>) {
        // All at once, so that nothing that is stored in between is taken for older than it is.
        let mut stripes: Vec<_> = self.shared.stripes.iter().map(Mutex::lock).collect();
        let mut wakes = Wakes::default();
        for stripe in &mut stripes {
            for fill in std::mem::take(&mut **stripe).values().flatten() {
                wakes.append(fill.doom());
            }
        }
        let fence = self.shared.next_fence();
        let on_disk: Vec<_> = self.shared.disks().all().map(|disk| disk.clear(fence)).collect();
        let cleared = self.shared.tier.take_all();
        drop(stripes);
        wakes.wake();
        let tally = self.shared.tier.release(cleared);
        purged(fence, (tally.objects, tally.bytes), on_disk)
    }

    /// Gives `current` a new head, if it is still what is stored: the origin said that it is still good.
    ///
    /// # Errors
    /// Why the new object was not stored.
    pub fn replace(&self, key: &[u8], current: &Arc<Object<H>>, head: Arc<H>) -> Result<Arc<Object<H>>, NotKept> {
        let mut gone = Gone::default();
        let before = self.shared.fence();
        let stripe = self.shared.stripe(key);
        let replaced = self.shared.replace(key, current, head, &mut gone);
        drop(stripe);
        self.shared.release(gone, before);
        replaced
    }

    /// Removes `object`, if it is still what is stored.
    pub fn remove_if_same(&self, key: &[u8], object: &Arc<Object<H>>) -> bool {
        let mut gone = Gone::default();
        let stripe = self.shared.stripe(key);
        let in_memory = self.shared.tier.remove_if_same(key, object, &mut gone);
        let on_disk = self.shared.forget_if_same(key, object);
        drop(stripe);
        // It was not evicted: there is nothing to bring down.
        let _ = self.shared.tier.release(gone);
        in_memory || on_disk
    }

    /// Number of the last purge.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.shared.fence()
    }

    /// A reading of all gauges and counters.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let counters = &self.shared.tier.counters;
        Usage {
            used: self.shared.tier.used(),
            max: self.shared.config().max_size,
            objects: counters.objects.get(),
            variants: counters.variants.get(),
            fills_active: counters.fills_active.get(),
            fill_bytes: self.shared.budget.used(),
            inserted: counters.inserted.get(),
            evicted: counters.evicted.get(),
            refused: counters.refused.get(),
            purged: counters.purged.get(),
            variants_capped: counters.variants_capped.get(),
            disks: self.shared.disks().usage(),
            owners: self.shared.owners.usage(),
        }
    }
}

impl<H: Head, V: VaryRule> Shared<H, V> {
    pub(crate) const fn config(&self) -> &Config {
        &self.tier.config
    }

    pub(crate) fn disks(&self) -> &Disks {
        static NONE: Disks = Disks::none();
        self.disks.get().unwrap_or(&NONE)
    }

    /// Largest object, head and body, that some tier takes; 0 where there is none.
    pub(crate) fn kept_max(&self) -> u64 {
        let config = self.config();
        let in_memory = if config.max_size == 0 { 0 } else { config.max_object };
        let on_disk = self.disks().all().map(Disk::record_max).max().unwrap_or(0);
        in_memory.max(on_disk)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// A bug that tests put in.
    #[cfg(test)]
    fn ignores_fences(&self) -> bool {
        let bug = crate::disk::planted::Bug::FenceIgnored;
        self.disks().all().any(|disk| disk.core().has_bug(bug))
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests plant a bug here")]
    const fn ignores_fences(&self) -> bool {
        false
    }

    /// Number of the last purge.
    pub(crate) fn fence(&self) -> u64 {
        // A disk may still be reading what the last process did.
        self.fence.load(Ordering::Acquire).max(self.disks().fence())
    }

    pub(crate) fn owner(&self, key: &[u8]) -> u16 {
        self.owners.number((self.owner_of)(key))
    }

    pub(crate) fn stripe(&self, key: &[u8]) -> MutexGuard<'_, Fills<H, V>> {
        // The middle of the hash: the table behind the lock uses both ends of it.
        let index = (self.hasher.hash_one(key) >> 32) as usize % STRIPES;
        #[expect(clippy::indexing_slicing, reason = "the index is a remainder of the length")]
        self.stripes[index].lock()
    }

    fn next_fence(&self) -> u64 {
        self.fence.fetch_max(self.disks().fence(), Ordering::AcqRel);
        self.fence.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub(crate) fn next_begun(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    fn lead(&self, stripe: &mut Fills<H, V>, key: &[u8], join: Join) -> (Arc<Fill<H, V>>, Reader<H, V>) {
        let fills = stripe.get(key).map_or(&[][..], |fills| fills);
        // Only one at a time waits for its head with the door open, or requests would be spread over several.
        let open = join != Join::Never && !fills.iter().any(|fill| fill.is_open());
        let key: Arc<[u8]> = Arc::from(key);
        let (fill, slot) = Fill::new(Arc::clone(&key), self.next_begun(), join, open);
        let fill = Arc::new(fill);
        stripe.entry(key).or_default().push(Arc::clone(&fill));
        self.tier.counters.fills_active.up();
        (Arc::clone(&fill), Reader::new(fill, slot, Owner::Leader))
    }

    /// Stores what a fill made, unless a purge came in between; a purge takes the same lock.
    pub(crate) fn commit(&self, fill: &Arc<Fill<H, V>>, candidate: Candidate<H, V>) -> Result<Arc<Object<H>>, NotKept> {
        let mut gone = Gone::default();
        let before = self.fence();
        let mut stripe = self.stripe(&fill.key);
        let stored = if fill.is_doomed() && !self.ignores_fences() {
            Err(NotKept::Doomed)
        } else {
            self.put(candidate, &mut gone)
        };
        unlist(&mut stripe, fill);
        drop(stripe);
        self.release(gone, before);
        stored
    }

    /// A fill has ended.
    pub(crate) fn forget(&self, fill: &Arc<Fill<H, V>>) {
        unlist(&mut self.stripe(&fill.key), fill);
        self.tier.counters.fills_active.down();
    }
}

fn unlist<H, V>(stripe: &mut Fills<H, V>, fill: &Arc<Fill<H, V>>) {
    if let Some(fills) = stripe.get_mut(&*fill.key) {
        fills.retain(|other| !Arc::ptr_eq(other, fill));
        if fills.is_empty() {
            stripe.remove(&*fill.key);
        }
    }
}

fn join_one_of<H: Head, V: VaryRule>(
    fills: &[Arc<Fill<H, V>>],
    join: Join,
    variant: &mut impl FnMut(&V, &mut Vec<u8>),
) -> Option<Reader<H, V>> {
    let answered = fills.iter().find_map(|fill| {
        let slot = fill.join_answered(|headed| fits(headed, &mut *variant))?;
        Some(Reader::new(Arc::clone(fill), slot, Owner::Other))
    });
    answered.or_else(|| {
        let waiting = fills.iter().filter(|_| join == Join::Any);
        let mut joined = waiting.filter_map(|fill| Some((fill, fill.join_open()?)));
        joined
            .next()
            .map(|(fill, slot)| Reader::new(Arc::clone(fill), slot, Owner::Other))
    })
}
