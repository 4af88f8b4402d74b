//! The readers of one fill: how far each has read and whom to wake. There are at most as many as there are clients.

use std::task::Waker;

use super::Wakes;

/// Whose client a reader serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The request that the fill was begun for.
    Leader,
    /// One that came to the same key meanwhile.
    Other,
}

#[derive(Debug)]
struct Slot {
    owner: Owner,
    pos: u64,
    /// Sent away: it no longer counts, and learns so when it looks.
    dismissed: bool,
    waker: Option<Waker>,
}

#[derive(Debug, Default)]
pub(super) struct Readers {
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    live: usize,
}

impl Readers {
    pub(super) const fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub(super) fn join(&mut self, owner: Owner) -> usize {
        self.live += 1;
        let slot = Slot {
            owner,
            pos: 0,
            dismissed: false,
            waker: None,
        };
        if let Some(index) = self.free.pop()
            && let Some(place) = self.slots.get_mut(index)
        {
            *place = Some(slot);
            return index;
        }
        self.slots.push(Some(slot));
        self.slots.len() - 1
    }

    pub(super) fn leave(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index).and_then(Option::take) {
            self.live -= usize::from(!slot.dismissed);
            self.free.push(index);
        }
    }

    pub(super) fn is_dismissed(&self, index: usize) -> bool {
        let slot = self.slots.get(index).and_then(Option::as_ref);
        slot.is_none_or(|slot| slot.dismissed)
    }

    /// Sends away everybody but the leader's own client.
    pub(super) fn dismiss_others(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            if slot.owner == Owner::Other && !slot.dismissed {
                slot.dismissed = true;
                self.live -= 1;
            }
        }
    }

    pub(super) fn advance(&mut self, index: usize, pos: u64) {
        if let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) {
            slot.pos = pos;
        }
    }

    /// How far the slowest has read; `None` without readers.
    pub(super) fn slowest(&self) -> Option<u64> {
        let live = self.slots.iter().flatten().filter(|slot| !slot.dismissed);
        live.map(|slot| slot.pos).min()
    }

    pub(super) fn wait(&mut self, index: usize, waker: &Waker) {
        if let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) {
            slot.waker = Some(waker.clone());
        }
    }

    pub(super) fn wake_all(&mut self) -> Wakes {
        let mut wakes = Wakes::default();
        for slot in self.slots.iter_mut().flatten() {
            wakes.add(slot.waker.take());
        }
        wakes
    }
}
