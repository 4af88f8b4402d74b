//! What the parts of one disk share: its files, its index, its queue, its state.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::config::DiskConfig;
use super::counters::Cells;
use super::durable::{Durable, Position};
use super::entry::Entry;
use super::files::Files;
use super::health::{Health, because};
use super::index::Index;
use super::pool::Pool;
use super::queue::{Op, Queue};
use super::segments::{Segments, segment_bytes};
use super::snapshot::Snapshot;
use super::usage::DiskUsage;
use super::volume::Volume;
use crate::options::{Clock, OwnerOf};
use crate::owners::Owners;

/// What lies under a disk's path besides segments, body files and the index: marker, lock, directories.
const FIXED_BYTES: u64 = 64 << 10;

/// Left free below the limit: the size of sled is sampled, not known.
const SLACK: u64 = 1 << 20;

/// Where to look for what is not in the index yet.
#[derive(Debug, Clone)]
pub(crate) enum Fallback {
    /// It is being opened.
    Wait,
    Snapshot(Arc<Snapshot>),
    Durable(Arc<Durable>),
    /// There is nothing more.
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: DiskConfig,
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) clock: Clock,
    pub(crate) owner_of: OwnerOf,
    pub(crate) owners: Arc<Owners>,
    pub(crate) segment_bytes: u64,
    pub(crate) segments: Segments,
    pub(crate) files: Files,
    pub(crate) index: Index,
    pub(crate) queue: Queue,
    pub(crate) health: Health,
    pub(crate) cells: Cells,
    pub(crate) pool: Arc<Pool>,
    pub(crate) durable: RwLock<Option<Arc<Durable>>>,
    fallback: RwLock<Fallback>,
    opened: Notify,
    /// Percent of the index that is loaded.
    pub(crate) loaded_percent: AtomicU64,
    /// Bytes of sled and the snapshot, sampled.
    pub(crate) index_bytes: AtomicU64,
    /// Bytes that may be allocated so that the file system keeps `min_free`, as of the last look at it.
    may_use: AtomicU64,
    /// Up to where the log is in the index.
    pub(crate) position: Mutex<Position>,
    stamp: AtomicU64,
    /// The highest fence that is known.
    pub(crate) fence: AtomicU64,
}

/// What a disk has in common with the others.
#[derive(Debug, Clone)]
pub(crate) struct Common {
    pub(crate) clock: Clock,
    pub(crate) owner_of: OwnerOf,
    pub(crate) owners: Arc<Owners>,
    pub(crate) pool: Arc<Pool>,
}

impl Core {
    pub(crate) fn new(config: DiskConfig, volume: Arc<dyn Volume>, common: Common) -> Self {
        let Common {
            clock,
            owner_of,
            owners,
            pool,
        } = common;
        Self {
            segment_bytes: segment_bytes(config.max_size),
            segments: Segments::new(Arc::clone(&volume)),
            files: Files::new(Arc::clone(&volume)),
            index: Index::new(Arc::clone(&owners)),
            queue: Queue::default(),
            health: Health::default(),
            cells: Cells::default(),
            durable: RwLock::new(None),
            fallback: RwLock::new(Fallback::Wait),
            opened: Notify::new(),
            loaded_percent: AtomicU64::new(0),
            index_bytes: AtomicU64::new(0),
            may_use: AtomicU64::new(u64::MAX),
            position: Mutex::default(),
            // A process never uses the stamps of another one.
            stamp: AtomicU64::new(getrandom::u64().unwrap_or_else(|_| clock() << 20)),
            fence: AtomicU64::new(0),
            config,
            volume,
            clock,
            owner_of,
            owners,
            pool,
        }
    }

    /// Whether a test has put this bug in.
    #[cfg(test)]
    pub(crate) fn has_bug(&self, bug: super::planted::Bug) -> bool {
        super::planted::is_planted(&self.config.path, bug)
    }

