//! Reading one record: the head whole, the body whole where it is small, or ready to be read piece by piece.

mod joint;

use std::io::{ErrorKind, IoSliceMut};
use std::sync::Arc;

use bytes::Bytes;

use super::body::{BlockError, DiskBody, Location, Patience, read_exact};
use super::core::Core;
use super::entry::{BodyPlace, Entry, EntryKind, Place};
use super::format::{self, Header, Kind, RECORD_HEADER, blocks};
use super::id::Id;
use super::pending::{Pending, PendingBody};
use super::volume::Bytefile;
use crate::object::{Body, CHUNK_BYTES};

/// Bodies up to this that do not lie next to their head are read whole as well.
const WHOLE_MAX: u64 = 2 * blocks::BLOCK;

/// Blocks of a body's chunk in memory.
const CHUNK_BLOCKS: usize = CHUNK_BYTES / blocks::BLOCK as usize;

/// A record as it was found.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) kind: EntryKind,
    /// What follows the key: see [`Pending::rest`].
    pub(crate) rest: Bytes,
    /// Where the head begins in `rest`.
    pub(crate) head_at: usize,
    pub(crate) body: Body,
    pub(crate) stamp: u64,
    /// Where it is; `None` for what waits to be written.
    pub(crate) entry: Option<Entry>,
}

/// Why there is no record.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It would have to wait for the disk.
    Blocked,
    /// Another key has the same place in the index.
    OtherKey,
    /// Nothing that is of use; it is dropped already.
    Gone,
}

impl From<BlockError> for Fault {
    fn from(error: BlockError) -> Self {
        match error {
            BlockError::Blocked => Self::Blocked,
            BlockError::Io(fault) if fault.kind() == ErrorKind::NotFound => Self::Lost,
            BlockError::Io(fault) => Self::Io(fault),
            BlockError::Corrupt => Self::Damaged,
        }
    }
}

enum Fault {
    Blocked,
    OtherKey,
    Lost,
    Damaged,
    Io(std::io::Error),
}

impl Record {
    pub(crate) fn head(&self) -> &[u8] {
        self.rest.get(self.head_at..).unwrap_or_default()
    }
}

/// Whose body a record belongs to.
pub(crate) fn stamp_of(core: &Core, entry: Entry) -> Option<u64> {
    let head = entry.head();
    let len = u32::try_from(RECORD_HEADER).unwrap_or(0);
    let bytes = read_place(core, Place { len, ..head }, Patience::Blocking).ok()?;
    Header::decode(head.seq, &bytes).map(|header| header.stamp)
}

/// Reads what `entry` points to, whatever its key is. `None` for what is not whole.
pub(crate) fn read_any(core: &Arc<Core>, entry: Entry) -> Option<(Arc<[u8]>, Record)> {
    let bytes = read_place(core, entry.head(), Patience::Blocking).ok()?;
    let header = Header::decode(entry.head().seq, &bytes)?;
    let key: Arc<[u8]> = bytes
        .get(RECORD_HEADER..RECORD_HEADER + header.key_len as usize)?
        .into();
    let record = read(core, entry, header.id, &key, Patience::Blocking).ok()?;
    Some((key, record))
}

/// What waits to be written, as if it were read.
pub(crate) fn of_pending(core: &Arc<Core>, pending: &Pending, patience: Patience) -> Result<Option<Record>, Unread> {
    let whose = (pending.id, pending.stamp, pending.body_len);
    let body = match &pending.body {
        PendingBody::Memory(body) => Ok(body.clone()),
        PendingBody::Placed(place) => open_body(core, *place, whose, None, patience),
        PendingBody::Same => return of_new_head(core, pending, patience),
    };
    match body {
        Ok(body) => Ok(Some(as_record(pending, body))),
        Err(Fault::Blocked) => Err(Unread::Blocked),
        Err(_) => Ok(None),
    }
}

