//! A stored answer: an opaque head and a body of whole chunks. Immutable once made.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::disk::DiskBody;
use crate::disk::id::Id;
use crate::record::Listed;
use crate::{Head, weight};

/// Largest chunk of a body. A power of two that allocators serve without waste, and several socket buffers long.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// A stored body: in memory, or on disk and read when it is sent.
#[derive(Debug, Clone)]
pub struct Body(Kept);

#[derive(Debug, Clone)]
enum Kept {
    Memory { chunks: Arc<[Bytes]>, len: u64 },
    Disk(DiskBody),
}

/// Where a body is.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// In chunks of at most 256 KiB, none of them empty.
    Memory(&'a [Bytes]),
    /// To be read piece by piece.
    Disk(&'a DiskBody),
}

/// Which tier an object was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tier {
    /// The memory tier.
    #[default]
    Memory,
    /// The disk tier, though its body may be in memory by now.
    Disk,
}

impl Body {
    /// The chunks are at most [`CHUNK_BYTES`] long. In the memory tier they must be exact allocations: see [`Self::compact`].
    pub(crate) fn of_chunks(chunks: Vec<Bytes>) -> Self {
        debug_assert!(
            chunks.iter().all(|chunk| chunk.len() <= CHUNK_BYTES),
            "a chunk is too large"
        );
        let len = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let chunks = chunks.into();
        Self(Kept::Memory { chunks, len })
    }

    /// The same in chunks that pin nothing else. What was read to be sent once may lie in a buffer that is larger.
    pub(crate) fn compact(&self) -> Self {
        match self.chunks() {
            Some(chunks) => Self::of_chunks(chunks.iter().map(|chunk| Bytes::copy_from_slice(chunk)).collect()),
            None => self.clone(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> Place<'_> {
        match &self.0 {
            Kept::Memory { chunks, .. } => Place::Memory(chunks),
            Kept::Disk(body) => Place::Disk(body),
        }
    }

    /// The chunks, where it is in memory.
    #[must_use]
    pub fn chunks(&self) -> Option<&[Bytes]> {
        match self.place() {
            Place::Memory(chunks) => Some(chunks),
            Place::Disk(_) => None,
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            Kept::Memory { len, .. } => *len,
            Kept::Disk(body) => body.len(),
        }
    }

    /// Whether there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole body, where it is a single chunk in memory.
    #[must_use]
    pub fn as_single(&self) -> Option<&Bytes> {
        match self.chunks()? {
            [chunk] => Some(chunk),
            _ => None,
        }
    }

    fn weight(&self) -> usize {
        match &self.0 {
            // A body in memory fits a usize.
            Kept::Memory { chunks, len } => {
                usize::try_from(*len).unwrap_or(usize::MAX) + chunks.len() * weight::CHUNK + weight::COUNTS
            }
            Kept::Disk(_) => 0,
        }
    }
}

impl From<DiskBody> for Body {
    fn from(body: DiskBody) -> Self {
        Self(Kept::Disk(body))
    }
}

/// A stored answer.
#[derive(Debug)]
pub struct Object<H> {
    /// What came before the body.
    pub head: Arc<H>,
    /// The whole body.
    pub body: Body,
    /// Where it is listed, if it is a variant.
    pub(crate) listed: Option<Listed>,
    /// Number of the fill that made it; a later fill is never replaced by an earlier one.
    pub(crate) begun: u64,
    /// What it is on disk, where there are disks.
    pub(crate) identity: Option<Identity>,
    /// Whose account it is on.
    pub(crate) owner: u16,
    /// Set where the disk did not take it: it is brought down when it leaves memory.
    pub(crate) homeless: OnceLock<Box<Homeless>>,
    tier: Tier,
    weight: u64,
}

/// A record of the disk tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: Id,
    /// Of the body: tells this answer from another one under the same key.
    pub(crate) stamp: u64,
}

/// What it takes to store an object on disk later.
#[derive(Debug, Clone)]
pub(crate) struct Homeless {
    pub(crate) key: Arc<[u8]>,
    /// The rule, encoded, and the variant's name.
    pub(crate) vary: Option<(Vec<u8>, Arc<[u8]>)>,
}

/// What an object is made of.
#[derive(Debug)]
pub(crate) struct Made<H> {
    pub(crate) key_len: usize,
    pub(crate) head: Arc<H>,
    pub(crate) body: Body,
    pub(crate) listed: Option<Listed>,
    pub(crate) begun: u64,
    pub(crate) identity: Option<Identity>,
    pub(crate) owner: u16,
}

impl<H: Head> Object<H> {
    pub(crate) fn new(made: Made<H>) -> Self {
        let Made {
            key_len,
            head,
            body,
            listed,
            begun,
            identity,
            owner,
        } = made;
        let listed_weight = listed
            .as_ref()
            .map_or(0, |listed| listed.variant.len() + weight::COUNTS + weight::LISTED);
        // A variant's own key is an id and not the primary key, which its directory pays for.
        let key_weight = if listed.is_some() { 0 } else { key_len + weight::COUNTS };
        let weight = weight::RECORD
            + weight::COUNTS * 2
            + size_of::<Self>()
            + key_weight
            + listed_weight
            + head.weight()
            + body.weight();
        Self {
            head,
            body,
            listed,
            begun,
            identity,
            owner,
            homeless: OnceLock::new(),
            tier: Tier::Memory,
            weight: weight as u64,
        }
    }

    /// One that was found on disk and is in nobody's table.
    pub(crate) fn of_disk(head: Arc<H>, body: Body, identity: Identity, owner: u16) -> Self {
        let made = Made {
            key_len: 0,
            head,
            body,
            listed: None,
            begun: 0,
            identity: Some(identity),
            owner,
        };
        Self {
            tier: Tier::Disk,
            ..Self::new(made)
        }
    }
}

impl<H> Object<H> {
    /// Whether it is the other one, or what went up of the other one, which was found on disk.
    pub(crate) fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let is_copy = other.tier == Tier::Disk && self.identity.is_some() && self.identity == other.identity;
        is_copy || Arc::ptr_eq(self, other)
    }

    /// Which tier it was found in.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.tier
    }

    /// Bytes of memory that storing it takes, overhead included.
    #[must_use]
    pub const fn weight(&self) -> u64 {
        self.weight
    }
}
