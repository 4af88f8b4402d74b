//! What a disk did not take when it came, since it had too much to write or was in trouble: it is in memory alone. It is offered
//! again as soon as the disk has room, and at the latest when it leaves memory, or when the store is stopped.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Sheet, store};
use crate::disk::Disk;
use crate::disk::id::Id;
use crate::disk::index::Look;
use crate::disk::pending::PendingBody;
use crate::disk::queue::QUEUE_MAX;
use crate::object::{Homeless, Object};
use crate::store::Shared;
use crate::tier::Gone;
use crate::{Head, VaryRule};

/// How often it is looked whether a disk takes more.
pub(crate) const EVERY: Duration = Duration::from_millis(100);

/// Objects that are kept in mind; older ones come down when they leave memory.
const LATER_MAX: usize = 1 << 16;

/// What waits to be written stays below this, so that what comes from the origin has room.
const OFFERED_BELOW: u64 = QUEUE_MAX / 2;

/// How long a stop waits for the disks to take what is left.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Objects to be offered to their disks again.
#[derive(Debug)]
pub(crate) struct Later<H>(Mutex<VecDeque<Weak<Object<H>>>>);

impl<H> Default for Later<H> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<H> Later<H> {
    pub(super) fn push(&self, object: &Arc<Object<H>>) {
        let mut waiting = self.0.lock();
        if waiting.len() >= LATER_MAX {
            waiting.pop_front();
        }
        waiting.push_back(Arc::downgrade(object));
    }

    fn pop(&self) -> Option<Weak<Object<H>>> {
        self.0.lock().pop_front()
    }

    fn push_back_first(&self, object: &Arc<Object<H>>) {
        self.0.lock().push_front(Arc::downgrade(object));
    }
}

impl<H: Head, V: VaryRule> Shared<H, V> {
    /// Offers what waits, oldest first, as long as the disks have room. Tells whether all of it is settled.
    pub(crate) fn offer_again(&self) -> bool {
        while let Some(waiting) = self.later.pop() {
            // What has left memory was offered then.
            let Some(object) = waiting.upgrade() else { continue };
            let Some(homeless) = object.homeless.get() else {
                continue;
            };
            let Some(disk) = self.disks().of(Id::of_key(&homeless.key)) else {
                continue;
            };
            if !disk.core().health.is_up() || disk.core().queue.bytes() > OFFERED_BELOW {
                self.later.push_back_first(&object);
                return false;
            }
            self.bring_down(&object, homeless, disk);
        }
        true
    }

    /// Offers all of it before the disks are stopped.
    pub(crate) fn offer_the_rest(&self) {
        let deadline = Instant::now() + STOP_PATIENCE;
        let is_hopeless = || self.disks().all().any(|disk| !disk.core().health.is_up());
        while !self.offer_again() && Instant::now() < deadline && !is_hopeless() {
            for disk in self.disks().all() {
                disk.core().queue.wait_below(OFFERED_BELOW, EVERY);
            }
        }
    }

    /// Stores on disk what stays in memory, unless it is not what is stored there any more.
    fn bring_down(&self, object: &Arc<Object<H>>, homeless: &Homeless, disk: &Disk) {
        let before = self.fence();
        let mut gone = Gone::default();
        let stripe = self.stripe(&homeless.key);
        if self.tier.is_stored(&homeless.key, object)
            && is_alone(homeless, disk)
            && self.settle(object, homeless, disk, self.fence())
        {
            // The same, with a home. It is not there any more only if it was evicted meanwhile.
            let same = (Arc::clone(&object.head), object.begun);
            let _ = self.tier.replace(&homeless.key, object, same, &mut gone);
        }
        drop(stripe);
        self.release(gone, before);
    }

    /// Brings down what leaves memory. `before`: the last purge when it began to leave.
    pub(super) fn demote(&self, object: &Object<H>, before: u64) {
        let Some(homeless) = object.homeless.get() else { return };
        let Some(disk) = self.disks().of(Id::of_key(&homeless.key)) else {
            return;
        };
        let stripe = self.stripe(&homeless.key);
        // Something newer is stored, or a purge may have meant it.
        let is_last = self.fence() == before && !self.tier.has(&homeless.key);
        if is_last && is_alone(homeless, disk) {
            self.settle(object, homeless, disk, before);
        }
        drop(stripe);
    }

    /// Called with the key locked.
    fn settle(&self, object: &Object<H>, homeless: &Homeless, disk: &Disk, fence: u64) -> bool {
        let Some(identity) = object.identity else { return false };
        let mut head = Vec::new();
        object.head.encode(&mut head);
        let sheet = Sheet {
            key: &homeless.key,
            vary: homeless.vary.as_ref().map(|(vary, name)| (&**vary, &**name)),
            head: &head,
            body: PendingBody::Memory(object.body.clone()),
            body_len: object.body.len(),
            stamp: identity.stamp,
            keep_until_secs: object.head.keep_until_secs(),
            fence,
            owner: object.owner,
            variants_max: self.config().variants.max(1),
        };
        let is_settled = store(disk, sheet).is_ok();
        if is_settled {
            disk.core().cells.demoted.up();
        }
        is_settled
    }
}

/// Whether nothing is stored on disk in its place.
fn is_alone(homeless: &Homeless, disk: &Disk) -> bool {
    homeless.vary.is_some() || matches!(disk.look(Id::of_key(&homeless.key)), Look::Nothing)
}