    pub(crate) fn now_secs(&self) -> u64 {
        (self.clock)() / 1000
    }

    pub(crate) fn next_stamp(&self) -> u64 {
        self.stamp.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn owner(&self, key: &[u8]) -> u16 {
        self.owners.number((self.owner_of)(key))
    }

    /// Bytes that are allocated.
    pub(crate) fn used(&self) -> u64 {
        self.used_with(self.index_bytes.load(Ordering::Relaxed))
    }

    fn used_with(&self, index_bytes: u64) -> u64 {
        self.segments.bytes() + self.files.bytes() + index_bytes + FIXED_BYTES
    }

    /// Bytes that may be allocated now.
    pub(crate) fn limit(&self) -> u64 {
        self.config.max_size.min(self.may_use.load(Ordering::Relaxed))
    }

    /// The file system has so many bytes free. What is freed or taken here until the next look does not move the limit.
    pub(crate) fn note_free(&self, free: u64) {
        let may_use = self.used().saturating_add(free).saturating_sub(self.config.min_free);
        self.may_use.store(may_use, Ordering::Relaxed);
    }

    /// Grows whenever the index is not what it was.
    pub(crate) fn changes(&self) -> u64 {
        let cells = &self.cells;
        let counted = [
            &cells.written_bytes,
            &cells.hits,
            &cells.evicted,
            &cells.expired,
            &cells.inactive,
            &cells.purged,
        ];
        counted.into_iter().map(super::counters::Cell::get).sum()
    }

    /// Bytes up to which nothing has to go for more. What is written again on the way must fit above.
    pub(crate) fn comfortable(&self) -> u64 {
        let reserve = self.segment_bytes / 2 + SLACK.min(self.config.max_size / 32);
        self.limit().saturating_sub(reserve)
    }

    pub(crate) fn fallback(&self) -> Fallback {
        self.fallback.read().clone()
    }

    pub(crate) fn set_fallback(&self, fallback: Fallback) {
        *self.fallback.write() = fallback;
        self.opened.notify_waiters();
    }

    /// Where to look for what is not in the index; waits while that is being opened.
    pub(crate) async fn open_fallback(&self) -> Fallback {
        loop {
            let opened = self.opened.notified();
            match self.fallback() {
                Fallback::Wait => opened.await,
                other => return other,
            }
        }
    }

    /// Nothing is written until the disk has recovered.
    pub(crate) fn degrade(&self, why: String) {
        self.cells.errors.up();
        if self.health.degrade(why.clone()) {
            tracing::warn!(disk = %self.config.path.display(), why, "the disk is degraded: requests go on without it");
        }
    }

    pub(crate) fn read_failed(&self, doing: &str, fault: &io::Error) {
        self.degrade(because(doing, fault));
    }

    /// It can't be what was written.
    pub(crate) fn drop_damaged(&self, entry: Entry) {
        if self.index.remove_if_same(entry) {
            self.cells.corrupt.up();
            self.queue.push(Op::Agree(vec![entry.short]));
        }
    }

    /// It points to what is not there any more.
    pub(crate) fn drop_lost(&self, entry: Entry) {
        if self.index.remove_if_same(entry) {
            self.queue.push(Op::Agree(vec![entry.short]));
        }
    }

    pub(crate) fn usage(&self) -> DiskUsage {
        let warming = self.index.is_loading().then(|| {
            let percent = self.loaded_percent.load(Ordering::Relaxed).min(99);
            u8::try_from(percent).unwrap_or(99)
        });
        let index_bytes = self.index_bytes.load(Ordering::Relaxed);
        DiskUsage {
            path: self.config.path.clone(),
            state: self.health.state(),
            used: self.used_with(index_bytes),
            max: self.config.max_size,
            index_bytes,
            live_bytes: self.index.live_bytes(),
            objects: self.index.objects(),
            queue_bytes: self.queue.bytes(),
            warming,
            counters: self.cells.read(),
        }
    }
}
