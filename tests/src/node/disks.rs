//! What a node says of its disks, and what is really there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::park_timeout;
use std::time::Instant;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::Signal;
use serde_json::Value;

use super::TestNode;
use crate::wait::{BETWEEN_LOOKS, DEADLINE, wait_until};

/// A disk as the statistics show it.
#[derive(Debug, Clone)]
pub struct Disk(Value);

impl Disk {
    /// `up` or `degraded`.
    #[must_use]
    pub fn state(&self) -> &str {
        self.text("state")
    }

    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state() == "up"
    }

    /// Why it is degraded.
    #[must_use]
    pub fn detail(&self) -> &str {
        self.text("detail")
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its index is complete.
    #[must_use]
    pub fn is_warm(&self) -> bool {
        self.0.get("warming").is_none_or(Value::is_null)
    }

    /// A gauge or counter by its name.
    ///
    /// # Panics
    /// Where there is none of that name.
    #[must_use]
    pub fn figure(&self, name: &str) -> u64 {
        let found = self.0.get(name).or_else(|| self.0.get("counters")?.get(name));
        found
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("no {name} in {:#}", self.0))
    }
}

impl TestNode {
    /// The directory of the n-th disk that was asked for by size alone, from 0.
    #[must_use]
    pub fn disk_path(&self, n: usize) -> PathBuf {
        disk_path(self.directory(), n)
    }

    /// Every disk, in the order of the configuration.
    ///
    /// # Panics
    /// Where the statistics have none.
    #[must_use]
    pub fn disks(&self) -> Vec<Disk> {
        let stats = self.stats();
        let disks = stats.pointer("/cache/disks").and_then(Value::as_array);
        disks
            .unwrap_or_else(|| panic!("no disks in {stats:#}"))
            .iter()
            .cloned()
            .map(Disk)
            .collect()
    }

    /// The n-th disk, from 0.
    ///
    /// # Panics
    /// Where there are fewer.
    #[must_use]
    pub fn disk(&self, n: usize) -> Disk {
        self.disks().into_iter().nth(n).expect("there are that many disks")
    }

    /// Waits until the n-th disk is as wanted; gives it.
    ///
    /// # Panics
    /// When the deadline passes first, with the disk as it is then.
    pub fn wait_disk(&self, n: usize, what: &str, holds: impl Fn(&Disk) -> bool) -> Disk {
        let end = Instant::now() + DEADLINE;
        loop {
            let disk = self.disk(n);
            if holds(&disk) {
                return disk;
            }
            assert!(Instant::now() < end, "waited in vain for disk {n} {what}: {disk:#?}");
            park_timeout(BETWEEN_LOOKS);
        }
    }

    /// Waits until no fill is under way and everything that was given to the disks is written.
    pub fn wait_written(&self) {
        wait_until("the fills to end", || self.figure("cache/fills_active") == 0);
        wait_until("the queues of the disks to be empty", || {
            self.disks().iter().all(|disk| disk.figure("queue_bytes") == 0)
        });
    }

    /// `/readyz`: status, and what it says of the tiers.
    #[must_use]
    pub fn readiness(&self) -> (u16, Value) {
        let (status, body) = self.admin_get("/readyz");
        (status, body.get("tiers").cloned().unwrap_or_default())
    }

    /// SIGKILL: nothing is written, nothing is told.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.process().wait(DEADLINE);
    }
}

/// The directory of a disk, below the node's own.
pub(super) fn disk_path(directory: &Path, n: usize) -> PathBuf {
    directory.join(format!("disk{n}"))
}

/// Bytes allocated to the files below a directory, like `du`; what vanishes meanwhile is not counted.
#[must_use]
pub fn allocated(directory: &Path) -> u64 {
    files_below(directory)
        .iter()
        .filter_map(|path| fs::symlink_metadata(path).ok())
        .map(|facts| facts.blocks() * 512)
        .sum()
}

/// Every file below a directory, in order.
#[must_use]
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(_) => found.push(entry.path()),
                Err(_) => {}
            }
        }
    }
    found.sort();
    found
}

/// Copies a directory with all that is below it.
///
/// # Panics
/// Where something can't be copied.
pub fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the copy's directory is made");
    for entry in fs::read_dir(from).expect("the directory is there") {
        let entry = entry.expect("the directory is read");
        let copy = to.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            copy_directory(&entry.path(), &copy);
        } else {
            fs::copy(entry.path(), copy).expect("the file is copied");
        }
    }
}

/// Puts a file in the place of a directory, so that it can be neither used nor made again; where the directory is now.
///
/// # Panics
/// Where that is not possible.
pub fn block(directory: &Path) -> PathBuf {
    let away = directory.with_extension("away");
    fs::write(&away, "in the way").expect("a file is made");
    exchange(&away, directory);
    away
}

/// Two names change places, at one moment.
///
/// # Panics
/// Where the file system can't do that.
pub fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("the names change places");
}