/// A head that is new, on the body that is stored.
fn of_new_head(core: &Arc<Core>, pending: &Pending, patience: Patience) -> Result<Option<Record>, Unread> {
    let Some(entry) = core.index.get(pending.id.short()) else {
        return Ok(None);
    };
    match read(core, entry, pending.id, &pending.key, patience) {
        Ok(record) if record.stamp == pending.stamp => {
            let before = record.rest.get(..record.head_at).unwrap_or_default();
            Ok(Some(Record {
                kind: record.kind,
                rest: Bytes::from([before, &pending.rest].concat()),
                head_at: record.head_at,
                ..as_record(pending, record.body)
            }))
        }
        Err(Unread::Blocked) => Err(Unread::Blocked),
        _ => Ok(None),
    }
}

fn as_record(pending: &Pending, body: Body) -> Record {
    Record {
        kind: pending.kind,
        rest: pending.rest.clone(),
        head_at: pending.head_at,
        body,
        stamp: pending.stamp,
        entry: None,
    }
}

/// Reads what `entry` points to. What is damaged or lost is dropped from the index.
pub(crate) fn read(core: &Arc<Core>, entry: Entry, id: Id, key: &[u8], patience: Patience) -> Result<Record, Unread> {
    try_read(core, entry, id, key, patience).map_err(|fault| match fault {
        Fault::Blocked => Unread::Blocked,
        Fault::OtherKey => Unread::OtherKey,
        Fault::Lost => {
            core.drop_lost(entry);
            Unread::Gone
        }
        Fault::Damaged => {
            core.drop_damaged(entry);
            Unread::Gone
        }
        Fault::Io(fault) => {
            core.read_failed("reading a record", &fault);
            core.drop_lost(entry);
            Unread::Gone
        }
    })
}

fn try_read(core: &Arc<Core>, entry: Entry, id: Id, key: &[u8], patience: Patience) -> Result<Record, Fault> {
    let head = entry.head();
    let (header, rest, body) = if let Some(place) = joint::body_before(entry) {
        let joint = joint::read(core, place, head, patience)?;
        core.cells.read_bytes.add(u64::from(place.len + head.len));
        let (header, rest) = judge_head(&joint.head, head.seq, id, key)?;
        let body = joint.body(head.seq, (id, header.stamp, header.body_len))?;
        (header, rest, body)
    } else {
        let record = read_place(core, head, patience)?;
        core.cells.read_bytes.add(record.len() as u64);
        let (header, rest) = judge_head(&record, head.seq, id, key)?;
        let whose = (id, header.stamp, header.body_len);
        let body = open_body(core, entry.body(), whose, Some(entry), patience)?;
        (header, rest, body)
    };
    let head_at = match header.kind {
        Kind::Variant => format::split_variant(&rest).ok_or(Fault::Damaged)?.2,
        _ => 0,
    };
    Ok(Record {
        kind: entry.kind(),
        rest,
        head_at,
        body,
        stamp: header.stamp,
        entry: Some(entry),
    })
}

fn read_place(core: &Core, place: Place, patience: Patience) -> Result<Bytes, Fault> {
    let file = open_place(core, place)?;
    let mut buffer = vec![0; place.len as usize];
    read_exact(&*file, &mut [IoSliceMut::new(&mut buffer)], place.at.into(), patience)?;
    Ok(Bytes::from(buffer))
}

/// The file that has this place.
fn open_place(core: &Core, place: Place) -> Result<Arc<dyn Bytefile>, Fault> {
    let segment = core.segments.get(place.seq).ok_or(Fault::Lost)?;
    if u64::from(place.at) + u64::from(place.len) > segment.len() {
        return Err(Fault::Lost);
    }
    Ok(core.segments.file(&segment).map_err(BlockError::Io)?)
}

fn seq_of(core: &Core, low: u32) -> Result<u32, Fault> {
    core.segments.get(low).map(|segment| segment.seq).ok_or(Fault::Lost)
}

