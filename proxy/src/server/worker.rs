//! One worker: a thread with a runtime of its own. It shares what it must (the store, the routes) and owns the rest: its
//! connections, its idle origin connections, its counters and its part of the access log.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::accept::Accepted;
use super::connection::Connection;
use super::deadline::{Deadlines, SWEEP};
use super::shared::Shared;
use crate::access_log::{Entry, WorkerLog};
use crate::clock::Moment;
use crate::http1::HeadLimits;
use crate::origin::Pool;
use crate::traffic::WorkerId;

/// How often the access log is handed to its writer.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    shared: Arc<Shared>,
    pool: Pool,
    log: Option<Mutex<WorkerLog>>,
    pub(super) head_limits: HeadLimits,
    pub(super) deadlines: Arc<Deadlines>,
}

impl Worker {
    pub(crate) fn new(id: WorkerId, shared: Arc<Shared>, log: Option<WorkerLog>) -> Self {
        Self {
            id,
            pool: Pool::new(id.index()),
            head_limits: HeadLimits::from(&shared.boot.limits),
            shared,
            log: log.map(Mutex::new),
            deadlines: Arc::default(),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn shared_arc(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    pub(crate) const fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn log_line(&self, entry: &Entry<'_>) {
        if let Some(log) = &self.log {
            log.lock().line(entry);
        }
    }

    fn flush_log(&self) {
        if let Some(log) = &self.log {
            log.lock().flush();
        }
    }

    /// Serves until the drain has ended: every connection gone, or its time over.
    pub(crate) async fn run(self: Arc<Self>, mut accepted: UnboundedReceiver<Accepted>) {
        let sweeping = tokio::spawn(Arc::clone(&self).sweep());
        let housekeeping = tokio::spawn(Arc::clone(&self).keep_house());
        loop {
            tokio::select! {
                next = accepted.recv() => match next {
                    Some(connection) => self.serve(connection),
                    None => break,
                },
                () = self.shared.stopping() => break,
            }
        }
        self.drain().await;
        sweeping.abort();
        housekeeping.abort();
        self.flush_log();
    }

    fn serve(self: &Arc<Self>, accepted: Accepted) {
        match Connection::new(accepted, Arc::clone(self)) {
            Ok(connection) => drop(tokio::spawn(connection.run())),
            Err(error) => tracing::warn!(%error, "a connection could not be taken over"),
        }
    }

    async fn sweep(self: Arc<Self>) {
        let mut ticks = interval(SWEEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.deadlines.sweep(Moment::now());
        }
    }

    async fn keep_house(self: Arc<Self>) {
        let mut ticks = interval(HOUSEKEEPING);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.flush_log();
        }
    }

    /// Idle connections end at once, others with the answer they are at; what is left at the deadline is cut off.
    async fn drain(&self) {
        self.deadlines.wake_all();
        let deadline = Instant::now() + self.shared.boot.drain;
        if timeout_at(deadline, self.shared.admission.emptied()).await.is_err() {
            tracing::warn!(
                connections = self.shared.admission.active(),
                "the drain took too long; closing what is left"
            );
        }
    }
}
