//! What a store is opened with.

use std::fmt;

use crate::Config;
use crate::disk::DiskConfig;

/// Unix time in milliseconds. It must not step within the life of a store; across a restart it may.
pub type Clock = fn() -> u64;

/// Which part of a key names the owner whose account an object is on: the vhost.
pub type OwnerOf = fn(&[u8]) -> &[u8];

/// What a store is opened with.
#[derive(Clone)]
pub struct Options {
    /// Bounds of the memory tier.
    pub memory: Config,
    /// Disks of the disk tier; none for memory only.
    pub disks: Vec<DiskConfig>,
    /// Time for expiry and use.
    pub clock: Clock,
    /// Owner of a key.
    pub owner_of: OwnerOf,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("memory", &self.memory)
            .field("disks", &self.disks)
            .finish_non_exhaustive()
    }
}
