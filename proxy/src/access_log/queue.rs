//! The bounded queue between the workers and the writer. Its lock is held for a few instructions, once for each batch.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// How much may wait for the disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) batches: usize,
    pub(super) bytes: usize,
}

impl Bounds {
    /// 16 MiB: at 200 bytes a line some 80 000 requests, half a second of a large machine. 4096 batches: a few seconds of small
    /// ones from hundreds of workers.
    pub(super) const DEFAULT: Self = Self {
        batches: 4096,
        bytes: 16 * 1024 * 1024,
    };
}

#[derive(Debug)]
pub(super) struct Queue {
    bounds: Bounds,
    state: Mutex<State>,
    /// Something to do for the writer.
    work: Condvar,
    /// The writer has come to its end.
    finished: Condvar,
    dropped: AtomicU64,
    troubles: Mutex<Troubles>,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Batch>,
    bytes: usize,
    is_reopen_asked: bool,
    is_closed: bool,
    is_finished: bool,
}

/// The last failure of each kind, until that succeeds again.
#[derive(Debug, Default)]
struct Troubles {
    write: Option<String>,
    reopen: Option<String>,
}

/// What the writer can fail at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    Write,
    Reopen,
}

/// Whole lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) text: Vec<u8>,
    pub(super) lines: u64,
}

/// What the writer is to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work {
    Reopen,
    Write(Batch),
    /// Closed, and all is written.
    End,
}

/// The writer did not come to its end in time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StillWriting {
    /// Lines that it has not begun with.
    pub(super) lines: u64,
}

impl Queue {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            state: Mutex::default(),
            work: Condvar::new(),
            finished: Condvar::new(),
            dropped: AtomicU64::new(0),
            troubles: Mutex::default(),
        }
    }

    /// Takes a batch, or drops it and counts its lines where there is no room or no writer any more.
    pub(super) fn push(&self, text: Vec<u8>, lines: u64) {
        let mut state = self.state.lock();
        let bytes = state.bytes.saturating_add(text.len());
        if state.is_closed || state.batches.len() >= self.bounds.batches || bytes > self.bounds.bytes {
            drop(state);
            self.count_dropped(lines);
            return;
        }
        state.bytes = bytes;
        state.batches.push_back(Batch { text, lines });
        drop(state);
        self.work.notify_one();
    }

    pub(super) fn ask_to_reopen(&self) {
        self.state.lock().is_reopen_asked = true;
        self.work.notify_one();
    }

    /// Waits for something to do.
    pub(super) fn next(&self) -> Work {
        let mut state = self.state.lock();
        loop {
            if std::mem::take(&mut state.is_reopen_asked) {
                return Work::Reopen;
            }
            if let Some(batch) = state.batches.pop_front() {
                state.bytes -= batch.text.len();
                return Work::Write(batch);
            }
            if state.is_closed {
                return Work::End;
            }
            self.work.wait(&mut state);
        }
    }

    /// The writer has come to its end, be it by a panic: nobody would take anything any more.
    pub(super) fn finish(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.is_finished = true;
        let lines = state.take_lines();
        drop(state);
        self.count_dropped(lines);
        self.finished.notify_all();
    }

    /// Takes nothing any more and waits until the writer has come to its end.
    pub(super) fn close(&self, deadline: Instant) -> Result<(), StillWriting> {
        let mut state = self.state.lock();
        state.is_closed = true;
        self.work.notify_one();
        let waited = self
            .finished
            .wait_while_until(&mut state, |state| !state.is_finished, deadline);
        if !waited.timed_out() {
            return Ok(());
        }
        let lines = state.take_lines();
        drop(state);
        self.count_dropped(lines);
        Err(StillWriting { lines })
    }

    pub(super) fn count_dropped(&self, lines: u64) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Keeps how an attempt went. Returns whether that is news.
    pub(super) fn note(&self, attempt: Attempt, trouble: Option<String>) -> bool {
        let mut troubles = self.troubles.lock();
        let known = match attempt {
            Attempt::Write => &mut troubles.write,
            Attempt::Reopen => &mut troubles.reopen,
        };
        let is_news = *known != trouble;
        *known = trouble;
        is_news
    }

    pub(super) fn trouble(&self) -> Option<String> {
        let troubles = self.troubles.lock();
        troubles.write.as_ref().or(troubles.reopen.as_ref()).cloned()
    }
}

impl State {
    /// Empties the queue; returns how many lines it held.
    fn take_lines(&mut self) -> u64 {
        self.bytes = 0;
        self.batches.drain(..).map(|batch| batch.lines).sum()
    }
}
