//! A head and the body right before it, as a store of a small object leaves them: read with one call.

use std::io::IoSliceMut;

use bytes::Bytes;

use super::{Fault, Whose, judge_body_header, open_place};
use crate::disk::body::{Patience, read_exact};
use crate::disk::buffers::{self, BUFFER_BYTES};
use crate::disk::core::Core;
use crate::disk::entry::{BodyPlace, Entry, Place};
use crate::disk::format::{ALIGN, RECORD_HEADER, blocks};
use crate::object::Body;

const BLOCK: usize = blocks::BLOCK as usize;
const CRC: usize = blocks::CRC as usize;

/// Both as they were read; only the head tells how long the body is.
pub(super) struct Joint {
    pub(super) head: Bytes,
    header: [u8; RECORD_HEADER],
    /// The blocks side by side; behind the last one its checksum, and what fills the record up.
    blocks: Bytes,
    /// Checksums of all blocks but the last.
    crcs: Vec<[u8; CRC]>,
}

/// The body's place, where it lies right before the head and is small enough.
pub(super) fn body_before(entry: Entry) -> Option<Place> {
    let head = entry.head();
    match entry.body() {
        BodyPlace::Segment(body)
            if body.seq == head.seq
                && body.at + body.len == head.at
                && (RECORD_HEADER..=BUFFER_BYTES).contains(&(body.len as usize)) =>
        {
            Some(body)
        }
        _ => None,
    }
}

/// Reads the record at `body` and the one at `head` behind it.
pub(super) fn read(core: &Core, body: Place, head: Place, patience: Patience) -> Result<Joint, Fault> {
    let both = Place {
        len: body.len + head.len,
        ..body
    };
    let file = open_place(core, both)?;
    let stored = (body.len as usize).saturating_sub(RECORD_HEADER);
    let apart = blocks_but_the_last(stored);
    let mut header = [0; RECORD_HEADER];
    let mut crcs = vec![[0; CRC]; apart];
    let mut head = vec![0; head.len as usize];
    let blocks = buffer(stored - apart * CRC, |blocks| {
        let (full, last) = blocks.split_at_mut(apart * BLOCK);
        let mut parts = Vec::with_capacity(2 * apart + 3);
        parts.push(IoSliceMut::new(&mut header));
        for (block, crc) in full.chunks_mut(BLOCK).zip(&mut crcs) {
            parts.push(IoSliceMut::new(block));
            parts.push(IoSliceMut::new(crc));
        }
        parts.push(IoSliceMut::new(last));
        parts.push(IoSliceMut::new(&mut head));
        read_exact(&*file, &mut parts, body.at.into(), patience)
    })?;
    Ok(Joint {
        head: head.into(),
        header,
        blocks,
        crcs,
    })
}

/// How many blocks are followed by another one, in so many bytes of blocks, checksums and what fills the record up. A last
/// block takes a byte and its checksum at least, eight bytes as it is filled up; what fills up alone takes less.
const fn blocks_but_the_last(stored: usize) -> usize {
    stored.saturating_sub(ALIGN as usize) / (BLOCK + CRC)
}

/// What is cleared in no time is not worth a buffer of the largest size.
fn buffer<E>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Bytes, E> {
    if len > BLOCK {
        return buffers::filled(len, fill);
    }
    let mut bytes = vec![0; len];
    fill(&mut bytes)?;
    Ok(bytes.into())
}

impl Joint {
    /// The body, if it is whole and whose it should be.
    pub(super) fn body(self, seq: u32, whose: Whose) -> Result<Body, Fault> {
        judge_body_header(&self.header, seq, whose)?;
        let (_, stamp, len) = whose;
        let len = usize::try_from(len).map_err(|_| Fault::Damaged)?;
        let (body, rest) = self.blocks.split_at_checked(len).ok_or(Fault::Damaged)?;
        for (number, block) in body.chunks(BLOCK).enumerate() {
            let crc = self.crcs.get(number).or_else(|| rest.first_chunk());
            if crc != Some(&blocks::crc(stamp, number as u64, block).to_le_bytes()) {
                return Err(Fault::Damaged);
            }
        }
        let chunks = if len == 0 {
            Vec::new()
        } else {
            vec![self.blocks.slice(..len)]
        };
        Ok(Body::of_chunks(chunks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_is_told_from_the_others_whatever_fills_the_record_up() {
        for len in 1..=4 * BLOCK {
            let stored = (blocks::stored_len(len as u64) + RECORD_HEADER as u64).next_multiple_of(ALIGN);
            let stored = usize::try_from(stored).unwrap() - RECORD_HEADER;
            assert_eq!(blocks_but_the_last(stored), len.div_ceil(BLOCK) - 1, "{len}");
        }
    }
}