/// Header and payload of a head record, both checked, without the key.
fn judge_head(record: &Bytes, seq: u32, id: Id, key: &[u8]) -> Result<(Header, Bytes), Fault> {
    let header = Header::decode(seq, record).ok_or(Fault::Damaged)?;
    if header.id != id {
        // The index goes by a part of the identity.
        return Err(if header.id.short() == id.short() {
            Fault::OtherKey
        } else {
            Fault::Damaged
        });
    }
    let len = header.key_len as usize + header.rest_len as usize;
    let payload = record.get(RECORD_HEADER..RECORD_HEADER + len).ok_or(Fault::Damaged)?;
    if format::checksum(header.stamp, payload) != header.payload_crc {
        return Err(Fault::Damaged);
    }
    let (own, _) = payload.split_at(header.key_len as usize);
    if own != key {
        return Err(Fault::OtherKey);
    }
    let rest = record.slice(RECORD_HEADER + own.len()..RECORD_HEADER + len);
    Ok((header, rest))
}

type Whose = (Id, u64, u64);

fn judge_body_header(bytes: &[u8], salt: u32, (id, stamp, len): Whose) -> Result<(), Fault> {
    let header = Header::decode(salt, bytes).ok_or(Fault::Damaged)?;
    // A body file's header is written before its length is known.
    let same = header.kind == Kind::Body && header.stamp == stamp && (header.id == id || header.body_len == 0);
    let same_len = header.body_len == len || header.body_len == 0;
    (same && same_len).then_some(()).ok_or(Fault::Damaged)
}

/// A body by its place: small ones whole, others to be read later.
fn open_body(
    core: &Arc<Core>,
    place: BodyPlace,
    whose: Whose,
    entry: Option<Entry>,
    patience: Patience,
) -> Result<Body, Fault> {
    let (_, stamp, len) = whose;
    let (file, start) = match place {
        BodyPlace::None if len == 0 => return Ok(Body::of_chunks(Vec::new())),
        BodyPlace::None => return Err(Fault::Damaged),
        BodyPlace::Segment(place) => {
            // Whose it is each of its blocks says: its header is not worth a read.
            let segment = core.segments.get(place.seq).ok_or(Fault::Lost)?;
            (
                core.segments.file(&segment).map_err(BlockError::Io)?,
                u64::from(place.at),
            )
        }
        // Opening one may wait for the disk.
        BodyPlace::File { .. } if patience == Patience::Now => return Err(Fault::Blocked),
        BodyPlace::File { number, .. } => {
            let file = core.files.open(number).map_err(BlockError::Io)?;
            let mut header = [0; RECORD_HEADER];
            read_exact(&*file, &mut [IoSliceMut::new(&mut header)], 0, patience)?;
            judge_body_header(&header, file_salt(number), whose)?;
            (file, 0)
        }
    };
    let base = start + RECORD_HEADER as u64;
    let body = DiskBody::new(Arc::clone(core), Location { file, base, len, stamp }, entry);
    if len > WHOLE_MAX {
        return Ok(body.into());
    }
    read_whole(&body, patience)
}

/// All of a body, into memory.
pub(crate) fn load_whole(body: &DiskBody) -> Option<Body> {
    read_whole(body, Patience::Blocking).ok()
}

fn read_whole(body: &DiskBody, patience: Patience) -> Result<Body, Fault> {
    let count = body.len().div_ceil(blocks::BLOCK);
    let starts = (0..count).step_by(CHUNK_BLOCKS);
    let chunks = starts.map(|start| body.blocks(start..count.min(start + CHUNK_BLOCKS as u64), patience));
    Ok(Body::of_chunks(chunks.collect::<Result<_, _>>()?))
}

/// What the header of a body file is checked with.
pub(crate) fn file_salt(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0)
}

/// Whether what a record's head says of its body can be there.
pub(crate) fn can_have(core: &Core, place: BodyPlace) -> bool {
    match place {
        BodyPlace::None => true,
        BodyPlace::Segment(place) => seq_of(core, place.seq).is_ok(),
        BodyPlace::File { number, .. } => core.files.has(number),
    }
}
