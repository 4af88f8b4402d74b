//! One coarse deadline a connection, swept by its worker. A timer per wait would cost memory and a timer wheel operation for
//! each request; a connection's deadlines are seconds, so looking at them ten times a second is fine enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Moment;
use crate::traffic::TimeoutKind;

/// How often deadlines are looked at.
pub(crate) const SWEEP: Duration = Duration::from_millis(100);

const NEVER: u64 = u64::MAX;

#[derive(Debug)]
struct Entry {
    /// `NEVER`, or microseconds of [`Moment`].
    at: AtomicU64,
    kind: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

/// All deadlines of one worker.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    entries: Mutex<Vec<Option<Arc<Entry>>>>,
    free: Mutex<Vec<usize>>,
}

impl Deadlines {
    pub(crate) fn add(self: &Arc<Self>) -> Deadline {
        let entry = Arc::new(Entry {
            at: AtomicU64::new(NEVER),
            kind: AtomicU8::new(0),
            waker: Mutex::new(None),
        });
        let mut entries = self.entries.lock();
        let index = self.free.lock().pop().unwrap_or(entries.len());
        match entries.get_mut(index) {
            Some(slot) => *slot = Some(Arc::clone(&entry)),
            None => entries.push(Some(Arc::clone(&entry))),
        }
        Deadline {
            entry,
            index,
            owner: Arc::clone(self),
        }
    }

    /// Wakes every connection whose deadline has passed.
    pub(crate) fn sweep(&self, now: Moment) {
        self.wake_where(|entry| entry.at.load(Ordering::Relaxed) <= now.as_micros());
    }

    /// Wakes every connection, so that each looks whether it is to end.
    pub(crate) fn wake_all(&self) {
        self.wake_where(|_| true);
    }

    fn wake_where(&self, due: impl Fn(&Entry) -> bool) {
        let mut wakers = Vec::new();
        for entry in self.entries.lock().iter().flatten().filter(|entry| due(entry)) {
            wakers.extend(entry.waker.lock().clone());
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The deadline of one connection: at most one is set at a time.
#[derive(Debug)]
pub(crate) struct Deadline {
    entry: Arc<Entry>,
    index: usize,
    owner: Arc<Deadlines>,
}

impl Deadline {
    pub(crate) fn set(&self, kind: TimeoutKind, at: Moment) {
        self.entry.kind.store(kind as u8, Ordering::Relaxed);
        self.entry.at.store(at.as_micros(), Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        self.entry.at.store(NEVER, Ordering::Relaxed);
    }

    /// The kind of deadline that has passed, if one has. Otherwise the task is woken when it does.
    pub(crate) fn check(&self, context: &Context<'_>) -> Option<TimeoutKind> {
        let at = self.entry.at.load(Ordering::Relaxed);
        if at != NEVER && Moment::now().as_micros() >= at {
            let kind = self.entry.kind.load(Ordering::Relaxed);
            return TimeoutKind::ALL.into_iter().find(|known| *known as u8 == kind);
        }
        let mut waker = self.entry.waker.lock();
        if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        None
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if let Some(slot) = self.owner.entries.lock().get_mut(self.index) {
            *slot = None;
        }
        self.owner.free.lock().push(self.index);
    }
}
