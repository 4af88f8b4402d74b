//! The index after a start. From the snapshot, which is there at once; else from sled; else from the segments themselves.
//! Requests are answered meanwhile. Afterwards sled is made to say the same.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Keeper;
use crate::disk::catch_up::catch_up;
use crate::disk::core::{Core, Fallback};
use crate::disk::durable::{self, Durable, Position};
use crate::disk::entry::{BodyPlace, Entry, EntryKind};
use crate::disk::format::split_variant;
use crate::disk::id::Id;
use crate::disk::queue::Op;
use crate::disk::read::{can_have, read_any};
use crate::disk::snapshot::Snapshot;

/// Bytes of segments that lookups wait for when the index is made anew: less than a second.
const WAITED_FOR: u64 = 512 << 20;

/// Records that sled is told of at once.
const STEP: usize = 4096;

impl Keeper {
    /// Brings the index into memory, and sled to say the same. Ended by a stop, it leaves both as incomplete as they are.
    pub(super) fn load(&mut self) {
        let core = Arc::clone(&self.core);
        let agrees = if self.start.has_past {
            self.load_past()
        } else {
            core.set_fallback(Fallback::Nothing);
            core.index.end_load();
            self.open_durable(true);
            false
        };
        if self.stop.is_set() {
            return;
        }
        self.drop_lost_files();
        let told = if agrees {
            let changed = std::mem::take(&mut self.start.changed);
            self.tell(changed);
            true
        } else {
            self.compare()
        };
        if told {
            core.queue.push(Op::Agreed);
        }
    }

    /// Tells whether sled is as complete as the index.
    fn load_past(&mut self) -> bool {
        let snapshot = self.start.snapshot.take();
        if snapshot.is_some_and(|snapshot| self.load_snapshot(&snapshot)) {
            self.finish();
            self.open_durable(false);
            return false;
        }
        let agrees = self.load_durable();
        if !agrees && !self.stop.is_set() {
            self.scan_segments();
        }
        self.finish();
        agrees
    }

    fn finish(&self) {
        self.learn_families();
        if self.stop.is_set() {
            return;
        }
        self.core.set_fallback(Fallback::Nothing);
        self.core.index.end_load();
        tracing::debug!(objects = self.core.index.objects(), "the index is complete");
    }

    fn load_snapshot(&self, snapshot: &Arc<Snapshot>) -> bool {
        if !matches!(self.core.fallback(), Fallback::Snapshot(_)) {
            // The log's tail says that all of it is gone.
            return true;
        }
        if !snapshot.is_whole().unwrap_or(false) {
            tracing::warn!("the snapshot of the index is damaged: the index is loaded from sled");
            self.core.set_fallback(Fallback::Wait);
            return false;
        }
        let epoch = self.core.index.epoch();
        self.core.index.reserve(snapshot.count);
        let mut done = 0;
        let read = snapshot.each(|entry| {
            adopt(&self.core, entry, epoch);
            done += 1;
            self.progress(done, snapshot.count);
        });
        read.is_ok()
    }

    fn progress(&self, done: u64, all: u64) {
        let percent = done * 100 / all.max(1);
        self.core.loaded_percent.store(percent.min(99), Ordering::Relaxed);
    }

    /// Opens sled. One that does not open is set aside and begun anew. `fresh`: what it holds is of no use.
    pub(super) fn open_durable(&self, fresh: bool) -> Option<Arc<Durable>> {
        let root = self.core.volume.root().to_owned();
        if fresh {
            durable::remove(&root);
        }
        let opened = durable::open_within(&root).or_else(|why| {
            tracing::warn!(%why, disk = %root.display(), "the index does not open: it is made anew");
            durable::remove(&root);
            durable::open_within(&root)
        });
        match opened {
            Ok(durable) => {
                let durable = Arc::new(durable);
                *self.core.durable.write() = Some(Arc::clone(&durable));
                Some(durable)
            }
            Err(why) => {
                tracing::warn!(%why, disk = %root.display(), "the index does not open: the disk works without it");
                None
            }
        }
    }

    /// `false` if sled is of no use.
    fn load_durable(&mut self) -> bool {
        let Some(durable) = self.open_durable(false) else {
            return false;
        };
        let Ok(Some(position)) = durable.position() else {
            return false;
        };
        if position.disk != self.start.disk {
            return false;
        }
        self.core.fence.fetch_max(position.fence, Ordering::AcqRel);
        let found = catch_up(&self.core, &position, self.start.next_seq, |_| {});
        self.start.changed = found.changed;
        if found.cleared {
            // What it has is out of date as a whole.
            return false;
        }
        self.core.set_fallback(Fallback::Durable(Arc::clone(&durable)));
        self.stream(&durable)
    }

