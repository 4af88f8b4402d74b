//! A body as it lies on disk: blocks, each followed by its checksum, so that a reader in constant memory hands out nothing
//! that it has not checked.

use super::checksum;

/// Bytes of a block: one read and one write of a socket buffer's size, and what a slow reader holds.
pub(crate) const BLOCK: u64 = 32 << 10;

/// Of the checksum behind each block.
pub(crate) const CRC: u64 = 4;

/// Bytes that a body takes with its checksums.
pub(crate) const fn stored_len(body_len: u64) -> u64 {
    body_len + body_len.div_ceil(BLOCK) * CRC
}

/// Where block `number` begins, counted from the body's start.
pub(crate) const fn place(number: u64) -> u64 {
    number * (BLOCK + CRC)
}

/// The checksum of a block. It says whose it is: a block of another body, or another block of this one, does not pass.
pub(crate) fn crc(stamp: u64, number: u64, bytes: &[u8]) -> u32 {
    checksum(stamp ^ number.rotate_left(40), bytes)
}

/// Cuts a stream of pieces into blocks with their checksums.
#[derive(Debug)]
pub(crate) struct Cutter {
    stamp: u64,
    number: u64,
    /// Bytes of the block that is being filled, already in the output.
    filled: u64,
    hasher: crc32fast::Hasher,
}

impl Cutter {
    pub(crate) fn new(stamp: u64) -> Self {
        Self {
            stamp,
            number: 0,
            filled: 0,
            hasher: start(stamp, 0),
        }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let room = usize::try_from(BLOCK - self.filled).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            out.extend_from_slice(now);
            self.hasher.update(now);
            self.filled += now.len() as u64;
            bytes = rest;
            if self.filled == BLOCK {
                self.close(out);
            }
        }
    }

    /// Ends the last block, if it is not empty.
    pub(crate) fn finish(mut self, out: &mut Vec<u8>) {
        if self.filled > 0 {
            self.close(out);
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.number += 1;
        self.filled = 0;
        let hasher = std::mem::replace(&mut self.hasher, start(self.stamp, self.number));
        out.extend_from_slice(&hasher.finalize().to_le_bytes());
    }
}

fn start(stamp: u64, number: u64) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(stamp ^ number.rotate_left(40)).to_le_bytes());
    hasher
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_are_cut_into_the_same_blocks() {
        let body: Vec<u8> = (0..150_000_u32).map(|i| (i % 251) as u8).collect();
        for len in [0, 1, 32_767, 32_768, 32_769, 65_536, 150_000] {
            let body = &body[..len];
            let mut whole = Vec::new();
            let mut cutter = Cutter::new(7);
            cutter.push(body, &mut whole);
            cutter.finish(&mut whole);
            assert_eq!(whole.len() as u64, stored_len(len as u64));
            for piece in [1000, 40_000] {
                let mut out = Vec::new();
                let mut cutter = Cutter::new(7);
                body.chunks(piece).for_each(|piece| cutter.push(piece, &mut out));
                cutter.finish(&mut out);
                assert_eq!(out, whole);
            }
            for (number, block) in body.chunks(BLOCK as usize).enumerate() {
                let at = place(number as u64) as usize;
                assert_eq!(&whole[at..at + block.len()], block);
                assert_eq!(
                    whole[at + block.len()..at + block.len() + 4],
                    crc(7, number as u64, block).to_le_bytes()
                );
            }
        }
    }
}
