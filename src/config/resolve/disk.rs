//! `[[cache.disk]]`.

use std::path::{Path, PathBuf};

use larder_storage::disk::DiskConfig;

use super::{DAY, absolute};
use crate::config::diagnostics::Report;
use crate::config::file;
use crate::config::values::{At, ByteSize, TimeSpan};

/// Each disk has threads of its own.
const DISKS_MAX: usize = 16;
const MIN_FREE_DEFAULT: ByteSize = ByteSize(0);
const INACTIVE_DEFAULT: TimeSpan = TimeSpan::secs(7 * DAY);
const INACTIVE_MAX: TimeSpan = TimeSpan::secs(365 * DAY);

/// The disks, with paths that do not collide with each other or with `state_dir`.
pub(super) fn all(disks: &[At<file::Disk>], state_dir: &Path, report: &mut Report) -> Vec<DiskConfig> {
    if let Some(excess) = disks.get(DISKS_MAX) {
        report.error(excess.span(), format!("there are more than {DISKS_MAX} disks"), "");
    }
    let mut found: Vec<DiskConfig> = Vec::new();
    for disk in disks {
        let config = one(disk, report);
        judge_path(disk, &config.path, state_dir, &found, report);
        found.push(config);
    }
    found
}

fn one(disk: &At<file::Disk>, report: &mut Report) -> DiskConfig {
    let path = match &disk.path {
        Some(path) => absolute(path, "path", report),
        None => {
            if !report.is_lost("cache.disk.path") {
                report.error(
                    disk.span(),
                    "the disk has no `path`",
                    "add path = \"/var/lib/larder/cache\"",
                );
            }
            PathBuf::new()
        }
    };
    DiskConfig {
        path,
        max_size: max_size(disk, report),
        min_free: disk.min_free.as_ref().map_or(MIN_FREE_DEFAULT, |size| **size).0,
        inactive: Some(inactive(disk, report).0),
    }
}

fn max_size(disk: &At<file::Disk>, report: &mut Report) -> u64 {
    let least = ByteSize(DiskConfig::MAX_SIZE_MIN);
    match &disk.max_size {
        Some(size) if size.0 == 0 => {
            let help = "remove [[cache.disk]] for no disk tier";
            report.error(size.span(), "`max_size` must be above 0", help);
        }
        Some(size) if **size < least => {
            let message = format!("`max_size` of a disk is less than {least}");
            report.error(size.span(), message, "");
        }
        None if !report.is_lost("cache.disk.max_size") => {
            report.error(disk.span(), "the disk has no `max_size`", "add max_size = \"10GiB\"");
        }
        _ => {}
    }
    disk.max_size.as_ref().map_or(0, |size| size.0)
}

fn inactive(disk: &At<file::Disk>, report: &mut Report) -> TimeSpan {
    let Some(span) = &disk.inactive else {
        return INACTIVE_DEFAULT;
    };
    if span.0.is_zero() {
        let help = "nothing would stay: leave it out for seven days";
        report.error(span.span(), "`inactive` must be longer than 0", help);
    } else if **span > INACTIVE_MAX {
        report.error(span.span(), "`inactive` is longer than 365 days", "");
    }
    **span
}

/// The directory is Larder's alone, and emptied at will.
fn judge_path(disk: &At<file::Disk>, path: &Path, state_dir: &Path, others: &[DiskConfig], report: &mut Report) {
    let Some(at) = &disk.path else { return };
    if !path.is_absolute() {
        return;
    }
    if state_dir.starts_with(path) {
        let help = "what is in a cache directory is removed at will: name another one, such as {state_dir}/cache";
        report.error(at.span(), "`path` holds `state_dir`", help);
    }
    let collides = |other: &DiskConfig| path.starts_with(&other.path) || other.path.starts_with(path);
    if others.iter().any(|other| other.path.is_absolute() && collides(other)) {
        let help = "give each disk a directory of its own";
        report.error(
            at.span(),
            "`path` is, or holds, or lies within that of another disk",
            help,
        );
    }
}
