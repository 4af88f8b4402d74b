//! Counters of client connections. They change once a connection or less, so all workers share them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Since;
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

#[derive(Debug)]
pub struct ConnectionCounters {
    accepted: AtomicU64,
    refused: AtomicU64,
    upgraded: AtomicU64,
    timeouts: [AtomicU64; TimeoutKind::ALL.len()],
    malformed: [AtomicU64; RejectReason::ALL.len()],
}

#[derive(Debug, Clone)]
pub(super) struct ConnectionReading {
    accepted: u64,
    refused: u64,
    upgraded: u64,
    timeouts: [u64; TimeoutKind::ALL.len()],
    malformed: [u64; RejectReason::ALL.len()],
}

impl Default for ConnectionReading {
    fn default() -> Self {
        Self {
            accepted: 0,
            refused: 0,
            upgraded: 0,
            timeouts: [0; TimeoutKind::ALL.len()],
            malformed: [0; RejectReason::ALL.len()],
        }
    }
}

impl Default for ConnectionCounters {
    fn default() -> Self {
        Self {
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            upgraded: AtomicU64::new(0),
            timeouts: std::array::from_fn(|_| AtomicU64::new(0)),
            malformed: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl ConnectionCounters {
    pub fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// Turned away at a connection limit, or for want of file descriptors.
    pub fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub fn upgraded(&self) {
        self.upgraded.fetch_add(1, Ordering::Relaxed);
    }

    pub fn timeout(&self, kind: TimeoutKind) {
        if let Some(cell) = self.timeouts.get(kind as usize) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request broke the protocol.
    pub fn malformed(&self, reason: RejectReason) {
        if let Some(cell) = self.malformed.get(reason as usize) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self) -> ConnectionReading {
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        ConnectionReading {
            accepted: read(&self.accepted),
            refused: read(&self.refused),
            upgraded: read(&self.upgraded),
            timeouts: self.timeouts.each_ref().map(read),
            malformed: self.malformed.each_ref().map(read),
        }
    }
}

impl ConnectionReading {
    pub(super) fn show(&self, from: Since, baseline: &Self, active: u64) -> Connections {
        let zero = Self::default();
        let base = if from == Since::Reset { baseline } else { &zero };
        let timeouts = TimeoutKind::ALL.iter().zip(self.timeouts.iter().zip(&base.timeouts));
        let malformed = RejectReason::ALL.iter().zip(self.malformed.iter().zip(&base.malformed));
        Connections {
            active,
            accepted: self.accepted.saturating_sub(base.accepted),
            refused: self.refused.saturating_sub(base.refused),
            timeouts: timeouts
                .map(|(kind, (now, base))| (kind.name(), now.saturating_sub(*base)))
                .collect(),
            malformed: malformed
                .map(|(why, (now, base))| (why.name(), now.saturating_sub(*base)))
                .collect(),
            upgraded: self.upgraded.saturating_sub(base.upgraded),
        }
    }
}
