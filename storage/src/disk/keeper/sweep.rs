//! Dropping what is of no use any more: what is expired, and what nobody asked for. A part of the index at a time, so that the
//! whole takes seconds and no request notices.

use std::time::Duration;

use crate::disk::core::Core;
use crate::disk::entry::{Entry, EntryKind};
use crate::disk::queue::Op;

/// Shards looked at in one step: all of them in four seconds.
const SHARDS: usize = 4;

/// Records removed in one step: tens of thousands a second, in batches that leave the writer time for other things.
const REMOVED_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Sweep {
    next: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Expired,
    Inactive,
}

impl Sweep {
    pub(super) fn step(&mut self, core: &Core) {
        if core.index.is_loading() {
            return;
        }
        let now = core.now_secs();
        let mut removed = Vec::new();
        for _ in 0..SHARDS {
            let shard = self.next % core.index.shards();
            for entry in core.index.copy_shard(shard) {
                if removed.len() >= REMOVED_MAX {
                    // The rest of this shard comes next.
                    core.queue.push(Op::Agree(removed));
                    return;
                }
                let Some(why) = judge(core, entry, now) else { continue };
                if core.index.remove_if_same(entry) {
                    match why {
                        Why::Expired => core.cells.expired.up(),
                        Why::Inactive => core.cells.inactive.up(),
                    }
                    removed.push(entry.short);
                }
            }
            self.next += 1;
        }
        if !removed.is_empty() {
            core.queue.push(Op::Agree(removed));
        }
    }
}

fn judge(core: &Core, entry: Entry, now: u64) -> Option<Why> {
    if entry.kind() == EntryKind::Directory {
        return (!core.index.has_variants(entry.short)).then_some(Why::Expired);
    }
    if entry.is_expired(now) {
        return Some(Why::Expired);
    }
    let idle = Duration::from_secs(entry.idle_secs(now));
    let is_inactive = core.config.inactive.is_some_and(|longest| idle > longest);
    is_inactive.then_some(Why::Inactive)
}
