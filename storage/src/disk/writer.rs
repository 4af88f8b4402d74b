//! The one thread that writes to a disk: takes what waits, appends it to the newest segment, and tells the index and sled
//! where it is. It is also the one that makes room.

mod log;
mod reclaim;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use self::log::Log;
use super::core::Core;
use super::durable::DurableError;
use super::entry::{BodyPlace, Entry, EntryKind, Parts};
use super::format::{Header, Kind, checksum, split_variant};
use super::health::because;
use super::id::Id;
use super::pending::{Pending, PendingBody};
#[cfg(test)]
use super::planted::Bug;
use super::queue::{Done, Op, Taken};

/// The writer looks up this often though nothing comes.
const IDLE: Duration = Duration::from_millis(500);

/// Purges that are owed to a disk in trouble. Beyond that all of it is dropped when it comes back.
const OWED_MAX: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Writer {
    core: Arc<Core>,
    log: Log,
    /// What could not be noted while the disk was in trouble.
    owed: Vec<Owed>,
    /// Sled says all that the index said up to the position that is stored with it.
    agreed: bool,
    /// Names of owners that sled has.
    owners_known: usize,
}

#[derive(Debug, Clone, Copy)]
enum Owed {
    Tombstone(Id, u64),
    Clear(u64),
}

/// What was written and is not in the index yet.
#[derive(Debug)]
enum Written {
    Pending(Arc<Pending>, Entry),
    Moved { old: Entry, new: Entry },
    Gone(u64),
}

impl Writer {
    pub(crate) fn new(core: Arc<Core>, disk: [u8; 16], next_seq: u32) -> Self {
        Self {
            log: Log::new(Arc::clone(&core), disk, next_seq),
            core,
            owed: Vec::new(),
            agreed: false,
            owners_known: 0,
        }
    }

    /// Until the queue is stopped and empty.
    pub(crate) fn run(mut self) {
        self.publish_position();
        loop {
            match self.core.queue.take(IDLE) {
                Taken::Ops(ops) => self.perform(ops),
                Taken::Idle => {
                    self.drop_orphans();
                    self.keep_within(0);
                }
                Taken::End => break,
            }
        }
        self.sync();
    }

    fn perform(&mut self, ops: Vec<Op>) {
        let needed: u64 = ops
            .iter()
            .map(|op| match op {
                Op::Put(pending) => log::bytes_of(pending),
                Op::Tombstone { .. } | Op::Clear { .. } => 256,
                _ => 0,
            })
            .sum();
        if self.core.health.is_up() {
            self.keep_within(needed);
        }
        let mut waiting = Vec::new();
        for op in ops {
            self.perform_one(op, &mut waiting);
        }
        self.commit();
        self.drop_orphans();
        if !waiting.is_empty() {
            self.sync();
        }
        let result = if self.core.health.is_up() {
            Ok(())
        } else {
            Err(self.core.health.why())
        };
        for done in waiting {
            // Who waited may have left.
            let _ = done.send(result.clone());
        }
    }

    fn perform_one(&mut self, op: Op, waiting: &mut Vec<Done>) {
        match op {
            Op::Put(pending) => self.put(&pending),
            Op::Tombstone { id, fence, done } => {
                self.note(Owed::Tombstone(id, fence));
                waiting.extend(done);
            }
            Op::Clear { fence, done } => {
                self.clear(fence);
                waiting.extend(done);
            }
            Op::Agree(shorts) => {
                self.commit();
                self.agree(&shorts);
            }
            Op::Agreed => {
                self.commit();
                self.agreed = true;
                self.tell_position();
            }
            Op::Room { bytes, done } => {
                self.commit();
                let fits = self.core.health.is_up() && self.make_room(bytes);
                // Who waited may have left.
                let _ = done.send(fits);
            }
            Op::Shrink => {
                self.commit();
                self.shrink();
            }
            Op::Resume => self.resume(),
            Op::Begin(disk) => self.begin_anew(disk),
        }
    }

    fn put(&mut self, pending: &Arc<Pending>) {
        if !self.core.index.is_pending(pending) {
            self.drop_unowned(pending);
            return;
        }
        if !self.core.health.is_up() {
            self.give_up(pending);
            return;
        }
        let appended = match pending.body {
            PendingBody::Same => self.append_head(pending),
            PendingBody::Memory(_) | PendingBody::Placed(_) => self.append(pending).map(Some),
        };
        match appended {
            // What it was for is gone.
            Ok(None) => self.core.index.withdraw(pending),
            Ok(Some(entry)) => {
                self.log.written.push(Written::Pending(Arc::clone(pending), entry));
                if self.log.is_long() {
                    self.commit();
                }
            }
            Err(fault) => {
                self.core.degrade(because("writing to a segment", &fault));
                self.give_up(pending);
            }
        }
    }

