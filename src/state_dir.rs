//! The directory of what must not be lost: the token, the audit log. One process at a time has it.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const LOCK: &str = "larder.lock";

/// Held until it is dropped, or the process ends, however it ends.
#[derive(Debug)]
pub struct StateDir {
    _lock: File,
}

/// Why it can't be had.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// Two processes would write the same files.
    #[error(
        "the directory {} (state_dir) is in use by another larder: stop that one, or give this one a directory of its own",
        .path.display()
    )]
    InUse { path: PathBuf },
    /// It can't be made, or nothing can be written there.
    #[error("the directory {} (state_dir) cannot be made or locked", .path.display())]
    Io {
        path: PathBuf,
        #[source]
        fault: io::Error,
    },
}

impl StateDir {
    /// Makes it where it is missing, so that only its owner can look in: it holds the token.
    pub fn take(path: &Path) -> Result<Self, StateDirError> {
        let io = |fault| StateDirError::Io {
            path: path.to_owned(),
            fault,
        };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let lock = options.open(path.join(LOCK)).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StateDirError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(fault)) => Err(io(fault)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn one_at_a_time_has_it_and_nobody_else_looks_in() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let first = StateDir::take(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let second = StateDir::take(&path).unwrap_err();
        assert!(second.to_string().contains("in use by another larder"), "{second}");
        drop(first);
        let _again = StateDir::take(&path).unwrap();
    }

    #[test]
    fn a_file_in_its_place_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = StateDir::take(file.path()).unwrap_err();
        assert!(matches!(error, StateDirError::Io { .. }), "{error}");
    }
}
