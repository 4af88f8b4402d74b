//! Between the tiers: what is found on disk, what goes up into memory, and what comes down.
//!
//! A key's disk is decided by its own id; its variants lie on the same one. Whatever changes what is stored under a key is
//! told to the disk under that key's lock, so that both tiers see changes in the same order.

pub(crate) mod later;
pub(crate) mod refill;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::disk::entry::EntryKind;
use crate::disk::format::{split_variant, variant_payload};
use crate::disk::id::Id;
use crate::disk::index::Look;
use crate::disk::pending::{Pending, PendingBody};
use crate::disk::read::{self, Record, Unread};
use crate::disk::{Disk, Patience};
use crate::object::{Homeless, Identity, Object, Place};
use crate::store::{Lookup, Shared};
use crate::tier::{Candidate, Gone, with_scratch};
use crate::{Head, NotKept, VaryRule};

/// It would have to wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocked;

/// A record, or the lack of one, or `Blocked`.
type Sought = Result<Option<Record>, Blocked>;

impl<H: Head, V: VaryRule> Shared<H, V> {
    /// Looks without waiting; `None` where that can't be done.
    pub(crate) fn load_now(&self, key: &[u8], variant: impl FnOnce(&V, &mut Vec<u8>)) -> Option<Lookup<H>> {
        if self.disks().is_empty() {
            return Some(Lookup::Nothing);
        }
        let looking = pin!(self.load(key, variant, Patience::Now));
        match looking.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => found.ok(),
            Poll::Pending => None,
        }
    }

    pub(crate) async fn load(
        &self,
        key: &[u8],
        variant: impl FnOnce(&V, &mut Vec<u8>),
        patience: Patience,
    ) -> Result<Lookup<H>, Blocked> {
        let id = Id::of_key(key);
        let Some(disk) = self.disks().of(id) else {
            return Ok(Lookup::Nothing);
        };
        let cells = &disk.core().cells;
        let found = self.find(disk, id, key, variant, patience).await?;
        match &found {
            Lookup::Found(_) => cells.hits.up(),
            Lookup::NoVariant | Lookup::Nothing => cells.misses.up(),
        }
        Ok(found)
    }

    async fn find(
        &self,
        disk: &Disk,
        id: Id,
        key: &[u8],
        variant: impl FnOnce(&V, &mut Vec<u8>),
        patience: Patience,
    ) -> Result<Lookup<H>, Blocked> {
        let Some(record) = record(disk, id, key, patience).await? else {
            return Ok(Lookup::Nothing);
        };
        if record.kind != EntryKind::Directory {
            let found = self.object(disk, id, key, None, record, patience).await?;
            return Ok(found.map_or(Lookup::Nothing, Lookup::Found));
        }
        let Some(vary) = V::decode(&record.rest) else {
            return Ok(Lookup::Nothing);
        };
        disk.core()
            .index
            .set_family(id.short(), record.stamp, record.rest.as_ref().into());
        let name = with_scratch(|name| {
            variant(&vary, name);
            Arc::<[u8]>::from(&**name)
        });
        let id = Id::of_variant(key, record.stamp, &name);
        let found = self::record(disk, id, key, patience).await?;
        let is_this = |found: &Record| {
            found.kind == EntryKind::Variant
                && split_variant(&found.rest).is_some_and(|(stamp, own, _)| stamp == record.stamp && *own == *name)
        };
        let Some(found) = found.filter(is_this) else {
            return Ok(Lookup::NoVariant);
        };
        let object = self
            .object(disk, id, key, Some((Arc::new(vary), name)), found, patience)
            .await?;
        Ok(object.map_or(Lookup::NoVariant, Lookup::Found))
    }

    /// Whether the disk has something under a key that a request has not seen when it looked.
    pub(crate) fn is_news(&self, key: &[u8], seen: Option<&Object<H>>) -> bool {
        let id = Id::of_key(key);
        let Some(disk) = self.disks().of(id) else { return false };
        let is_there = matches!(disk.look(id), Look::Pending(_) | Look::Entry(_));
        let is_seen = seen
            .and_then(|seen| seen.identity)
            .is_some_and(|identity| disk.has(identity));
        is_there && !is_seen
    }

    /// A record as an object. On its second use it goes up.
    async fn object(
        &self,
        disk: &Disk,
        id: Id,
        key: &[u8],
        vary: Option<(Arc<V>, Arc<[u8]>)>,
        record: Record,
        patience: Patience,
    ) -> Result<Option<Arc<Object<H>>>, Blocked> {
        let Some(head) = H::decode(record.head()) else {
            // Another version wrote it.
            if let Some(entry) = record.entry {
                disk.core().drop_lost(entry);
            }
            return Ok(None);
        };
        let head = Arc::new(head);
        let identity = Identity {
            id,
            stamp: record.stamp,
        };
        let owner = disk.core().owner(key);
        let mut body = record.body;
        if let Some(entry) = record.entry {
            let goes_up = entry.is_used() && self.fits_memory(&head, body.len());
            if goes_up && let Place::Disk(on_disk) = body.place() {
                if patience == Patience::Now {
                    return Err(Blocked);
                }
                let (on_disk, pool) = (on_disk.clone(), &disk.core().pool);
                let whole = pool.run(move || read::load_whole(&on_disk)).await.flatten();
                body = whole.unwrap_or(body);
            }
            disk.touch(entry);
            if goes_up && body.chunks().is_some() {
                let candidate = Candidate {
                    key: key.into(),
                    head: Arc::clone(&head),
                    body: body.clone(),
                    vary,
                    // Whatever a fill brings is newer.
                    begun: 0,
                    identity: Some(identity),
                    owner,
                };
                self.promote(disk, candidate, entry);
            }
        }
        Ok(Some(Arc::new(Object::of_disk(head, body, identity, owner))))
    }

    /// Puts into memory what was read, if it is still what is stored.
    pub(crate) fn promote(&self, disk: &Disk, mut candidate: Candidate<H, V>, entry: crate::disk::entry::Entry) {
        candidate.body = candidate.body.compact();
        let mut gone = Gone::default();
        let before = self.fence();
        let stripe = self.stripe(&candidate.key);
        if disk.core().index.is_current(entry) && self.tier.put(candidate, &mut gone).is_ok() {
            disk.core().cells.promoted.up();
        }
        drop(stripe);
        self.release(gone, before);
    }

    pub(crate) fn fits_memory(&self, head: &H, body_len: u64) -> bool {
        let config = self.config();
        config.max_size > 0 && (head.weight() as u64).saturating_add(body_len) <= config.max_object
    }

    /// Stores in both tiers what a fill made. Called with the key locked.
    pub(crate) fn put(&self, mut candidate: Candidate<H, V>, gone: &mut Gone<H, V>) -> Result<Arc<Object<H>>, NotKept> {
        if self.disks().is_empty() {
            return self.put_in_memory(candidate, gone);
        }
        self.tier.expect_older(&candidate)?;
        let on_disk = self.put_on_disk(&candidate);
        if let (Some(identity), Ok(id)) = (&mut candidate.identity, &on_disk) {
            identity.id = *id;
        }
        match (self.put_in_memory(candidate.clone(), gone), on_disk) {
            (Ok(object), Ok(_)) => Ok(object),
            (Ok(object), Err(_)) => {
                let vary = candidate
                    .vary
                    .as_ref()
                    .map(|(vary, name)| (encoded(&**vary), Arc::clone(name)));
                let key = Arc::clone(&candidate.key);
                // It is new: nobody has set it.
                let _ = object.homeless.set(Box::new(Homeless { key, vary }));
                self.later.push(&object);
                Ok(object)
            }
            (Err(_), Ok(_)) => {
                let Candidate {
                    head,
                    body,
                    identity,
                    owner,
                    ..
                } = candidate;
                let identity = identity.ok_or(NotKept::Refused)?;
                Ok(Arc::new(Object::of_disk(head, body, identity, owner)))
            }
            (Err(_), Err(why)) => Err(why),
        }
    }

    /// What is too large for memory makes what is there out of date all the same.
    fn put_in_memory(&self, candidate: Candidate<H, V>, gone: &mut Gone<H, V>) -> Result<Arc<Object<H>>, NotKept> {
        if candidate.body.chunks().is_some() && self.fits_memory(&candidate.head, candidate.body.len()) {
            return self.tier.put(candidate, gone);
        }
        let vary = candidate.vary.as_ref().map(|(vary, name)| (&**vary, &**name));
        self.tier.remove(&candidate.key, vary, candidate.begun, gone)?;
        Err(if self.config().max_size == 0 {
            NotKept::Disabled
        } else {
            NotKept::TooLarge
        })
    }

    /// The same body under a new head. Called with the key locked.
    pub(crate) fn replace(
        &self,
        key: &[u8],
        current: &Arc<Object<H>>,
        head: Arc<H>,
        gone: &mut Gone<H, V>,
    ) -> Result<Arc<Object<H>>, NotKept> {
        let begun = self.next_begun();
        let fits = self.fits_memory(&head, current.body.len());
        let in_memory = if fits {
            self.tier.replace(key, current, (Arc::clone(&head), begun), gone)
        } else {
            self.tier.remove_if_same(key, current, gone);
            Err(NotKept::TooLarge)
        };
        let identity = current.identity.filter(|_| current.homeless.get().is_none());
        let on_disk = identity.is_some_and(|identity| self.replace_on_disk(key, identity, &head));
        match in_memory {
            Ok(object) => {
                if let Some(homeless) = current.homeless.get() {
                    // It is new: nobody has set it.
                    let _ = object.homeless.set(homeless.clone());
                    self.later.push(&object);
                }
                Ok(object)
            }
            Err(why) => match identity.filter(|_| on_disk) {
                Some(identity) => {
                    let body = current.body.clone();
                    Ok(Arc::new(Object::of_disk(head, body, identity, current.owner)))
                }
                None => Err(why),
            },
        }
    }

    fn replace_on_disk(&self, key: &[u8], identity: Identity, head: &H) -> bool {
        let Some(disk) = self.disks().of(Id::of_key(key)) else {
            return false;
        };
        let mut text = Vec::new();
        head.encode(&mut text);
        let result = disk.put_head(identity, key, Bytes::from(text), head.keep_until_secs());
        if result.is_err_and(|why| why != NotKept::Replaced) {
            // What is there is out of date.
            disk.forget(identity.id);
        }
        result.is_ok()
    }

    /// Removes an object from its disk, if it is still what is stored there. Called with the key locked.
    pub(crate) fn forget_if_same(&self, key: &[u8], object: &Object<H>) -> bool {
        let Some((disk, identity)) = self.disks().of(Id::of_key(key)).zip(object.identity) else {
            return false;
        };
        let same = disk.has(identity);
        if same {
            disk.forget(identity.id);
        }
        same
    }

    fn put_on_disk(&self, candidate: &Candidate<H, V>) -> Result<Id, NotKept> {
        let Some((disk, identity)) = self.disks().of(Id::of_key(&candidate.key)).zip(candidate.identity) else {
            return Err(NotKept::Disabled);
        };
        let vary = candidate.vary.as_ref().map(|(vary, name)| (encoded(&**vary), &**name));
        let mut head = Vec::new();
        candidate.head.encode(&mut head);
        let body = match candidate.body.place() {
            Place::Memory(_) => PendingBody::Memory(candidate.body.clone()),
            Place::Disk(body) => body.place().map(PendingBody::Placed).ok_or(NotKept::Refused)?,
        };
        let sheet = Sheet {
            key: &candidate.key,
            vary: vary.as_ref().map(|(vary, name)| (&**vary, *name)),
            head: &head,
            body,
            body_len: candidate.body.len(),
            stamp: identity.stamp,
            keep_until_secs: candidate.head.keep_until_secs(),
            fence: self.fence(),
            owner: candidate.owner,
            variants_max: self.config().variants.max(1),
        };
        store(disk, sheet)
    }

    /// What an object that a fill makes will be on disk.
    pub(crate) fn identity(&self, key: &[u8]) -> Option<Identity> {
        let id = Id::of_key(key);
        let stamp = self.disks().of(id)?.core().next_stamp();
        Some(Identity { id, stamp })
    }

    /// Counts and frees what left memory; what is not on disk yet is brought there. No lock may be held. `before`: the last
    /// purge when the records began to leave.
    pub(crate) fn release(&self, gone: Gone<H, V>, before: u64) {
        for object in self.tier.release(gone).homeless {
            self.demote(&object, before);
        }
    }
}

