//! The newest segment, and what is to be appended to it in one write.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::Written;
use crate::disk::core::Core;
use crate::disk::durable::Position;
use crate::disk::entry::{BodyPlace, LEN_MAX, Place};
use crate::disk::format::{self, ALIGN, Header, Kind, RECORD_HEADER, SEGMENT_HEADER, blocks};
use crate::disk::pending::{Pending, PendingBody};
use crate::disk::segments::{self, Segment};
use crate::disk::volume::Bytefile;

/// Bytes that are written at once.
const CHUNK: usize = 512 << 10;

#[derive(Debug)]
pub(super) struct Log {
    core: Arc<Core>,
    disk: [u8; 16],
    next_seq: u32,
    active: Option<Active>,
    /// Not written yet.
    buffer: Vec<u8>,
    pub(super) written: Vec<Written>,
    /// It holds what must not be lost, and is not synced since.
    pub(super) has_note: bool,
}

#[derive(Debug)]
struct Active {
    segment: Arc<Segment>,
    file: Arc<dyn Bytefile>,
    /// Where the buffer will be written.
    at: u64,
    is_dirty: bool,
}

/// Bytes that a pending record will take.
pub(super) fn bytes_of(pending: &Pending) -> u64 {
    let body = match &pending.body {
        PendingBody::Memory(_) => RECORD_HEADER as u64 + blocks::stored_len(pending.body_len),
        PendingBody::Placed(_) | PendingBody::Same => 0,
    };
    RECORD_HEADER as u64 + body + pending.key.len() as u64 + pending.rest.len() as u64 + 2 * ALIGN
}

impl Log {
    pub(super) const fn new(core: Arc<Core>, disk: [u8; 16], next_seq: u32) -> Self {
        Self {
            core,
            disk,
            next_seq,
            active: None,
            buffer: Vec::new(),
            written: Vec::new(),
            has_note: false,
        }
    }

    pub(super) fn seq(&self) -> Option<u32> {
        self.active.as_ref().map(|active| active.segment.seq)
    }

    pub(super) const fn is_long(&self) -> bool {
        self.buffer.len() >= CHUNK
    }

    /// Up to where everything is written.
    pub(super) fn position(&self, fence: u64) -> Position {
        let (seq, at) = self
            .active
            .as_ref()
            .map_or((self.next_seq, 0), |active| (active.segment.seq, active.at));
        Position {
            seq,
            at,
            fence,
            disk: self.disk,
        }
    }

