//! Opening a disk: nothing here waits for more than some small reads. A disk in trouble is opened degraded.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use parking_lot::Mutex;

use super::catch_up::catch_up;
use super::config::{DiskConfig, OpenError};
use super::core::{Common, Core, Fallback};
use super::files;
use super::format::{SEGMENT_HEADER, SegmentHeader, judge_segment_header};
use super::health::because;
use super::keeper::{Keeper, Start, Stop, Upstairs};
use super::mark::{self, Mark};
use super::segments;
use super::snapshot::Snapshot;
use super::volume::{Directory, Volume};
use super::writer::Writer;
use super::{Disk, durable};

/// Of more segments than this only the oldest and the newest are looked at when a disk is opened.
const LOOKED_AT: usize = 256;

impl Disk {
    /// Opens the real one.
    pub(crate) fn open(config: &DiskConfig, common: &Common, upstairs: Upstairs) -> Result<Self, OpenError> {
        #[cfg(test)]
        if let Some(volume) = super::volume::faulty::planted(&config.path) {
            return Self::open_on(config, common, volume, upstairs);
        }
        let volume = Arc::new(Directory::new(&config.path));
        Self::open_on(config, common, volume, upstairs)
    }

    /// Opens one whose files are on any volume.
    pub(crate) fn open_on(
        config: &DiskConfig,
        common: &Common,
        volume: Arc<dyn Volume>,
        upstairs: Upstairs,
    ) -> Result<Self, OpenError> {
        let lock = mark::lock(&config.path)?;
        let core = Arc::new(Core::new(config.clone(), volume, common.clone()));
        #[cfg(test)]
        core.index
            .counts_twice
            .store(core.has_bug(super::planted::Bug::DoubleCount), Ordering::Relaxed);
        let start = match &lock {
            None => Err(io::Error::other("the directory cannot be made or locked")),
            Some(_) => prepare(&core),
        };
        let start = start.unwrap_or_else(|fault| {
            core.set_fallback(Fallback::Nothing);
            core.degrade(because("opening the cache directory", &fault));
            Start {
                next_seq: core.segments.newest().map_or(1, |seq| seq + 1),
                ..Start::default()
            }
        });
        let stop = Arc::new(Stop::default());
        let writer = Writer::new(Arc::clone(&core), start.disk, start.next_seq);
        let keeper = Keeper::new(Arc::clone(&core), Arc::clone(&stop), start, lock, upstairs);
        let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
        let own = Arc::clone(&core);
        let writer = spawn("larder-write").spawn(move || {
            let ended = panic::catch_unwind(AssertUnwindSafe(|| writer.run()));
            if ended.is_err() {
                own.degrade("the writer of this disk broke down: only a restart brings it back".to_owned());
            }
            // Nobody must wait for what will not be done.
            own.queue.die();
        });
        let own = Arc::clone(&core);
        let keeper = spawn("larder-keeper").spawn(move || {
            let ended = panic::catch_unwind(AssertUnwindSafe(|| keeper.run()));
            ended.unwrap_or_else(|_| {
                // Nobody must wait for what will not be loaded.
                own.set_fallback(Fallback::Nothing);
                own.index.end_load();
                own.degrade("the keeper of this disk broke down: only a restart brings it back".to_owned());
                None
            })
        });
        Ok(Self {
            core,
            stop,
            writer: Mutex::new(Some(writer.map_err(OpenError::Thread)?)),
            keeper: Mutex::new(Some(keeper.map_err(OpenError::Thread)?)),
        })
    }
}

fn prepare(core: &Core) -> io::Result<Start> {
    let root = core.volume.root().to_owned();
    let disk = match mark::read(&root)? {
        Mark::Ours(disk) => disk,
        Mark::Other => return begin_clean(core, "its marker is of another version, or damaged"),
        Mark::None => return begin_empty(core),
    };
    let mut listed: Vec<(u32, u64)> = core
        .volume
        .list(segments::DIRECTORY)?
        .into_iter()
        .filter_map(|(name, len)| Some((segments::number(&name)?, len)))
        .collect();
    listed.sort_unstable();
    if is_of_another_version(core, disk, &listed)? {
        return begin_clean(core, "its segments are of another version");
    }
    for &(seq, len) in &listed {
        core.segments.add(seq, len, None);
    }
    for (name, len) in core.volume.list(files::DIRECTORY)? {
        match files::number(&name) {
            Some(number) => core.files.add(number, segments::pages(len)),
            None => core.volume.remove(&format!("{}/{name}", files::DIRECTORY))?,
        }
    }
    let mut start = Start {
        disk,
        next_seq: listed.last().map_or(1, |(seq, _)| seq + 1),
        snapshot: Snapshot::open(core, disk).map(Arc::new),
        has_past: !listed.is_empty(),
        changed: Vec::new(),
    };
    if start.has_past {
        core.index.begin_load();
    }
    if let Some(snapshot) = start.snapshot.clone().filter(|_| start.has_past) {
        // Who is asked from the first moment must know what was purged since the snapshot.
        core.fence.fetch_max(snapshot.position.fence, Ordering::AcqRel);
        let found = catch_up(core, &snapshot.position, start.next_seq, |_| {});
        start.changed = found.changed;
        core.set_fallback(if found.cleared {
            Fallback::Nothing
        } else {
            Fallback::Snapshot(snapshot)
        });
    }
    Ok(start)
}

fn is_of_another_version(core: &Core, disk: [u8; 16], listed: &[(u32, u64)]) -> io::Result<bool> {
    let skipped = listed.len().saturating_sub(LOOKED_AT);
    let looked_at = listed.iter().enumerate().filter(|(at, _)| *at == 0 || *at >= skipped);
    for (_, &(seq, _)) in looked_at {
        let mut header = [0; 64];
        let file = core.volume.open(&segments::name(seq))?;
        let read = file.read_at(&mut header, 0)?;
        let header = header.get(..read).unwrap_or_default();
        if read as u64 == SEGMENT_HEADER
            && let SegmentHeader::OtherVersion(version) = judge_segment_header(header, disk, seq)
        {
            tracing::debug!(seq, version, "a segment of another version");
            return Ok(true);
        }
    }
    Ok(false)
}

fn begin_clean(core: &Core, why: &str) -> io::Result<Start> {
    tracing::warn!(disk = %core.config.path.display(), why, "the cache is started empty");
    begin_empty(core)
}

fn begin_empty(core: &Core) -> io::Result<Start> {
    let root = core.volume.root();
    durable::remove(root);
    Ok(Start {
        disk: mark::make(root)?,
        next_seq: 1,
        ..Start::default()
    })
}
