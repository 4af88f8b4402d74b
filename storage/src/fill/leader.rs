//! The origin's end of a fill. It belongs to a task that no client can cancel; should that task end early for whatever
//! reason, dropping it ends the fill with an error, never as if it were complete.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;

use super::{Fill, FillError, Headed, Keep, NotKept, Wakes};
use crate::disk::body_file::BodyFile;
use crate::disk::id::Id;
use crate::object::{Body, Identity, Object};
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
    /// The file that it goes into, and whether that is still written.
    file: Option<BodyFile>,
    is_writing: bool,
    /// A push is under way, or was not waited for to its end.
    is_torn: bool,
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
        let mut filling = Filling {
            lead,
            outcome: None,
            file: None,
            is_writing: false,
            is_torn: false,
        };
        // An empty body is complete with its head.
        if filling.is_complete() {
            filling.outcome = Some(filling.lead.complete(None));
        }
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

    /// Appends to the body. Waits only where it will not be stored, for its slowest reader, or for the file that it goes into.
    /// One that is not waited for to its end has appended nothing if it waited for a reader, else the fill is lost.
    ///
    /// # Errors
    /// See [`Abandoned`].
    pub async fn push(&mut self, bytes: Bytes) -> Result<(), Abandoned> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.is_torn {
            self.lead.end(Err(FillError::Lost));
            return Err(Abandoned);
        }
        poll_fn(|cx| self.lead.fill.state.lock().poll_room(cx)).await?;
        self.is_torn = true;
        self.take_in(bytes).await?;
        self.is_torn = false;
        Ok(())
    }

    async fn take_in(&mut self, bytes: Bytes) -> Result<(), Abandoned> {
        let wakes = self.lead.accept(bytes.clone())?;
        if self.is_complete() {
            self.write_down(&bytes).await;
            self.outcome = Some(self.complete().await);
            self.lead.show(wakes);
        } else {
            // Nobody waits for the disk but the origin.
            self.lead.show(wakes);
            self.write_down(&bytes).await;
        }
        Ok(())
    }

    /// Writes to the file what came in, where it goes into one.
    async fn write_down(&mut self, bytes: &Bytes) {
        if !self.lead.fill.state.lock().is_spilling() {
            return;
        }
        let written = match &mut self.file {
            Some(file) if self.is_writing => file.append(bytes).await,
            Some(_) => return,
            None => self.begin_file().await,
        };
        let mut wakes = Wakes::default();
        let mut state = self.lead.fill.state.lock();
        match written {
            Ok(written) => state.has_written(written),
            Err(why) => {
                // What is in the file so far stays readable for those who lag behind.
                self.is_writing = false;
                state.pass(why, self.lead.fill.alone, &mut wakes);
            }
        }
        drop(state);
        wakes.wake();
    }

    /// From here on the body goes into a file, with what came in so far.
    async fn begin_file(&mut self) -> Result<u64, NotKept> {
        let id = Id::of_key(&self.lead.fill.key);
        let disk = self.lead.shared.disks().of(id).ok_or(NotKept::TooLarge)?;
        let mut file = BodyFile::begin(disk.core(), id).await?;
        let so_far = self.lead.fill.state.lock().begin_spill(file.growing());
        let mut written = 0;
        let mut result = Ok(());
        for piece in so_far {
            match file.append(&piece).await {
                Ok(readable) => written = readable,
                Err(why) => {
                    result = Err(why);
                    break;
                }
            }
        }
        self.file = Some(file);
        self.is_writing = result.is_ok();
        result.map(|()| written)
    }

    /// Seals the file, if there is one, and stores the object.
    async fn complete(&mut self) -> Result<Arc<Object<H>>, NotKept> {
        let Some(file) = self.file.as_mut().filter(|_| self.is_writing) else {
            return self.lead.complete(None);
        };
        let stamp = file.stamp;
        let stored = match file.seal().await {
            Ok(body) => self.lead.complete(Some((body.into(), stamp))),
            Err(why) => {
                self.lead.fill.state.lock().passing = Some(why);
                self.lead.complete(None)
            }
        };
        if stored.is_err() {
            file.disown();
        }
        stored
    }

    /// The body is complete.
    ///
    /// # Errors
    /// Why it was not stored. Its readers have it all the same, unless the reason is `Abandoned` or `Failed`.
    pub async fn finish(mut self) -> Result<Arc<Object<H>>, NotKept> {
        if let Some(outcome) = self.outcome.take() {
            return outcome;
        }
        if self.is_torn {
            self.lead.end(Err(FillError::Lost));
            return Err(NotKept::Failed);
        }
        if let Err(wrong) = self.judge_length() {
            self.lead.end(Err(wrong));
            return Err(NotKept::Failed);
        }
        self.complete().await
    }

    /// Ends it early.
    pub fn fail(self, error: FillError) {
        self.lead.end(Err(error));
    }

    /// Whether as much came in as was announced.
    fn judge_length(&self) -> Result<(), FillError> {
        let state = self.lead.fill.state.lock();
        let received = state.buffer.len();
        match state.headed.as_ref().and_then(|headed| headed.expected) {
            Some(expected) if expected != received => Err(FillError::Length { expected, received }),
            _ => Ok(()),
        }
    }

    /// As long as it was announced.
    fn is_complete(&self) -> bool {
        let state = self.lead.fill.state.lock();
        let expected = state.headed.as_ref().and_then(|headed| headed.expected);
        state.end.is_none() && expected == Some(state.buffer.len())
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
            Err(why) if self.goes_into_file(why, need) => {
                state.spilling = true;
                state.reconsider(self.fill.alone, &mut wakes);
            }
            Err(why) => state.pass(why, self.fill.alone, &mut wakes),
        }
        wakes
    }

    /// What memory can't hold goes into a file of its own, where the key's disk takes it.
    fn goes_into_file(&self, why: NotKept, need: u64) -> bool {
        let is_for_memory = matches!(why, NotKept::TooLarge | NotKept::FillMemory);
        let disk = self.shared.disks().of(Id::of_key(&self.fill.key));
        is_for_memory && disk.is_some_and(|disk| disk.takes_file(need))
    }

    fn reserve(&self, keep: Keep, need: u64) -> Result<crate::budget::Reservation, NotKept> {
        if keep != Keep::Store {
            return Err(NotKept::Declined);
        }
        let most = self.shared.kept_max();
        if most == 0 {
            return Err(NotKept::Disabled);
        }
        if need > most {
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
            if self.goes_into_file(why, head_weight + total) {
                state.begin_spilling();
            } else {
                state.pass(why, self.fill.alone, &mut wakes);
            }
        }
        if state.passing.is_none() && !state.spilling {
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
        if state.spilling {
            let disk = self.shared.disks().of(Id::of_key(&self.fill.key));
            let fits = disk.is_some_and(|disk| disk.takes_file(need));
            return fits.then_some(()).ok_or(NotKept::DiskUnavailable);
        }
        if need > self.shared.kept_max() {
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
    fn complete(&self, in_file: Option<(Body, u64)>) -> Result<Arc<Object<H>>, NotKept> {
        let outcome = self
            .candidate(in_file)
            .and_then(|candidate| self.shared.commit(&self.fill, candidate));
        let mut state = self.fill.state.lock();
        match &outcome {
            Ok(object) => {
                if object.body.chunks().is_some() {
                    state.buffer.share(&object.body);
                }
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

    fn candidate(&self, in_file: Option<(Body, u64)>) -> Result<Candidate<H, V>, NotKept> {
        let state = self.fill.state.lock();
        if let Some(why) = state.passing {
            return Err(why);
        }
        if state.abandoned {
            return Err(NotKept::Abandoned);
        }
        let headed = state.headed.as_ref().ok_or(NotKept::Failed)?;
        let mut identity = self.shared.identity(&self.fill.key);
        let body = match in_file {
            Some((body, stamp)) => {
                // The file has it already.
                identity = identity.map(|identity| Identity { stamp, ..identity });
                body
            }
            None => state.buffer.to_body(),
        };
        Ok(Candidate {
            key: Arc::clone(&self.fill.key),
            head: Arc::clone(&headed.head),
            body,
            vary: headed.vary.clone(),
            begun: self.fill.begun,
            identity,
            owner: self.shared.owner(&self.fill.key),
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
