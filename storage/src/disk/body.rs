//! A body on disk, and its reading piece by piece.

use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::buffers;
use super::core::Core;
use super::entry::{BodyPlace, Entry};
use super::format::blocks;
use super::volume::Bytefile;

/// Blocks that are read and sent first: all of most bodies with one call each.
const FIRST_PIECE: u64 = buffers::BUFFER_BYTES as u64 / blocks::BLOCK;

/// Blocks of each piece after it: what is held for a client that takes its time over a large body.
const PIECE: u64 = 2;

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
    location: Location,
    /// What is to be dropped if it turns out to be damaged.
    entry: Option<Entry>,
    /// Where a body lies that no record has yet.
    place: Option<BodyPlace>,
}

impl fmt::Debug for DiskBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskBody")
            .field("len", &self.len())
            .field("base", &self.0.location.base)
            .finish_non_exhaustive()
    }
}

/// Where a body lies, in a file that is open.
pub(crate) struct Location {
    pub(crate) file: Arc<dyn Bytefile>,
    /// Where its first block begins.
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) stamp: u64,
}

impl DiskBody {
    /// That of a record.
    pub(crate) fn new(core: Arc<Core>, location: Location, entry: Option<Entry>) -> Self {
        Self::at(core, location, entry, entry.map(Entry::body))
    }

    /// One that was written before its head.
    pub(crate) fn placed(core: Arc<Core>, location: Location, place: BodyPlace) -> Self {
        Self::at(core, location, None, Some(place))
    }

    fn at(core: Arc<Core>, location: Location, entry: Option<Entry>, place: Option<BodyPlace>) -> Self {
        Self(Arc::new(Inner {
            core,
            location,
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
        self.0.location.len
    }

    /// Whether there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        self.blocks(number..number + 1, patience)
    }

    /// Blocks that follow one another, with one read, in an allocation of their own.
    pub(crate) fn blocks(&self, numbers: Range<u64>, patience: Patience) -> Result<Bytes, BlockError> {
        let mut bytes = vec![0; self.bytes_of(&numbers)];
        self.read(numbers, &mut bytes, patience)?;
        Ok(Bytes::from(bytes))
    }

    /// The same in a buffer that is there already, for as long as it takes to send it.
    fn piece(&self, numbers: Range<u64>, patience: Patience) -> Result<Bytes, BlockError> {
        buffers::filled(self.bytes_of(&numbers), |bytes| self.read(numbers, bytes, patience))
    }

    fn bytes_of(&self, numbers: &Range<u64>) -> usize {
        let end = (numbers.end * blocks::BLOCK).min(self.len());
        usize::try_from(end.saturating_sub(numbers.start * blocks::BLOCK)).unwrap_or(0)
    }

    /// The blocks' bytes end up side by side, and their checksums apart.
    fn read(&self, numbers: Range<u64>, bytes: &mut [u8], patience: Patience) -> Result<(), BlockError> {
        let location = &self.0.location;
        let mut crcs = vec![[0; blocks::CRC as usize]; bytes.len().div_ceil(blocks::BLOCK as usize)];
        let mut parts = Vec::with_capacity(2 * crcs.len());
        for (block, crc) in bytes.chunks_mut(blocks::BLOCK as usize).zip(&mut crcs) {
            parts.push(IoSliceMut::new(block));
            parts.push(IoSliceMut::new(crc));
        }
        let at = location.base + blocks::place(numbers.start);
        read_exact(&*location.file, &mut parts, at, patience)?;
        for (number, (block, crc)) in numbers.zip(bytes.chunks(blocks::BLOCK as usize).zip(crcs)) {
            if crc != blocks::crc(location.stamp, number, block).to_le_bytes() {
                return Err(BlockError::Corrupt);
            }
        }
        Ok(())
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

/// Fills the buffers; that the file ends before is damage.
pub(crate) fn read_exact(
    file: &dyn Bytefile,
    buffers: &mut [IoSliceMut<'_>],
    mut at: u64,
    patience: Patience,
) -> Result<(), BlockError> {
    if patience == Patience::Now {
        return Ok(file.read_now(buffers, at)?);
    }
    for buffer in buffers {
        if file.read_at(buffer, at)? != buffer.len() {
            return Err(BlockError::Corrupt);
        }
        at += buffer.len() as u64;
    }
    Ok(())
}

impl From<io::Error> for BlockError {
    fn from(fault: io::Error) -> Self {
        match fault.kind() {
            ErrorKind::WouldBlock => Self::Blocked,
            _ => Self::Io(fault),
        }
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
        let count = self.body.len().div_ceil(blocks::BLOCK);
        if self.next >= count {
            return Ok(None);
        }
        let piece = if self.next == 0 { FIRST_PIECE } else { PIECE };
        let numbers = self.next..count.min(self.next + piece);
        let read = match self.body.piece(numbers.clone(), Patience::Now) {
            Err(BlockError::Blocked) => {
                let (body, numbers) = (self.body.clone(), numbers.clone());
                let pool = &self.body.0.core.pool;
                let waiting = pool.run(move || body.piece(numbers, Patience::Blocking));
                waiting.await.unwrap_or(Err(BlockError::Corrupt))
            }
            read => read,
        };
        let bytes = read.map_err(|error| self.body.failed(error))?;
        self.body.0.core.cells.read_bytes.add(bytes.len() as u64);
        self.next = numbers.end;
        Ok(Some(bytes))
    }
}