    /// Appends body and head. Returns where they will be.
    pub(super) fn append_pending(&mut self, pending: &Pending) -> io::Result<(Place, BodyPlace)> {
        let needed = bytes_of(pending);
        if needed > self.core.segment_bytes - SEGMENT_HEADER || needed > LEN_MAX {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "a record is larger than a segment",
            ));
        }
        self.make_fit(needed)?;
        let mut header = Header {
            kind: Kind::Body,
            id: pending.id,
            stamp: pending.stamp,
            fence: pending.fence,
            key_len: 0,
            rest_len: 0,
            keep_until_secs: pending.keep_until_secs,
            body: BodyPlace::None,
            body_len: pending.body_len,
            payload_crc: 0,
        };
        let body = match &pending.body {
            PendingBody::Placed(place) => *place,
            PendingBody::Same => return Err(ErrorKind::InvalidInput.into()),
            PendingBody::Memory(_) if pending.body_len == 0 => BodyPlace::None,
            PendingBody::Memory(body) => {
                let chunks = body.chunks().unwrap_or_default();
                BodyPlace::Segment(self.append_body(&header, chunks)?)
            }
        };
        header.kind = pending.record_kind();
        header.body = body;
        header.key_len = u32::try_from(pending.key.len()).unwrap_or(u32::MAX);
        header.rest_len = u32::try_from(pending.rest.len()).unwrap_or(u32::MAX);
        let payload = [&pending.key, &*pending.rest].concat();
        header.payload_crc = format::checksum(header.stamp, &payload);
        Ok((self.append(header, &payload)?, body))
    }

    fn append_body(&mut self, header: &Header, chunks: &[bytes::Bytes]) -> io::Result<Place> {
        let place = self.begin(header)?;
        let mut cutter = blocks::Cutter::new(header.stamp);
        for chunk in chunks {
            cutter.push(chunk, &mut self.buffer);
        }
        cutter.finish(&mut self.buffer);
        self.pad();
        Ok(place)
    }

    /// Appends one record. Its payload is taken as it is.
    pub(super) fn append(&mut self, header: Header, payload: &[u8]) -> io::Result<Place> {
        self.make_fit(header.total())?;
        let place = self.begin(&header)?;
        self.buffer.extend_from_slice(payload);
        self.pad();
        Ok(place)
    }

    fn begin(&mut self, header: &Header) -> io::Result<Place> {
        let active = self.active.as_ref().ok_or(ErrorKind::NotFound)?;
        let at = active.at + self.buffer.len() as u64;
        let place = Place {
            seq: active.segment.seq,
            at: u32::try_from(at).unwrap_or(0),
            len: u32::try_from(header.total()).unwrap_or(0),
        };
        header.encode(active.segment.seq, &mut self.buffer);
        Ok(place)
    }

    fn pad(&mut self) {
        let len = self.buffer.len();
        self.buffer.resize(len.next_multiple_of(8), 0);
    }

    /// Whether so many bytes more fit into the newest segment.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        let limit = self.core.segment_bytes;
        self.active
            .as_ref()
            .is_some_and(|active| active.at + self.buffer.len() as u64 + bytes <= limit)
    }

    /// Begins another segment where this one is full. What waits in the buffer belongs to the old one.
    pub(super) fn make_fit(&mut self, bytes: u64) -> io::Result<()> {
        if self.fits(bytes) {
            return Ok(());
        }
        self.roll()?;
        let seq = self.next_seq;
        let file = self.core.volume.create(&segments::name(seq))?;
        self.next_seq += 1;
        file.write_at(&format::segment_header(self.disk, seq), 0)?;
        let segment = self.core.segments.add(seq, SEGMENT_HEADER, Some(Arc::clone(&file)));
        // Purges rely on it: what is synced in a file is only there if the file is.
        self.core.volume.sync_directory(segments::DIRECTORY)?;
        self.active = Some(Active {
            segment,
            file,
            at: SEGMENT_HEADER,
            is_dirty: true,
        });
        Ok(())
    }

    /// Ends the newest segment. It is synced at once if a purge in it waits for that, else when the keeper comes round.
    pub(super) fn roll(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.has_note {
            self.sync()?;
        }
        self.active = None;
        Ok(())
    }

    /// Writes the buffer.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let active = self.active.as_mut().ok_or(ErrorKind::NotFound)?;
        active.file.write_at(&self.buffer, active.at)?;
        active.at += self.buffer.len() as u64;
        active.is_dirty = true;
        self.core.segments.grown(&active.segment, active.at);
        self.core.cells.written_bytes.add(self.buffer.len() as u64);
        self.buffer.clear();
        self.buffer.shrink_to(2 * CHUNK);
        Ok(())
    }

    /// Makes everything that was flushed durable.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let Some(active) = self.active.as_mut().filter(|active| active.is_dirty) {
            active.file.sync()?;
            active.is_dirty = false;
        }
        self.has_note = false;
        Ok(())
    }

    /// The directory is another one.
    pub(super) fn begin_anew(&mut self, disk: [u8; 16]) {
        self.abandon();
        self.disk = disk;
    }

    /// Leaves the newest segment as it is, whatever it holds, and drops what was not written.
    pub(super) fn abandon(&mut self) {
        self.buffer.clear();
        self.active = None;
    }
}
