//! Output that waits for a client's socket to take it.

use std::future::poll_fn;
use std::io::IoSlice;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::stream::{ClientGone, ClientStream};
use crate::clock::Moment;
use crate::engine::CachedObject;
use crate::traffic::TimeoutKind;

/// Pieces handed to the kernel at once.
const PIECES: usize = 32;

/// Bytes, then the body of an object that is too large to be copied behind them.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    bytes: Vec<u8>,
    written: usize,
    object: Option<Arc<CachedObject>>,
    chunk: usize,
    chunk_written: usize,
}

impl Unsent {
    pub(super) fn new(bytes: Vec<u8>, object: Option<Arc<CachedObject>>) -> Self {
        Self {
            bytes,
            object,
            ..Self::default()
        }
    }

    /// The buffer, to be used again.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Done once everything is in the kernel's hands.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut ClientStream,
    ) -> Poll<Result<(), ClientGone>> {
        loop {
            let mut pieces = [IoSlice::new(&[]); PIECES];
            let count = self.pieces(&mut pieces);
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
            let written = ready!(stream.poll_write(context, pieces.get(..count).unwrap_or_default()))?;
            self.advance(written);
        }
    }

    /// Sends the rest, with `patience` between two writes that are taken.
    pub(super) async fn send(mut self, stream: &mut ClientStream, patience: Duration) -> Result<(), ClientGone> {
        let mut position = self.position();
        stream.deadline.set(TimeoutKind::Write, Moment::now().after(patience));
        let result = poll_fn(|context| {
            let sent = self.poll_send(context, stream);
            // Only progress moves the deadline, not a poll that brought none.
            let reached = self.position();
            if std::mem::replace(&mut position, reached) != reached {
                stream.deadline.set(TimeoutKind::Write, Moment::now().after(patience));
            }
            sent
        })
        .await;
        stream.deadline.clear();
        result
    }

    const fn position(&self) -> (usize, usize, usize) {
        (self.written, self.chunk, self.chunk_written)
    }

    fn pieces<'a>(&'a self, into: &mut [IoSlice<'a>; PIECES]) -> usize {
        let head = self.bytes.get(self.written..).filter(|rest| !rest.is_empty());
        let chunks = self
            .object
            .iter()
            .flat_map(|object| object.body.chunks().unwrap_or_default())
            .skip(self.chunk);
        let bodies = chunks.enumerate().filter_map(|(at, chunk)| {
            let from = if at == 0 { self.chunk_written } else { 0 };
            chunk.get(from..).filter(|rest| !rest.is_empty())
        });
        let mut count = 0;
        for (slot, piece) in into.iter_mut().zip(head.into_iter().chain(bodies)) {
            *slot = IoSlice::new(piece);
            count += 1;
        }
        count
    }

    fn advance(&mut self, mut written: usize) {
        let of_bytes = written.min(self.bytes.len() - self.written);
        self.written += of_bytes;
        written -= of_bytes;
        while written > 0 {
            let chunk = self
                .object
                .as_ref()
                .and_then(|object| object.body.chunks()?.get(self.chunk));
            let Some(chunk) = chunk else { return };
            let rest = chunk.len() - self.chunk_written;
            if written < rest {
                self.chunk_written += written;
                return;
            }
            written -= rest;
            self.chunk += 1;
            self.chunk_written = 0;
        }
    }
}