    fn stream(&self, durable: &Durable) -> bool {
        let names = durable.owners().unwrap_or_default();
        let owners: Vec<u16> = names.iter().map(|name| self.core.owners.number(name)).collect();
        let epoch = self.core.index.epoch();
        for entry in durable.entries() {
            let Ok(entry) = entry else { return false };
            let owner = owners.get(usize::from(entry.owner())).copied().unwrap_or(u16::MAX);
            adopt(&self.core, entry.owned_by(owner), epoch);
            // They come in the order of their identities, which are spread evenly.
            self.progress(entry.short >> 32, u64::from(u32::MAX));
            if self.stop.is_set() {
                return false;
            }
        }
        true
    }

    fn scan_segments(&self) {
        let core = &self.core;
        let all = core.segments.bytes();
        tracing::warn!(disk = %core.config.path.display(), bytes = all, "the index is made anew from the segments");
        // What is read in no time is worth waiting for; else requests go to the origin meanwhile.
        if all > WAITED_FOR {
            core.set_fallback(Fallback::Nothing);
        }
        let mut done = 0;
        let start = Position::default();
        catch_up(core, &start, self.start.next_seq, |bytes| {
            done += bytes;
            self.progress(done, all);
        });
    }

    /// Removes body files that no record has.
    fn drop_lost_files(&self) {
        for number in self.core.files.found() {
            if self.core.index.with_file(number).is_none() {
                // One that stays is looked at again at the next start.
                let _ = self.core.files.remove(number);
            }
        }
    }

    /// Finds out which variants belong together: the index alone does not say. Variants whose directory is gone go as well.
    fn learn_families(&self) {
        let index = &self.core.index;
        let shards = (0..index.shards()).flat_map(|shard| index.copy_shard(shard));
        let (mut directories, mut variants): (Vec<_>, Vec<_>) = shards
            .filter(|entry| entry.kind() != EntryKind::Object)
            .partition(|entry| entry.kind() == EntryKind::Directory);
        directories.retain(|entry| index.family(entry.short).is_none());
        for entry in directories {
            if let Some((_, record)) = read_any(&self.core, entry) {
                index.set_family(entry.short, record.stamp, record.rest.as_ref().into());
            }
        }
        // In the order in which they were written.
        variants.sort_unstable_by_key(|entry| (entry.head().seq, entry.head().at));
        let mut lost = Vec::new();
        for entry in variants {
            if self.stop.is_set() {
                return;
            }
            let Some((key, record)) = read_any(&self.core, entry) else {
                continue;
            };
            let directory = Id::of_key(&key).short();
            let Some((stamp, _, _)) = split_variant(&record.rest) else {
                continue;
            };
            if index.family(directory).is_some_and(|family| family.stamp == stamp) {
                index.list_variant(directory, stamp, entry.short, usize::MAX);
            } else if index.remove_if_same(entry) {
                lost.push(entry.short);
            }
        }
        self.tell(lost);
    }

    fn tell(&self, shorts: Vec<u64>) {
        for some in shorts.chunks(STEP) {
            self.core.queue.push(Op::Agree(some.to_vec()));
        }
    }

    /// Finds out where sled says something else than the index, and has it changed. `false` if it was stopped before the end.
    pub(super) fn compare(&self) -> bool {
        let Some(durable) = self.core.durable.read().clone() else {
            return false;
        };
        let mut differing = Vec::new();
        let mut same = 0;
        for entry in durable.entries() {
            let Ok(entry) = entry else { break };
            if self.core.index.get(entry.short).is_some_and(|own| own.is_same(entry)) {
                same += 1;
            } else {
                differing.push(entry.short);
            }
            if self.stop.is_set() {
                return false;
            }
        }
        self.tell(differing);
        same >= self.core.index.records() || self.tell_missing(&durable)
    }

    fn tell_missing(&self, durable: &Durable) -> bool {
        let lacks = |entry: &Entry| !matches!(durable.find(entry.short), Ok(Some(found)) if found.is_same(*entry));
        for shard in 0..self.core.index.shards() {
            let entries = self.core.index.copy_shard(shard).into_iter();
            self.tell(entries.filter(lacks).map(|entry| entry.short).collect());
            if self.stop.is_set() {
                return false;
            }
        }
        true
    }
}

/// Takes in what an older index says, if what it points to can be there.
pub(crate) fn adopt(core: &Core, entry: Entry, epoch: u64) -> bool {
    can_have(core, BodyPlace::Segment(entry.head())) && can_have(core, entry.body()) && core.index.adopt(entry, epoch)
}
