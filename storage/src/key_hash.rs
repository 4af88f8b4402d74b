//! How keys are hashed to find their place. A hash is never taken for the key: the tests cut it down to a few bits to show it.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::{FoldHasher, RandomState};

/// Seeded anew in each process, so that nobody outside can choose keys that collide.
#[derive(Debug, Clone)]
pub(crate) struct KeyHash {
    state: RandomState,
    mask: u64,
}

impl Default for KeyHash {
    fn default() -> Self {
        Self {
            state: RandomState::default(),
            mask: u64::MAX,
        }
    }
}

impl KeyHash {
    /// Keeps the lowest bits only, so that keys collide.
    #[cfg(test)]
    pub(crate) fn of_bits(bits: u32) -> Self {
        Self {
            mask: (1 << bits) - 1,
            ..Self::default()
        }
    }
}

impl BuildHasher for KeyHash {
    type Hasher = Masked<FoldHasher<'static>>;

    fn build_hasher(&self) -> Self::Hasher {
        Masked {
            hasher: self.state.build_hasher(),
            mask: self.mask,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Masked<H> {
    hasher: H,
    mask: u64,
}

impl<H: Hasher> Hasher for Masked<H> {
    fn finish(&self) -> u64 {
        self.hasher.finish() & self.mask
    }

    fn write(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
    }

    fn write_u8(&mut self, i: u8) {
        self.hasher.write_u8(i);
    }

    fn write_u64(&mut self, i: u64) {
        self.hasher.write_u64(i);
    }

    fn write_usize(&mut self, i: usize) {
        self.hasher.write_usize(i);
    }
}
