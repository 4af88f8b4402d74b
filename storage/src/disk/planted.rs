//! Bugs that tests put in on purpose, to see that the walk finds them. Compiled into tests alone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// One bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The index points beside the record.
    WrongOffset,
    /// A purge is not noted.
    LostTombstone,
    /// A new head is not written.
    StaleHead,
    /// What is replaced stays in the accounts.
    DoubleCount,
    /// A fill that was purged is stored.
    FenceIgnored,
}

static BUGS: Mutex<Option<HashMap<PathBuf, Bug>>> = Mutex::new(None);

/// Puts a bug into whatever is opened on this path.
pub(crate) fn plant(path: &Path, bug: Bug) {
    BUGS.lock().get_or_insert_default().insert(path.to_owned(), bug);
}

pub(crate) fn is_planted(path: &Path, bug: Bug) -> bool {
    BUGS.lock().as_ref().and_then(|bugs| bugs.get(path)) == Some(&bug)
}
