//! A client's end of a fill. Dropping it is leaving.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::readers::Owner;
use super::{Fill, FillError, Headed, NotKept, Spill};
use crate::disk::body_file::{Reading, read_from};
use crate::tier::with_scratch;

/// Why a reader gets no head.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReaderEnd {
    /// The answer is not for this request: look again, or go to the origin on its own.
    #[error("the answer is not for this request")]
    Retry,
    /// There is no answer.
    #[error(transparent)]
    Failed(FillError),
}

/// Reads a fill from its first byte on, as it comes in. Usable from any thread.
pub struct Reader<H, V> {
    fill: Arc<Fill<H, V>>,
    /// `None` once it left because the answer is for another variant; somebody else may have the place then.
    slot: Option<usize>,
    owner: Owner,
    pos: u64,
    /// It lags behind, and reads from the file.
    reading: Option<oneshot::Receiver<Option<Bytes>>>,
}

impl<H, V> fmt::Debug for Reader<H, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("fill", &self.fill)
            .field("pos", &self.pos)
            .finish_non_exhaustive()
    }
}

impl<H, V> Reader<H, V> {
    pub(crate) const fn new(fill: Arc<Fill<H, V>>, slot: usize, owner: Owner) -> Self {
        Self {
            fill,
            slot: Some(slot),
            owner,
            pos: 0,
            reading: None,
        }
    }

    /// Waits for the head. `variant` appends the variant key of this reader's request under the rule it is given; where
    /// that differs from the request which the origin answered, the end is `Retry`. It may be called again after that
    /// and says the same.
    ///
    /// # Errors
    /// See [`ReaderEnd`].
    pub async fn head(&mut self, mut variant: impl FnMut(&V, &mut Vec<u8>)) -> Result<Arc<H>, ReaderEnd> {
        poll_fn(|cx| self.poll_head(cx, &mut variant)).await
    }

    /// [`Self::head`] for those who poll.
    ///
    /// # Errors
    /// See [`ReaderEnd`].
    pub fn poll_head(
        &mut self,
        cx: &Context<'_>,
        variant: impl FnMut(&V, &mut Vec<u8>),
    ) -> Poll<Result<Arc<H>, ReaderEnd>> {
        let mut state = self.fill.state.lock();
        let Some(slot) = self.slot.filter(|&slot| !state.readers.is_dismissed(slot)) else {
            return Poll::Ready(Err(ReaderEnd::Retry));
        };
        let failed = state.end.as_ref().and_then(|end| end.as_ref().err()).cloned();
        let Some(headed) = &state.headed else {
            if let Some(error) = failed {
                return Poll::Ready(Err(ReaderEnd::Failed(error)));
            }
            state.readers.wait(slot, cx.waker());
            return Poll::Pending;
        };
        let headed = headed.clone();
        drop(state);
        if self.owner == Owner::Other && !fits(&headed, variant) {
            self.slot = None;
            self.fill.leave(slot);
            return Poll::Ready(Err(ReaderEnd::Retry));
        }
        Poll::Ready(failed.map_or(Ok(headed.head), |error| Err(ReaderEnd::Failed(error))))
    }

    /// The next bytes of the body, as soon as there are some; `None` after the last. What came before an error is
    /// delivered before it.
    ///
    /// # Errors
    /// The body ends early.
    pub async fn next_chunk(&mut self) -> Option<Result<Bytes, FillError>> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// [`Self::next_chunk`] for those who poll.
    ///
    /// # Errors
    /// The body ends early.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, FillError>>> {
        if let Some(reading) = &mut self.reading {
            let read = ready!(Pin::new(reading).poll(cx)).ok().flatten();
            self.reading = None;
            return Poll::Ready(Some(self.deliver(read)));
        }
        let mut state = self.fill.state.lock();
        // One that was sent away, or left because the variant is another one, has no part in the body.
        let Some(slot) = self.slot.filter(|&slot| !state.readers.is_dismissed(slot)) else {
            return Poll::Ready(Some(Err(FillError::Lost)));
        };
        if self.pos < state.buffer.base() {
            let spill = state.spill.clone();
            drop(state);
            return self.poll_file(spill, cx);
        }
        if let Some(bytes) = state.buffer.at(self.pos) {
            self.pos += bytes.len() as u64;
            state.readers.advance(slot, self.pos);
            let wakes = state.trim();
            drop(state);
            wakes.wake();
            return Poll::Ready(Some(Ok(bytes)));
        }
        match &state.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(error.clone()))),
            None => {
                state.readers.wait(slot, cx.waker());
                Poll::Pending
            }
        }
    }

    /// What has left the buffer is in the file.
    fn poll_file(&mut self, spill: Option<Spill>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, FillError>>> {
        let read = match spill.map(|spill| read_from(&spill.body, self.pos)) {
            Some(Reading::Waiting(reading)) => {
                self.reading = Some(reading);
                return self.poll_chunk(cx);
            }
            Some(Reading::Done(read)) => read,
            None => None,
        };
        Poll::Ready(Some(self.deliver(read)))
    }

    /// Hands out what was read from the file: no more than others may see.
    fn deliver(&mut self, read: Option<Bytes>) -> Result<Bytes, FillError> {
        let (Some(slot), Some(mut bytes)) = (self.slot, read) else {
            return Err(FillError::Lost);
        };
        let mut state = self.fill.state.lock();
        let most = state.buffer.visible().saturating_sub(self.pos);
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        self.pos += bytes.len() as u64;
        state.readers.advance(slot, self.pos);
        let wakes = state.trim();
        drop(state);
        wakes.wake();
        if bytes.is_empty() {
            Err(FillError::Lost)
        } else {
            Ok(bytes)
        }
    }

    /// Length of the body, where the head is known and announced it.
    #[must_use]
    pub fn expected_len(&self) -> Option<u64> {
        self.fill.state.lock().headed.as_ref()?.expected
    }

    /// Why the answer will not be stored, as far as is known by now.
    #[must_use]
    pub fn not_kept(&self) -> Option<NotKept> {
        let state = self.fill.state.lock();
        state.passing.or_else(|| state.doomed.then_some(NotKept::Doomed))
    }

    /// Whether it reads what another request asked the origin for.
    #[must_use]
    pub const fn is_collapsed(&self) -> bool {
        matches!(self.owner, Owner::Other)
    }
}

impl<H, V> Drop for Reader<H, V> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.fill.leave(slot);
        }
    }
}

/// Whether an answer is for the request that `variant` speaks for.
pub(crate) fn fits<H, V>(headed: &Headed<H, V>, variant: impl FnOnce(&V, &mut Vec<u8>)) -> bool {
    let Some((vary, answered)) = &headed.vary else {
        return true;
    };
    with_scratch(|own| {
        variant(vary, own);
        **own == **answered
    })
}
