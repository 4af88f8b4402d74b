//! The disk tier: one `Disk` for each directory, several of them as `disks::Disks`. Heads and rules lie on it as bytes;
//! what they mean is known above.
//!
//! The segments are a log and the truth. The index in memory, its snapshot and sled are views of the log, each as of some
//! position; after a start a view is brought up to date by reading the log from there on. One thread writes, one keeps house,
//! a small pool reads what the page cache does not have.

mod body;
pub(crate) mod body_file;
mod buffers;
mod catch_up;

mod config;
mod core;
mod counters;
pub(crate) mod disks;
mod durable;
pub(crate) mod entry;
mod files;
pub(crate) mod format;
mod health;
pub(crate) mod id;
pub(crate) mod index;
mod keeper;
mod mark;
mod open;
pub(crate) mod pending;
#[cfg(test)]
pub(crate) mod planted;
pub(crate) mod pool;
pub(crate) mod queue;
pub(crate) mod read;
mod scan;
mod segments;
mod snapshot;
mod usage;
pub(crate) mod volume;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

pub(crate) use body::Patience;
pub use body::{BodyError, BodyReader, DiskBody};
pub use config::{DiskConfig, OpenError};
pub(crate) use core::{Core, Fallback};
pub use counters::DiskCounters;
pub(crate) use entry::OWNERS_MAX;
pub use usage::{DiskState, DiskUsage};

use self::entry::{Entry, EntryKind};
use self::id::Id;
use self::index::{Look, Removed};
use self::keeper::Stop;
pub(crate) use self::keeper::Upstairs;
use self::mark::Lock;
use self::pending::{Pending, PendingBody};
use self::queue::Op;
use self::read::{Record, Unread};
use crate::NotKept;
use crate::object::Identity;

/// One disk, with its threads.
#[derive(Debug)]
pub(crate) struct Disk {
    core: Arc<Core>,
    stop: Arc<Stop>,
    writer: Mutex<Option<JoinHandle<()>>>,
    keeper: Mutex<Option<JoinHandle<Option<Lock>>>>,
}

/// Resolves once something is on disk, or can't be brought there.
pub(crate) type Durably = oneshot::Receiver<Result<(), String>>;

impl Disk {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// What is known of an id without waiting.
    pub(crate) fn look(&self, id: Id) -> Look {
        self.core.index.look(id.short())
    }

    /// The same, waiting where the index is not complete yet.
    pub(crate) async fn find(&self, id: Id) -> Look {
        let short = id.short();
        let mut look = self.core.index.look(short);
        if !matches!(look, Look::Unknown) {
            return look;
        }
        let epoch = self.core.index.epoch();
        let found: Option<Entry> = match self.core.open_fallback().await {
            Fallback::Snapshot(snapshot) => {
                let found = self.core.pool.run(move || snapshot.find(short).ok().flatten());
                found.await.flatten()
            }
            Fallback::Durable(durable) => {
                let found = self.core.pool.run(move || durable.find(short).ok().flatten());
                found.await.flatten()
            }
            Fallback::Wait | Fallback::Nothing => None,
        };
        if let Some(entry) = found {
            keeper::adopt(&self.core, entry, epoch);
        }
        look = self.core.index.look(short);
        if matches!(look, Look::Unknown) {
            Look::Nothing
        } else {
            look
        }
    }

    /// Reads a record, if the page cache has it.
    pub(crate) fn read_now(&self, entry: Entry, id: Id, key: &[u8]) -> Result<Record, Unread> {
        read::read(&self.core, entry, id, key, Patience::Now)
    }

    /// Reads a record.
    pub(crate) async fn read(&self, entry: Entry, id: Id, key: &[u8]) -> Result<Record, Unread> {
        match self.read_now(entry, id, key) {
            Err(Unread::Blocked) => {}
            done => return done,
        }
        let (core, key) = (Arc::clone(&self.core), key.to_vec());
        let read = self
            .core
            .pool
            .run(move || read::read(&core, entry, id, &key, Patience::Blocking));
        read.await.unwrap_or(Err(Unread::Gone))
    }

    /// What waits to be written, as if it were read.
    pub(crate) async fn pending(&self, pending: &Arc<Pending>, patience: Patience) -> Result<Option<Record>, Unread> {
        match read::of_pending(&self.core, pending, Patience::Now) {
            Err(Unread::Blocked) if patience == Patience::Blocking => {}
            done => return done,
        }
        let (core, pending) = (Arc::clone(&self.core), Arc::clone(pending));
        let read = self
            .core
            .pool
            .run(move || read::of_pending(&core, &pending, Patience::Blocking));
        read.await.unwrap_or(Ok(None))
    }

    /// Whether this very answer is what is stored.
    pub(crate) fn has(&self, identity: Identity) -> bool {
        match self.look(identity.id) {
            Look::Pending(pending) => pending.stamp == identity.stamp,
            Look::Entry(entry) => read::stamp_of(&self.core, entry) == Some(identity.stamp),
            Look::Nothing | Look::Unknown => false,
        }
    }

