//! Reading a segment from some place to its end, record by record. Where something is damaged, the next record that is whole
//! is looked for.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::format::{self, ALIGN, Header, Kind, RECORD_HEADER, SEGMENT_HEADER};
use super::volume::Bytefile;

/// Bytes that are read at once.
const WINDOW: usize = 256 << 10;

/// One record of a segment.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) at: u64,
    pub(crate) header: Header,
    /// Key and what follows it; empty for bodies, which are passed over.
    pub(crate) payload: Bytes,
}

impl Scanned {
    pub(crate) fn key(&self) -> &[u8] {
        self.payload.get(..self.header.key_len as usize).unwrap_or_default()
    }

    pub(crate) fn rest(&self) -> Bytes {
        self.payload
            .slice((self.header.key_len as usize).min(self.payload.len())..)
    }
}

#[derive(Debug)]
pub(crate) struct Scan {
    file: Arc<dyn Bytefile>,
    seq: u32,
    at: u64,
    end: u64,
    window: Vec<u8>,
    window_at: u64,
    /// Places where something else than a record was found.
    pub(crate) damaged: u64,
}

impl Scan {
    /// `from`: 0 for the first record.
    pub(crate) fn new(file: Arc<dyn Bytefile>, seq: u32, from: u64, end: u64) -> Self {
        Self {
            file,
            seq,
            at: from.max(SEGMENT_HEADER).next_multiple_of(ALIGN),
            end,
            window: Vec::new(),
            window_at: 0,
            damaged: 0,
        }
    }

    /// The next whole record; `None` at the end.
    ///
    /// # Errors
    /// The disk's own.
    pub(crate) fn next(&mut self) -> io::Result<Option<Scanned>> {
        let mut is_lost = false;
        while self.at + RECORD_HEADER as u64 <= self.end {
            if let Some(scanned) = self.here()? {
                self.at += scanned.header.total();
                return Ok(Some(scanned));
            }
            if !is_lost {
                is_lost = true;
                self.damaged += 1;
            }
            self.at += ALIGN;
        }
        Ok(None)
    }

    fn here(&mut self) -> io::Result<Option<Scanned>> {
        let seq = self.seq;
        let bytes = self.bytes(self.at, RECORD_HEADER)?;
        let Some(header) = bytes.and_then(|bytes| Header::decode(seq, bytes)) else {
            return Ok(None);
        };
        if self.at + header.total() > self.end {
            return Ok(None);
        }
        let mut payload = Bytes::new();
        if header.kind != Kind::Body {
            let len = header.key_len as usize + header.rest_len as usize;
            let Some(bytes) = self.bytes(self.at + RECORD_HEADER as u64, len)? else {
                return Ok(None);
            };
            if format::checksum(header.stamp, bytes) != header.payload_crc {
                return Ok(None);
            }
            payload = Bytes::copy_from_slice(bytes);
        }
        Ok(Some(Scanned {
            at: self.at,
            header,
            payload,
        }))
    }

    /// `len` bytes at `at`; `None` where the file is shorter.
    fn bytes(&mut self, at: u64, len: usize) -> io::Result<Option<&[u8]>> {
        let covered = at >= self.window_at && at + len as u64 <= self.window_at + self.window.len() as u64;
        if !covered {
            self.window.resize(len.max(WINDOW), 0);
            let read = self.file.read_at(&mut self.window, at)?;
            self.window.truncate(read);
            self.window_at = at;
        }
        let from = usize::try_from(at - self.window_at).unwrap_or(usize::MAX);
        Ok(self.window.get(from..from.saturating_add(len)))
    }
}
