//! What a disk is told, and why it can't be opened.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Smallest `max_size` of a disk: sixteen segments of a megabyte each.
pub(crate) const MAX_SIZE_MIN: u64 = 16 << 20;

/// One disk of the disk tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskConfig {
    /// Directory that is Larder's alone. It is made where it does not exist.
    pub path: PathBuf,
    /// Bytes of everything below `path`; at least [`Self::MAX_SIZE_MIN`].
    pub max_size: u64,
    /// Bytes of its file system that are left to others.
    pub min_free: u64,
    /// Objects that nobody asked for in this time are dropped; `None`: never.
    pub inactive: Option<Duration>,
}

impl DiskConfig {
    /// Smallest `max_size`.
    pub const MAX_SIZE_MIN: u64 = MAX_SIZE_MIN;
}

/// Why a store with disks cannot be opened. A disk in trouble is no reason: it is degraded and goes on trying.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process holds it.
    #[error("the cache directory {} is used by another process", path.display())]
    InUse {
        /// As configured.
        path: PathBuf,
    },
    /// It holds files that are not Larder's.
    #[error("the directory {} holds files that are not a cache: name an empty one", path.display())]
    NotACache {
        /// As configured.
        path: PathBuf,
    },
    /// No thread could be started.
    #[error("a thread of the disk tier cannot be started")]
    Thread(#[source] io::Error),
}
