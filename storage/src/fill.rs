//! A fill in flight: one answer of the origin on its way to its readers and, perhaps, into the tier. This module owns the
//! state that a leader and its readers share; who may join which fill is decided in `store`.
//!
//! Nothing polls: whoever has to wait leaves a waker under the same lock under which it looked, and wakers are called
//! once that lock is free.

mod buffer;
pub(crate) mod leader;
pub(crate) mod reader;
pub(crate) mod readers;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;

use self::buffer::Buffer;
use self::leader::Abandoned;
use self::readers::{Owner, Readers};
use crate::budget::Reservation;
use crate::disk::DiskBody;
use crate::store::Join;

/// Bytes that a fill which is not stored may hold ahead of its slowest reader: one chunk, several round trips.
pub(crate) const WINDOW: u64 = 256 << 10;

/// A fill that nobody waits for any more is finished all the same if no more than this is missing.
const WORTH_FINISHING: u64 = 1 << 20;

/// What the leader wants to become of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Store it; whoever waits may read along.
    Store,
    /// Don't store it, but whoever waits may read along.
    Share,
    /// It is for the leader's own client; whoever else waits is told to go on its own.
    Private,
}

/// Why an answer was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotKept {
    /// The leader did not ask for it.
    Declined,
    /// There is no tier.
    Disabled,
    /// Larger than `Config::max_object`.
    TooLarge,
    /// The memory set aside for fills in flight is used up.
    FillMemory,
    /// Its key was purged since it began.
    Doomed,
    /// Every reader left before it was worth finishing.
    Abandoned,
    /// It failed, or its body was not as long as announced.
    Failed,
    /// A fill that began later has been stored, or what was to be replaced is gone.
    Replaced,
    /// The tier had no room for it.
    Refused,
    /// The disk has more to write than it takes.
    DiskBusy,
    /// The disk it belongs on is degraded.
    DiskUnavailable,
}

/// Why a fill ended without a complete answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FillError {
    /// The leader gave this reason.
    #[error("the fill failed")]
    Failed(#[source] Arc<dyn Error + Send + Sync>),
    /// The body did not have the length that its head announced.
    #[error("a body of {expected} bytes was announced and {received} came")]
    Length {
        /// As announced.
        expected: u64,
        /// As received; not all of it if it is more.
        received: u64,
    },
    /// The leader went away without a word.
    #[error("the fill was given up")]
    Lost,
}

impl FillError {
    /// Wraps the leader's reason.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(Arc::from(reason.into()))
    }
}

/// Tasks to wake once the lock is free.
#[must_use = "tasks that are not woken wait for ever"]
#[derive(Default)]
pub(crate) struct Wakes(SmallVec<[Waker; 4]>);

impl Wakes {
    fn add(&mut self, waker: Option<Waker>) {
        self.0.extend(waker);
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(crate) fn wake(self) {
        for waker in self.0 {
            waker.wake();
        }
    }
}

/// The head as readers get it.
pub(crate) struct Headed<H, V> {
    pub(crate) head: Arc<H>,
    pub(crate) head_weight: u64,
    /// The rule and the variant key of the request that the origin answered.
    pub(crate) vary: Option<(Arc<V>, Arc<[u8]>)>,
    pub(crate) expected: Option<u64>,
    /// Whether others than the leader's own client may read it.
    pub(crate) shared: bool,
}

impl<H, V> Clone for Headed<H, V> {
    fn clone(&self) -> Self {
        Self {
            head: Arc::clone(&self.head),
            vary: self.vary.clone(),
            ..*self
        }
    }
}

/// The part of a body that is in its file.
#[derive(Debug, Clone)]
pub(crate) struct Spill {
    body: DiskBody,
    /// Bytes that can be read from it.
    written: u64,
}

pub(crate) struct Fill<H, V> {
    pub(crate) key: Arc<[u8]>,
    /// Ascending with the time at which fills begin.
    pub(crate) begun: u64,
    /// Nobody may ever join it.
    pub(crate) alone: bool,
    pub(crate) state: Mutex<State<H, V>>,
}

impl<H, V> fmt::Debug for Fill<H, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fill")
            .field("begun", &self.begun)
            .field("alone", &self.alone)
            .finish_non_exhaustive()
    }
}

pub(crate) struct State<H, V> {
    /// Others may join while the head isn't known.
    pub(crate) open: bool,
    headed: Option<Headed<H, V>>,
    /// Why it will not be stored, as far as is known; what is passed on only is held no longer than it is read.
    passing: Option<NotKept>,
    reservation: Option<Reservation>,
    buffer: Buffer,
    /// Where what left the buffer can be read, if it goes into a file of its own.
    spill: Option<Spill>,
    /// It goes, or is about to go, into a file of its own.
    spilling: bool,
    readers: Readers,
    /// Set by a purge of the key.
    doomed: bool,
    /// It goes on without readers.
    unattended: bool,
    abandoned: bool,
    /// Nothing more will come.
    end: Option<Result<(), FillError>>,
    leader: Option<Waker>,
}

impl<H, V> Fill<H, V> {
    /// A fill with the slot of its first reader.
    pub(crate) fn new(key: Arc<[u8]>, begun: u64, join: Join, open: bool) -> (Self, usize) {
        let mut readers = Readers::default();
        let slot = readers.join(Owner::Leader);
        let fill = Self {
            key,
            begun,
            alone: join == Join::Never,
            state: Mutex::new(State {
                open,
                headed: None,
                passing: None,
                reservation: None,
                buffer: Buffer::default(),
                spill: None,
                spilling: false,
                readers,
                doomed: false,
                unattended: false,
                abandoned: false,
                end: None,
                leader: None,
            }),
        };
        (fill, slot)
    }

