//! The durable index: sled. The only place that names it. It is rebuilt from the segments where it is lost, so nothing here
//! is ever the reason that a start fails. It is called from the writer, the keeper and the pool, never from a worker.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::entry::Entry;
use super::format::wire::{Fields, Write};

/// Below the disk's directory.
pub(crate) const DIRECTORY: &str = "index";

/// Sled uses about three times of it.
const CACHE_BYTES: u64 = 4 << 20;

/// A million records open in a third of a second; a hundred times that is no start any more.
const OPEN_PATIENCE: Duration = Duration::from_secs(30);

/// Keys of records have eight bytes; these have others, or an identity could be mistaken for one.
const OWNERS: &[u8] = b"own";
const POSITION_KEY: &[u8] = b"=position";

/// Up to where the log is in an index, and whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    pub(crate) seq: u32,
    pub(crate) at: u64,
    /// The highest purge before.
    pub(crate) fence: u64,
    /// Identity of the disk.
    pub(crate) disk: [u8; 16],
}

impl Position {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.seq);
        out.put_u64(self.at);
        out.put_u64(self.fence);
        out.extend_from_slice(&self.disk);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            seq: fields.u32()?,
            at: fields.u64()?,
            fence: fields.u64()?,
            disk: fields.array()?,
        })
    }
}

#[derive(Debug)]
pub(crate) struct Durable {
    db: sled::Db,
    path: PathBuf,
}

/// What sled said.
#[derive(Debug, thiserror::Error)]
#[error("the index (sled): {0}")]
pub(crate) struct DurableError(#[from] sled::Error);

/// Opens it, on a thread of its own, within some time: a sled that is damaged may panic, or never come back.
pub(crate) fn open_within(root: &Path) -> Result<Durable, String> {
    let (tell, told) = mpsc::channel();
    let own = root.to_owned();
    let opening = thread::Builder::new()
        .name("larder-sled-open".to_owned())
        .spawn(move || {
            // Who waited may have given up.
            let _ = tell.send(Durable::open(&own));
        });
    opening.map_err(|fault| fault.to_string())?;
    match told.recv_timeout(OPEN_PATIENCE) {
        Ok(opened) => opened.map_err(|error| error.to_string()),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err("sled panicked".to_owned()),
        Err(mpsc::RecvTimeoutError::Timeout) => Err("sled does not open in time".to_owned()),
    }
}

/// Removes it. What can't be removed is found by the next that opens it.
pub(crate) fn remove(root: &Path) {
    let _ = std::fs::remove_dir_all(root.join(DIRECTORY));
}

impl Durable {
    fn open(root: &Path) -> Result<Self, DurableError> {
        let path = root.join(DIRECTORY);
        let db = sled::Config::default()
            .path(&path)
            .mode(sled::Mode::LowSpace)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(Some(1000))
            .open()?;
        Ok(Self { db, path })
    }

    pub(crate) fn find(&self, short: u64) -> Result<Option<Entry>, DurableError> {
        let found = self.db.get(short.to_be_bytes())?;
        Ok(found.and_then(|value| decode(&value)))
    }

    /// Makes these records be as given, and the position with them, in one step.
    pub(crate) fn apply(
        &self,
        changes: &[(u64, Option<Entry>)],
        position: Option<&Position>,
    ) -> Result<(), DurableError> {
        let mut batch = sled::Batch::default();
        for (short, entry) in changes {
            match entry {
                Some(entry) => batch.insert(&short.to_be_bytes(), &entry.to_bytes()),
                None => batch.remove(&short.to_be_bytes()),
            }
        }
        if let Some(position) = position {
            let mut value = Vec::with_capacity(36);
            position.encode(&mut value);
            batch.insert(POSITION_KEY, value);
        }
        Ok(self.db.apply_batch(batch)?)
    }

    /// Up to where it has the log; `None` if that was never told.
    pub(crate) fn position(&self) -> Result<Option<Position>, DurableError> {
        let value = self.db.get(POSITION_KEY)?;
        Ok(value.and_then(|value| Position::decode(&mut Fields(&value))))
    }

    /// Names of the owners by the numbers that the entries have.
    pub(crate) fn owners(&self) -> Result<Vec<Box<[u8]>>, DurableError> {
        let value = self.db.get(OWNERS)?;
        Ok(value.map_or_else(Vec::new, |value| decode_names(&mut Fields(&value)).unwrap_or_default()))
    }

    pub(crate) fn set_owners(&self, names: &[Box<[u8]>]) -> Result<(), DurableError> {
        let mut value = Vec::new();
        encode_names(names, &mut value);
        self.db.insert(OWNERS, value)?;
        Ok(())
    }

    /// All records, in the order of their identities.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<Entry, DurableError>> {
        self.db.iter().filter_map(|item| match item {
            Ok((key, value)) if key.len() == 8 => decode(&value).map(Ok),
            Ok(_) => None,
            Err(error) => Some(Err(error.into())),
        })
    }

    /// Drops everything. The files stay as large as they are.
    pub(crate) fn clear(&self) -> Result<(), DurableError> {
        Ok(self.db.clear()?)
    }

    /// Waits until everything is on disk.
    pub(crate) fn flush(&self) -> Result<(), DurableError> {
        self.db.flush()?;
        Ok(())
    }

    /// Bytes of its files.
    pub(crate) fn size(&self) -> u64 {
        files_size(&self.path)
    }
}

fn decode(value: &[u8]) -> Option<Entry> {
    Some(Entry::from_bytes(value.first_chunk::<32>()?))
}

/// Bytes of the files in a directory and those below it.
fn files_size(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => files_size(&entry.path()),
        Ok(facts) => std::os::unix::fs::MetadataExt::blocks(&facts) * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

pub(crate) fn encode_names(names: &[Box<[u8]>], out: &mut Vec<u8>) {
    out.put_u32(u32::try_from(names.len()).unwrap_or(0));
    for name in names {
        out.put_u32(u32::try_from(name.len()).unwrap_or(0));
        out.extend_from_slice(name);
    }
}

pub(crate) fn decode_names(fields: &mut Fields<'_>) -> Option<Vec<Box<[u8]>>> {
    let count = fields.u32()?;
    let mut names = Vec::new();
    for _ in 0..count {
        let len = usize::try_from(fields.u32()?).ok()?;
        let name = fields.0.get(..len)?;
        names.push(name.into());
        fields.skip(len)?;
    }
    Some(names)
}
