//! The one thread of a disk for everything that is not a request's own: loads the index at the start, looks after the
//! directory, drops what is of no use any more, writes the snapshot, and brings the disk back after trouble.

mod load;
mod recover;
mod sweep;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

pub(crate) use self::load::adopt;
use self::sweep::Sweep;
use super::core::Core;
use super::health::because;
use super::mark::Lock;
use super::queue::Op;
use super::snapshot::{self, Snapshot};

/// How often it looks around.
const TICK: Duration = Duration::from_millis(250);

/// What was written is made durable this often: a crash of the machine may lose the last second.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The snapshot is written this often, if anything has changed.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(60);

/// Tells the keeper to end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    is_set: Mutex<bool>,
    wake: Condvar,
}

impl Stop {
    pub(crate) fn set(&self) {
        *self.is_set.lock() = true;
        self.wake.notify_all();
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.is_set.lock()
    }

    /// Waits for it; tells whether it is set.
    fn wait(&self, patience: Duration) -> bool {
        let mut is_set = self.is_set.lock();
        if !*is_set {
            self.wake.wait_for(&mut is_set, patience);
        }
        *is_set
    }
}

/// What a disk had when it was opened.
#[derive(Debug, Default)]
pub(crate) struct Start {
    pub(crate) disk: [u8; 16],
    /// Segments from this number on were begun by this process.
    pub(crate) next_seq: u32,
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    /// There may be something to load.
    pub(crate) has_past: bool,
    /// What the tail of the log said of these is not in sled yet.
    pub(crate) changed: Vec<u64>,
}

#[derive(Debug)]
pub(crate) struct Keeper {
    core: Arc<Core>,
    stop: Arc<Stop>,
    start: Start,
    lock: Option<Lock>,
    upstairs: Upstairs,
    residents_at: Instant,
    reopened_at: Instant,
    sweep: Sweep,
    synced: Instant,
    /// The segment that was the newest when it synced last.
    synced_from: u32,
    snapshot_at: Instant,
    /// What had been written when the last snapshot was.
    snapshot_of: u64,
}

/// The tier above, as far as a disk has to do with it.
pub(crate) struct Upstairs {
    /// Called once the index is complete.
    pub(crate) loaded: Box<dyn FnOnce() + Send>,
    /// Places in the index of what is in memory: it is asked for there, and never down here.
    pub(crate) residents: Box<dyn Fn() -> Vec<u64> + Send>,
}

impl std::fmt::Debug for Upstairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Upstairs")
    }
}

impl Keeper {
    pub(crate) fn new(core: Arc<Core>, stop: Arc<Stop>, start: Start, lock: Option<Lock>, upstairs: Upstairs) -> Self {
        let now = Instant::now();
        Self {
            synced_from: start.next_seq,
            core,
            stop,
            start,
            lock,
            upstairs,
            residents_at: now,
            reopened_at: now,
            sweep: Sweep::default(),
            synced: now,
            snapshot_at: now,
            snapshot_of: 0,
        }
    }

    pub(crate) fn run(mut self) -> Option<Lock> {
        self.measure();
        if self.lock.is_some() {
            self.load();
        }
        std::mem::replace(&mut self.upstairs.loaded, Box::new(|| {}))();
        while !self.stop.wait(TICK) {
            self.tick();
        }
        self.touch_residents();
        self.lock
    }

    /// What is in memory counts as asked for.
    fn touch_residents(&mut self) {
        self.residents_at = Instant::now();
        let now = self.core.now_secs();
        for short in (self.upstairs.residents)() {
            self.core.index.touch_short(short, now);
        }
    }

    fn tick(&mut self) {
        if self.synced.elapsed() >= SYNC_EVERY {
            self.synced = Instant::now();
            self.measure();
            self.look_after();
            self.look_after_index();
            if self.core.health.is_up() {
                self.sync();
            }
        } else if !self.core.health.is_up() {
            // It is missed: each look is worth it.
            self.look_after();
        }
        if self.residents_at.elapsed() >= self.residents_every() {
            self.touch_residents();
        }
        if self.core.health.is_up() {
            self.sweep.step(&self.core);
            if self.snapshot_at.elapsed() >= SNAPSHOT_EVERY {
                self.write_snapshot();
            }
        }
    }

    /// Often enough that nothing in memory is ever taken for inactive.
    fn residents_every(&self) -> Duration {
        let inactive = self.core.config.inactive.unwrap_or(SNAPSHOT_EVERY);
        (inactive / 4).clamp(TICK, SNAPSHOT_EVERY / 2)
    }

    /// Makes what was written durable, without the writer having to wait for it.
    fn sync(&mut self) {
        let newest = self.core.segments.newest().unwrap_or(0);
        for segment in self.core.segments.all() {
            if segment.seq < self.synced_from {
                continue;
            }
            let synced = self.core.segments.file(&segment).and_then(|file| file.sync());
            match synced {
                Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => {
                    self.core.degrade(because("writing to the disk", &fault));
                    return;
                }
                // One that is gone was reclaimed meanwhile.
                _ => {}
            }
        }
        self.synced_from = newest;
    }

    /// Samples what is not counted as it changes.
    fn measure(&self) {
        let core = &self.core;
        let sled = core.durable.read().clone();
        let sled = sled.map_or(0, |durable| durable.size());
        let snapshot = core
            .volume
            .open(snapshot::NAME)
            .and_then(|file| file.len())
            .unwrap_or(0);
        core.index_bytes.store(sled + snapshot, Ordering::Relaxed);
        if let Ok(free) = core.volume.free() {
            core.note_free(free);
        }
        if core.used() > core.limit() && core.health.is_up() {
            // Others need it, whether anything is written here or not.
            let (done, _) = oneshot::channel();
            core.queue.push(Op::Room { bytes: 0, done });
        }
    }

    fn write_snapshot(&mut self) {
        self.snapshot_at = Instant::now();
        let changes = self.core.changes();
        if changes == self.snapshot_of || self.core.index.is_loading() {
            return;
        }
        match save(&self.core) {
            Ok(()) => self.snapshot_of = changes,
            Err(fault) => self.core.degrade(because("writing the snapshot of the index", &fault)),
        }
    }
}

/// Writes a snapshot of the index as it is now.
pub(crate) fn save(core: &Core) -> std::io::Result<()> {
    // Read before the entries are: what changes meanwhile is replayed from there.
    let position = *core.position.lock();
    snapshot::write(core, &position).map(drop)
}
