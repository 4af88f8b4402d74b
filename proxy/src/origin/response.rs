//! An origin's answer as it is handed on: its head, its body chunk by chunk under the deadlines, or a tunnel.

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout_at};

use super::Observe;
use super::connection::Connection;
use super::failure::{FailureKind, FetchError};
use super::gate::Gate;
use super::meter::Meter;
use super::request_body::Upload;

#[derive(Debug)]
pub struct OriginResponse {
    /// As the origin sent it, except that at most one framing field is left. Fields of the connection are still in it:
    /// [`super::forward::response_headers`] removes them.
    pub head: Parts,
    pub body: OriginBody,
    /// Two readings of the framing were possible. The safe one was taken; the answer must not be stored.
    pub framing_ambiguous: bool,
    /// Bytes of the body to come, where that is known; 0 for a bodiless answer, whatever its Content-Length says.
    pub known_length: Option<u64>,
    pub delimited: Delimited,
    /// The other end of a 101. The body is empty then.
    pub upgraded: Option<OriginTunnel>,
    pub timing: Timing,
}

/// How the end of the body is known (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimited {
    /// No body by status or method.
    Bodiless,
    Length(u64),
    Chunked,
    /// By the end of the connection: a cut-off looks like an end, if the cut was clean.
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// For a connection: the queue, and the opening.
    pub connect: Duration,
    /// From the beginning of the (last) attempt to the final head, opening included.
    pub first_byte: Duration,
    /// An idle connection served it.
    pub reused: bool,
    /// It was tried twice.
    pub retried: bool,
}

/// Bytes on a connection since an exchange began, reported once.
pub(super) struct Account {
    observe: Arc<dyn Observe>,
    meter: Arc<Meter>,
    sent: u64,
    received: u64,
}

impl Account {
    pub(super) fn begin(observe: Arc<dyn Observe>, meter: Arc<Meter>) -> Self {
        Self {
            observe,
            sent: meter.sent(),
            received: meter.received(),
            meter,
        }
    }

    /// Whether the origin has sent anything since.
    pub(super) fn is_silent(&self) -> bool {
        self.meter.received() == self.received
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.observe.sent(self.meter.sent().saturating_sub(self.sent));
        self.observe
            .received(self.meter.received().saturating_sub(self.received));
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").finish_non_exhaustive()
    }
}

/// The connection under an exchange, and where it goes afterwards.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) connection: Connection,
    pub(super) account: Account,
    pub(super) upload: Arc<Upload>,
    pub(super) persistent: bool,
    pub(super) gate: Arc<Gate<Connection>>,
    pub(super) worker: usize,
}

impl Lease {
    fn end(self) {
        // The account closes before the connection can carry somebody else's bytes.
        drop(self.account);
        if self.persistent {
            self.connection.settle(self.gate, self.worker);
        }
    }
}

/// Deadlines that outlive the head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) between_bytes: Duration,
    pub(super) total: Option<Instant>,
}

/// The body. Dropped before its end, it closes the connection.
#[derive(Debug)]
pub struct OriginBody {
    incoming: Incoming,
    /// Given up at the end, clean or not.
    lease: Option<Lease>,
    patience: Patience,
    failed: Option<FailureKind>,
}

impl OriginBody {
    pub(super) fn new(incoming: Incoming, lease: Option<Lease>, patience: Patience) -> Self {
        let mut body = Self {
            incoming,
            lease,
            patience,
            failed: None,
        };
        body.end_if_complete();
        body
    }

    /// The next piece, never empty; `None` at a clean end, and an error again and again where it was not clean. The
    /// time between two calls counts against the total only, so that a slow client is not taken for a slow origin.
    /// Trailers are parsed and dropped. Cancel safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        if let Some(kind) = self.failed {
            return Err(kind.into());
        }
        let between = Instant::now() + self.patience.between_bytes;
        let (deadline, late) = match self.patience.total {
            Some(total) if total < between => (total, FailureKind::TotalTimeout),
            _ => (between, FailureKind::BetweenBytesTimeout),
        };
        loop {
            match timeout_at(deadline, self.incoming.frame()).await {
                Ok(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if !data.is_empty() {
                        self.end_if_complete();
                        return Ok(Some(data));
                    }
                }
                Ok(None) => {
                    self.end();
                    return Ok(None);
                }
                Ok(Some(Err(error))) => {
                    let kind = self.kind_of(&error);
                    return Err(self.fail(FetchError::caused(kind, error)));
                }
                Err(_) => return Err(self.fail(late.into())),
            }
        }
    }

    /// With a known length the last piece is the end: the connection need not wait for the caller to ask again.
    fn end_if_complete(&mut self) {
        if self.incoming.is_end_stream() {
            self.end();
        }
    }

    fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.end();
        }
    }

    fn kind_of(&self, error: &hyper::Error) -> FailureKind {
        if self.lease.as_ref().is_some_and(|lease| lease.upload.is_broken()) {
            return FailureKind::RequestBody;
        }
        let io = error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>())
            .map(io::Error::kind);
        match io {
            Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => FailureKind::MalformedResponse,
            _ => FailureKind::Truncated,
        }
    }

    fn fail(&mut self, error: FetchError) -> FetchError {
        self.failed = Some(error.kind);
        if let Some(lease) = self.lease.take() {
            lease.account.observe.failure(error.kind);
        }
        error
    }
}

/// A switched connection. It counts against the connection limit as long as it lives.
#[derive(Debug)]
pub struct OriginTunnel {
    io: TokioIo<Upgraded>,
    _account: Account,
    _connection: Connection,
}

impl OriginTunnel {
    pub(super) fn new(upgraded: Upgraded, account: Account, connection: Connection) -> Self {
        Self {
            io: TokioIo::new(upgraded),
            _account: account,
            _connection: connection,
        }
    }
}

impl AsyncRead for OriginTunnel {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for OriginTunnel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
