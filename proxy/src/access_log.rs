//! The access log: one line for each request. Workers format lines into buffers of their own and hand them over in batches;
//! one thread writes them. A disk that does not keep up costs lines, which are counted, never requests or memory.
//!
//! Owns formats, the queue between workers and disk, rotation. Knows nothing of connections or counters.
//!
//! Of every line that was given to a [`WorkerLog`] one thing becomes true: it is in the file, or it is in
//! [`AccessLog::dropped`].

mod escape;
mod format;
mod queue;
mod sink;
mod stamp;
mod writer;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::config;
use crate::http1::Version;
use crate::outcome::Outcome;
use format::Format;
use queue::{Bounds, Queue};
use sink::Sink;

/// Lines are handed over when there are so many bytes of them: some hundred lines, so a hand-over costs nothing for each.
const BATCH_BYTES: usize = 64 * 1024;

/// How long [`AccessLog::close`] waits for the disk.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// What is written down of one request.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// When it ended, Unix time in milliseconds.
    pub unix_ms: u64,
    pub client: IpAddr,
    pub vhost: &'a str,
    /// Empty where no named rule matched.
    pub rule: &'a str,
    pub method: &'a [u8],
    pub host: &'a [u8],
    /// As the client sent it.
    pub target: &'a [u8],
    pub version: Version,
    pub status: u16,
    /// Head and body.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub duration_us: u64,
    pub outcome: &'a Outcome,
    /// To the origin's head, where this request asked it.
    pub origin_us: Option<u64>,
    pub referer: Option<&'a [u8]>,
    pub user_agent: Option<&'a [u8]>,
}

/// The log as a whole. Dropping it closes it.
#[derive(Debug)]
pub struct AccessLog {
    queue: Arc<Queue>,
    format: config::LogFormat,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl AccessLog {
    /// Opens the file for appending and starts the writer. `-` and `/dev/stdout` are standard output.
    ///
    /// # Errors
    /// A file that cannot be opened, no thread.
    pub fn open(settings: &config::AccessLog) -> io::Result<Self> {
        let sink = Sink::open(&settings.path)?;
        let queue = Arc::new(Queue::new(Bounds::DEFAULT));
        let body = {
            let queue = Arc::clone(&queue);
            move || writer::run(&queue, sink)
        };
        let writer = thread::Builder::new()
            .name("larder-access-log".to_owned())
            .spawn(body)?;
        Ok(Self {
            queue,
            format: settings.format,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// For one worker. What it still holds when it is dropped is handed over then.
    #[must_use]
    pub fn handle(&self) -> WorkerLog {
        WorkerLog::new(Arc::clone(&self.queue), self.format)
    }

    /// Lines that are in no file, because the disk was too slow, or full, or failing.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// What went wrong last with the file. `None` again when a later attempt at the same has succeeded.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.queue.trouble()
    }

    /// Has the writer open the path anew, after the file there was renamed. Where that fails, the old file is kept.
    pub fn reopen(&self) {
        self.queue.ask_to_reopen();
    }

    /// Takes no more lines, writes those that were handed over, and returns when that is done or takes too long. A second call
    /// does nothing.
    pub fn close(&self) {
        let Some(writer) = self.writer.lock().take() else {
            return;
        };
        match self.queue.close(Instant::now() + CLOSE_WAIT) {
            Ok(()) if writer.join().is_err() => tracing::error!("the writer of the access log had panicked"),
            Ok(()) => {}
            Err(queue::StillWriting { lines }) => {
                tracing::error!(lines, "the access log took too long to close; these lines are lost");
            }
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// One worker's part of the log.
#[derive(Debug)]
pub struct WorkerLog {
    queue: Arc<Queue>,
    format: Format,
    lines: u64,
    buffer: Vec<u8>,
}

impl WorkerLog {
    fn new(queue: Arc<Queue>, format: config::LogFormat) -> Self {
        Self {
            queue,
            format: Format::new(format),
            lines: 0,
            buffer: Vec::new(),
        }
    }

    /// Adds a line to the batch.
    pub fn line(&mut self, entry: &Entry<'_>) {
        self.format.append(entry, &mut self.buffer);
        self.lines += 1;
        if self.buffer.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// Hands over what there is. To be called each second, so that the log is never far behind.
    pub fn flush(&mut self) {
        if self.lines == 0 {
            return;
        }
        // A batch that is mostly spare capacity would take more memory in the queue than it is counted for.
        if self.buffer.len() < BATCH_BYTES / 2 {
            self.queue.push(self.buffer.clone(), self.lines);
            self.buffer.clear();
        } else {
            let next = Vec::with_capacity(self.buffer.capacity().min(2 * BATCH_BYTES));
            self.queue.push(std::mem::replace(&mut self.buffer, next), self.lines);
        }
        self.lines = 0;
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests;
