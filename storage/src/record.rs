//! The two kinds of record in the table: an object, and the directory of a key's variants.
//!
//! A variant is a record of its own under (id of its directory, variant key). Ids are never used twice, so a variant
//! whose directory is gone can never be found again, whatever happens to the record itself.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::Equivalent;

use crate::object::Object;
use crate::{VaryRule, weight};

/// What a record is found by. Always compared in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordKey {
    Primary(Arc<[u8]>),
    Variant(u64, Arc<[u8]>),
}

/// A [`RecordKey`] that owns nothing, to look for one without allocating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe<'a> {
    Primary(&'a [u8]),
    Variant(u64, &'a [u8]),
}

impl RecordKey {
    pub(crate) fn as_probe(&self) -> Probe<'_> {
        match self {
            Self::Primary(key) => Probe::Primary(key),
            Self::Variant(id, variant) => Probe::Variant(*id, variant),
        }
    }
}

impl Hash for RecordKey {
    fn hash<S: Hasher>(&self, state: &mut S) {
        self.as_probe().hash(state);
    }
}

impl Hash for Probe<'_> {
    fn hash<S: Hasher>(&self, state: &mut S) {
        match *self {
            Self::Primary(key) => state.write(key),
            Self::Variant(id, variant) => {
                state.write_u64(id);
                state.write(variant);
            }
        }
    }
}

impl Equivalent<RecordKey> for Probe<'_> {
    fn equivalent(&self, key: &RecordKey) -> bool {
        *self == key.as_probe()
    }
}

#[derive(Debug)]
pub(crate) enum Record<H, V> {
    Object(Arc<Object<H>>),
    Directory(Arc<Directory<V>>),
}

impl<H, V> Clone for Record<H, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Object(object) => Self::Object(Arc::clone(object)),
            Self::Directory(directory) => Self::Directory(Arc::clone(directory)),
        }
    }
}

impl<H, V> Record<H, V> {
    /// Whether both are the very same record, not only equal ones.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b),
            (Self::Directory(a), Self::Directory(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    pub(crate) fn is_object(&self, object: &Arc<Object<H>>) -> bool {
        matches!(self, Self::Object(own) if Arc::ptr_eq(own, object))
    }
}

/// The variants of one key.
#[derive(Debug)]
pub(crate) struct Directory<V> {
    pub(crate) vary: Arc<V>,
    pub(crate) listing: Arc<Listing>,
    /// Number of the fill that brought it about.
    pub(crate) begun: u64,
    pub(crate) weight: u64,
}

impl<V: VaryRule> Directory<V> {
    pub(crate) fn new(id: u64, key_len: usize, vary: Arc<V>, begun: u64) -> Self {
        let weight =
            weight::RECORD + weight::COUNTS * 4 + size_of::<Self>() + size_of::<Listing>() + key_len + vary.weight();
        Self {
            vary,
            listing: Arc::new(Listing {
                id,
                names: Mutex::new(Some(VecDeque::new())),
            }),
            begun,
            weight: weight as u64,
        }
    }
}

/// Which variants a directory has. Each variant pays for its place in it, since a directory's weight must not change.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) id: u64,
    /// Least recently stored first; `None` once the directory is gone. Held while a variant is put into the table, so
    /// none can come after the directory went. The table's locks are taken inside of this one, never around it.
    pub(crate) names: Mutex<Option<VecDeque<Arc<[u8]>>>>,
}

impl Listing {
    /// Ends the directory and returns the variants that it had.
    pub(crate) fn retire(&self) -> VecDeque<Arc<[u8]>> {
        self.names.lock().take().unwrap_or_default()
    }

    pub(crate) fn key(&self, variant: &Arc<[u8]>) -> RecordKey {
        RecordKey::Variant(self.id, Arc::clone(variant))
    }
}

/// An object's place in a [`Listing`]. The variant key is allocated anew for every object that is stored, so its address
/// tells an object from its successor under the same name.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) listing: Arc<Listing>,
    pub(crate) variant: Arc<[u8]>,
}

impl Listed {
    /// Takes this very object off the list; one that was stored since under the same name stays.
    pub(crate) fn forget(&self) {
        if let Some(names) = self.listing.names.lock().as_mut() {
            names.retain(|name| !Arc::ptr_eq(name, &self.variant));
        }
    }

    pub(crate) fn key(&self) -> RecordKey {
        self.listing.key(&self.variant)
    }
}
