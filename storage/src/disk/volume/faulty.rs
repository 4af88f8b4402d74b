//! A disk under the disk tier that remembers what was never synced, and fails when it is told to. Compiled into tests alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

use super::{Bytefile, Directory, Volume};

const PAGE: usize = 4096;
/// "Input/output error".
const EIO: i32 = 5;
/// "No space left on device".
const ENOSPC: i32 = 28;

#[derive(Debug)]
pub(crate) struct Faulty {
    inner: Directory,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// By file, from where to where was written and not synced.
    dirty: Mutex<BTreeMap<String, Vec<Range<usize>>>>,
    /// Files that were made, whose directory was not synced.
    made: Mutex<BTreeSet<String>>,
    operations: AtomicU64,
    /// Operations until failures begin, and how many there are.
    until: AtomicI64,
    failures: AtomicI64,
    /// Writes wait while it is set.
    is_held: Mutex<bool>,
    released: Condvar,
    /// Bytes of bodies and records that still fit.
    room: AtomicU64,
    /// What the file system says that anyone may still use.
    free: AtomicU64,
}

static PLANTED: Mutex<Option<HashMap<PathBuf, Arc<Faulty>>>> = Mutex::new(None);

/// Puts a disk like this under whatever is opened on this path.
pub(crate) fn plant(path: &Path) -> Arc<Faulty> {
    let faulty = Arc::new(Faulty {
        inner: Directory::new(path),
        shared: Arc::new(Shared {
            until: AtomicI64::new(i64::MAX),
            room: AtomicU64::new(u64::MAX),
            free: AtomicU64::new(u64::MAX),
            ..Shared::default()
        }),
    });
    let own = Arc::clone(&faulty);
    PLANTED.lock().get_or_insert_default().insert(path.to_owned(), own);
    faulty
}

pub(crate) fn planted(path: &Path) -> Option<Arc<Faulty>> {
    PLANTED.lock().as_ref()?.get(path).cloned()
}

impl Faulty {
    /// From the `until`th operation on, so many of them fail.
    pub(crate) fn fail(&self, until: i64, failures: i64) {
        self.shared.failures.store(failures, Ordering::SeqCst);
        self.shared.until.store(until, Ordering::SeqCst);
    }

    /// Lets no write through until it is told otherwise.
    pub(crate) fn hold(&self, is_held: bool) {
        *self.shared.is_held.lock() = is_held;
        self.shared.released.notify_all();
    }

    /// Only so many bytes more can be written.
    pub(crate) fn set_room(&self, bytes: u64) {
        self.shared.room.store(bytes, Ordering::SeqCst);
    }

    /// The file system says that so much of it is free.
    pub(crate) fn set_free(&self, bytes: u64) {
        self.shared.free.store(bytes, Ordering::SeqCst);
    }

    /// Whether all failures have happened.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.failures.load(Ordering::SeqCst) <= 0
    }

    /// Whether everything in segments and body files is synced.
    pub(crate) fn is_synced(&self) -> bool {
        self.shared.dirty.lock().values().all(Vec::is_empty)
    }

    /// What a power cut could leave of the directory: of each page, what was never synced
    /// is there or not, by chance.
    pub(crate) fn lose_power(&self, to: &Path, mut chance: impl FnMut() -> bool) {
        let dirty = self.shared.dirty.lock().clone();
        let made = self.shared.made.lock().clone();
        for name in ["segments", "bodies", "."] {
            let from = self.inner.root().join(name);
            fs::create_dir_all(to.join(name)).unwrap();
            for entry in fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                let file = entry.file_name().into_string().unwrap();
                let relative = if name == "." { file } else { format!("{name}/{file}") };
                let Ok(mut content) = fs::read(entry.path()) else {
                    continue;
                };
                if made.contains(&relative) && chance() {
                    continue;
                }
                for page in (0..content.len()).step_by(PAGE) {
                    let written = dirty.get(&relative).into_iter().flatten();
                    let lost = written.filter(|range| range.start < page + PAGE && page < range.end);
                    let lost: Vec<_> = lost.collect();
                    if lost.is_empty() || !chance() {
                        continue;
                    }
                    for range in lost {
                        let end = range.end.min(page + PAGE).min(content.len());
                        content[range.start.max(page)..end].fill(0);
                    }
                }
                fs::write(to.join(relative), content).unwrap();
            }
        }
    }
}

impl Shared {
    fn count(&self) -> io::Result<()> {
        self.operations.fetch_add(1, Ordering::SeqCst);
        if self.until.fetch_sub(1, Ordering::SeqCst) > 0 || self.failures.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return Ok(());
        }
        Err(io::Error::from_raw_os_error(EIO))
    }

    fn write(&self, bytes: u64) -> io::Result<()> {
        self.count()?;
        let mut is_held = self.is_held.lock();
        self.released.wait_while(&mut is_held, |is_held| *is_held);
        drop(is_held);
        let fits = |room: u64| room.checked_sub(bytes);
        let taken = self.room.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits);
        taken.map(drop).map_err(|_| io::Error::from_raw_os_error(ENOSPC))
    }

    fn wrap(self: &Arc<Self>, name: &str, file: Arc<dyn Bytefile>) -> Arc<dyn Bytefile> {
        Arc::new(FaultyFile {
            name: name.to_owned(),
            file,
            shared: Arc::clone(self),
        })
    }
}

impl Volume for Faulty {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Bytefile>> {
        self.shared.count()?;
        Ok(self.shared.wrap(name, self.inner.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Bytefile>> {
        self.shared.count()?;
        let file = self.inner.create(name)?;
        self.shared.made.lock().insert(name.to_owned());
        self.shared.dirty.lock().remove(name);
        Ok(self.shared.wrap(name, file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.shared.count()?;
        self.shared.dirty.lock().remove(name);
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.shared.count()?;
        self.shared.dirty.lock().remove(from);
        self.inner.rename(from, to)?;
        self.shared.made.lock().remove(from);
        Ok(())
    }

    fn list(&self, directory: &str) -> io::Result<Vec<(String, u64)>> {
        self.shared.count()?;
        self.inner.list(directory)
    }

    fn sync_directory(&self, directory: &str) -> io::Result<()> {
        self.shared.count()?;
        self.inner.sync_directory(directory)?;
        self.shared.made.lock().retain(|name| !name.starts_with(directory));
        Ok(())
    }

    fn free(&self) -> io::Result<u64> {
        Ok(self.inner.free()?.min(self.shared.free.load(Ordering::SeqCst)))
    }

    fn root(&self) -> &Path {
        self.inner.root()
    }
}

#[derive(Debug)]
struct FaultyFile {
    name: String,
    file: Arc<dyn Bytefile>,
    shared: Arc<Shared>,
}

impl Bytefile for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.shared.count()?;
        self.file.read_at(buffer, at)
    }

    fn read_now(&self, buffers: &mut [IoSliceMut<'_>], at: u64) -> io::Result<()> {
        self.shared.count()?;
        self.file.read_now(buffers, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.shared.write(bytes.len() as u64)?;
        let from = usize::try_from(at).unwrap();
        let range = from..from + bytes.len();
        self.shared
            .dirty
            .lock()
            .entry(self.name.clone())
            .or_default()
            .push(range);
        self.file.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.shared.count()?;
        // What is written from here on is not covered.
        let before = self.shared.dirty.lock().remove(&self.name);
        let synced = self.file.sync();
        if synced.is_err() {
            let mut dirty = self.shared.dirty.lock();
            dirty
                .entry(self.name.clone())
                .or_default()
                .extend(before.unwrap_or_default());
        }
        synced
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
