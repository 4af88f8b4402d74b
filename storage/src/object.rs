//! A stored answer: an opaque head and a body of whole chunks. Immutable once made.

use std::sync::Arc;

use bytes::Bytes;

use crate::record::Listed;
use crate::{Head, weight};

/// Largest chunk of a body. A power of two that allocators serve without waste, and several socket buffers long.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// A body in memory, in chunks of at most 256 KiB. Each chunk is an allocation of exactly its size and pins nothing else.
#[derive(Debug, Clone, Default)]
pub struct Body {
    chunks: Arc<[Bytes]>,
    len: u64,
}

impl Body {
    /// The chunks must be exact allocations of at most [`CHUNK_BYTES`].
    pub(crate) fn of_chunks(chunks: Vec<Bytes>) -> Self {
        debug_assert!(
            chunks.iter().all(|chunk| chunk.len() <= CHUNK_BYTES),
            "a chunk is too large"
        );
        let len = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        Self {
            chunks: chunks.into(),
            len,
        }
    }

    /// The chunks in order; none is empty.
    #[must_use]
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The whole body, where it is a single chunk.
    #[must_use]
    pub fn as_single(&self) -> Option<&Bytes> {
        match &*self.chunks {
            [chunk] => Some(chunk),
            _ => None,
        }
    }

    fn weight(&self) -> usize {
        // A body in memory fits a usize.
        usize::try_from(self.len).unwrap_or(usize::MAX) + self.chunks.len() * weight::CHUNK + weight::COUNTS
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
    weight: u64,
}

impl<H: Head> Object<H> {
    pub(crate) fn new(key_len: usize, head: Arc<H>, body: Body, listed: Option<Listed>, begun: u64) -> Self {
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
            weight: weight as u64,
        }
    }
}

impl<H> Object<H> {
    /// Bytes of memory that storing it takes, overhead included.
    #[must_use]
    pub const fn weight(&self) -> u64 {
        self.weight
    }
}
