//! From the log back to the index: what the segments say from some position on. They are read from the newest record back to
//! the oldest, so that what is taken in never has to give way to something older, and requests are served meanwhile.

use std::collections::HashMap;
use std::io;

use super::core::Core;
use super::durable::Position;
use super::entry::{BodyPlace, Entry, EntryKind, Parts, Place, SEGMENTS_MAX};
use super::format::{self, Kind};
use super::id::Id;
use super::read::can_have;
use super::scan::{Scan, Scanned};
use super::segments::Segment;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Records that may be elsewhere, or gone, by now.
    pub(crate) changed: Vec<u64>,
    /// Everything before was dropped: what an older index has is out of date.
    pub(crate) cleared: bool,
}

/// What one record says, without its bytes.
enum Said {
    Gone(u64),
    Clear,
    Is {
        entry: Entry,
        family: Option<Kinship>,
    },
    /// It lacks its body.
    Lost(u64),
}

/// What a record says about the variants of a key.
enum Kinship {
    Directory { stamp: u64, vary: Box<[u8]> },
    Variant { directory: u64, stamp: u64 },
}

/// Variants that were found before their directories.
#[derive(Default)]
struct Kin {
    variants: HashMap<u64, Vec<(u64, u64)>, foldhash::fast::RandomState>,
}

/// Takes in everything from `from` on, newest first. `progress` is told the bytes that were read.
pub(crate) fn catch_up(core: &Core, from: &Position, until_seq: u32, mut progress: impl FnMut(u64)) -> Found {
    let mut found = Found::default();
    let mut kin = Kin::default();
    let epoch = core.index.epoch();
    for segment in core.segments.all().into_iter().rev() {
        if segment.seq < from.seq || segment.seq >= until_seq || found.cleared {
            continue;
        }
        let start = if segment.seq == from.seq { from.at } else { 0 };
        let said = match read_all(core, &segment, start) {
            Ok(said) => said,
            Err(fault) => {
                core.read_failed("reading a segment", &fault);
                continue;
            }
        };
        for said in said.into_iter().rev() {
            if matches!(said, Said::Clear) {
                found.cleared = true;
                break;
            }
            take_in(core, said, epoch, &mut found, &mut kin);
        }
        progress(segment.len().saturating_sub(start));
    }
    kin.settle(core);
    found
}

fn read_all(core: &Core, segment: &std::sync::Arc<Segment>, start: u64) -> io::Result<Vec<Said>> {
    let file = core.segments.file(segment)?;
    let mut scan = Scan::new(file, segment.seq, start, segment.len());
    let mut all = Vec::new();
    while let Some(scanned) = scan.next()? {
        core.fence
            .fetch_max(scanned.header.fence, std::sync::atomic::Ordering::AcqRel);
        all.extend(said(core, segment.seq, &scanned));
    }
    core.cells.corrupt.add(scan.damaged);
    Ok(all)
}

fn said(core: &Core, seq: u32, scanned: &Scanned) -> Option<Said> {
    let header = &scanned.header;
    let short = header.id.short();
    let kind = match header.kind {
        Kind::Body => return None,
        Kind::Tombstone => return Some(Said::Gone(short)),
        Kind::Clear => return Some(Said::Clear),
        Kind::Object => EntryKind::Object,
        Kind::Variant => EntryKind::Variant,
        Kind::Directory => EntryKind::Directory,
    };
    if !can_have(core, header.body) {
        return Some(Said::Lost(short));
    }
    let entry = Entry::new(Parts {
        short,
        kind,
        head: Place {
            seq,
            at: u32::try_from(scanned.at).ok()?,
            len: u32::try_from(header.total()).ok()?,
        },
        body: header.body,
        keep_until_secs: header.keep_until_secs,
        used_secs: core.now_secs(),
        owner: core.owner(scanned.key()),
    });
    let rest = scanned.rest();
    let family = match kind {
        EntryKind::Object => None,
        EntryKind::Directory => Some(Kinship::Directory {
            stamp: header.stamp,
            vary: rest.as_ref().into(),
        }),
        EntryKind::Variant => Some(Kinship::Variant {
            directory: Id::of_key(scanned.key()).short(),
            stamp: format::split_variant(&rest)?.0,
        }),
    };
    Some(Said::Is { entry, family })
}

fn take_in(core: &Core, said: Said, epoch: u64, found: &mut Found, kin: &mut Kin) {
    match said {
        Said::Clear => {}
        Said::Gone(short) | Said::Lost(short) => {
            core.index.was_removed(short);
            found.changed.push(short);
        }
        Said::Is { entry, family } => {
            found.changed.push(entry.short);
            if !core.index.adopt(entry, epoch) {
                return;
            }
            match family {
                Some(Kinship::Directory { stamp, vary }) => {
                    core.index.set_family(entry.short, stamp, (*vary).into());
                }
                Some(Kinship::Variant { directory, stamp }) => {
                    kin.variants.entry(directory).or_default().push((stamp, entry.short));
                }
                None => {}
            }
        }
    }
}

impl Kin {
    /// Lists the variants that were found, the oldest first.
    fn settle(self, core: &Core) {
        for (directory, variants) in self.variants {
            for (stamp, variant) in variants.into_iter().rev() {
                core.index.list_variant(directory, stamp, variant, usize::MAX);
            }
        }
    }
}

/// Whether a place is this one.
pub(crate) fn is_at(place: BodyPlace, seq: u32, at: u64) -> bool {
    match place {
        BodyPlace::Segment(place) => place.seq == seq % SEGMENTS_MAX && u64::from(place.at) == at,
        BodyPlace::None | BodyPlace::File { .. } => false,
    }
}
