//! The origin's end of a fill. It belongs to a task that no client can cancel; should that task end early for whatever
//! reason, dropping it ends the fill with an error, never as if it were complete.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;

use super::{Fill, FillError, Headed, Keep, NotKept, Wakes};
use crate::object::Object;
use crate::store::Shared;
use crate::tier::Candidate;
use crate::{Head, VaryRule};

/// Nobody waits for the rest and it is not worth finishing, or the body is longer than announced: stop reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the fill is over")]
pub struct Abandoned;

/// What the head of an answer says about it.
#[derive(Debug)]
pub struct Offer<V> {
    /// Length of the body where the head announces it; the fill fails if it turns out otherwise.
    pub expected_len: Option<u64>,
    /// What is to become of it.
    pub keep: Keep,
    /// What it varies on, and the variant key of the request that was sent to the origin.
    pub vary: Option<(V, Vec<u8>)>,
}

/// Leads a fill whose head isn't known yet.
pub struct Leader<H: Head, V: VaryRule>(Lead<H, V>);

/// Leads a fill whose body is coming in.
pub struct Filling<H: Head, V: VaryRule> {
    lead: Lead<H, V>,
    /// Set when the announced length was reached, before the last bytes are shown to anyone: who has a complete answer
    /// finds it stored.
    outcome: Option<Result<Arc<Object<H>>, NotKept>>,
}

/// Ends the fill as lost unless it was ended before.
struct Lead<H: Head, V: VaryRule> {
    shared: Arc<Shared<H, V>>,
    fill: Arc<Fill<H, V>>,
}

impl<H: Head, V: VaryRule> fmt::Debug for Leader<H, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leader").field(&self.0.fill).finish()
    }
}

impl<H: Head, V: VaryRule> fmt::Debug for Filling<H, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filling")
            .field("fill", &self.lead.fill)
            .finish_non_exhaustive()
    }
}

impl<H: Head, V: VaryRule> Leader<H, V> {
    pub(crate) const fn new(shared: Arc<Shared<H, V>>, fill: Arc<Fill<H, V>>) -> Self {
        Self(Lead { shared, fill })
    }

    /// It goes on when no reader is left, for as long as it is to be stored: a background refresh. To be called before the
    /// reader that came with it is dropped.
    pub fn set_unattended(&mut self) {
        self.0.fill.state.lock().unattended = true;
    }

    /// Resolves once the answer is of no use to anyone.
    pub async fn abandoned(&self) {
        self.0.abandoned().await;
    }

    /// Publishes the head. What readers see of it is the head itself; they are told apart by the offer's `vary`.
    #[must_use]
    pub fn head(self, head: Arc<H>, offer: Offer<V>) -> Filling<H, V> {
        let lead = self.0;
        let wakes = lead.accept_head(head, offer);
        let mut filling = Filling { lead, outcome: None };
        // An empty body is complete with its head.
        filling.complete_if_expected();
        filling.lead.show(wakes);
        filling
    }

    /// Answers with an object that is there already, whole: the origin said that it is still good.
    pub fn answer(self, object: &Object<H>, vary: Option<(V, Vec<u8>)>) {
        let offer = Offer {
            expected_len: Some(object.body.len()),
            keep: Keep::Share,
            vary,
        };
        let wakes = self.0.accept_head(Arc::clone(&object.head), offer);
        self.0.fill.state.lock().buffer.share(&object.body);
        wakes.wake();
        self.0.end(Ok(()));
    }

    /// Ends it without an answer: every other reader is told `Retry`, the own one fails with this.
    pub fn retry(self, error: FillError) {
        let mut state = self.0.fill.state.lock();
        state.open = false;
        state.readers.dismiss_others();
        drop(state);
        self.0.end(Err(error));
    }

    /// Ends it without an answer.
    pub fn fail(self, error: FillError) {
        self.0.end(Err(error));
    }
}

impl<H: Head, V: VaryRule> Filling<H, V> {
    /// Why it will not be stored, as far as is known by now.
    #[must_use]
    pub fn not_kept(&self) -> Option<NotKept> {
        let state = self.lead.fill.state.lock();
        state.passing.or_else(|| state.doomed.then_some(NotKept::Doomed))
    }

    /// Resolves once the answer is of no use to anyone.
    pub async fn abandoned(&self) {
        self.lead.abandoned().await;
    }

    /// Appends to the body. Waits only where it will not be stored, for its slowest reader.
    ///
    /// # Errors
    /// See [`Abandoned`].
    pub async fn push(&mut self, bytes: Bytes) -> Result<(), Abandoned> {
        if bytes.is_empty() {
            return Ok(());
        }
        poll_fn(|cx| self.lead.fill.state.lock().poll_room(cx)).await?;
        let wakes = self.lead.accept(bytes)?;
        self.complete_if_expected();
        self.lead.show(wakes);
        Ok(())
    }

    /// The body is complete.
    ///
    /// # Errors
    /// Why it was not stored. Its readers have it all the same, unless the reason is `Abandoned` or `Failed`.
    pub fn finish(mut self) -> Result<Arc<Object<H>>, NotKept> {
        if let Some(outcome) = self.outcome.take() {
            return outcome;
        }
        let state = self.lead.fill.state.lock();
        let received = state.buffer.len();
        let expected = state.headed.as_ref().and_then(|headed| headed.expected);
        drop(state);
        if let Some(expected) = expected
            && expected != received
        {
            self.lead.end(Err(FillError::Length { expected, received }));
            return Err(NotKept::Failed);
        }
        self.lead.complete()
    }

