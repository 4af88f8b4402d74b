//! Accounts by owner (vhost): what each holds in memory and on disk. Owners are interned; their number is bounded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::RwLock;

use crate::disk::OWNERS_MAX;
use crate::usage::OwnerUsage;

/// Where owners are counted that came after the last place was taken.
const REST: &str = "_other";

#[derive(Debug, Default)]
struct Account {
    objects: AtomicI64,
    bytes: AtomicI64,
}

impl Account {
    fn add(&self, objects: i64, bytes: i64) {
        self.objects.fetch_add(objects, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn read(&self) -> (u64, u64) {
        let get = |cell: &AtomicI64| u64::try_from(cell.load(Ordering::Relaxed)).unwrap_or(0);
        (get(&self.objects), get(&self.bytes))
    }
}

/// Which tier an account is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holding {
    Memory,
    Disk,
}

#[derive(Debug)]
pub(crate) struct Owners {
    numbers: RwLock<HashMap<Box<[u8]>, u16>>,
    memory: Box<[Account]>,
    disk: Box<[Account]>,
}

impl Default for Owners {
    fn default() -> Self {
        let accounts = || (0..OWNERS_MAX).map(|_| Account::default()).collect();
        Self {
            numbers: RwLock::default(),
            memory: accounts(),
            disk: accounts(),
        }
    }
}

impl Owners {
    /// The number of an owner; the last one is shared by all for whom there was no place.
    pub(crate) fn number(&self, name: &[u8]) -> u16 {
        if let Some(&number) = self.numbers.read().get(name) {
            return number;
        }
        let rest = u16::try_from(OWNERS_MAX - 1).unwrap_or(u16::MAX);
        let mut numbers = self.numbers.write();
        let next = u16::try_from(numbers.len()).unwrap_or(rest);
        if next >= rest {
            return numbers.get(name).copied().unwrap_or(rest);
        }
        *numbers.entry(name.into()).or_insert(next)
    }

    pub(crate) fn gain(&self, holding: Holding, owner: u16, objects: u64, bytes: u64) {
        self.add(holding, owner, signed(objects), signed(bytes));
    }

    pub(crate) fn lose(&self, holding: Holding, owner: u16, objects: u64, bytes: u64) {
        self.add(holding, owner, -signed(objects), -signed(bytes));
    }

    fn add(&self, holding: Holding, owner: u16, objects: i64, bytes: i64) {
        let accounts = match holding {
            Holding::Memory => &self.memory,
            Holding::Disk => &self.disk,
        };
        if let Some(account) = accounts.get(usize::from(owner)) {
            account.add(objects, bytes);
        }
    }

    /// The names by their numbers.
    pub(crate) fn names(&self) -> Vec<Box<[u8]>> {
        let numbers = self.numbers.read();
        let mut names: Vec<_> = numbers.iter().map(|(name, &number)| (number, name.clone())).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }

    pub(crate) fn usage(&self) -> Vec<OwnerUsage> {
        let mut names: Vec<_> = self
            .names()
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        let rest = OWNERS_MAX - 1;
        let named = names.len();
        names.push(REST.to_owned());
        let places = (0..named).chain([rest]);
        let usage = names.into_iter().zip(places).filter_map(|(name, place)| {
            let (memory_objects, memory_bytes) = self.memory.get(place)?.read();
            let (disk_objects, disk_bytes) = self.disk.get(place)?.read();
            let usage = OwnerUsage {
                name,
                memory_objects,
                memory_bytes,
                disk_objects,
                disk_bytes,
            };
            (place != rest || memory_objects + disk_objects > 0).then_some(usage)
        });
        usage.collect()
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