/// All that a record is made of.
struct Sheet<'a> {
    key: &'a Arc<[u8]>,
    /// The rule, encoded, and the variant's name.
    vary: Option<(&'a [u8], &'a [u8])>,
    head: &'a [u8],
    body: PendingBody,
    body_len: u64,
    stamp: u64,
    keep_until_secs: u64,
    fence: u64,
    owner: u16,
    variants_max: usize,
}

/// Hands a record to the disk, with its directory where it is the first of its kind.
fn store(disk: &Disk, sheet: Sheet<'_>) -> Result<Id, NotKept> {
    let directory = Id::of_key(sheet.key);
    let stored = match sheet.vary {
        None => {
            disk.core().index.drop_family(directory.short());
            disk.put(&[Arc::new(object_record(directory, sheet))])
                .map(|()| directory)
        }
        Some((vary, name)) => store_variant(disk, directory, (vary, name), sheet),
    };
    if stored.is_err() {
        // What is there is out of date.
        disk.forget(directory);
    }
    stored
}

fn object_record(id: Id, sheet: Sheet<'_>) -> Pending {
    Pending {
        id,
        kind: EntryKind::Object,
        key: Arc::clone(sheet.key),
        rest: Bytes::copy_from_slice(sheet.head),
        head_at: 0,
        body: sheet.body,
        body_len: sheet.body_len,
        stamp: sheet.stamp,
        fence: sheet.fence,
        keep_until_secs: sheet.keep_until_secs,
        owner: sheet.owner,
    }
}

