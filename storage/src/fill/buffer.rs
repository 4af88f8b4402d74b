//! The bytes of a fill between its leader and its readers, by their offset in the body.
//!
//! The network's buffers are not kept: small pieces are copied, since a slice of one byte would pin a whole buffer, and
//! all of them are where the fill is to be stored. Small neighbours are merged like the digits of a binary counter, so
//! that an origin that sends byte by byte costs neither many pieces nor quadratic copying.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::object::{Body, CHUNK_BYTES};

/// Neighbours are merged up to this size, and pieces below it are always copied: four pages, one TLS record.
const MERGED_BYTES: usize = 16 << 10;

#[derive(Debug)]
struct Piece {
    start: u64,
    bytes: Bytes,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// In order and without gaps, from `base` to `len`.
    pieces: VecDeque<Piece>,
    /// Bytes dropped at the front.
    base: u64,
    /// Bytes received.
    len: u64,
    /// Bytes that readers may see.
    visible: u64,
}

impl Buffer {
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// All that is in memory, in order.
    pub(super) fn pieces(&self) -> Vec<Bytes> {
        self.pieces.iter().map(|piece| piece.bytes.clone()).collect()
    }

    pub(super) const fn visible(&self) -> u64 {
        self.visible
    }

    /// Bytes that are in memory.
    pub(super) const fn held(&self) -> u64 {
        self.len - self.base
    }

    pub(super) const fn publish(&mut self) {
        self.visible = self.len;
    }

    /// Appends copies that lie in the chunks of the later body.
    pub(super) fn push_copy(&mut self, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let room = CHUNK_BYTES - self.offset_in_chunk();
            let part = bytes.split_to(room.min(bytes.len()));
            self.append(Bytes::copy_from_slice(&part));
            if self.offset_in_chunk() == 0 {
                self.merge_last_chunk();
            } else {
                self.merge_small();
            }
        }
    }

    /// Appends what is read once and dropped.
    pub(super) fn push_through(&mut self, bytes: Bytes) {
        let small = bytes.len() < MERGED_BYTES;
        self.append(if small { Bytes::copy_from_slice(&bytes) } else { bytes });
        if small {
            self.merge_small();
        }
    }

    /// What readers may see from this offset on, up to the end of a piece.
    pub(super) fn at(&self, pos: u64) -> Option<Bytes> {
        if pos >= self.visible {
            return None;
        }
        let index = self.pieces.partition_point(|piece| piece.end() <= pos);
        let piece = self.pieces.get(index)?;
        debug_assert!(piece.start <= pos, "bytes were dropped before they were read");
        let end = piece.end().min(self.visible) - piece.start;
        let range = usize::try_from(pos.checked_sub(piece.start)?).ok()?..usize::try_from(end).ok()?;
        Some(piece.bytes.slice(range))
    }

    /// Drops the pieces that end before this offset.
    pub(super) fn trim(&mut self, to: u64) {
        while let Some(piece) = self.pieces.front()
            && piece.end() <= to
        {
            self.base = piece.end();
            self.pieces.pop_front();
        }
    }

    /// The whole body; only where nothing was dropped and all was copied.
    pub(super) fn to_body(&self) -> Body {
        debug_assert_eq!(self.base, 0, "the front of the body is gone");
        let mut chunks = Vec::new();
        let mut run: Vec<&Bytes> = Vec::new();
        for piece in &self.pieces {
            if !run.is_empty() && piece.start % CHUNK_BYTES as u64 == 0 {
                chunks.push(joined(&run));
                run.clear();
            }
            run.push(&piece.bytes);
        }
        if !run.is_empty() {
            chunks.push(joined(&run));
        }
        Body::of_chunks(chunks)
    }

    /// Holds a complete body, sharing its memory.
    pub(super) fn share(&mut self, body: &Body) {
        self.pieces.clear();
        (self.base, self.len) = (0, 0);
        for chunk in body.chunks().unwrap_or_default() {
            self.append(chunk.clone());
        }
    }

    fn append(&mut self, bytes: Bytes) {
        let start = self.len;
        self.len += bytes.len() as u64;
        self.pieces.push_back(Piece { start, bytes });
    }

    fn offset_in_chunk(&self) -> usize {
        usize::try_from(self.len % CHUNK_BYTES as u64).unwrap_or(0)
    }

    /// Makes the chunk that has just been filled a single piece.
    fn merge_last_chunk(&mut self) {
        let chunk_start = self.len - CHUNK_BYTES as u64;
        let first = self.pieces.partition_point(|piece| piece.start < chunk_start);
        self.merge_from(first);
    }

    /// Merges the last two pieces while the former isn't more than twice the latter, so sizes fall geometrically.
    fn merge_small(&mut self) {
        while let Some(former) = self.pieces.len().checked_sub(2)
            && let (Some(a), Some(b)) = (self.pieces.get(former), self.pieces.get(former + 1))
            && a.bytes.len() <= 2 * b.bytes.len()
            && a.bytes.len() + b.bytes.len() <= MERGED_BYTES
            && a.start / CHUNK_BYTES as u64 == b.start / CHUNK_BYTES as u64
        {
            self.merge_from(former);
        }
    }

    fn merge_from(&mut self, first: usize) {
        let Some(start) = self.pieces.get(first).map(|piece| piece.start) else {
            return;
        };
        let run: Vec<&Bytes> = self.pieces.range(first..).map(|piece| &piece.bytes).collect();
        let bytes = joined(&run);
        self.pieces.truncate(first);
        self.pieces.push_back(Piece { start, bytes });
    }
}

/// One allocation of exactly the size; a single piece is one already.
fn joined(run: &[&Bytes]) -> Bytes {
    if let [single] = run {
        return Bytes::clone(single);
    }
    let mut bytes = Vec::with_capacity(run.iter().map(|piece| piece.len()).sum());
    for piece in run {
        bytes.extend_from_slice(piece);
    }
    Bytes::from(bytes)
}

#[cfg(test)]
mod tests;
