//! Whether a disk works, and why not.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::usage::DiskState;

#[derive(Debug, Default)]
pub(crate) struct Health {
    degraded: AtomicBool,
    why: Mutex<String>,
}

impl Health {
    pub(crate) fn is_up(&self) -> bool {
        !self.degraded.load(Ordering::Acquire)
    }

    /// Nothing is admitted until it has recovered. Tells whether that is news.
    pub(crate) fn degrade(&self, why: String) -> bool {
        *self.why.lock() = why;
        !self.degraded.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn recover(&self) {
        self.degraded.store(false, Ordering::Release);
    }

    pub(crate) fn why(&self) -> String {
        self.why.lock().clone()
    }

    pub(crate) fn state(&self) -> DiskState {
        if self.is_up() {
            DiskState::Up
        } else {
            DiskState::Degraded(self.why())
        }
    }
}

/// A fault of the disk in words that say what it was about.
pub(crate) fn because(doing: &str, fault: &io::Error) -> String {
    format!("{doing} failed: {fault}")
}
