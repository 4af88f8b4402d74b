//! A body on its way into a file of its own: written block by block as it comes, readable up to the last whole block
//! meanwhile.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::body::{DiskBody, Location};
use super::core::Core;
use super::entry::{BodyPlace, FILE_MAX, PAGE};
use super::files;
use super::format::blocks::{self, Cutter};
use super::format::{Header, Kind, RECORD_HEADER};
use super::health::because;
use super::id::Id;
use super::queue::Op;
use super::read::file_salt;
use super::volume::Bytefile;
use crate::NotKept;

/// Space is reserved in steps of this size, so that a body of unknown length does not have to ask for each piece.
const STEP: u64 = 4 << 20;

/// Encoded bytes that are written at once.
const WRITE: usize = 256 << 10;

/// Dropped before it is sealed, it removes the file.
#[derive(Debug)]
pub(crate) struct BodyFile {
    core: Arc<Core>,
    number: u64,
    file: Arc<dyn Bytefile>,
    pub(crate) stamp: u64,
    cutter: Option<Cutter>,
    /// Encoded and not written yet.
    buffer: Vec<u8>,
    /// Where the buffer will be written.
    at: u64,
    /// Bytes of the body that came in.
    len: u64,
    reserved: u64,
    is_sealed: bool,
}

/// Largest body that a disk of this size takes: half of it.
pub(crate) fn largest(max_size: u64) -> u64 {
    (max_size / 2).min(FILE_MAX / 2)
}

impl BodyFile {
    /// A new file for a body under the key with this id.
    pub(crate) async fn begin(core: &Arc<Core>, id: Id) -> Result<Self, NotKept> {
        if !core.health.is_up() {
            core.cells.refused_unavailable.up();
            return Err(NotKept::DiskUnavailable);
        }
        let own = Arc::clone(core);
        // Made whole in there: one that nobody waits for any more goes again by being dropped.
        match core.pool.run(move || Self::create(&own, id)).await {
            Some(Ok(created)) => Ok(created),
            Some(Err(fault)) => {
                core.degrade(because("making a body file", &fault));
                Err(NotKept::DiskUnavailable)
            }
            None => Err(NotKept::DiskUnavailable),
        }
    }

    fn create(core: &Arc<Core>, id: Id) -> io::Result<Self> {
        let (number, file) = core.files.create()?;
        let stamp = core.next_stamp();
        let header = Header {
            kind: Kind::Body,
            id,
            stamp,
            fence: 0,
            key_len: 0,
            rest_len: 0,
            keep_until_secs: 0,
            body: BodyPlace::None,
            // Not known yet; the head has it.
            body_len: 0,
            payload_crc: 0,
        };
        let mut buffer = Vec::with_capacity(WRITE + RECORD_HEADER);
        header.encode(file_salt(number), &mut buffer);
        Ok(Self {
            core: Arc::clone(core),
            number,
            file,
            stamp,
            cutter: Some(Cutter::new(stamp)),
            buffer,
            at: 0,
            len: 0,
            reserved: 0,
            is_sealed: false,
        })
    }

    /// What can be read of it while it grows: whole blocks only, up to what [`Self::append`] said.
    pub(crate) fn growing(&self) -> DiskBody {
        self.body(u64::MAX, None)
    }

    fn body(&self, len: u64, place: Option<BodyPlace>) -> DiskBody {
        let location = Location {
            file: Arc::clone(&self.file),
            base: RECORD_HEADER as u64,
            len,
            stamp: self.stamp,
        };
        DiskBody::placed(Arc::clone(&self.core), location, place.unwrap_or(BodyPlace::None))
    }

    /// Appends to it. Returns how many bytes of the body can be read back.
    pub(crate) async fn append(&mut self, bytes: &[u8]) -> Result<u64, NotKept> {
        if let Some(cutter) = &mut self.cutter {
            cutter.push(bytes, &mut self.buffer);
        }
        self.len += bytes.len() as u64;
        if self.buffer.len() >= WRITE {
            self.write().await?;
        }
        Ok(self.readable())
    }

