//! The thread between the tiers, and memory after a start: what was asked for last goes up again, as long as there is room, so
//! that the first requests find it there.

use std::io;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Weak};
use std::thread;

use super::later;
use crate::disk::entry::{Entry, EntryKind};
use crate::disk::format::split_variant;
use crate::disk::id::Id;
use crate::disk::index::Look;
use crate::disk::{Disk, read};
use crate::object::Identity;
use crate::store::Shared;
use crate::tier::Candidate;
use crate::{Head, VaryRule};

/// Memory is filled up to this part, in eighths: the rest is for what comes in meanwhile.
const FILLED_EIGHTHS: u64 = 7;

/// Refills from each disk whose number comes in, and brings down what a disk did not take, as long as there is a store.
pub(crate) fn start<H: Head, V: VaryRule>(
    shared: Weak<Shared<H, V>>,
    tell: Sender<usize>,
    loaded: Receiver<usize>,
) -> io::Result<()> {
    thread::Builder::new().name("larder-tiers".to_owned()).spawn(move || {
        // Held, so that the channel outlives the disks' last word.
        let _tell = tell;
        loop {
            let disk = loaded.recv_timeout(later::EVERY).ok();
            let Some(shared) = shared.upgrade() else { return };
            if let Some(disk) = disk {
                shared.refill(disk);
            }
            shared.offer_again();
        }
    })?;
    Ok(())
}

impl<H: Head, V: VaryRule> Shared<H, V> {
    fn refill(&self, number: usize) {
        let Some(disk) = self.disks().get(number) else { return };
        let now = disk.core().now_secs();
        let mut entries: Vec<Entry> = Vec::new();
        for shard in 0..disk.core().index.shards() {
            let shard = disk.core().index.copy_shard(shard).into_iter();
            entries.extend(shard.filter(|entry| {
                entry.kind() != EntryKind::Directory
                    && !entry.is_expired(now)
                    && entry.bytes() <= self.config().max_object
            }));
        }
        entries.sort_unstable_by_key(|entry| (!entry.is_used(), entry.idle_secs(now)));
        let limit = self.config().max_size / 8 * FILLED_EIGHTHS;
        for entry in entries {
            if self.tier.used() + entry.bytes() > limit || self.is_stopped() {
                break;
            }
            // What can't be read any more is passed over.
            let _ = self.bring_up(disk, entry);
        }
    }

    fn bring_up(&self, disk: &Disk, entry: Entry) -> Option<()> {
        let (key, record) = read::read_any(disk.core(), entry)?;
        let head = Arc::new(H::decode(record.head())?);
        if !self.fits_memory(&head, record.body.len()) || head.keep_until_secs() <= disk.core().now_secs() {
            return None;
        }
        let (id, vary) = match split_variant(&record.rest).filter(|_| entry.kind() == EntryKind::Variant) {
            None => (Id::of_key(&key), None),
            Some((stamp, name, _)) => {
                let vary = Self::rule_of(disk, &key, stamp)?;
                (
                    Id::of_variant(&key, stamp, name),
                    Some((Arc::new(vary), Arc::from(name))),
                )
            }
        };
        let body = match record.body.place() {
            crate::Place::Memory(_) => record.body.clone(),
            crate::Place::Disk(body) => read::load_whole(body)?,
        };
        let owner = disk.core().owner(&key);
        let candidate = Candidate {
            key,
            head,
            body,
            vary,
            begun: 0,
            identity: Some(Identity {
                id,
                stamp: record.stamp,
            }),
            owner,
        };
        self.promote(disk, candidate, entry);
        Some(())
    }

    /// What a key varies on, as its directory says.
    fn rule_of(disk: &Disk, key: &[u8], stamp: u64) -> Option<V> {
        let Look::Entry(entry) = disk.look(Id::of_key(key)) else {
            return None;
        };
        let (own, record) = read::read_any(disk.core(), entry)?;
        (*own == *key && record.kind == EntryKind::Directory && record.stamp == stamp).then_some(())?;
        V::decode(&record.rest)
    }
}