    fn append(&mut self, pending: &Pending) -> io::Result<Entry> {
        #[cfg_attr(not(test), expect(unused_mut, reason = "tests plant a bug here"))]
        let (mut head, body) = self.log.append_pending(pending)?;
        #[cfg(test)]
        if self.core.has_bug(Bug::WrongOffset) {
            head.at += 8;
        }
        Ok(Entry::new(Parts {
            short: pending.id.short(),
            kind: pending.kind,
            head,
            body,
            keep_until_secs: pending.keep_until_secs,
            used_secs: self.core.now_secs(),
            owner: pending.owner,
        }))
    }

    /// Appends a new head to the body that is there; `None` if that is another one by now.
    fn append_head(&mut self, pending: &Pending) -> io::Result<Option<Entry>> {
        #[cfg(test)]
        if self.core.has_bug(Bug::StaleHead) {
            return Ok(None);
        }
        self.commit();
        let Some(entry) = self.core.index.get(pending.id.short()) else {
            return Ok(None);
        };
        let Some((mut header, old)) = self
            .raw(entry.head())?
            .filter(|(header, _)| header.stamp == pending.stamp)
        else {
            return Ok(None);
        };
        let (key, rest) = old.split_at((header.key_len as usize).min(old.len()));
        let before = match header.kind {
            Kind::Variant => split_variant(rest)
                .and_then(|(_, _, at)| rest.get(..at))
                .unwrap_or_default(),
            _ => &[],
        };
        let payload = [key, before, &pending.rest].concat();
        header.rest_len = u32::try_from(payload.len() - key.len()).unwrap_or(u32::MAX);
        header.keep_until_secs = pending.keep_until_secs;
        header.payload_crc = checksum(header.stamp, &payload);
        let head = self.log.append(header, &payload)?;
        Ok(Some(Entry::new(Parts {
            short: entry.short,
            kind: entry.kind(),
            head,
            body: entry.body(),
            keep_until_secs: pending.keep_until_secs,
            used_secs: self.core.now_secs(),
            owner: pending.owner,
        })))
    }

    /// It is not stored, and what it was to replace is out of date.
    fn give_up(&mut self, pending: &Pending) {
        let short = pending.id.short();
        let Some(own) = self
            .core
            .index
            .pending_of(short)
            .filter(|own| std::ptr::eq(&**own, pending))
        else {
            return;
        };
        if self.core.index.give_up(&own) {
            self.core.cells.refused_unavailable.up();
            self.owe(Owed::Tombstone(pending.id, pending.fence));
        }
        self.drop_unowned(pending);
    }

    /// A body file that no record got is of no use.
    fn drop_unowned(&self, pending: &Pending) {
        if let PendingBody::Placed(BodyPlace::File { number, .. }) = pending.body
            && self.core.index.with_file(number).is_none()
        {
            self.remove_file(number);
        }
    }

    /// Removes the body files that lost their records.
    fn drop_orphans(&self) {
        for number in self.core.index.take_orphans() {
            self.remove_file(number);
        }
    }

    /// Notes that something is gone, now or as soon as the disk is well.
    fn note(&mut self, what: Owed) {
        if !self.core.health.is_up() {
            self.owe(what);
            return;
        }
        #[cfg(test)]
        if self.core.has_bug(Bug::LostTombstone) {
            return;
        }
        let (kind, id, fence) = match what {
            Owed::Tombstone(id, fence) => (Kind::Tombstone, id, fence),
            Owed::Clear(fence) => (Kind::Clear, Id([0; 16]), fence),
        };
        let header = Header {
            kind,
            id,
            stamp: 0,
            fence,
            key_len: 0,
            rest_len: 0,
            keep_until_secs: 0,
            body: BodyPlace::None,
            body_len: 0,
            payload_crc: checksum(0, &[]),
        };
        match self.log.append(header, &[]) {
            Ok(_) => {
                self.log.has_note = true;
                self.log.written.push(Written::Gone(id.short()));
            }
            Err(fault) => {
                self.core.degrade(because("writing to a segment", &fault));
                self.owe(what);
            }
        }
    }

    fn owe(&mut self, what: Owed) {
        if self.owed.len() >= OWED_MAX || matches!(what, Owed::Clear(_)) {
            self.owed.clear();
            // More than can be kept in mind: nothing of what is there may be used again.
            self.core.index.clear();
            self.owed
                .push(Owed::Clear(self.core.fence.load(std::sync::atomic::Ordering::Acquire)));
        } else {
            self.owed.push(what);
        }
    }