fn store_variant(disk: &Disk, directory: Id, (vary, name): (&[u8], &[u8]), sheet: Sheet<'_>) -> Result<Id, NotKept> {
    let index = &disk.core().index;
    let family = index.family(directory.short()).filter(|family| *family.vary == *vary);
    let is_there = matches!(disk.look(directory), Look::Pending(_) | Look::Entry(_));
    let mut together = Vec::with_capacity(2);
    let stamp = match family.filter(|_| is_there) {
        Some(family) => family.stamp,
        None => {
            let made = directory_record(disk, directory, vary, &sheet);
            index.set_family(directory.short(), made.stamp, vary.into());
            let stamp = made.stamp;
            together.push(Arc::new(made));
            stamp
        }
    };
    let id = Id::of_variant(sheet.key, stamp, name);
    let payload = variant_payload(stamp, name, sheet.head);
    let (head_at, max) = (payload.len() - sheet.head.len(), sheet.variants_max);
    let record = Pending {
        kind: EntryKind::Variant,
        rest: Bytes::from(payload),
        head_at,
        ..object_record(id, sheet)
    };
    together.push(Arc::new(record));
    disk.put(&together)?;
    for excess in index.list_variant(directory.short(), stamp, id.short(), max) {
        disk.drop_short(excess);
    }
    Ok(id)
}

