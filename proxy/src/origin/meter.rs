//! What crosses an origin's socket: bytes each way, since when it takes no more, and whether anything lies in it when a
//! request is about to be written. hyper reports none of this. The retry rule ("no byte of an answer came") needs the
//! first, the deadline of a stuck upload the second, and the third is what keeps stray bytes from answering the next
//! request.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
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
    /// Set when an idle connection is taken, until the first byte of the request is written.
    suspicious: AtomicBool,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self {
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            birth: Instant::now(),
            blocked: AtomicU64::new(0),
            changed: Notify::new(),
            suspicious: AtomicBool::new(false),
        }
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// From now on until something is written, "nothing to read" is asked of the system and not of the runtime.
    pub(super) fn suspect(&self) {
        self.suspicious.store(true, SeqCst);
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
                self.suspicious.store(false, SeqCst);
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
pub(super) struct Metered {
    pub(super) stream: TcpStream,
    pub(super) meter: Arc<Meter>,
}

impl Metered {
    /// tokio answers "pending" from what the last epoll told, which may be older than bytes or a close that wait in the
    /// socket. hyper looks for those before it writes a request, so it must be told the truth: else the stray bytes
    /// would be taken for the answer, and a POST would go out on a connection that is known to be closed.
    fn look_again(&self, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut found = [0; 512];
        let room = found.len().min(buf.remaining());
        let Some(target) = found.get_mut(..room) else {
            return Poll::Pending;
        };
        match recv(&self.stream, &mut *target, RecvFlags::DONTWAIT) {
            Ok((count, _)) => {
                buf.put_slice(target.get(..count).unwrap_or_default());
                Poll::Ready(Ok(()))
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let mut result = Pin::new(&mut self.stream).poll_read(cx, buf);
        if result.is_pending() && self.meter.suspicious.load(SeqCst) {
            result = self.look_again(buf);
        }
        self.meter
            .received
            .fetch_add((buf.filled().len() - before) as u64, Relaxed);
        result
    }
}

impl AsyncWrite for Metered {
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
