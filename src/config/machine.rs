//! What `"auto"` follows from: cores and the limit on open files. An argument of the resolution, so that tests can choose it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are not connections: log, listeners, the admin plane, runtime descriptors.
const FILES_KEPT: u64 = 256;
/// One client connection may need one to the origin.
const FILES_PER_CONNECTION: u64 = 2;
const CONNECTIONS_MIN: u64 = 64;
/// Where the limit on open files is no limit, memory still is one.
const CONNECTIONS_MAX: u64 = 65_536;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub cores: usize,
    /// The limit that [`raise_open_files`] reaches; `None` for no limit.
    pub open_files: Option<u64>,
}

impl Machine {
    pub fn detect() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            open_files: getrlimit(Resource::Nofile).maximum,
        }
    }

    /// Client connections that the limit on open files leaves room for.
    pub(super) fn connections(&self) -> u64 {
        let files = self.open_files.unwrap_or(u64::MAX);
        let room = files.saturating_sub(FILES_KEPT) / FILES_PER_CONNECTION;
        room.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
    }
}

/// Raises the soft limit on open files to the hard one. Without it, `"auto"` would promise more than there is.
pub fn raise_open_files() -> std::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return Ok(());
    }
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}
