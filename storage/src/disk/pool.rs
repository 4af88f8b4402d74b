//! Threads for what may block: reads that the page cache cannot answer, and lookups in sled.

use std::collections::VecDeque;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

/// Reads under way at once. Enough to keep a solid state disk busy, few enough to be cheap.
const THREADS: usize = 8;

type Job = Box<dyn FnOnce() + Send>;

/// Shared by all disks. Who waits is a request, so the queue is bounded by the connections.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    stopped: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("jobs", &self.jobs.len()).finish()
    }
}

impl Pool {
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        for number in 0..THREADS {
            let own = Arc::clone(&shared);
            thread::Builder::new()
                .name(format!("larder-read-{number}"))
                .spawn(move || own.work())?;
        }
        Ok(Self { shared })
    }

    /// Runs `job` on a thread that may block. `None` once the pool is stopped.
    pub(crate) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.submit(job)?.await.ok()
    }

    /// [`Self::run`] for those who poll.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<oneshot::Receiver<T>> {
        let (tell, told) = oneshot::channel();
        let mut queue = self.shared.queue.lock();
        if queue.stopped {
            return None;
        }
        queue.jobs.push_back(Box::new(move || {
            // Who asked may have left.
            let _ = tell.send(job());
        }));
        drop(queue);
        self.shared.wake.notify_one();
        Some(told)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = self.shared.queue.lock();
        queue.stopped = true;
        queue.jobs.clear();
        drop(queue);
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        let mut queue = self.queue.lock();
        while !queue.stopped {
            match queue.jobs.pop_front() {
                Some(job) => {
                    drop(queue);
                    // Who waits for it learns that it was dropped; the next one gets its thread.
                    let _ = panic::catch_unwind(AssertUnwindSafe(job));
                    queue = self.queue.lock();
                }
                None => self.wake.wait(&mut queue),
            }
        }
    }
}
