//! A body on disk, and its reading piece by piece.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use bytes::Bytes;

use super::core::Core;
use super::entry::{BodyPlace, Entry};
use super::format::blocks;
use super::volume::Bytefile;

/// Why a body on disk cannot be read to its end.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BodyError {
    /// The disk failed.
    #[error("the disk failed")]
    Io(#[source] Arc<io::Error>),
    /// What lies there is not what was written.
    #[error("the body is damaged")]
    Corrupt,
}

/// A body on disk. Cheap to clone; what it reads stays readable though the object be evicted meanwhile.
#[derive(Clone)]
pub struct DiskBody(Arc<Inner>);

struct Inner {
    core: Arc<Core>,
    file: Arc<dyn Bytefile>,
    /// Where its first block begins.
    base: u64,
    len: u64,
    stamp: u64,
    /// What is to be dropped if it turns out to be damaged.
    entry: Option<Entry>,
    /// Where a body lies that no record has yet.
    place: Option<BodyPlace>,
}

impl fmt::Debug for DiskBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskBody")
            .field("len", &self.0.len)
            .field("base", &self.0.base)
            .finish_non_exhaustive()
    }
}

/// Where a body lies, in a file that is open.
pub(crate) struct Lies {
    pub(crate) file: Arc<dyn Bytefile>,
    /// Where its first block begins.
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) stamp: u64,
}

impl DiskBody {
    pub(crate) fn new(core: Arc<Core>, lies: Lies, entry: Option<Entry>) -> Self {
        let Lies { file, base, len, stamp } = lies;
        Self(Arc::new(Inner {
            core,
            file,
            base,
            len,
            stamp,
            place: entry.map(Entry::body),
            entry,
        }))
    }

    /// One that was written before its head.
    pub(crate) fn placed(core: Arc<Core>, lies: Lies, place: BodyPlace) -> Self {
        let Lies { file, base, len, stamp } = lies;
        let (entry, place) = (None, Some(place));
        Self(Arc::new(Inner {
            core,
            file,
            base,
            len,
            stamp,
            entry,
            place,
        }))
    }

    pub(crate) fn pool(&self) -> &super::pool::Pool {
        &self.0.core.pool
    }

    pub(crate) fn place(&self) -> Option<BodyPlace> {
        self.0.place
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Whether there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Reads it from the start.
    #[must_use]
    pub fn reader(&self) -> BodyReader {
        BodyReader {
            body: self.clone(),
            next: 0,
        }
    }

    /// One block, from the page cache or, if it may wait, from the disk.
    pub(crate) fn block(&self, number: u64, patience: Patience) -> Result<Bytes, BlockError> {
        let inner = &*self.0;
        let len = usize::try_from(blocks::len(number, inner.len)).unwrap_or(0);
        let mut buffer = vec![0; len + 4];
        let at = inner.base + blocks::place(number);
        read_exact(&*inner.file, &mut buffer, at, patience)?;
        let crc = buffer.split_off(len);
        if crc != blocks::crc(inner.stamp, number, &buffer).to_le_bytes() {
            return Err(BlockError::Corrupt);
        }
        Ok(Bytes::from(buffer))
    }

    fn failed(&self, error: BlockError) -> BodyError {
        let core = &self.0.core;
        match error {
            BlockError::Io(fault) => {
                core.read_failed("reading a body", &fault);
                BodyError::Io(Arc::new(fault))
            }
            BlockError::Blocked | BlockError::Corrupt => {
                if let Some(entry) = self.0.entry {
                    core.drop_damaged(entry);
                }
                BodyError::Corrupt
            }
        }
    }
}

/// Whether a read may wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// On a thread that may block.
    Blocking,
    /// On a worker: from the page cache or not at all.
    Now,
}

/// Why there is no block.
#[derive(Debug)]
pub(crate) enum BlockError {
    Blocked,
    Io(io::Error),
    Corrupt,
}

/// Fills the buffer; that the file ends before is damage.
pub(crate) fn read_exact(
    file: &dyn Bytefile,
    buffer: &mut [u8],
    at: u64,
    patience: Patience,
) -> Result<(), BlockError> {
    let read = match patience {
        Patience::Blocking => file.read_at(buffer, at),
        Patience::Now => file.read_now(buffer, at),
    };
    match read {
        Ok(read) if read == buffer.len() => Ok(()),
        Ok(_) => Err(BlockError::Corrupt),
        Err(fault) if fault.kind() == ErrorKind::WouldBlock => Err(BlockError::Blocked),
        Err(fault) => Err(BlockError::Io(fault)),
    }
}

/// Reads a body on disk in constant memory. Every byte is checked before it is handed out.
#[derive(Debug)]
pub struct BodyReader {
    body: DiskBody,
    next: u64,
}

impl BodyReader {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// See [`BodyError`]; the object is dropped then, so that the next request goes to the origin.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        let number = self.next;
        if number * blocks::BLOCK >= self.body.len() {
            return Ok(None);
        }
        let block = match self.body.block(number, Patience::Now) {
            Err(BlockError::Blocked) => {
                let body = self.body.clone();
                let waiting = self
                    .body
                    .0
                    .core
                    .pool
                    .run(move || body.block(number, Patience::Blocking));
                waiting.await.unwrap_or(Err(BlockError::Corrupt))
            }
            block => block,
        };
        let block = block.map_err(|error| self.body.failed(error))?;
        self.body.0.core.cells.read_bytes.add(block.len() as u64);
        self.next += 1;
        Ok(Some(block))
    }
}
