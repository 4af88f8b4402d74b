//! The front page: lookups, who leads and who joins a fill, and the lock of each key under which fills are committed and
//! keys are purged.
//!
//! Order of locks: a key's stripe, then a fill's state or a directory's list, then the table's own. Nothing is released,
//! woken or freed under a stripe.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::budget::Budget;
use crate::fill::leader::Leader;
use crate::fill::reader::{Reader, fits};
use crate::fill::readers::Owner;
use crate::fill::{Fill, Wakes};
use crate::key_hash::KeyHash;
use crate::object::Object;
use crate::tier::{Candidate, Gone, Tier};
use crate::{Config, Head, NotKept, Usage, VaryRule};

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
    /// Memory they held.
    pub bytes: u64,
    /// Number of this purge; later ones have higher numbers.
    pub fence: u64,
}

/// The memory tier and the fills in flight. Clones share the same store.
pub struct Store<H: Head, V: VaryRule> {
    shared: Arc<Shared<H, V>>,
}

type Fills<H, V> = HashMap<Arc<[u8]>, SmallVec<[Arc<Fill<H, V>>; 1]>, KeyHash>;

pub(crate) struct Shared<H, V> {
    tier: Tier<H, V>,
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
    /// An empty store.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::with_hash(config, KeyHash::default())
    }

    pub(crate) fn with_hash(config: Config, hasher: KeyHash) -> Self {
        let stripes = Box::new(std::array::from_fn(|_| {
            Mutex::new(HashMap::with_hasher(hasher.clone()))
        }));
        Self {
            shared: Arc::new(Shared {
                tier: Tier::new(config, hasher.clone()),
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
        let (leader, reader) = self.shared.lead(&mut stripe, key, join);
        drop(stripe);
        Begin::Lead(Leader::new(Arc::clone(&self.shared), leader), reader)
    }

    /// Removes the object under a key, or all its variants, and sees to it that no fill which began before is stored or
    /// joined any more.
    pub fn purge(&self, key: &[u8]) -> Purged {
        let mut gone = Gone::default();
        let mut stripe = self.shared.stripe(key);
        let doomed = stripe.remove(key);
        let mut wakes = Wakes::default();
        for fill in doomed.iter().flatten() {
            wakes.append(fill.doom());
        }
        self.shared.tier.purge(key, &mut gone);
        let fence = self.shared.next_fence();
        drop(stripe);
        wakes.wake();
        let tally = self.shared.tier.release(gone);
        Purged {
            variants: tally.objects,
            bytes: tally.bytes,
            fence,
        }
    }

    /// [`Self::purge`] for every key.
    pub fn clear(&self) -> Purged {
        for stripe in &*self.shared.stripes {
            let doomed = std::mem::take(&mut *stripe.lock());
            for fill in doomed.values().flatten() {
                fill.doom().wake();
            }
        }
        let fence = self.shared.next_fence();
        let tally = self.shared.tier.clear();
        Purged {
            variants: tally.objects,
            bytes: tally.bytes,
            fence,
        }
    }

    /// Gives `current` a new head, if it is still what is stored: the origin said that it is still good.
    ///
    /// # Errors
    /// Why the new object was not stored.
    pub fn replace(&self, key: &[u8], current: &Arc<Object<H>>, head: Arc<H>) -> Result<Arc<Object<H>>, NotKept> {
        let size = (head.weight() as u64).saturating_add(current.body.len());
        if size > self.shared.config().max_object {
            return Err(NotKept::TooLarge);
        }
        let mut gone = Gone::default();
        let stripe = self.shared.stripe(key);
        let begun = self.shared.next_begun();
        let replaced = self.shared.tier.replace(key, current, (head, begun), &mut gone);
        drop(stripe);
        let _ = self.shared.tier.release(gone);
        replaced
    }

    /// Removes `object`, if it is still what is stored.
    pub fn remove_if_same(&self, key: &[u8], object: &Arc<Object<H>>) -> bool {
        let mut gone = Gone::default();
        let stripe = self.shared.stripe(key);
        let removed = self.shared.tier.remove_if_same(key, object, &mut gone);
        drop(stripe);
        let _ = self.shared.tier.release(gone);
        removed
    }

    /// Number of the last purge.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.shared.fence.load(Ordering::Acquire)
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
        }
    }
}

impl<H: Head, V: VaryRule> Shared<H, V> {
    pub(crate) const fn config(&self) -> &Config {
        &self.tier.config
    }

    fn stripe(&self, key: &[u8]) -> MutexGuard<'_, Fills<H, V>> {
        // The middle of the hash: the table behind the lock uses both ends of it.
        let index = (self.hasher.hash_one(key) >> 32) as usize % STRIPES;
        #[expect(clippy::indexing_slicing, reason = "the index is a remainder of the length")]
        self.stripes[index].lock()
    }

    fn next_fence(&self) -> u64 {
        self.fence.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn next_begun(&self) -> u64 {
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
        let mut stripe = self.stripe(&fill.key);
        let stored = if fill.is_doomed() {
            Err(NotKept::Doomed)
        } else {
            self.tier.put(candidate, &mut gone)
        };
        unlist(&mut stripe, fill);
        drop(stripe);
        let _ = self.tier.release(gone);
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
