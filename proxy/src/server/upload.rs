//! A request's body on its way from the client to the origin, at the pace of the slower one.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::tcp::ReadHalf;

use super::deadline::Deadline;
use super::stream::ClientGone;
use crate::clock::Moment;
use crate::config::{Limits, Timeouts};
use crate::http1::Reject;
use crate::http1::body::{Decoder, Step};
use crate::origin::RequestBodySender;
use crate::traffic::TimeoutKind;

/// Read at once. The buffer lives as long as the upload.
const BUFFER: usize = 16 * 1024;

/// How an upload ended.
#[derive(Debug)]
pub(super) enum Uploaded {
    /// All of it was handed on; `rest` is what the client sent behind it.
    Whole {
        rest: Vec<u8>,
    },
    /// The origin wants no more of it. What is left of it on the connection was not read.
    Unwanted,
    /// It breaks the protocol or a limit.
    Refused(Reject),
    Gone(ClientGone),
}

pub(super) struct Upload<'a> {
    pub(super) half: ReadHalf<'a>,
    pub(super) deadline: &'a Deadline,
    pub(super) timeouts: Timeouts,
    pub(super) limits: Limits,
    pub(super) decoder: Decoder,
    pub(super) sender: RequestBodySender,
    /// Bytes that came with the head.
    pub(super) early: Vec<u8>,
}

impl Upload<'_> {
    /// Runs to the end of the body. `received` counts the bytes of the message body as they come, framing included.
    pub(super) async fn run(mut self, received: &AtomicU64) -> Uploaded {
        let began = Moment::now();
        let mut buffer = std::mem::take(&mut self.early);
        loop {
            received.fetch_add(buffer.len() as u64, Ordering::Relaxed);
            match self.decode(&buffer).await {
                Ok(Some(used)) => {
                    self.sender.finish();
                    let rest = buffer.split_off(used);
                    received.fetch_sub(rest.len() as u64, Ordering::Relaxed);
                    return Uploaded::Whole { rest };
                }
                Ok(None) => {}
                Err(end) => {
                    self.sender.abort();
                    return end;
                }
            }
            if self.is_too_slow(began, received.load(Ordering::Relaxed)) {
                self.sender.abort();
                return Uploaded::Gone(ClientGone::Timeout(TimeoutKind::Body));
            }
            buffer.resize(BUFFER, 0);
            match self.read(&mut buffer).await {
                Ok(read @ 1..) => buffer.truncate(read),
                Ok(0) => {
                    self.sender.abort();
                    return Uploaded::Gone(ClientGone::Io);
                }
                Err(gone) => {
                    self.sender.abort();
                    return Uploaded::Gone(gone);
                }
            }
        }
    }

    /// Hands on what `input` holds of the body. Tells how much of the input that was, once the body is whole.
    async fn decode(&mut self, input: &[u8]) -> Result<Option<usize>, Uploaded> {
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            let step = self.decoder.decode(rest).map_err(Uploaded::Refused)?;
            used += step.consumed();
            match step {
                Step::Data(range) => {
                    let data = Bytes::copy_from_slice(rest.get(range).unwrap_or_default());
                    if self.sender.send(data).await.is_err() {
                        return Err(Uploaded::Unwanted);
                    }
                }
                Step::More(_) => return Ok(None),
                Step::End(_) => return Ok(Some(used)),
            }
        }
    }

    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientGone> {
        self.deadline
            .set(TimeoutKind::Body, Moment::now().after(self.timeouts.body));
        let mut buffer = ReadBuf::new(buffer);
        let read = poll_fn(
            |context| match Pin::new(&mut self.half).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) => Poll::Ready(Ok(buffer.filled().len())),
                Poll::Ready(Err(_)) => Poll::Ready(Err(ClientGone::Io)),
                Poll::Pending => match self.deadline.check(context) {
                    Some(kind) => Poll::Ready(Err(ClientGone::Timeout(kind))),
                    None => Poll::Pending,
                },
            },
        )
        .await;
        self.deadline.clear();
        read
    }

    /// A body may begin slowly; after the first wait it must keep up the lowest rate on average.
    fn is_too_slow(&self, began: Moment, received: u64) -> bool {
        let micros = Moment::now().micros_since(began);
        let grace = u64::try_from(self.timeouts.body.as_micros()).unwrap_or(u64::MAX);
        micros > grace && received.saturating_mul(1_000_000) / micros.max(1) < self.limits.body_rate
    }
}
