//! The body of a request on its way to an origin: nothing, or a bounded channel that ends cleanly only where its sender
//! says so.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::{Notify, mpsc};

/// Pieces that may wait between the client's connection and the origin's: one is written while the next is read.
const PIECES: usize = 2;

/// The origin takes no more of the body: it has answered, gone away, or was never reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the origin takes no more of the request")]
pub struct Closed;

/// The body broke off, or did not keep the length it promised.
#[derive(Debug, thiserror::Error)]
#[error("the request's body broke off")]
pub struct Broken;

/// What the exchange wants to know of a body that hyper owns by then.
#[derive(Debug, Default)]
pub(super) struct Upload {
    over: AtomicBool,
    broken: AtomicBool,
    /// The sender said that the body is complete.
    finished: AtomicBool,
    changed: Notify,
}

impl Upload {
    fn end(&self) {
        self.over.store(true, SeqCst);
        self.changed.notify_one();
    }

    /// Ends when hyper has taken all of the body that it will ever take. One waiter at a time.
    pub(super) async fn over(&self) {
        while !self.over.load(SeqCst) {
            self.changed.notified().await;
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(SeqCst)
    }
}

/// A request's body; `http_body::Body` for hyper.
#[derive(Debug)]
pub struct RequestBody {
    pieces: Option<mpsc::Receiver<Bytes>>,
    /// What is still to come, where the length is known.
    left: Option<u64>,
    upload: Arc<Upload>,
}

impl RequestBody {
    #[must_use]
    pub fn empty() -> Self {
        let upload = Arc::<Upload>::default();
        upload.end();
        Self {
            pieces: None,
            left: Some(0),
            upload,
        }
    }

    /// A body that is sent piece by piece, with Content-Length where `length` is known and chunked otherwise.
    #[must_use]
    pub fn channel(length: Option<u64>) -> (RequestBodySender, Self) {
        let (sender, receiver) = mpsc::channel(PIECES);
        let upload = Arc::<Upload>::default();
        if length == Some(0) {
            upload.end();
        }
        let body = Self {
            pieces: Some(receiver),
            left: length,
            upload: Arc::clone(&upload),
        };
        (
            RequestBodySender {
                pieces: sender,
                left: length,
                upload,
            },
            body,
        )
    }

    /// Nothing is or will be in it, so another empty body replaces it.
    pub(super) fn is_empty(&self) -> bool {
        self.left == Some(0)
    }

    pub(super) const fn length(&self) -> Option<u64> {
        self.left
    }

    pub(super) fn upload(&self) -> Arc<Upload> {
        Arc::clone(&self.upload)
    }

    fn break_off<T>(&self) -> Poll<Option<Result<T, Broken>>> {
        self.upload.broken.store(true, SeqCst);
        Poll::Ready(Some(Err(Broken)))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.left == Some(0) {
            self.upload.end();
            return Poll::Ready(None);
        }
        let Some(pieces) = self.pieces.as_mut() else {
            return Poll::Ready(None);
        };
        match std::task::ready!(pieces.poll_recv(cx)) {
            Some(piece) => {
                if let Some(left) = self.left {
                    let Some(rest) = left.checked_sub(piece.len() as u64) else {
                        return self.break_off();
                    };
                    self.left = Some(rest);
                    if rest == 0 {
                        self.upload.end();
                    }
                }
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            None if self.left.is_none() && self.upload.finished.load(SeqCst) => {
                self.upload.end();
                Poll::Ready(None)
            }
            None => self.break_off(),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.upload.end();
    }
}

/// Feeds a [`RequestBody`]. Dropped before [`Self::finish`], it breaks the origin's message off instead of ending it.
#[derive(Debug)]
pub struct RequestBodySender {
    pieces: mpsc::Sender<Bytes>,
    left: Option<u64>,
    upload: Arc<Upload>,
}

impl RequestBodySender {
    /// Waits until there is room. More than the promised length is refused, and the message broken off with the sender.
    pub async fn send(&mut self, piece: Bytes) -> Result<(), Closed> {
        if piece.is_empty() {
            return Ok(());
        }
        if let Some(left) = self.left {
            self.left = Some(left.checked_sub(piece.len() as u64).ok_or(Closed)?);
        }
        self.pieces.send(piece).await.map_err(|_| Closed)
    }

    /// Ends when the origin takes no more, so that a caller need not read on from the client.
    pub async fn closed(&self) {
        self.pieces.closed().await;
    }

    /// The body is complete.
    pub fn finish(self) {
        self.upload.finished.store(true, SeqCst);
    }

    /// The client broke off.
    pub fn abort(self) {
        drop(self);
    }
}
