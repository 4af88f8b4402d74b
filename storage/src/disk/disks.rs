//! Several disks. Each key belongs to one of them by rendezvous hashing, so that a disk more or less moves its own share only.

use std::sync::Arc;

use super::config::{DiskConfig, OpenError};
use super::core::Common;
use super::id::Id;
use super::keeper::Upstairs;
use super::pool::Pool;
use super::{Disk, DiskUsage};

#[derive(Debug, Default)]
pub(crate) struct Disks {
    disks: Vec<(u64, Disk)>,
}

impl Disks {
    pub(crate) const fn none() -> Self {
        Self { disks: Vec::new() }
    }

    /// Opens all of them. `upstairs` tells what is above the disk with this number.
    pub(crate) fn open(
        configs: &[DiskConfig],
        common: &Common,
        upstairs: impl Fn(usize) -> Upstairs,
    ) -> Result<Self, OpenError> {
        let mut disks = Vec::with_capacity(configs.len());
        for (number, config) in configs.iter().enumerate() {
            // By its path: the order in the configuration does not matter.
            let name = Id::of_key(config.path.as_os_str().as_encoded_bytes());
            disks.push((name.short(), Disk::open(config, common, upstairs(number))?));
        }
        Ok(Self { disks })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.disks.is_empty()
    }

    /// The disk that a key belongs to, by the key's own id, also for its variants.
    pub(crate) fn of(&self, key: Id) -> Option<&Disk> {
        let score = |name: u64| (name ^ key.short()).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ name;
        let best = self
            .disks
            .iter()
            .max_by_key(|(name, _)| score(*name).wrapping_mul(0xff51_afd7_ed55_8ccd));
        best.map(|(_, disk)| disk)
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Disk> {
        self.disks.get(number).map(|(_, disk)| disk)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Disk> {
        self.disks.iter().map(|(_, disk)| disk)
    }

    pub(crate) fn usage(&self) -> Vec<DiskUsage> {
        self.all().map(|disk| disk.core().usage()).collect()
    }

    /// The highest purge that any of them knows.
    pub(crate) fn fence(&self) -> u64 {
        let fences = self
            .all()
            .map(|disk| disk.core().fence.load(std::sync::atomic::Ordering::Acquire));
        fences.max().unwrap_or(0)
    }
}

/// What all disks of a store have in common.
pub(crate) fn common(options: &crate::Options, owners: &Arc<crate::owners::Owners>) -> Result<Common, OpenError> {
    Ok(Common {
        clock: options.clock,
        owner_of: options.owner_of,
        owners: Arc::clone(owners),
        pool: Arc::new(Pool::start().map_err(OpenError::Thread)?),
    })
}
