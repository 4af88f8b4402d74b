//! The index in one file, sorted, so that a start can look records up in it before anything is loaded. It says up to which
//! place of the log it goes; what came later is replayed from there. A damaged one is as good as none.

use std::io;
use std::sync::Arc;

use super::core::Core;
use super::durable::{Position, decode_names, encode_names};
use super::entry::Entry;
use super::format::wire::{Fields, Write};
use super::format::{VERSION, checksum};
use super::volume::{Bytefile, Volume};

/// Below the disk's directory.
pub(crate) const NAME: &str = "snapshot";
const TEMPORARY: &str = "snapshot.tmp";

const MAGIC: [u8; 8] = *b"LARDERSN";
/// Magic, version, lengths, checksums and position.
const FIXED_BYTES: usize = 96;
const ENTRY_BYTES: u64 = 32;
/// Owners' names beyond this would be a damaged length: a thousand long ones.
const NAMES_MAX: u64 = 4 << 20;
/// Entries that are read or written at once.
const STEP: u64 = 8192;

/// A snapshot that was opened.
#[derive(Debug)]
pub(crate) struct Snapshot {
    file: Arc<dyn Bytefile>,
    pub(crate) position: Position,
    /// Where the entries begin, and how many there are.
    base: u64,
    pub(crate) count: u64,
    entries_crc: u32,
    /// The numbers that the owners have in this process.
    owners: Vec<u16>,
}

impl Snapshot {
    /// Reads the head of it. `None`: there is none, or none that is of use.
    pub(crate) fn open(core: &Core, disk: [u8; 16]) -> Option<Self> {
        let file = core.volume.open(NAME).ok()?;
        let mut fixed = vec![0; FIXED_BYTES];
        (file.read_at(&mut fixed, 0).ok()? == FIXED_BYTES).then_some(())?;
        let mut fields = Fields(&fixed);
        (fields.array::<8>()? == MAGIC && fields.u32()? == VERSION).then_some(())?;
        let (entries_crc, names_len, count) = (fields.u32()?, fields.u64()?, fields.u64()?);
        let position = Position::decode(&mut fields)?;
        let names_crc = fields.u32()?;
        let (checked, crc) = fixed.split_at(FIXED_BYTES - 4);
        (crc == checksum(1, checked).to_le_bytes() && position.disk == disk && names_len <= NAMES_MAX).then_some(())?;
        let mut names = vec![0; usize::try_from(names_len).ok()?];
        let read = file.read_at(&mut names, FIXED_BYTES as u64).ok()?;
        (read == names.len() && checksum(2, &names) == names_crc).then_some(())?;
        let names = decode_names(&mut Fields(&names))?;
        let base = FIXED_BYTES as u64 + names_len;
        (file.len().ok()? >= base + count.checked_mul(ENTRY_BYTES)?).then_some(())?;
        Some(Self {
            file,
            position,
            base,
            count,
            entries_crc,
            owners: names.iter().map(|name| core.owners.number(name)).collect(),
        })
    }

    /// Looks one record up where it lies.
    pub(crate) fn find(&self, short: u64) -> io::Result<Option<Entry>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.entry(middle)?;
            match entry.short.cmp(&short) {
                std::cmp::Ordering::Equal => return Ok(Some(self.localised(entry))),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    fn entry(&self, number: u64) -> io::Result<Entry> {
        let mut bytes = [0; ENTRY_BYTES as usize];
        self.file.read_at(&mut bytes, self.base + number * ENTRY_BYTES)?;
        Ok(Entry::from_bytes(&bytes))
    }

    fn localised(&self, entry: Entry) -> Entry {
        entry.owned_by(self.owners.get(usize::from(entry.owner())).copied().unwrap_or(u16::MAX))
    }

    /// Whether every entry is as it was written.
    pub(crate) fn is_whole(&self) -> io::Result<bool> {
        let mut hasher = crc32fast::Hasher::new();
        self.each_step(|bytes| hasher.update(bytes))?;
        Ok(hasher.finalize() == self.entries_crc)
    }

    /// Hands all entries over, some at a time.
    pub(crate) fn each(&self, mut take: impl FnMut(Entry)) -> io::Result<()> {
        self.each_step(|bytes| {
            for bytes in bytes.as_chunks::<32>().0 {
                take(self.localised(Entry::from_bytes(bytes)));
            }
        })
    }

    fn each_step(&self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut number = 0;
        let mut buffer = Vec::new();
        while number < self.count {
            let step = STEP.min(self.count - number);
            buffer.resize(usize::try_from(step * ENTRY_BYTES).unwrap_or(0), 0);
            let read = self.file.read_at(&mut buffer, self.base + number * ENTRY_BYTES)?;
            take(buffer.get(..read).unwrap_or_default());
            number += step;
        }
        Ok(())
    }
}

/// Writes the index out. `position` is one that the index had reached before.
pub(crate) fn write(core: &Core, position: &Position) -> io::Result<u64> {
    let volume = &*core.volume;
    let written = write_temporary(core, volume, position);
    if written.is_err() {
        // What is left of it is only in the way.
        let _ = volume.remove(TEMPORARY);
    }
    let bytes = written?;
    volume.rename(TEMPORARY, NAME)?;
    Ok(bytes)
}

fn write_temporary(core: &Core, volume: &dyn Volume, position: &Position) -> io::Result<u64> {
    let file = volume.create(TEMPORARY)?;
    let mut names = Vec::new();
    encode_names(&core.owners.names(), &mut names);
    file.write_at(&names, FIXED_BYTES as u64)?;
    let base = FIXED_BYTES as u64 + names.len() as u64;
    let (mut count, mut hasher) = (0, crc32fast::Hasher::new());
    for number in 0..core.index.shards() {
        let mut entries = core.index.copy_shard(number);
        entries.sort_unstable_by_key(|entry| entry.short);
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes()).collect();
        file.write_at(&bytes, base + count * ENTRY_BYTES)?;
        hasher.update(&bytes);
        count += entries.len() as u64;
    }
    let mut fixed = Vec::with_capacity(FIXED_BYTES);
    fixed.extend_from_slice(&MAGIC);
    fixed.put_u32(VERSION);
    fixed.put_u32(hasher.finalize());
    fixed.put_u64(names.len() as u64);
    fixed.put_u64(count);
    position.encode(&mut fixed);
    fixed.put_u32(checksum(2, &names));
    fixed.resize(FIXED_BYTES - 4, 0);
    let crc = checksum(1, &fixed);
    fixed.put_u32(crc);
    file.write_at(&fixed, 0)?;
    file.sync()?;
    Ok(base + count * ENTRY_BYTES)
}
