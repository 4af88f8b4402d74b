//! Making room: the oldest goes first. What was asked for since it was written is written again, up to half of what the
//! segment held, so that reclaiming always frees something; the rest is dropped.

use std::io;
use std::sync::Arc;

use super::{Writer, Written};
use crate::disk::catch_up::is_at;
use crate::disk::entry::{BodyPlace, Entry, EntryKind, Place};
use crate::disk::files;
use crate::disk::format::{Header, Kind, RECORD_HEADER};
use crate::disk::health::because;
use crate::disk::scan::{Scan, Scanned};
use crate::disk::segments::Segment;

/// What one segment's records came to.
#[derive(Default)]
struct Sorted {
    /// Bytes that may still be written again.
    allowance: u64,
    shorts: Vec<u64>,
}

impl Writer {
    /// Sees to it that so many bytes more fit. `false` if they can't.
    pub(super) fn make_room(&mut self, bytes: u64) -> bool {
        if bytes > self.core.comfortable() {
            return bytes == 0;
        }
        // Each turn removes a segment or a file, or ends the newest segment so that the next turn can.
        let mut turns = self.core.segments.count() + self.core.files.numbers().len() + 2;
        while self.core.used() + bytes > self.core.comfortable() && turns > 0 {
            turns -= 1;
            if !self.reclaim_something() {
                break;
            }
        }
        bytes == 0 || self.core.used() + bytes <= self.core.limit()
    }

    /// Drops a segment or a file though the limit is not reached.
    pub(super) fn shrink(&mut self) {
        let before = self.core.used();
        while self.core.used() + self.core.segment_bytes > before && self.reclaim_something() {}
    }

    /// `false` where nothing is left that could go.
    fn reclaim_something(&mut self) -> bool {
        self.commit();
        let newest = self.log.seq();
        match self.core.segments.oldest() {
            Some(segment) if Some(segment.seq) != newest => self.reclaim(&segment),
            Some(_) if self.drop_oldest_file() => {}
            Some(_) => {
                if let Err(fault) = self.log.roll() {
                    self.core.degrade(because("writing to the disk", &fault));
                }
            }
            None => return self.drop_oldest_file(),
        }
        true
    }

    /// A body file whose head is in the newest segment goes before that segment has to.
    fn drop_oldest_file(&mut self) -> bool {
        let numbers = self.core.files.numbers();
        let Some(entry) = numbers.into_iter().find_map(|number| self.core.index.with_file(number)) else {
            return false;
        };
        if self.core.index.remove_if_same(entry) {
            self.core.cells.evicted.up();
            self.agree(&[entry.short]);
        }
        self.drop_orphans();
        true
    }

    /// Removes a segment; what of it deserves to stay is written again before.
    fn reclaim(&mut self, segment: &Arc<Segment>) {
        if let Err(fault) = self.sort(segment) {
            // What can't be read can't be kept either.
            self.core.read_failed("reading a segment to reclaim it", &fault);
        }
        self.commit();
        self.remove_segment(segment);
        self.drop_orphans();
    }

    fn sort(&mut self, segment: &Arc<Segment>) -> io::Result<()> {
        let file = self.core.segments.file(segment)?;
        let mut scan = Scan::new(file, segment.seq, 0, segment.len());
        let mut sorted = Sorted {
            allowance: segment.len() / 2,
            shorts: Vec::new(),
        };
        while let Some(scanned) = scan.next()? {
            let short = scanned.header.id.short();
            if let Some(entry) = self.core.index.get(short)
                && is_of(entry, segment.seq, &scanned)
            {
                self.keep_or_drop(entry, &mut sorted)?;
            }
            sorted.shorts.push(short);
            if self.log.is_long() {
                self.commit();
            }
        }
        self.commit();
        // What sled still has of this segment has nothing behind it from now on.
        self.agree(&sorted.shorts);
        Ok(())
    }

    fn keep_or_drop(&mut self, entry: Entry, sorted: &mut Sorted) -> io::Result<()> {
        let bytes = match entry.body() {
            BodyPlace::File { .. } => u64::from(entry.head().len),
            _ => entry.bytes(),
        };
        let now = self.core.now_secs();
        let deserves = match entry.kind() {
            EntryKind::Directory => self.core.index.has_variants(entry.short),
            EntryKind::Object | EntryKind::Variant => entry.is_used() && !entry.is_expired(now),
        };
        // A disk in trouble takes nothing.
        let fits = self.core.health.is_up() && bytes <= sorted.allowance;
        if deserves && fits && self.write_again(entry)? {
            sorted.allowance -= bytes;
            return Ok(());
        }
        if self.core.index.remove_if_same(entry) {
            self.core.cells.evicted.up();
        }
        Ok(())
    }

    /// Appends body and head once more. `false` if they are not whole.
    fn write_again(&mut self, entry: Entry) -> io::Result<bool> {
        let Some((mut header, payload)) = self.raw(entry.head())? else {
            return Ok(false);
        };
        let body = match entry.body() {
            BodyPlace::Segment(place) => {
                let Some((body_header, blocks)) = self.raw(place)? else {
                    return Ok(false);
                };
                if body_header.kind != Kind::Body || body_header.stamp != header.stamp {
                    return Ok(false);
                }
                self.log.make_fit(body_header.total() + header.total())?;
                BodyPlace::Segment(self.log.append(body_header, &blocks)?)
            }
            other => other,
        };
        header.body = body;
        let head = self.log.append(header, &payload)?;
        let new = entry.moved(head, body);
        self.log.written.push(Written::Moved { old: entry, new });
        Ok(true)
    }

    /// A record as it lies: header and payload. `None` where there is none.
    pub(super) fn raw(&self, place: Place) -> io::Result<Option<(Header, Vec<u8>)>> {
        let Some(segment) = self.core.segments.get(place.seq) else {
            return Ok(None);
        };
        let file = self.core.segments.file(&segment)?;
        let mut bytes = vec![0; place.len as usize];
        let read = file.read_at(&mut bytes, place.at.into())?;
        let header = Header::decode(segment.seq, &bytes).filter(|_| read == bytes.len());
        let len = header.map_or(0, |header| usize::try_from(header.payload_len()).unwrap_or(0));
        let payload = bytes.get(RECORD_HEADER..RECORD_HEADER + len).map(<[u8]>::to_vec);
        Ok(header.zip(payload))
    }

    pub(super) fn remove_segment(&self, segment: &Segment) {
        self.core.segments.remove(segment.seq);
        if let Err(fault) = self.core.volume.remove(&segment.name()) {
            self.core.degrade(because("removing a segment", &fault));
        }
    }

    pub(super) fn remove_file(&self, number: u64) {
        if let Err(fault) = self.core.files.remove(number) {
            self.core
                .degrade(because(&format!("removing {}", files::name(number)), &fault));
        }
    }
}

/// Whether the index means this very record: as the head of an entry, or as its body.
fn is_of(entry: Entry, seq: u32, scanned: &Scanned) -> bool {
    match scanned.header.kind {
        Kind::Body => is_at(entry.body(), seq, scanned.at),
        Kind::Object | Kind::Variant | Kind::Directory => is_at(BodyPlace::Segment(entry.head()), seq, scanned.at),
        Kind::Tombstone | Kind::Clear => false,
    }
}
