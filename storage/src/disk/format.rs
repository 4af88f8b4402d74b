//! The form of what lies in segments and body files. Every record describes itself, so that a lost index can be made again.
//!
//! A segment is a header of [`SEGMENT_HEADER`] bytes, then records, each at a multiple of 8. A record is a [`Header`] and its
//! payload: blocks for a body, the key and what belongs to it for everything else. Numbers are little-endian.

pub(crate) mod blocks;
pub(crate) mod wire;

use super::entry::{BodyPlace, SEGMENTS_MAX};
use super::id::Id;
use wire::{Fields, Write};

/// Of everything here. A disk with another one is started clean.
pub(crate) const VERSION: u32 = 1;

/// Records begin at multiples of this.
pub(crate) const ALIGN: u64 = 8;

/// Bytes of a segment's own header.
pub(crate) const SEGMENT_HEADER: u64 = 64;

/// Bytes of a record's header.
pub(crate) const RECORD_HEADER: usize = 96;

const SEGMENT_MAGIC: [u8; 8] = *b"LARDERSG";
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"LRec");

/// Largest key and what belongs to it (head, variant's name): heads are bounded by the front and the origin side long before.
pub(crate) const PAYLOAD_MAX: u32 = 8 << 20;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The bytes of a body.
    Body = 1,
    /// The head of the one object under a key.
    Object = 2,
    /// The head of a variant.
    Variant = 3,
    /// What a key varies on.
    Directory = 4,
    /// What was under a key is gone.
    Tombstone = 5,
    /// All that came before is gone.
    Clear = 6,
}

impl Kind {
    const fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Body,
            2 => Self::Object,
            3 => Self::Variant,
            4 => Self::Directory,
            5 => Self::Tombstone,
            6 => Self::Clear,
            _ => return None,
        })
    }
}

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) id: Id,
    /// Unique to a body; its head has the same. Of a directory: what its variants are found by.
    pub(crate) stamp: u64,
    /// The last purge when what it belongs to began; of a tombstone: its own number.
    pub(crate) fence: u64,
    /// Bytes of key, then of what follows it in the payload.
    pub(crate) key_len: u32,
    pub(crate) rest_len: u32,
    /// Unix time in seconds.
    pub(crate) keep_until_secs: u64,
    /// Where the body is that a head belongs to.
    pub(crate) body: BodyPlace,
    /// Bytes of the body.
    pub(crate) body_len: u64,
    /// Of the payload, where that is no body.
    pub(crate) payload_crc: u32,
}

impl Header {
    /// Bytes of its payload.
    pub(crate) fn payload_len(&self) -> u64 {
        match self.kind {
            Kind::Body => blocks::stored_len(self.body_len),
            _ => u64::from(self.key_len) + u64::from(self.rest_len),
        }
    }

    /// Bytes of the whole record, padding included.
    pub(crate) fn total(&self) -> u64 {
        (RECORD_HEADER as u64 + self.payload_len()).next_multiple_of(ALIGN)
    }

    /// `segment` is part of the checksum: what was left over from another place is no record here.
    pub(crate) fn encode(&self, segment: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(RECORD_MAGIC);
        out.put_u8(self.kind as u8);
        out.extend_from_slice(&[0; 3]);
        out.extend_from_slice(&self.id.0);
        out.put_u64(self.stamp);
        out.put_u64(self.fence);
        out.put_u32(self.key_len);
        out.put_u32(self.rest_len);
        out.put_u64(self.keep_until_secs);
        out.put_u64(self.body.pack());
        out.put_u64(self.body_len);
        out.put_u32(self.payload_crc);
        out.extend_from_slice(&[0; 12]);
        let crc = checksum(salt(segment), out.get(start..).unwrap_or_default());
        out.put_u32(crc);
        out.extend_from_slice(&[0; 4]);
        debug_assert_eq!(out.len() - start, RECORD_HEADER, "the header has another size");
    }

    /// `None` where no record begins.
    pub(crate) fn decode(segment: u32, bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..RECORD_HEADER)?;
        let mut fields = Fields(bytes);
        if fields.u32()? != RECORD_MAGIC {
            return None;
        }
        let (checked, mut rest) = (bytes.get(..RECORD_HEADER - 8)?, Fields(bytes.get(RECORD_HEADER - 8..)?));
        if rest.u32()? != checksum(salt(segment), checked) {
            return None;
        }
        let kind = Kind::of(fields.u8()?)?;
        fields.skip(3)?;
        let header = Self {
            kind,
            id: Id(fields.array()?),
            stamp: fields.u64()?,
            fence: fields.u64()?,
            key_len: fields.u32()?,
            rest_len: fields.u32()?,
            keep_until_secs: fields.u64()?,
            body: BodyPlace::unpack(fields.u64()?),
            body_len: fields.u64()?,
            payload_crc: fields.u32()?,
        };
        let fits = header.key_len <= PAYLOAD_MAX && header.rest_len <= PAYLOAD_MAX;
        fits.then_some(header)
    }
}

/// The payload of a variant's head: its directory's stamp and its own name before the head itself.
pub(crate) fn variant_payload(stamp: u64, name: &[u8], head: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(12 + name.len() + head.len());
    out.put_u64(stamp);
    out.put_u32(u32::try_from(name.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(name);
    out.extend_from_slice(head);
    out
}

/// Takes a [`variant_payload`] apart: stamp, name, and where the head begins.
pub(crate) fn split_variant(payload: &[u8]) -> Option<(u64, &[u8], usize)> {
    let mut fields = Fields(payload);
    let stamp = fields.u64()?;
    let len = usize::try_from(fields.u32()?).ok()?;
    Some((stamp, fields.0.get(..len)?, 12 + len))
}

/// The header of segment `seq` of the disk `disk`.
pub(crate) fn segment_header(disk: [u8; 16], seq: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&SEGMENT_MAGIC);
    out.put_u32(VERSION);
    out.put_u32(seq);
    out.extend_from_slice(&disk);
    out.extend_from_slice(&[0; 28]);
    let crc = checksum(0, &out);
    out.put_u32(crc);
    out
}

/// What the header of a segment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentHeader {
    Ours,
    /// Another version of this format.
    OtherVersion(u32),
    Damaged,
}

pub(crate) fn judge_segment_header(bytes: &[u8], disk: [u8; 16], seq: u32) -> SegmentHeader {
    if bytes.get(..64) == Some(&*segment_header(disk, seq)) {
        return SegmentHeader::Ours;
    }
    let mut fields = Fields(bytes);
    match (fields.array::<8>(), fields.u32()) {
        (Some(SEGMENT_MAGIC), Some(version)) if version != VERSION => SegmentHeader::OtherVersion(version),
        _ => SegmentHeader::Damaged,
    }
}

/// As much of a segment's number as the index knows.
const fn salt(segment: u32) -> u64 {
    (segment % SEGMENTS_MAX) as u64
}

/// CRC-32 over `bytes`, and over what they belong to.
pub(crate) fn checksum(salt: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}