    /// Ends it early.
    pub fn fail(self, error: FillError) {
        self.lead.end(Err(error));
    }

    fn complete_if_expected(&mut self) {
        let state = self.lead.fill.state.lock();
        let expected = state.headed.as_ref().and_then(|headed| headed.expected);
        let complete = state.end.is_none() && expected == Some(state.buffer.len());
        drop(state);
        if complete {
            self.outcome = Some(self.lead.complete());
        }
    }
}

impl<H: Head, V: VaryRule> Lead<H, V> {
    async fn abandoned(&self) {
        poll_fn(|cx| {
            let mut state = self.fill.state.lock();
            if state.abandoned || state.end.is_some() {
                return Poll::Ready(());
            }
            state.leader = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn accept_head(&self, head: Arc<H>, offer: Offer<V>) -> Wakes {
        let head_weight = head.weight() as u64;
        let need = head_weight.saturating_add(offer.expected_len.unwrap_or(0));
        let reserved = self.reserve(offer.keep, need);
        let mut wakes = Wakes::default();
        let mut state = self.fill.state.lock();
        state.headed = Some(Headed {
            head,
            head_weight,
            vary: offer.vary.map(|(vary, variant)| (Arc::new(vary), Arc::from(variant))),
            expected: offer.expected_len,
            shared: offer.keep != Keep::Private,
        });
        if offer.keep == Keep::Private {
            state.readers.dismiss_others();
        }
        match reserved {
            Ok(reservation) => {
                state.reservation = Some(reservation);
                state.reconsider(self.fill.alone, &mut wakes);
            }
            Err(why) => state.pass(why, self.fill.alone, &mut wakes),
        }
        wakes
    }

    fn reserve(&self, keep: Keep, need: u64) -> Result<crate::budget::Reservation, NotKept> {
        let config = self.shared.config();
        if keep != Keep::Store {
            return Err(NotKept::Declined);
        }
        if config.max_size == 0 {
            return Err(NotKept::Disabled);
        }
        if need > config.max_object {
            return Err(NotKept::TooLarge);
        }
        self.shared.budget.reserve(need).ok_or(NotKept::FillMemory)
    }

    /// Appends without showing it to readers yet.
    fn accept(&self, bytes: Bytes) -> Result<Wakes, Abandoned> {
        let mut wakes = Wakes::default();
        let mut state = self.fill.state.lock();
        let total = state.buffer.len() + bytes.len() as u64;
        let (head_weight, expected) = state
            .headed
            .as_ref()
            .map_or((0, None), |headed| (headed.head_weight, headed.expected));
        if let Some(expected) = expected
            && total > expected
        {
            drop(state);
            let received = total;
            self.end(Err(FillError::Length { expected, received }));
            return Err(Abandoned);
        }
        if state.passing.is_none()
            && let Err(why) = self.may_keep(&mut state, head_weight + total)
        {
            state.pass(why, self.fill.alone, &mut wakes);
        }
        if state.passing.is_none() {
            state.buffer.push_copy(bytes);
        } else {
            state.buffer.push_through(bytes);
        }
        Ok(wakes)
    }

    fn may_keep(&self, state: &mut super::State<H, V>, need: u64) -> Result<(), NotKept> {
        if state.doomed {
            return Err(NotKept::Doomed);
        }
        if need > self.shared.config().max_object {
            return Err(NotKept::TooLarge);
        }
        let fits = state.reservation.as_mut().is_some_and(|own| own.grow_to(need));
        fits.then_some(()).ok_or(NotKept::FillMemory)
    }

    /// Shows readers what was accepted.
    fn show(&self, mut wakes: Wakes) {
        let mut state = self.fill.state.lock();
        state.buffer.publish();
        wakes.append(state.readers.wake_all());
        drop(state);
        wakes.wake();
    }

    /// Stores it if that is still allowed, and ends it.
    fn complete(&self) -> Result<Arc<Object<H>>, NotKept> {
        let outcome = self
            .candidate()
            .and_then(|candidate| self.shared.commit(&self.fill, candidate));
        let mut state = self.fill.state.lock();
        match &outcome {
            Ok(object) => {
                state.buffer.share(&object.body);
                // From here on the tier accounts for the memory.
                state.reservation = None;
            }
            Err(why) => state.passing = Some(*why),
        }
        drop(state);
        let abandoned = outcome.as_ref().err() == Some(&NotKept::Abandoned);
        self.end(if abandoned { Err(FillError::Lost) } else { Ok(()) });
        outcome
    }

    fn candidate(&self) -> Result<Candidate<H, V>, NotKept> {
        let state = self.fill.state.lock();
        if let Some(why) = state.passing {
            return Err(why);
        }
        if state.abandoned {
            return Err(NotKept::Abandoned);
        }
        let headed = state.headed.as_ref().ok_or(NotKept::Failed)?;
        Ok(Candidate {
            key: Arc::clone(&self.fill.key),
            head: Arc::clone(&headed.head),
            body: state.buffer.to_body(),
            vary: headed.vary.clone(),
            begun: self.fill.begun,
        })
    }

    /// The first end counts.
    fn end(&self, end: Result<(), FillError>) {
        let mut state = self.fill.state.lock();
        if state.end.is_some() {
            return;
        }
        let wakes = state.end(end);
        drop(state);
        self.shared.forget(&self.fill);
        wakes.wake();
    }
}

impl<H: Head, V: VaryRule> Drop for Lead<H, V> {
    fn drop(&mut self) {
        self.end(Err(FillError::Lost));
    }
}
