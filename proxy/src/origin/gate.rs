//! The limit on connections over all workers: who may open one, what lies idle, and who waits. It knows nothing of
//! HTTP; `T` is a connection that owns its [`Permit`].
//!
//! A permit lives as long as its connection, idle ones included, so the limit holds for the origin's sockets. Neither
//! deadlock nor starvation can come of that: under the one lock, something becomes idle only if nobody waits, and
//! nobody waits while something is idle on *any* worker's shelf. Whoever gives a connection or a permit back hands it
//! to the one who has waited longest.
//!
//! Lock order is state, then a shelf. A `T` is never dropped under either, since its permit takes the state lock.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

#[derive(Debug)]
pub(super) struct Gate<T> {
    state: Mutex<State<T>>,
    /// One per worker; the newest last. Each worker takes from its own without the state lock.
    shelves: Box<[Mutex<VecDeque<T>>]>,
    connections_max: usize,
    idle_max: usize,
    waiting_max: usize,
}

#[derive(Debug)]
struct State<T> {
    open: usize,
    tickets: u64,
    /// In the order of arrival, at most `waiting_max`.
    waiting: VecDeque<(u64, oneshot::Sender<Grant<T>>)>,
    closed: bool,
}

/// What the gate gives: an idle connection, or the right to open one.
#[derive(Debug)]
pub(super) enum Grant<T> {
    Idle(T),
    Open(Permit<T>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// The right to one connection; given back when dropped.
#[derive(Debug)]
pub(super) struct Permit<T> {
    gate: Arc<Gate<T>>,
}

impl<T> Drop for Permit<T> {
    fn drop(&mut self) {
        self.gate.give_back();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) open: usize,
    pub(super) idle: usize,
    pub(super) waiting: usize,
}

impl<T> Gate<T> {
    /// `idle_max` is per worker.
    pub(super) fn new(workers: usize, connections_max: usize, idle_max: usize, waiting_max: usize) -> Self {
        Self {
            state: Mutex::new(State {
                open: 0,
                tickets: 0,
                waiting: VecDeque::new(),
                closed: false,
            }),
            shelves: (0..workers.max(1)).map(|_| Mutex::new(VecDeque::new())).collect(),
            connections_max: connections_max.max(1),
            idle_max,
            waiting_max,
        }
    }

    /// The newest idle connection of this worker.
    pub(super) fn take(&self, worker: usize) -> Option<T> {
        self.shelf(worker)?.lock().pop_back()
    }

    /// An idle connection of this worker, the right to open one, an idle connection of another worker; else waits.
    /// Dropping the future gives up the place in the queue.
    pub(super) async fn acquire(self: &Arc<Self>, worker: usize) -> Result<Grant<T>, Full> {
        let (receiver, _place) = {
            let mut state = self.state.lock();
            if let Some(idle) = self.take(worker) {
                return Ok(Grant::Idle(idle));
            }
            if state.open < self.connections_max {
                state.open += 1;
                return Ok(Grant::Open(Permit { gate: Arc::clone(self) }));
            }
            if let Some(idle) = self.shelves.iter().find_map(|shelf| shelf.lock().pop_back()) {
                return Ok(Grant::Idle(idle));
            }
            if state.waiting.len() >= self.waiting_max {
                return Err(Full);
            }
            let (sender, receiver) = oneshot::channel();
            state.tickets += 1;
            let ticket = state.tickets;
            state.waiting.push_back((ticket, sender));
            (receiver, Place { gate: self, ticket })
        };
        receiver.await.map_err(|_| Full)
    }

    /// Gives an idle connection to whoever waits longest, or lays it on the worker's shelf. Where that is full, its
    /// oldest goes.
    pub(super) fn park(&self, worker: usize, mut idle: T) {
        loop {
            let mut state = self.state.lock();
            let Some((_, waiter)) = state.waiting.pop_front() else {
                let surplus = self.lay_down(&state, worker, idle);
                drop(state);
                drop(surplus);
                return;
            };
            drop(state);
            match waiter.send(Grant::Idle(idle)) {
                Err(Grant::Idle(back)) => idle = back,
                Ok(()) | Err(Grant::Open(_)) => return,
            }
        }
    }

    fn lay_down(&self, state: &State<T>, worker: usize, idle: T) -> Option<T> {
        let Some(shelf) = self.shelf(worker).filter(|_| !state.closed && self.idle_max > 0) else {
            return Some(idle);
        };
        let mut shelf = shelf.lock();
        shelf.push_back(idle);
        if shelf.len() > self.idle_max {
            shelf.pop_front()
        } else {
            None
        }
    }

    /// Takes a particular idle connection out, if it still lies there.
    pub(super) fn remove(&self, worker: usize, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let mut shelf = self.shelf(worker)?.lock();
        let at = shelf.iter().position(is_it)?;
        shelf.remove(at)
    }

    /// Drops what is idle, and lets nothing become idle any more.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        for shelf in &self.shelves {
            let idle = std::mem::take(&mut *shelf.lock());
            drop(idle);
        }
    }

    pub(super) fn reading(&self) -> Reading {
        let state = self.state.lock();
        let idle = self.shelves.iter().map(|shelf| shelf.lock().len()).sum();
        Reading {
            open: state.open,
            idle,
            waiting: state.waiting.len(),
        }
    }

    fn shelf(&self, worker: usize) -> Option<&Mutex<VecDeque<T>>> {
        self.shelves.get(worker % self.shelves.len())
    }

    fn give_back(self: &Arc<Self>) {
        let waiter = {
            let mut state = self.state.lock();
            match state.waiting.pop_front() {
                Some((_, waiter)) => waiter,
                None => {
                    state.open = state.open.saturating_sub(1);
                    return;
                }
            }
        };
        // Where the waiter has just left, the permit in the refused grant is dropped and comes here again.
        let _ = waiter.send(Grant::Open(Permit { gate: Arc::clone(self) }));
    }
}

/// A place in the queue, left when dropped.
struct Place<'a, T> {
    gate: &'a Gate<T>,
    ticket: u64,
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        if let Some(at) = state.waiting.iter().position(|(ticket, _)| *ticket == self.ticket) {
            state.waiting.remove(at);
        }
    }
}
