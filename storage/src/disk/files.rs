//! Bodies in files of their own: those too large for a segment, and those whose length nobody knew in time.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::volume::{Bytefile, Volume};

/// Where they are, below the disk's directory.
pub(crate) const DIRECTORY: &str = "bodies";

/// The body files that exist, and the bytes reserved for each.
#[derive(Debug)]
pub(crate) struct Files {
    volume: Arc<dyn Volume>,
    table: Mutex<BTreeMap<u64, u64>>,
    bytes: AtomicU64,
    next: AtomicU64,
    found: Mutex<Vec<u64>>,
}

pub(crate) fn name(number: u64) -> String {
    format!("{DIRECTORY}/{number:010}.body")
}

/// The number in a body file's name.
pub(crate) fn number(name: &str) -> Option<u64> {
    name.strip_suffix(".body")?.parse().ok()
}

impl Files {
    pub(crate) fn new(volume: Arc<dyn Volume>) -> Self {
        Self {
            volume,
            table: Mutex::default(),
            bytes: AtomicU64::new(0),
            next: AtomicU64::new(0),
            found: Mutex::default(),
        }
    }

    /// Bytes reserved for all of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// One that was found at the start.
    pub(crate) fn add(&self, number: u64, bytes: u64) {
        self.set(number, bytes);
        self.next.fetch_max(number + 1, Ordering::AcqRel);
        self.found.lock().push(number);
    }

    /// Those that were found at the start. Asked for once.
    pub(crate) fn found(&self) -> Vec<u64> {
        std::mem::take(&mut self.found.lock())
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.table.lock().contains_key(&number)
    }

    /// A new one, empty.
    pub(crate) fn create(&self) -> io::Result<(u64, Arc<dyn Bytefile>)> {
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        let file = self.volume.create(&name(number))?;
        self.set(number, 0);
        Ok((number, file))
    }

    /// Makes its reservation this large.
    pub(crate) fn set(&self, number: u64, bytes: u64) {
        let before = self.table.lock().insert(number, bytes).unwrap_or(0);
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.bytes.fetch_sub(before, Ordering::AcqRel);
    }

    pub(crate) fn open(&self, number: u64) -> io::Result<Arc<dyn Bytefile>> {
        self.volume.open(&name(number))
    }

    /// Removes it; who reads it still may.
    pub(crate) fn remove(&self, number: u64) -> io::Result<()> {
        let Some(bytes) = self.table.lock().remove(&number) else {
            return Ok(());
        };
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.volume.remove(&name(number))
    }

    /// All of them, oldest first.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.table.lock().keys().copied().collect()
    }

    /// Forgets all of them, for a disk that was emptied.
    pub(crate) fn forget_all(&self) {
        let mut table = self.table.lock();
        let bytes = table.values().sum();
        table.clear();
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}
