//! Trouble of the disk: noticing what no write would, and coming back.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Keeper;
use crate::disk::core::Fallback;
use crate::disk::durable;
use crate::disk::health::because;
use crate::disk::mark::{self, Mark};
use crate::disk::queue::Op;

/// Written and read back before a disk is used again.
const PROBE: &str = "segments/probe.tmp";
const PROBE_BYTES: usize = 4096;

/// Between two tries to have sled again.
const REOPEN_EVERY: Duration = Duration::from_secs(10);

impl Keeper {
    /// Looks whether the directory is still ours, or whether the disk is well again.
    pub(super) fn look_after(&mut self) {
        if self.core.health.is_up() {
            match mark::read(self.core.volume.root()) {
                Ok(Mark::Ours(disk)) if disk == self.start.disk => {}
                Ok(_) => self
                    .core
                    .degrade("the cache directory was removed or replaced".to_owned()),
                Err(fault) => self.core.degrade(because("reading the cache directory", &fault)),
            }
            return;
        }
        if let Err(fault) = self.come_back() {
            self.core
                .health
                .degrade(because("using the cache directory again", &fault));
        }
    }

    fn come_back(&mut self) -> io::Result<()> {
        let root = self.core.volume.root().to_owned();
        match mark::read(&root)? {
            Mark::Ours(disk) if disk == self.start.disk && self.lock.is_some() => {
                match self.probe() {
                    Err(fault) if fault.kind() == io::ErrorKind::StorageFull => {
                        self.core.queue.push(Op::Shrink);
                        return Err(fault);
                    }
                    probed => probed?,
                }
                self.core.queue.push(Op::Resume);
            }
            Mark::Ours(_) | Mark::Other | Mark::None => self.begin_anew(&root)?,
        }
        Ok(())
    }

    /// Opens sled again some time after it was lost.
    pub(super) fn look_after_index(&mut self) {
        let is_due = self.reopened_at.elapsed() >= REOPEN_EVERY;
        let is_lost = self.core.durable.read().is_none() && self.lock.is_some();
        if is_due && is_lost && self.core.health.is_up() && !self.core.index.is_loading() {
            self.reopened_at = Instant::now();
            self.open_durable(true);
            if self.compare() {
                self.core.queue.push(Op::Agreed);
            }
        }
    }

    fn probe(&self) -> io::Result<()> {
        let volume = &self.core.volume;
        let bytes = [0xa5; PROBE_BYTES];
        let file = volume.create(PROBE)?;
        let tried = file.write_at(&bytes, 0).and_then(|()| file.sync()).and_then(|()| {
            let mut back = [0; PROBE_BYTES];
            let read = file.read_at(&mut back, 0)?;
            let same = read == PROBE_BYTES && back == bytes;
            same.then_some(())
                .ok_or_else(|| io::Error::other("what was written is not what is read"))
        });
        volume.remove(PROBE)?;
        tried
    }

    /// An empty cache in a directory that is not the one of before.
    fn begin_anew(&mut self, root: &std::path::Path) -> io::Result<()> {
        self.lock = None;
        let lock = mark::lock(root).map_err(io::Error::other)?;
        self.lock = Some(lock.ok_or_else(|| io::Error::other("the directory cannot be locked"))?);
        self.core.set_fallback(Fallback::Nothing);
        *self.core.durable.write() = None;
        let disk = mark::make(root)?;
        self.start.disk = disk;
        match durable::open_within(root) {
            Ok(durable) => *self.core.durable.write() = Some(Arc::new(durable)),
            Err(why) => tracing::warn!(%why, "the index does not open: the disk works without it"),
        }
        self.core.queue.push(Op::Begin(disk));
        self.core.queue.push(Op::Agreed);
        Ok(())
    }
}