fn directory_record(disk: &Disk, id: Id, vary: &[u8], sheet: &Sheet<'_>) -> Pending {
    Pending {
        id,
        kind: EntryKind::Directory,
        key: Arc::clone(sheet.key),
        rest: Bytes::copy_from_slice(vary),
        head_at: 0,
        body: PendingBody::Placed(crate::disk::entry::BodyPlace::None),
        body_len: 0,
        stamp: disk.core().next_stamp(),
        fence: sheet.fence,
        keep_until_secs: u64::MAX,
        owner: sheet.owner,
    }
}

/// What is under an id: read, or taken from what waits to be written.
async fn record(disk: &Disk, id: Id, key: &[u8], patience: Patience) -> Sought {
    // What is moved while it is looked up is looked up again; it does not move twice that fast.
    for _ in 0..3 {
        let look = match (disk.look(id), patience) {
            (Look::Unknown, Patience::Now) => return Err(Blocked),
            (Look::Unknown, Patience::Blocking) => disk.find(id).await,
            (look, _) => look,
        };
        let read = match look {
            Look::Nothing | Look::Unknown => return Ok(None),
            Look::Pending(pending) if *pending.key != *key => return Ok(None),
            Look::Pending(pending) => return disk.pending(&pending, patience).await.map_err(|_| Blocked),
            Look::Entry(entry) if patience == Patience::Now => disk.read_now(entry, id, key),
            Look::Entry(entry) => disk.read(entry, id, key).await,
        };
        match read {
            Ok(record) => return Ok(Some(record)),
            Err(Unread::Blocked) => return Err(Blocked),
            Err(Unread::OtherKey) => return Ok(None),
            Err(Unread::Gone) => {}
        }
    }
    Ok(None)
}

pub(crate) fn encoded<V: VaryRule>(vary: &V) -> Vec<u8> {
    let mut out = Vec::new();
    vary.encode(&mut out);
    out
}
