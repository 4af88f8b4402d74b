//! Who changed what: one JSON line per change asked for, done or refused, in `{state_dir}/audit.log`.
//!
//! A change is *not* held back when its line cannot be written. A purge may be what takes private data out of the cache,
//! and a full disk must not stop it. Such a line goes to the process's log as an error instead, stays readable at
//! `GET /api/v1/audit`, and is counted in `larder_audit_errors_total`.
//!
//! Everything is bounded: a line, the file (it is renamed to `audit.log.1` when full, in place of the one before), the
//! lines kept in memory, and the rate of lines that callers without a token can cause.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub(crate) const KEPT_MAX: usize = 1000;
/// 32 MiB: two files of it hold some 200 000 lines.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Parameters beyond this are cut; with the other fields, all bounded, a line stays below 8 KiB.
const PARAMETERS_BYTES_MAX: usize = 4096;
const TEXT_BYTES_MAX: usize = 256;
/// Lines for callers without a token: so many at once, and one more for each second that passes.
const ANONYMOUS_BURST: u64 = 30;

/// One change that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// RFC 3339, in UTC.
    pub time: String,
    /// Name of the token; null where none, or none that is known, was presented.
    #[schema(required)]
    pub token: Option<String>,
    /// Address and port of the caller.
    #[schema(required)]
    pub remote: Option<String>,
    /// Method and path.
    pub action: String,
    /// The body of the request, cut where it is long; null where it was not read.
    pub parameters: Value,
    /// Status of the answer.
    pub status: u16,
    /// Code of the problem where it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Lines like this one that were left out before it because callers without a token caused too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suppressed: u64,
}

/// The audit log, open for writing.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    state: Mutex<State>,
    errors: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// `None` after a failure, until it can be opened again.
    file: Option<File>,
    latest: VecDeque<AuditEntry>,
    anonymous: Allowance,
}

#[derive(Debug)]
struct Allowance {
    left: u64,
    refilled: Instant,
    suppressed: u64,
}

impl AuditLog {
    /// Opens or makes `{state_dir}/audit.log`, mode 0600, and reads its last lines.
    ///
    /// # Errors
    /// Where it cannot be opened for reading and appending.
    pub fn open(state_dir: &Path) -> io::Result<Self> {
        let path = state_dir.join("audit.log");
        let mut file = open(&path)?;
        let latest = read_latest(&mut file)?;
        let anonymous = Allowance {
            left: ANONYMOUS_BURST,
            refilled: Instant::now(),
            suppressed: 0,
        };
        let state = Mutex::new(State {
            file: Some(file),
            latest,
            anonymous,
        });
        Ok(Self {
            path,
            state,
            errors: AtomicU64::new(0),
        })
    }

    /// Writes one line. See the module for what happens where it cannot.
    pub(crate) fn record(&self, mut entry: AuditEntry) {
        entry.bound();
        let mut state = self.state.lock();
        if entry.token.is_none() {
            let Some(suppressed) = state.anonymous.take(Instant::now()) else {
                return;
            };
            entry.suppressed = suppressed;
        }
        if let Err(error) = state.append(&self.path, &entry) {
            self.errors.fetch_add(1, Ordering::Relaxed);
            let line = serde_json::to_string(&entry).unwrap_or_default();
            tracing::error!(%error, path = %self.path.display(), line, "could not write an audit line");
        }
        if state.latest.len() >= KEPT_MAX {
            state.latest.pop_front();
        }
        state.latest.push_back(entry);
    }

    /// The last lines, newest first.
    pub(crate) fn latest(&self, limit: usize) -> Vec<AuditEntry> {
        self.state.lock().latest.iter().rev().take(limit).cloned().collect()
    }

    /// Lines that could not be written since the start.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }
}

impl AuditEntry {
    fn bound(&mut self) {
        truncate(&mut self.action, TEXT_BYTES_MAX);
        let text = self.parameters.to_string();
        if text.len() > PARAMETERS_BYTES_MAX {
            // Quoted a second time as a string, each byte of it takes at most two, since it holds no raw controls.
            let mut cut = text;
            truncate(&mut cut, PARAMETERS_BYTES_MAX / 2);
            self.parameters = serde_json::json!({ "cut": cut });
        }
    }
}

impl State {
    fn append(&mut self, path: &Path, entry: &AuditEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = match self.file.take() {
            Some(file) => file,
            None => open(path)?,
        };
        if file.metadata()?.len() + line.len() as u64 > FILE_BYTES_MAX {
            fs::rename(path, path.with_extension("log.1"))?;
            file = open(path)?;
        }
        // Put back only when the whole line is in: opening it again ends a line that was cut short.
        file.write_all(&line)?;
        self.file = Some(file);
        Ok(())
    }
}

impl Allowance {
    /// `None` where the line is to be left out, else how many were left out before it.
    fn take(&mut self, now: Instant) -> Option<u64> {
        let seconds = now.saturating_duration_since(self.refilled).as_secs();
        if seconds > 0 {
            self.left = self.left.saturating_add(seconds).min(ANONYMOUS_BURST);
            self.refilled = now;
        }
        let Some(left) = self.left.checked_sub(1) else {
            self.suppressed += 1;
            return None;
        };
        self.left = left;
        Some(std::mem::take(&mut self.suppressed))
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != [b'\n'] {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// 2 MiB hold a thousand lines of 2 KiB; longer ones are rare.
fn read_latest(file: &mut File) -> io::Result<VecDeque<AuditEntry>> {
    const TAIL_BYTES: u64 = 2 << 20;
    let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let mut latest: VecDeque<AuditEntry> = tail
        .rsplit(|byte| *byte == b'\n')
        // The first line may be cut, and a crash may have cut others.
        .filter_map(|line| serde_json::from_slice(line).ok())
        .take(KEPT_MAX)
        .collect();
    latest.make_contiguous().reverse();
    Ok(latest)
}

pub(crate) fn truncate(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
    }
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests;
