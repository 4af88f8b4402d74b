//! The identity of a record: a BLAKE3 hash of its canonical key. It finds the place; who reads a record compares the key itself.

/// 128 bits of BLAKE3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id(pub(crate) [u8; 16]);

impl Id {
    /// What is under a key: an object, or the directory of its variants.
    pub(crate) fn of_key(key: &[u8]) -> Self {
        Self::of(blake3::hash(key))
    }

    /// A variant. `stamp` is its directory's: a directory that is made anew has none of the old one's variants.
    pub(crate) fn of_variant(key: &[u8], stamp: u64, name: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(key);
        hasher.update(&stamp.to_le_bytes());
        hasher.update(name);
        // Lengths last: no other split of the same bytes has the same hash.
        hasher.update(&(key.len() as u64).to_le_bytes());
        Self::of(hasher.finalize())
    }

    fn of(hash: blake3::Hash) -> Self {
        let mut id = [0; 16];
        for (to, from) in id.iter_mut().zip(hash.as_bytes()) {
            *to = *from;
        }
        Self(id)
    }

    /// What the index goes by. Two records that share it displace each other, and are told apart when they are read.
    pub(crate) const fn short(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}
