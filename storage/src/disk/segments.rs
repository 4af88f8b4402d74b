//! The segments that exist, in order. Only the newest is written to, by the writer alone; the oldest goes first.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::entry::{PAGE, SEGMENTS_MAX};
use super::volume::{Bytefile, Volume};

/// Where they are, below the disk's directory.
pub(crate) const DIRECTORY: &str = "segments";

/// Segments whose files are open at once; more are opened when they are read.
const OPEN_MAX: usize = 1024;

/// Largest segment: offsets in it fit the index.
const SEGMENT_MAX: u64 = 64 << 20;

/// Smallest number of segments that a disk is divided into.
const SEGMENTS_MIN: u64 = 16;

/// Bytes of a segment on a disk of this size.
pub(crate) fn segment_bytes(max_size: u64) -> u64 {
    // Offsets stop short of 64 MiB, or the last record's end would not fit.
    (max_size / SEGMENTS_MIN).min(SEGMENT_MAX - (1 << 16))
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) seq: u32,
    len: AtomicU64,
    file: Mutex<Option<Arc<dyn Bytefile>>>,
}

impl Segment {
    /// Bytes written to it.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    pub(crate) fn name(&self) -> String {
        name(self.seq)
    }
}

pub(crate) fn name(seq: u32) -> String {
    format!("{DIRECTORY}/{seq:010}.seg")
}

/// The number in a segment's name.
pub(crate) fn number(name: &str) -> Option<u32> {
    name.strip_suffix(".seg")?.parse().ok()
}

#[derive(Debug)]
pub(crate) struct Segments {
    volume: Arc<dyn Volume>,
    table: RwLock<BTreeMap<u32, Arc<Segment>>>,
    bytes: AtomicU64,
    /// Whose files are open, the longest open one first.
    open: Mutex<VecDeque<Arc<Segment>>>,
}

impl Segments {
    pub(crate) fn new(volume: Arc<dyn Volume>) -> Self {
        Self {
            volume,
            table: RwLock::default(),
            bytes: AtomicU64::new(0),
            open: Mutex::default(),
        }
    }

    /// Bytes that all of them take, in whole pages.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    pub(crate) fn add(&self, seq: u32, len: u64, file: Option<Arc<dyn Bytefile>>) -> Arc<Segment> {
        let is_open = file.is_some();
        let segment = Arc::new(Segment {
            seq,
            len: AtomicU64::new(len),
            file: Mutex::new(file),
        });
        self.bytes.fetch_add(pages(len), Ordering::AcqRel);
        if let Some(old) = self.table.write().insert(seq, Arc::clone(&segment)) {
            self.bytes.fetch_sub(pages(old.len()), Ordering::AcqRel);
        }
        if is_open {
            self.opened(&segment);
        }
        segment
    }

    /// It was written up to `len`.
    pub(crate) fn grown(&self, segment: &Segment, len: u64) {
        let before = segment.len.swap(len, Ordering::AcqRel);
        self.bytes.fetch_add(pages(len) - pages(before), Ordering::AcqRel);
    }

    /// Forgets it; who reads it still may. Its file is to be removed by the caller.
    pub(crate) fn remove(&self, seq: u32) {
        if let Some(old) = self.table.write().remove(&seq) {
            self.bytes.fetch_sub(pages(old.len()), Ordering::AcqRel);
            self.open.lock().retain(|open| open.seq != seq);
        }
    }

    /// The segment whose number ends in these bits.
    pub(crate) fn get(&self, low: u32) -> Option<Arc<Segment>> {
        let table = self.table.read();
        let (&newest, _) = table.last_key_value()?;
        let back = newest.wrapping_sub(low) % SEGMENTS_MAX;
        table.get(&newest.checked_sub(back)?).cloned()
    }

    pub(crate) fn newest(&self) -> Option<u32> {
        self.table.read().last_key_value().map(|(&seq, _)| seq)
    }

    pub(crate) fn oldest(&self) -> Option<Arc<Segment>> {
        self.table
            .read()
            .first_key_value()
            .map(|(_, segment)| Arc::clone(segment))
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Segment>> {
        self.table.read().values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.table.read().len()
    }

    /// The file of a segment, opened where it isn't.
    pub(crate) fn file(&self, segment: &Arc<Segment>) -> io::Result<Arc<dyn Bytefile>> {
        let mut slot = segment.file.lock();
        if let Some(file) = &*slot {
            return Ok(Arc::clone(file));
        }
        let file = self.volume.open(&segment.name())?;
        *slot = Some(Arc::clone(&file));
        drop(slot);
        self.opened(segment);
        Ok(file)
    }

    fn opened(&self, segment: &Arc<Segment>) {
        let mut open = self.open.lock();
        open.push_back(Arc::clone(segment));
        let closed = if open.len() > OPEN_MAX { open.pop_front() } else { None };
        drop(open);
        if let Some(closed) = closed {
            *closed.file.lock() = None;
        }
    }
}

/// What a file of this length takes.
pub(crate) const fn pages(len: u64) -> u64 {
    len.div_ceil(PAGE) * PAGE
}
