//! Where objects live: a bounded memory tier over a bounded, persistent disk tier, and the fills in flight. Heads and what a
//! key varies on are opaque type parameters; nothing here knows HTTP, reads the wall clock by itself or opens a socket.
//!
//! Invariants:
//! - A lookup compares the whole key; what it finds is always complete.
//! - Whether a fill may still be stored is decided under the same lock that a purge of its key takes.
//! - Memory is bounded: `Config::max_size` for what is stored, `fill_budget` for fills that are to be stored, and
//!   `fill::WINDOW` for each of the others.
#![deny(missing_docs)]

mod budget;
pub mod disk;
mod fill;
mod key_hash;
mod object;
mod on_disk;
mod options;
mod owners;
mod record;
mod store;
#[cfg(test)]
mod tests;
mod tier;
mod usage;
mod uses;
mod weight;

pub use fill::leader::{Abandoned, Filling, Leader, Offer};
pub use fill::reader::{Reader, ReaderEnd};
pub use fill::{FillError, Keep, NotKept};
pub use object::{Body, Object, Place, Tier};
pub use options::{Clock, Options, OwnerOf};
pub use store::{Begin, Join, Lookup, NotDurable, Purged, Store};
pub use usage::{OwnerUsage, Usage};
pub use uses::UseCounts;

/// What is kept of an answer besides its body.
pub trait Head: Send + Sync + std::fmt::Debug + Sized + 'static {
    /// Bytes of memory it holds, its own struct included.
    fn weight(&self) -> usize;

    /// Appends the form in which it lies on disk. It carries a version of its own.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads what [`Self::encode`] wrote; `None` where that is of another version or not whole.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// Unix time in seconds after which it is of no use to anyone, so that a sweep may drop it.
    fn keep_until_secs(&self) -> u64;
}

/// What the objects under a key vary on. Two that are equal select variants in the same way.
pub trait VaryRule: Send + Sync + std::fmt::Debug + PartialEq + Sized + 'static {
    /// Bytes of memory it holds, its own struct included.
    fn weight(&self) -> usize;

    /// Appends the form in which it lies on disk.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads what [`Self::encode`] wrote.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// Bounds of the memory tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Bytes of heads, bodies, keys and overhead together; 0 switches the tier off.
    pub max_size: u64,
    /// Largest object that is stored, head and body, in bytes.
    pub max_object: u64,
    /// Variants kept of one key; the least recently stored goes first.
    pub variants: usize,
}

impl Config {
    /// The defaults for a tier of this size. A 64th of it is what a shard can hold eight times in at least eight shards.
    #[must_use]
    pub fn with_max_size(max_size: u64) -> Self {
        Self {
            max_size,
            max_object: (max_size / 64).min(1 << 20),
            variants: 64,
        }
    }

    /// Bytes that fills which are to be stored may hold together: an eighth of the tier, and in a small one room for
    /// some objects at once.
    pub(crate) fn fill_budget(&self) -> u64 {
        (self.max_size / 8).max(16 << 20)
    }
}
