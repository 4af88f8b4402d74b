//! What waits to be written. Until it is, lookups are answered from here: who has a complete answer finds it stored.

use std::sync::Arc;

use bytes::Bytes;

use super::entry::{BodyPlace, EntryKind};
use super::format::Kind;
use super::id::Id;
use crate::object::Body;

/// A record on its way to the disk.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) id: Id,
    pub(crate) kind: EntryKind,
    pub(crate) key: Arc<[u8]>,
    /// What follows the key in the record: head, vary rule, and of a variant its place.
    pub(crate) rest: Bytes,
    /// Where the head begins in `rest`.
    pub(crate) head_at: usize,
    pub(crate) body: PendingBody,
    pub(crate) body_len: u64,
    /// See [`super::format::Header::stamp`].
    pub(crate) stamp: u64,
    pub(crate) fence: u64,
    pub(crate) keep_until_secs: u64,
    pub(crate) owner: u16,
}

/// The body of a [`Pending`].
#[derive(Debug, Clone)]
pub(crate) enum PendingBody {
    /// To be written.
    Memory(Body),
    /// It is on disk already, in a file of its own; or there is none.
    Placed(BodyPlace),
    /// Only the head is new: the body is that of the record which is stored, if it has the same stamp.
    Same,
}

impl Pending {
    /// Bytes of memory that it holds.
    pub(crate) fn weight(&self) -> u64 {
        let body = match &self.body {
            PendingBody::Memory(body) => body.len(),
            PendingBody::Placed(_) | PendingBody::Same => 0,
        };
        body + self.rest.len() as u64 + self.key.len() as u64 + size_of::<Self>() as u64
    }

    pub(crate) const fn record_kind(&self) -> Kind {
        match self.kind {
            EntryKind::Object => Kind::Object,
            EntryKind::Variant => Kind::Variant,
            EntryKind::Directory => Kind::Directory,
        }
    }
}