    /// Puts a new head on a body that is stored.
    pub(crate) fn put_head(
        &self,
        identity: Identity,
        key: &[u8],
        head: Bytes,
        keep_until_secs: u64,
    ) -> Result<(), NotKept> {
        let Identity { id, stamp } = identity;
        if !self.has(identity) {
            return Err(NotKept::Replaced);
        }
        let fence = self.core.fence.load(Ordering::Acquire);
        let made = match self.look(id) {
            Look::Pending(old) => {
                let before = old.rest.get(..old.head_at).unwrap_or_default();
                Pending {
                    rest: Bytes::from([before, &head].concat()),
                    body: old.body.clone(),
                    key: Arc::clone(&old.key),
                    keep_until_secs,
                    ..*old
                }
            }
            _ => Pending {
                id,
                // The record that is there knows better.
                kind: EntryKind::Object,
                key: key.into(),
                rest: head,
                head_at: 0,
                body: PendingBody::Same,
                body_len: 0,
                stamp,
                fence,
                keep_until_secs,
                owner: self.core.owner(key),
            },
        };
        self.put(&[Arc::new(made)])
    }

    /// Removes one record; a restart may bring it back.
    pub(crate) fn drop_short(&self, short: u64) {
        self.core.index.remove(short);
        self.core.queue.push(Op::Agree(vec![short]));
    }

    /// It was asked for. Tells whether it deserves a place in memory.
    pub(crate) fn touch(&self, entry: Entry) -> bool {
        self.core.index.touch(entry, self.core.now_secs())
    }

    /// Whether it takes anything now.
    pub(crate) fn admits(&self) -> Result<(), NotKept> {
        if self.core.health.is_up() {
            return Ok(());
        }
        self.core.cells.refused_unavailable.up();
        Err(NotKept::DiskUnavailable)
    }

    /// Stores records that belong together, or none of them. They are found from here on.
    pub(crate) fn put(&self, together: &[Arc<Pending>]) -> Result<(), NotKept> {
        self.admits()?;
        for pending in together {
            self.core.index.put_pending(pending);
        }
        let queued = self.core.queue.put(together.iter().map(Arc::clone));
        if queued.is_err() {
            self.core.cells.refused_busy.up();
            for pending in together {
                self.core.index.give_up(pending);
                self.forget_later(pending.id);
            }
            return Err(NotKept::DiskBusy);
        }
        Ok(())
    }

    /// Removes what is under an id, with its variants; effective at once. A restart may bring it back until it is noted.
    pub(crate) fn forget(&self, id: Id) -> Removed {
        let removed = self.core.index.remove(id.short());
        self.forget_later(id);
        removed
    }

    fn forget_later(&self, id: Id) {
        let fence = self.core.fence.load(Ordering::Acquire);
        self.core.queue.push(Op::Tombstone { id, fence, done: None });
    }

    /// Removes what is under a key's id with its variants, for good once the future resolves.
    pub(crate) fn purge(&self, id: Id, fence: u64) -> (Removed, Durably) {
        let removed = self.core.index.remove(id.short());
        self.core.cells.purged.add(removed.objects);
        self.core.fence.fetch_max(fence, Ordering::AcqRel);
        let (tell, told) = oneshot::channel();
        let done = Some(tell);
        self.core.queue.push(Op::Tombstone { id, fence, done });
        (removed, told)
    }

    /// Removes everything.
    pub(crate) fn clear(&self, fence: u64) -> (Removed, Durably) {
        self.core.fence.fetch_max(fence, Ordering::AcqRel);
        let removed = self.core.index.clear();
        self.core.set_fallback(Fallback::Nothing);
        self.core.cells.purged.add(removed.objects);
        let (tell, told) = oneshot::channel();
        let done = Some(tell);
        self.core.queue.push(Op::Clear { fence, done });
        (removed, told)
    }

    /// Whether it takes a body of this size in a file of its own.
    pub(crate) fn takes_file(&self, bytes: u64) -> bool {
        self.core.health.is_up() && bytes <= body_file::largest(self.core.config.max_size)
    }

    /// Largest body that becomes a record of a segment.
    pub(crate) fn record_max(&self) -> u64 {
        (4 << 20).min(self.core.segment_bytes / 4)
    }

    /// Writes out what waits and the index, and ends the threads.
    pub(crate) fn stop(&self) {
        self.stop.set();
        let keeper = self.keeper.lock().take().map(JoinHandle::join);
        self.core.queue.stop();
        let writer = self.writer.lock().take().map(JoinHandle::join);
        if matches!(writer, Some(Err(_))) || matches!(keeper, Some(Err(_))) {
            tracing::error!(disk = %self.core.config.path.display(), "a thread of the disk had panicked");
            return;
        }
        let is_whole = writer.is_some() && self.core.health.is_up() && !self.core.index.is_loading();
        if let Some(Err(fault)) = is_whole.then(|| keeper::save(&self.core)) {
            tracing::warn!(%fault, disk = %self.core.config.path.display(), "the snapshot of the index was not written");
        }
        if let Some(Err(error)) = self.core.durable.write().take().map(|durable| durable.flush()) {
            tracing::warn!(%error, disk = %self.core.config.path.display(), "the index was not flushed");
        }
        // The lock goes last, with the keeper's end.
        drop(keeper);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.stop();
    }
}
