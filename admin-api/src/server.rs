//! The admin listener: takes connections and bounds them in number, in time and in what they may send. It knows nothing of
//! the calls. `axum::serve` is not used because it has none of these bounds.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::ServiceExt;

/// Bounds of the admin listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. One more is answered 503 and closed.
    pub connections: usize,
    /// For a request's head, and for the pause before it.
    pub header: Duration,
    /// From the first byte of an answer that the client does not take to its last.
    pub write: Duration,
    /// For requests in progress once the stop was asked for.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A few dashboards with six connections each, scrapers and scripts; far below the limit of open files.
            connections: 256,
            header: Duration::from_secs(10),
            write: Duration::from_secs(30),
            drain: Duration::from_secs(5),
        }
    }
}

/// A token of 1 KiB and a browser's fields fit several times.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// After a failed accept, which is nearly always a lack of file descriptors that only time helps against.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";

/// Serves until `shutdown` is ready and the connections have ended or their time is up.
pub async fn serve(listener: TcpListener, app: Router, limits: Limits, shutdown: impl Future<Output = ()>) {
    let mut shutdown = pin!(shutdown);
    let slots = Arc::new(Semaphore::new(limits.connections));
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            // Ended ones are taken out as they end, so the set is never larger than the limit and what ended just now.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "could not accept an admin connection");
                tokio::select! {
                    () = &mut shutdown => break,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => continue,
                }
            }
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            tracing::debug!(%peer, "turned away an admin connection: too many");
            // The buffer of a new connection is empty, so this takes it all or the client is gone.
            let _ = stream.try_write(FULL);
            continue;
        };
        let app = app.clone();
        let stopping = stopping.clone();
        connections.spawn(async move {
            connection(stream, peer, app, limits, stopping).await;
            drop(slot);
        });
    }
    drop(listener);
    stop.send_replace(true);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain, ended).await.is_err() {
        tracing::warn!("cut off admin connections that were still open after the time to drain");
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
    limits: Limits,
    mut stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = app.clone().oneshot(request);
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let io = TokioIo::new(WriteDeadline {
        stream,
        allowed: limits.write,
        pending: None,
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header)
            .max_header_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(io, service)
    );
    let stopped = async {
        // An error means that the sender is gone, which happens after the stop only.
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stopped => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "an admin connection ended early");
    }
}

/// Fails a write that waits too long. What was begun has to be taken as a whole in time: a client that takes a byte now and
/// then does not prolong it.
#[derive(Debug)]
struct WriteDeadline {
    stream: TcpStream,
    allowed: Duration,
    pending: Option<Pin<Box<Sleep>>>,
}

impl WriteDeadline {
    fn poll_deadline<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let allowed = self.allowed;
        let sleep = self
            .pending
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + allowed)));
        match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for WriteDeadline {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for WriteDeadline {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(cx, buf) {
            Poll::Pending => self.poll_deadline(cx),
            ready => ready,
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write_vectored(cx, bufs) {
            Poll::Pending => self.poll_deadline(cx),
            ready => ready,
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called once all that was buffered is written: the client has caught up.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pending = None;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