    /// Whether a request that comes now could wait for its head.
    pub(crate) fn is_open(&self) -> bool {
        let state = self.state.lock();
        state.is_open()
    }

    /// Joins it before its head is known.
    pub(crate) fn join_open(&self) -> Option<usize> {
        let mut state = self.state.lock();
        state.is_open().then(|| state.readers.join(Owner::Other))
    }

    /// Joins it if its head is known and `fits` the request.
    pub(crate) fn join_answered(&self, fits: impl FnOnce(&Headed<H, V>) -> bool) -> Option<usize> {
        let mut state = self.state.lock();
        let may = !self.alone
            && state.is_joinable()
            && (state.buffer.base() == 0 || state.spill.is_some())
            && state
                .headed
                .as_ref()
                .is_some_and(|headed| headed.shared && fits(headed));
        may.then(|| state.readers.join(Owner::Other))
    }

    /// It must not be stored any more.
    pub(crate) fn doom(&self) -> Wakes {
        let mut wakes = Wakes::default();
        let mut state = self.state.lock();
        state.doomed = true;
        state.reconsider(self.alone, &mut wakes);
        wakes
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.state.lock().doomed
    }

    fn leave(&self, slot: usize) {
        let mut state = self.state.lock();
        state.readers.leave(slot);
        let mut wakes = state.trim();
        state.reconsider(self.alone, &mut wakes);
        drop(state);
        wakes.wake();
    }
}

impl<H, V> State<H, V> {
    fn is_joinable(&self) -> bool {
        !self.abandoned && !self.doomed && self.end.is_none()
    }

    fn is_open(&self) -> bool {
        self.open && self.headed.is_none() && self.is_joinable()
    }

    /// Gives it up if nobody waits for it and it is not worth finishing.
    fn reconsider(&mut self, alone: bool, wakes: &mut Wakes) {
        let unattended = self.unattended && self.passing.is_none() && !self.doomed;
        if self.end.is_none() && self.readers.is_empty() && !unattended && !self.is_worth_finishing(alone) {
            self.abandoned = true;
            wakes.add(self.leader.take());
        }
    }

    /// Before the head is known only a fill for one client alone is not.
    fn is_worth_finishing(&self, alone: bool) -> bool {
        let Some(headed) = &self.headed else {
            return !alone;
        };
        let Some(expected) = headed.expected else {
            return false;
        };
        let (received, missing) = (self.buffer.len(), expected.saturating_sub(self.buffer.len()));
        self.passing.is_none() && !self.doomed && (received >= missing || missing <= WORTH_FINISHING)
    }

    /// From here on it is passed on only.
    fn pass(&mut self, why: NotKept, alone: bool, wakes: &mut Wakes) {
        self.passing = Some(why);
        wakes.append(self.trim());
        self.reconsider(alone, wakes);
    }

    /// Drops what all readers have read, where it will not be stored.
    fn trim(&mut self) -> Wakes {
        let mut wakes = Wakes::default();
        if self.passing.is_none() {
            self.trim_spilled();
            return wakes;
        }
        self.buffer.trim(self.readers.slowest().unwrap_or(u64::MAX));
        let held = self.buffer.held();
        if let Some(reservation) = &mut self.reservation {
            reservation.shrink_to(held);
        }
        if held < WINDOW {
            wakes.add(self.leader.take());
        }
        wakes
    }

    pub(crate) const fn is_spilling(&self) -> bool {
        self.spilling && self.passing.is_none()
    }

    /// It has become too large to be held in memory.
    fn begin_spilling(&mut self) {
        self.spilling = true;
        self.shrink_reservation();
    }

    /// Its file is there: returns what came in so far.
    fn begin_spill(&mut self, body: DiskBody) -> Vec<Bytes> {
        self.spill = Some(Spill { body, written: 0 });
        self.buffer.pieces()
    }

    fn has_written(&mut self, written: u64) {
        if let Some(spill) = &mut self.spill {
            spill.written = written;
        }
        self.trim_spilled();
        self.shrink_reservation();
    }

    /// The file has the rest.
    fn shrink_reservation(&mut self) {
        if let Some(reservation) = &mut self.reservation {
            reservation.shrink_to(self.buffer.held());
        }
    }

    /// Drops what is in the file by now, but for a window for those who are up to date.
    fn trim_spilled(&mut self) {
        if let Some(spill) = &self.spill {
            let behind = self.buffer.len().saturating_sub(WINDOW);
            self.buffer.trim(spill.written.min(self.buffer.visible()).min(behind));
        }
    }

    /// Whether the leader may append.
    fn poll_room(&mut self, cx: &Context<'_>) -> Poll<Result<(), Abandoned>> {
        if self.abandoned || self.end.is_some() {
            return Poll::Ready(Err(Abandoned));
        }
        if self.passing.is_some() && self.buffer.held() >= WINDOW {
            self.leader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// Ends it for its readers.
    fn end(&mut self, end: Result<(), FillError>) -> Wakes {
        if end.is_err() {
            self.passing.get_or_insert(NotKept::Failed);
        }
        self.end = Some(end);
        self.buffer.publish();
        let mut wakes = self.trim();
        wakes.add(self.leader.take());
        wakes.append(self.readers.wake_all());
        wakes
    }
}