    /// Bytes in the whole blocks that are written.
    fn readable(&self) -> u64 {
        self.at.saturating_sub(RECORD_HEADER as u64) / (blocks::BLOCK + blocks::CRC) * blocks::BLOCK
    }

    async fn write(&mut self) -> Result<(), NotKept> {
        let end = self.at + self.buffer.len() as u64;
        self.reserve(end).await?;
        let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(WRITE + RECORD_HEADER));
        let (file, at, count) = (Arc::clone(&self.file), self.at, bytes.len() as u64);
        let written = self.core.pool.run(move || file.write_at(&bytes, at)).await;
        match written {
            Some(Ok(())) => {
                self.at = end;
                self.core.cells.written_bytes.add(count);
                Ok(())
            }
            Some(Err(fault)) => {
                let name = files::name(self.number);
                self.core.degrade(because(&format!("writing to {name}"), &fault));
                Err(NotKept::DiskUnavailable)
            }
            None => Err(NotKept::DiskUnavailable),
        }
    }

    /// Sees to it that so many bytes are its own.
    async fn reserve(&mut self, bytes: u64) -> Result<(), NotKept> {
        if bytes <= self.reserved {
            return Ok(());
        }
        if self.len > largest(self.core.config.max_size) {
            return Err(NotKept::TooLarge);
        }
        let wanted = bytes.next_multiple_of(STEP.min(self.core.segment_bytes));
        let more = wanted - self.reserved;
        if self.core.used() + more > self.core.comfortable() {
            let (done, told) = oneshot::channel();
            self.core.queue.push(Op::Room { bytes: more, done });
            if !told.await.unwrap_or(false) {
                return Err(NotKept::DiskBusy);
            }
        }
        self.reserved = wanted;
        self.core.files.set(self.number, wanted);
        Ok(())
    }

    /// It is complete.
    pub(crate) async fn seal(&mut self) -> Result<DiskBody, NotKept> {
        if let Some(cutter) = self.cutter.take() {
            cutter.finish(&mut self.buffer);
        }
        self.write().await?;
        let pages = self.at.div_ceil(PAGE);
        self.core.files.set(self.number, pages * PAGE);
        self.is_sealed = true;
        let place = BodyPlace::File {
            number: self.number,
            pages: u32::try_from(pages).map_err(|_| NotKept::TooLarge)?,
        };
        Ok(self.body(self.len, Some(place)))
    }

    /// No record got it after all.
    pub(crate) const fn disown(&mut self) {
        self.is_sealed = false;
    }
}

impl Drop for BodyFile {
    fn drop(&mut self) {
        if !self.is_sealed {
            // Removing a large file takes its time: the writer does it.
            self.core.index.orphan(self.number);
            self.core.queue.push(Op::Agree(Vec::new()));
        }
    }
}

/// A block of a growing body that holds the byte at `at`, from there on: at once, or when it has been read.
pub(crate) fn read_from(body: &DiskBody, at: u64) -> Reading {
    let (number, skip) = (at / blocks::BLOCK, usize::try_from(at % blocks::BLOCK).unwrap_or(0));
    match body.block(number, super::Patience::Now) {
        Ok(block) => Reading::Done(Some(block.slice(skip.min(block.len())..))),
        Err(super::body::BlockError::Blocked) => {
            let own = body.clone();
            let job = move || {
                let block = own.block(number, super::Patience::Blocking).ok()?;
                Some(block.slice(skip.min(block.len())..))
            };
            body.pool().submit(job).map_or(Reading::Done(None), Reading::Waiting)
        }
        Err(_) => Reading::Done(None),
    }
}

/// See [`read_from`]. `None`: it can't be read.
#[derive(Debug)]
pub(crate) enum Reading {
    Done(Option<Bytes>),
    Waiting(oneshot::Receiver<Option<Bytes>>),
}
