//! Sending an answer: its head, then its body piece by piece as it comes.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tokio::net::tcp::WriteHalf;

use super::deadline::Deadline;
use super::stream::ClientGone;
use crate::clock::Moment;
use crate::engine::{Answer, Persistence, choose_framing, finish_head};
use crate::http1::Version;
use crate::http1::chunked::{CRLF, LAST_CHUNK, write_chunk_head};
use crate::http1::response::ResponseFraming as Framing;
use crate::traffic::TimeoutKind;

/// The sending half of a client's connection.
#[derive(Debug)]
pub(super) struct Output<'a> {
    half: WriteHalf<'a>,
    deadline: &'a Deadline,
    patience: Duration,
    /// Bytes that the kernel took.
    pub(super) sent: u64,
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    Whole,
    /// The client must not take it for whole: the connection ends here.
    BrokenOff,
}

/// What an answer's framing depends on besides the answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) version: Version,
    pub(super) persistence: Persistence,
    /// The request was HEAD: no body, whatever the head says.
    pub(super) head_only: bool,
}

impl Manner {
    /// Whether an answer leaves the connection in a state to be used again.
    pub(super) fn keeps_connection(&self, answer: &Answer) -> bool {
        self.framing(answer) != Framing::UntilClose
    }

    fn framing(&self, answer: &Answer) -> Framing {
        if self.head_only && answer.length.is_none() {
            return Framing::Bodiless;
        }
        choose_framing(answer.head.status, answer.length, self.version)
    }
}

impl<'a> Output<'a> {
    pub(super) const fn new(half: WriteHalf<'a>, deadline: &'a Deadline, patience: Duration) -> Self {
        Self {
            half,
            deadline,
            patience,
            sent: 0,
        }
    }

    /// Writes all of `parts`; each write that is taken renews the client's time.
    pub(super) async fn write_all(&mut self, parts: &[&[u8]]) -> Result<(), ClientGone> {
        let mut skip = 0;
        let total: usize = parts.iter().map(|part| part.len()).sum();
        while skip < total {
            self.deadline
                .set(TimeoutKind::Write, Moment::now().after(self.patience));
            skip += self.write_some(parts, skip).await?;
        }
        self.deadline.clear();
        Ok(())
    }

    async fn write_some(&mut self, parts: &[&[u8]], mut skip: usize) -> Result<usize, ClientGone> {
        let mut slices = [IoSlice::new(&[]); 4];
        for (slot, part) in slices.iter_mut().zip(parts) {
            *slot = IoSlice::new(part.get(skip.min(part.len())..).unwrap_or_default());
            skip = skip.saturating_sub(part.len());
        }
        let written = poll_fn(
            |context| match Pin::new(&mut self.half).poll_write_vectored(context, &slices) {
                Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Err(ClientGone::Io)),
                Poll::Ready(Ok(written)) => Poll::Ready(Ok(written)),
                Poll::Pending => match self.deadline.check(context) {
                    Some(kind) => Poll::Ready(Err(ClientGone::Timeout(kind))),
                    None => Poll::Pending,
                },
            },
        )
        .await?;
        self.sent += written as u64;
        Ok(written)
    }

    /// Sends `answer`. What of the body is there at once leaves with the head.
    pub(super) async fn deliver(&mut self, answer: &mut Answer, manner: Manner) -> Result<Delivered, ClientGone> {
        let framing = manner.framing(answer);
        let mut head = Vec::with_capacity(answer.head.shared.len() + answer.head.private.len() + 256);
        head.extend_from_slice(&answer.head.shared);
        head.extend_from_slice(&answer.head.private);
        finish_head(
            &mut head,
            framing,
            answer.age,
            &answer.outcome,
            manner.version,
            manner.persistence,
        );
        if manner.head_only || framing == Framing::Bodiless {
            self.write_all(&[&head]).await?;
            // The origin's connection is free only once its end of the message has been seen.
            return Ok(answer
                .body
                .chunk()
                .await
                .map_or(Delivered::BrokenOff, |_| Delivered::Whole));
        }
        let first = tokio::select! {
            biased;
            chunk = answer.body.chunk() => Some(chunk),
            () = std::future::ready(()) => None,
        };
        let mut body = BodyOutput { framing, sent: 0 };
        match first {
            None => self.write_all(&[&head]).await?,
            Some(Ok(chunk)) => match body.send(self, &head, chunk).await? {
                None => {}
                Some(end) => return Ok(end),
            },
            Some(Err(_)) => {
                self.write_all(&[&head]).await?;
                return Ok(Delivered::BrokenOff);
            }
        }
        loop {
            let Ok(chunk) = answer.body.chunk().await else {
                return Ok(Delivered::BrokenOff);
            };
            if let Some(end) = body.send(self, &[], chunk).await? {
                return Ok(end);
            }
        }
    }
}

/// A body on its way, in its framing.
struct BodyOutput {
    framing: Framing,
    sent: u64,
}

impl BodyOutput {
    /// Sends one piece after `before`, or the end where there is none. Tells how it ended, if it did.
    async fn send(
        &mut self,
        output: &mut Output<'_>,
        before: &[u8],
        chunk: Option<Bytes>,
    ) -> Result<Option<Delivered>, ClientGone> {
        let Some(chunk) = chunk else {
            return self.end(output, before).await.map(Some);
        };
        self.sent += chunk.len() as u64;
        if let Framing::Length(length) = self.framing
            && self.sent > length
        {
            // More than was announced would be read as the next answer.
            return Ok(Some(Delivered::BrokenOff));
        }
        if self.framing == Framing::Chunked {
            if chunk.is_empty() {
                output.write_all(&[before]).await?;
                return Ok(None);
            }
            let mut size = Vec::with_capacity(20);
            write_chunk_head(chunk.len(), &mut size);
            output.write_all(&[before, &size, &chunk, CRLF]).await?;
        } else {
            output.write_all(&[before, &chunk]).await?;
        }
        Ok(None)
    }

    async fn end(&self, output: &mut Output<'_>, before: &[u8]) -> Result<Delivered, ClientGone> {
        match self.framing {
            Framing::Chunked => output.write_all(&[before, LAST_CHUNK]).await?,
            _ => output.write_all(&[before]).await?,
        }
        Ok(match self.framing {
            Framing::Length(length) if length != self.sent => Delivered::BrokenOff,
            _ => Delivered::Whole,
        })
    }
}