    /// Everything is gone: what is on disk is removed rather than marked.
    fn clear(&mut self, fence: u64) {
        self.commit();
        self.note(Owed::Clear(fence));
        self.commit();
        self.sync();
        if !self.core.health.is_up() {
            return;
        }
        let newest = self.log.seq();
        for segment in self.core.segments.all() {
            if Some(segment.seq) != newest {
                self.remove_segment(&segment);
            }
        }
        self.drop_orphans();
        self.clear_durable();
    }

    /// Writes what has been appended, then tells the index and sled.
    fn commit(&mut self) {
        let written = std::mem::take(&mut self.log.written);
        match self.log.flush() {
            Ok(()) => {
                let changed = self.settle(written);
                self.publish_position();
                if !changed.is_empty() {
                    self.agree(&changed);
                }
            }
            Err(fault) => {
                self.core.degrade(because("writing to a segment", &fault));
                for one in written {
                    match one {
                        Written::Pending(pending, _) => self.give_up(&pending),
                        // It stays where it was.
                        Written::Moved { .. } => {}
                        Written::Gone(_) => {
                            // Which one it was is not known any more; its successor in the queue may rely on it.
                            self.owe(Owed::Clear(0));
                        }
                    }
                }
            }
        }
    }

    fn settle(&self, written: Vec<Written>) -> Vec<u64> {
        let mut changed = Vec::with_capacity(written.len());
        for one in written {
            let short = match one {
                Written::Pending(pending, entry) => {
                    if !self.core.index.settle(&pending, entry) {
                        // It was purged or replaced while it was written.
                        self.drop_unowned(&pending);
                    } else if entry.kind() != EntryKind::Directory {
                        self.core.cells.written.up();
                    }
                    entry.short
                }
                Written::Moved { old, new } => {
                    if self.core.index.exchange(old, new) {
                        self.core.cells.reinserted.up();
                    }
                    old.short
                }
                Written::Gone(short) => short,
            };
            changed.push(short);
        }
        changed
    }

    /// Up to where everything is in the index.
    fn publish_position(&self) {
        let fence = self.core.fence.load(std::sync::atomic::Ordering::Acquire);
        *self.core.position.lock() = self.log.position(fence);
    }

    /// Makes sled say what the index says of these.
    fn agree(&mut self, shorts: &[u64]) {
        let durable = self.core.durable.read().clone();
        let Some(durable) = durable else { return };
        let names = self.core.owners.names();
        let changes: Vec<_> = shorts
            .iter()
            .map(|&short| (short, self.core.index.get(short)))
            .collect();
        let position = self.agreed.then(|| *self.core.position.lock());
        let told = if names.len() == self.owners_known {
            Ok(())
        } else {
            durable.set_owners(&names)
        };
        match told.and_then(|()| durable.apply(&changes, position.as_ref())) {
            Ok(()) => self.owners_known = names.len(),
            Err(error) => self.lose_durable(&error),
        }
    }

    /// One fault makes sled useless for good: the keeper opens another one. Nothing else needs it meanwhile.
    fn lose_durable(&mut self, error: &DurableError) {
        tracing::warn!(%error, disk = %self.core.config.path.display(), "the index is lost, and made anew");
        self.core.cells.errors.up();
        self.agreed = false;
        self.owners_known = 0;
        *self.core.durable.write() = None;
    }

    fn tell_position(&mut self) {
        self.agree(&[]);
    }

    fn clear_durable(&mut self) {
        let durable = self.core.durable.read().clone();
        if let Some(Err(error)) = durable.map(|durable| durable.clear()) {
            self.lose_durable(&error);
        }
        self.owners_known = 0;
        self.tell_position();
    }

    fn sync(&mut self) {
        if let Err(fault) = self.log.sync() {
            self.core.degrade(because("writing to the disk", &fault));
        }
    }

    /// Begins anew after trouble.
    fn resume(&mut self) {
        self.commit();
        self.log.abandon();
        self.core.health.recover();
        for what in std::mem::take(&mut self.owed) {
            self.note(what);
        }
        self.commit();
        self.sync();
        if self.core.health.is_up() {
            tracing::info!(disk = %self.core.config.path.display(), "the disk works again");
        }
    }

    /// Nothing of what was there is left.
    fn begin_anew(&mut self, disk: [u8; 16]) {
        self.commit();
        self.log.begin_anew(disk);
        self.owed.clear();
        self.core.index.clear();
        let _ = self.core.index.take_orphans();
        for segment in self.core.segments.all() {
            self.core.segments.remove(segment.seq);
        }
        self.core.files.forget_all();
        self.agreed = false;
        self.owners_known = 0;
        self.resume();
    }

    fn keep_within(&mut self, needed: u64) {
        if self.core.health.is_up() && !self.make_room(needed) {
            self.core.degrade("there is no room left on the disk".to_owned());
        }
    }
}
