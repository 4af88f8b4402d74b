//! Counters of client connections. They change once a connection or less, so all threads share one slot.

use super::cells::{Reading, Since, Slots, cell};
use super::snapshot::Connections;
use crate::http1::RejectReason;

/// Which deadline of a client connection has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TimeoutKind {
    /// A request head did not come to its end.
    Header,
    /// No further request came.
    Idle,
    /// A request body stood still, or came too slowly.
    Body,
    /// The client took nothing of its answer.
    Write,
}

impl TimeoutKind {
    pub const ALL: [Self; 4] = [Self::Header, Self::Idle, Self::Body, Self::Write];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Idle => "idle",
            Self::Body => "body",
            Self::Write => "write",
        }
    }
}

/// Where each counter is.
mod at {
    use super::{RejectReason, TimeoutKind};

    pub(super) const ACCEPTED: usize = 0;
    pub(super) const REFUSED: usize = 1;
    pub(super) const UPGRADED: usize = 2;
    pub(super) const TIMEOUTS: usize = 3;
    pub(super) const MALFORMED: usize = TIMEOUTS + TimeoutKind::ALL.len();
    pub(super) const COUNT: usize = MALFORMED + RejectReason::ALL.len();
}

/// For any thread.
#[derive(Debug)]
pub struct ConnectionCounters {
    slots: Slots<{ at::COUNT }>,
}

/// What was read of them.
pub(super) type ConnectionReading = Reading<{ at::COUNT }>;

impl Default for ConnectionCounters {
    fn default() -> Self {
        Self { slots: Slots::new(0) }
    }
}

impl ConnectionCounters {
    pub fn accepted(&self) {
        self.add(at::ACCEPTED);
    }

    /// Turned away at a connection limit, or for want of file descriptors.
    pub fn refused(&self) {
        self.add(at::REFUSED);
    }

    pub fn upgraded(&self) {
        self.add(at::UPGRADED);
    }

    pub fn timeout(&self, kind: TimeoutKind) {
        self.add(at::TIMEOUTS + kind as usize);
    }

    /// A request broke the protocol.
    pub fn malformed(&self, reason: RejectReason) {
        self.add(at::MALFORMED + reason as usize);
    }

    fn add(&self, cell: usize) {
        self.slots.shared_writer().add(cell, 1);
    }

    pub(super) fn read(&self) -> [u64; at::COUNT] {
        self.slots.read()
    }
}

/// `active` connections are open now.
pub(super) fn show(reading: &ConnectionReading, since: Since, active: u64) -> Connections {
    let counts = reading.counts(since);
    let timeouts = TimeoutKind::ALL.into_iter().enumerate();
    let malformed = RejectReason::ALL.into_iter().enumerate();
    Connections {
        active,
        accepted: cell(&counts, at::ACCEPTED),
        refused: cell(&counts, at::REFUSED),
        timeouts: timeouts
            .map(|(index, kind)| (kind.name(), cell(&counts, at::TIMEOUTS + index)))
            .collect(),
        malformed: malformed
            .map(|(index, why)| (why.name(), cell(&counts, at::MALFORMED + index)))
            .collect(),
        upgraded: cell(&counts, at::UPGRADED),
    }
}
