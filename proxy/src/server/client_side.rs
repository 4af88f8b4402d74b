//! What comes from the client while its answer is awaited: the body of its request, or nothing but its leaving.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::task::{Poll, ready};

use tokio::io::ReadBuf;
use tokio::net::tcp::ReadHalf;

use super::deadline::Deadline;
use super::stream::ClientGone;
use super::upload::{Upload, Uploaded};
use crate::config::Boot;
use crate::http1::body::Decoder;
use crate::http1::{Framing, Reject};
use crate::origin::RequestBody;

/// The running upload or watch, and its end once it has one.
#[derive(Debug)]
pub(super) struct ClientSide<'a, F> {
    pub(super) future: Pin<&'a mut F>,
    pub(super) end: Option<Uploaded>,
}

impl<F: Future<Output = Uploaded>> ClientSide<'_, F> {
    /// Goes on until something ends: tells whether the client is gone. After that it waits for ever.
    pub(super) async fn wait(&mut self) -> Option<ClientGone> {
        if self.end.is_some() {
            return std::future::pending().await;
        }
        match self.future.as_mut().await {
            Uploaded::Gone(gone) => Some(gone),
            end => {
                self.end = Some(end);
                None
            }
        }
    }

    pub(super) fn take_reject(&mut self) -> Option<Reject> {
        match &self.end {
            Some(Uploaded::Refused(reject)) => Some(*reject),
            _ => None,
        }
    }

    /// Whether the whole request has been read, so that what follows on the connection is the next one.
    pub(super) const fn is_whole(&self, framing: Framing) -> bool {
        matches!(framing, Framing::None) || matches!(self.end, Some(Uploaded::Whole { .. }))
    }
}

/// The client's side of a request, and the body that the origin will read from it.
pub(super) fn client_side<'a>(
    framing: Framing,
    early: Vec<u8>,
    half: ReadHalf<'a>,
    deadline: &'a Deadline,
    boot: &'a Boot,
    received: &'a AtomicU64,
) -> (impl Future<Output = Uploaded> + 'a, RequestBody) {
    let (sender, body) = match framing {
        Framing::None => (None, RequestBody::empty()),
        Framing::Length(length) => first_some(RequestBody::channel(Some(length))),
        Framing::Chunked => first_some(RequestBody::channel(None)),
    };
    let side = async move {
        let Some(sender) = sender else { return watch(half).await };
        let decoder = match Decoder::new(framing, boot.limits.body_bytes) {
            Ok(decoder) => decoder,
            Err(reject) => {
                sender.abort();
                return Uploaded::Refused(reject);
            }
        };
        let (timeouts, limits) = (boot.timeouts, boot.limits);
        Upload {
            half,
            deadline,
            timeouts,
            limits,
            decoder,
            sender,
            early,
        }
        .run(received)
        .await
    };
    (side, body)
}

fn first_some<A, B>((first, second): (A, B)) -> (Option<A>, B) {
    (Some(first), second)
}

/// Ends when the client resets the connection. One that has only ended its sending side may still be reading.
async fn watch(half: ReadHalf<'_>) -> Uploaded {
    poll_fn(|context| {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        match ready!(half.as_ref().poll_peek(context, &mut buffer)) {
            Ok(_) => Poll::Pending,
            Err(_) => Poll::Ready(Uploaded::Gone(ClientGone::Io)),
        }
    })
    .await
}
