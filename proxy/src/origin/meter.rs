//! What crosses an origin's socket: bytes each way, and since when it takes no more. hyper reports neither, and both the retry rule
//! ("no byte of an answer came") and the deadline of a stuck upload need them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

#[derive(Debug)]
pub(super) struct Meter {
    received: AtomicU64,
    sent: AtomicU64,
    birth: Instant,
    /// Microseconds since `birth` plus one at which a write first found the socket full; 0 while it takes bytes.
    blocked: AtomicU64,
    changed: Notify,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self {
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            birth: Instant::now(),
            blocked: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Ends when the peer has taken nothing for `limit` although something waits to be written.
    pub(super) async fn stalled(&self, limit: Duration) {
        loop {
            let blocked = self.blocked.load(Relaxed);
            if blocked == 0 {
                self.changed.notified().await;
                continue;
            }
            sleep_until(self.birth + Duration::from_micros(blocked - 1) + limit).await;
            if self.blocked.load(Relaxed) == blocked {
                return;
            }
        }
    }

    fn note_write<T>(&self, result: &Poll<io::Result<T>>, count: impl FnOnce(&T) -> usize) {
        match result {
            Poll::Ready(Ok(taken)) => {
                self.blocked.store(0, Relaxed);
                self.sent.fetch_add(count(taken) as u64, Relaxed);
            }
            Poll::Ready(Err(_)) => self.blocked.store(0, Relaxed),
            Poll::Pending if self.blocked.load(Relaxed) == 0 => {
                let now = u64::try_from(self.birth.elapsed().as_micros()).unwrap_or(u64::MAX - 1);
                self.blocked.store(now + 1, Relaxed);
                self.changed.notify_one();
            }
            Poll::Pending => {}
        }
    }
}

/// A stream that keeps its meter.
#[derive(Debug)]
pub(super) struct Metered<S> {
    pub(super) stream: S,
    pub(super) meter: Arc<Meter>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.meter
            .received
            .fetch_add((buf.filled().len() - before) as u64, Relaxed);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.meter.note_write(&result, |taken| *taken);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.meter.note_write(&result, |taken| *taken);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
