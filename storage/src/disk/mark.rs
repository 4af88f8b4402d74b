//! The marker of a cache directory: that it is one, of which version, and which one. Everything else in it is worth nothing
//! without.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::config::OpenError;
use super::durable;
use super::files;
use super::format::wire::{Fields, Write};
use super::format::{VERSION, checksum};
use super::segments;
use super::snapshot;

const NAME: &str = "larder.disk";
const LOCK: &str = "lock";
const MAGIC: [u8; 8] = *b"LARDERDK";

/// What the marker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The identity of this cache.
    Ours([u8; 16]),
    /// Another version, or damaged.
    Other,
    /// There is none.
    None,
}

/// Holds the directory against other processes until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Takes the directory for this process.
///
/// # Errors
/// `Ok(None)` where the disk is in trouble: it is tried again later.
pub(crate) fn lock(path: &Path) -> Result<Option<Lock>, OpenError> {
    if let Err(fault) = make_private(path) {
        tracing::warn!(disk = %path.display(), %fault, "the cache directory cannot be made");
        return Ok(None);
    }
    if !is_a_cache(path) {
        return Err(OpenError::NotACache { path: path.to_owned() });
    }
    let Ok(file) = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK))
    else {
        return Ok(None);
    };
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(_) => Ok(None),
    }
}

/// Nothing but ours is in it: what we made is removed and made again at will, what others made must not be.
fn is_a_cache(path: &Path) -> bool {
    const OURS: [&str; 7] = [
        NAME,
        LOCK,
        segments::DIRECTORY,
        files::DIRECTORY,
        durable::DIRECTORY,
        snapshot::NAME,
        "snapshot.tmp",
    ];
    let names = fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    let mut names = names.filter_map(|name| name.into_string().ok());
    // A file system of its own has this one.
    path.join(NAME).exists() || names.all(|name| OURS.contains(&name.as_str()) || name == "lost+found")
}

pub(crate) fn read(path: &Path) -> io::Result<Mark> {
    let bytes = match fs::read(path.join(NAME)) {
        Ok(bytes) => bytes,
        Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(Mark::None),
        Err(fault) => return Err(fault),
    };
    Ok(decode(&bytes).map_or(Mark::Other, Mark::Ours))
}

fn decode(bytes: &[u8]) -> Option<[u8; 16]> {
    let mut fields = Fields(bytes);
    let known = fields.array::<8>()? == MAGIC && fields.u32()? == VERSION;
    let disk = fields.array::<16>()?;
    let whole = fields.u32()? == checksum(0, bytes.get(..28)?);
    (known && whole).then_some(disk)
}

/// Makes the directory an empty cache with a new identity.
pub(crate) fn make(path: &Path) -> io::Result<[u8; 16]> {
    make_private(path)?;
    for directory in [segments::DIRECTORY, files::DIRECTORY, durable::DIRECTORY] {
        gone(fs::remove_dir_all(path.join(directory)))?;
    }
    gone(fs::remove_file(path.join(snapshot::NAME)))?;
    for directory in [segments::DIRECTORY, files::DIRECTORY] {
        fs::create_dir_all(path.join(directory))?;
    }
    let mut disk = [0; 16];
    getrandom::fill(&mut disk).map_err(|_| io::Error::other("no random numbers"))?;
    let mut bytes = MAGIC.to_vec();
    bytes.put_u32(VERSION);
    bytes.extend_from_slice(&disk);
    let crc = checksum(0, &bytes);
    bytes.put_u32(crc);
    fs::write(path.join(NAME), bytes)?;
    File::open(path.join(NAME))?.sync_all()?;
    File::open(path)?.sync_all()?;
    Ok(disk)
}

/// What is stored is nobody else's to read.
fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(fault) if fault.kind() != ErrorKind::NotFound => Err(fault),
        _ => Ok(()),
    }
}
