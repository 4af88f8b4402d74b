//! What the writer is to do, in order. Bounded in the bytes that wait to be written: beyond that nothing is admitted. What
//! says that something is gone always is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::id::Id;
use super::pending::Pending;

/// Bytes that may wait to be written.
pub(crate) const QUEUE_MAX: u64 = 8 << 20;

/// Operations that are written together.
const BATCH_OPS: usize = 256;

/// Bytes of bodies that are written together: enough for long writes, little enough to be forgotten soon.
const BATCH_BYTES: u64 = 512 << 10;

/// Told whether it is on disk, or why it isn't.
pub(crate) type Done = oneshot::Sender<Result<(), String>>;

#[derive(Debug)]
pub(crate) enum Op {
    Put(Arc<Pending>),
    /// What was under this id is gone.
    Tombstone {
        id: Id,
        fence: u64,
        done: Option<Done>,
    },
    /// All that came before is gone.
    Clear {
        fence: u64,
        done: Option<Done>,
    },
    /// Makes sled say what the index in memory says of these.
    Agree(Vec<u64>),
    /// Sled has all that is written up to here.
    Agreed,
    /// Makes room for so many bytes of body files.
    Room {
        bytes: u64,
        done: oneshot::Sender<bool>,
    },
    /// Drops what is oldest, since the file system has no room left though the limit isn't reached.
    Shrink,
    /// The disk may be well again: begins a new segment, and writes what is owed.
    Resume,
    /// The directory is another one, empty, with this identity.
    Begin([u8; 16]),
}

impl Op {
    fn weight(&self) -> u64 {
        match self {
            Self::Put(pending) => pending.weight(),
            _ => 0,
        }
    }
}

/// The queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

#[derive(Debug, Default)]
struct Inner {
    ops: VecDeque<Op>,
    bytes: u64,
    /// Operations and bytes that were taken and are not done.
    taken: u64,
    stopping: bool,
    /// Nobody takes anything out any more.
    is_dead: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    wake: Condvar,
    /// Something was taken.
    taken: Condvar,
}

/// What the writer takes at once.
#[derive(Debug)]
pub(crate) enum Taken {
    Ops(Vec<Op>),
    /// Nothing came in this time.
    Idle,
    /// Nothing more will come.
    End,
}

impl Queue {
    /// Bytes that wait, those included that are being written.
    pub(crate) fn bytes(&self) -> u64 {
        let inner = self.inner.lock();
        inner.bytes + inner.taken
    }

    /// Puts things that belong together, or none of them.
    pub(crate) fn put(&self, together: impl IntoIterator<Item = Arc<Pending>>) -> Result<(), Full> {
        let together: Vec<_> = together.into_iter().map(Op::Put).collect();
        let weight: u64 = together.iter().map(Op::weight).sum();
        let mut inner = self.inner.lock();
        if inner.stopping || inner.is_dead || inner.bytes + inner.taken + weight > QUEUE_MAX {
            return Err(Full);
        }
        inner.bytes += weight;
        inner.ops.extend(together);
        drop(inner);
        self.wake.notify_all();
        Ok(())
    }

    /// For everything that has no weight.
    pub(crate) fn push(&self, op: Op) {
        let mut inner = self.inner.lock();
        if inner.is_dead {
            // Who waits for it learns that it was dropped.
            return;
        }
        inner.bytes += op.weight();
        inner.ops.push_back(op);
        drop(inner);
        self.wake.notify_all();
    }

    /// The next operations; the ones taken before are done.
    pub(crate) fn take(&self, patience: Duration) -> Taken {
        let mut inner = self.inner.lock();
        inner.taken = 0;
        if inner.ops.is_empty() && !inner.stopping {
            self.wake.wait_for(&mut inner, patience);
        }
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH_OPS && bytes < BATCH_BYTES {
            let Some(op) = inner.ops.pop_front() else { break };
            bytes += op.weight();
            batch.push(op);
        }
        inner.bytes -= bytes;
        inner.taken = bytes;
        self.taken.notify_all();
        match (batch.is_empty(), inner.stopping) {
            (false, _) => Taken::Ops(batch),
            (true, false) => Taken::Idle,
            (true, true) => Taken::End,
        }
    }

    /// Waits some time for less than so many bytes to wait.
    pub(crate) fn wait_below(&self, bytes: u64, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut inner = self.inner.lock();
        self.taken.wait_while_until(
            &mut inner,
            |inner| inner.bytes + inner.taken > bytes && !inner.is_dead,
            deadline,
        );
    }

    /// Drops what is in it, and whatever comes.
    pub(crate) fn die(&self) {
        let mut inner = self.inner.lock();
        inner.is_dead = true;
        let dropped = std::mem::take(&mut inner.ops);
        (inner.bytes, inner.taken) = (0, 0);
        drop(inner);
        drop(dropped);
    }

    /// What is in it is still done.
    pub(crate) fn stop(&self) {
        self.inner.lock().stopping = true;
        self.wake.notify_all();
    }
}
