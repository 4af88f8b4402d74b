//! What the index holds of a record: 32 bytes, so that millions of objects cost little memory.

/// A place in a segment. Offset and length are multiples of 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// Number of the segment. The index has room for its lowest 19 bits, and a disk for fewer segments than that.
    pub(crate) seq: u32,
    pub(crate) at: u32,
    pub(crate) len: u32,
}

/// Segments that can be told apart at a time.
pub(crate) const SEGMENTS_MAX: u32 = 1 << SEQ_BITS;
const SEQ_BITS: u32 = 19;
const SEQ_MASK: u64 = SEGMENTS_MAX as u64 - 1;
const AT_BITS: u32 = 23;
const LEN_BITS: u32 = 21;

/// Largest offset of a record in a segment, and its largest length.
pub(crate) const AT_MAX: u64 = (1 << (AT_BITS + 3)) - 8;
pub(crate) const LEN_MAX: u64 = (1 << (LEN_BITS + 3)) - 8;

impl Place {
    fn pack(self) -> u64 {
        debug_assert!(
            self.at.is_multiple_of(8) && self.len.is_multiple_of(8),
            "records are aligned"
        );
        debug_assert!(
            u64::from(self.at) <= AT_MAX && u64::from(self.len) <= LEN_MAX,
            "it does not fit"
        );
        (u64::from(self.seq) & SEQ_MASK) << (AT_BITS + LEN_BITS)
            | u64::from(self.at / 8) << LEN_BITS
            | u64::from(self.len / 8)
    }

    /// `seq` has its lowest bits only.
    fn unpack(packed: u64) -> Self {
        let low = |value: u64, bits: u32| u32::try_from(value & ((1 << bits) - 1)).unwrap_or(0);
        Self {
            seq: low(packed >> (AT_BITS + LEN_BITS), SEQ_BITS),
            at: low(packed >> LEN_BITS, AT_BITS) * 8,
            len: low(packed, LEN_BITS) * 8,
        }
    }
}

/// Where a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BodyPlace {
    /// There is no byte of it, or it is no object.
    None,
    Segment(Place),
    /// A file of its own, by number, and the 4 KiB pages that it takes.
    File {
        number: u64,
        pages: u32,
    },
}

const FILE_BIT: u64 = 1 << 63;
const PAGES_BITS: u32 = 23;
/// Bytes of a page: what file systems allocate by.
pub(crate) const PAGE: u64 = 4096;
/// Largest body file: 32 GiB.
pub(crate) const FILE_MAX: u64 = PAGE << PAGES_BITS;

impl BodyPlace {
    /// As records and entries have it.
    pub(crate) fn pack(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Segment(place) => place.pack(),
            Self::File { number, pages } => FILE_BIT | number << PAGES_BITS | u64::from(pages),
        }
    }

    pub(crate) fn unpack(packed: u64) -> Self {
        match packed {
            0 => Self::None,
            file if file & FILE_BIT != 0 => Self::File {
                number: (file & !FILE_BIT) >> PAGES_BITS,
                pages: u32::try_from(file & ((1 << PAGES_BITS) - 1)).unwrap_or(0),
            },
            place => Self::Segment(Place::unpack(place)),
        }
    }

    /// Bytes that it takes on disk.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Segment(place) => place.len.into(),
            Self::File { pages, .. } => u64::from(pages) * PAGE,
        }
    }
}

/// What a record is, in two bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Object,
    Variant,
    Directory,
}

/// The end of an object's use is kept in steps of this many seconds, when it was last asked for in coarser ones. Both wrap
/// round after years, so they are only ever compared with a time close by.
const KEEP_STEP: u64 = 4;
const USED_STEP: u64 = 16;
const KEEP_BITS: u32 = 27;
const USED_BITS: u32 = 24;
const OWNER_BITS: u32 = 10;
/// Longer than this is for ever: half of what the steps reach.
const KEEP_MAX_SECS: u64 = KEEP_STEP << (KEEP_BITS - 1);
/// Owners that have accounts of their own; the rest share the last one.
pub(crate) const OWNERS_MAX: usize = 1 << OWNER_BITS;

/// One record in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// See [`super::id::Id::short`].
    pub(crate) short: u64,
    head: u64,
    body: u64,
    facts: u64,
}

/// What an [`Entry`] is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) short: u64,
    pub(crate) kind: EntryKind,
    pub(crate) head: Place,
    pub(crate) body: BodyPlace,
    pub(crate) keep_until_secs: u64,
    pub(crate) used_secs: u64,
    pub(crate) owner: u16,
}

impl Entry {
    pub(crate) fn new(parts: Parts) -> Self {
        let kind = match parts.kind {
            EntryKind::Object => 0,
            EntryKind::Variant => 1,
            EntryKind::Directory => 2,
        };
        let keep_until = parts.keep_until_secs.min(parts.used_secs + KEEP_MAX_SECS - KEEP_STEP);
        Self {
            short: parts.short,
            head: parts.head.pack(),
            body: parts.body.pack(),
            facts: steps(keep_until.div_ceil(KEEP_STEP), KEEP_BITS)
                | steps(parts.used_secs / USED_STEP, USED_BITS) << KEEP_BITS
                | (u64::from(parts.owner) & (OWNERS_MAX as u64 - 1)) << (KEEP_BITS + USED_BITS)
                | kind << 61,
        }
    }

    pub(crate) fn kind(self) -> EntryKind {
        match self.facts >> 61 & 3 {
            0 => EntryKind::Object,
            1 => EntryKind::Variant,
            _ => EntryKind::Directory,
        }
    }

    pub(crate) fn head(self) -> Place {
        Place::unpack(self.head)
    }

    pub(crate) fn body(self) -> BodyPlace {
        BodyPlace::unpack(self.body)
    }

    /// Bytes that it takes on disk.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.head().len) + self.body().bytes()
    }

    /// Whether its time is over, give or take a step.
    pub(crate) fn is_expired(self, now_secs: u64) -> bool {
        let over = steps((now_secs / KEEP_STEP).wrapping_sub(self.facts), KEEP_BITS);
        // Beyond the half it lies ahead.
        over > 0 && over < 1 << (KEEP_BITS - 1)
    }

    /// Seconds since it was asked for, give or take a step.
    pub(crate) fn idle_secs(self, now_secs: u64) -> u64 {
        let idle = steps((now_secs / USED_STEP).wrapping_sub(self.facts >> KEEP_BITS), USED_BITS);
        // A clock that was set back makes it look as if it were asked for later.
        if idle >= 1 << (USED_BITS - 1) {
            0
        } else {
            idle * USED_STEP
        }
    }

    pub(crate) fn owner(self) -> u16 {
        u16::try_from(self.facts >> (KEEP_BITS + USED_BITS) & (OWNERS_MAX as u64 - 1)).unwrap_or(0)
    }

    /// Whether it was asked for since it was written, or written again.
    pub(crate) const fn is_used(self) -> bool {
        self.facts >> 63 != 0
    }

    /// It is being asked for.
    #[must_use]
    pub(crate) fn touched(self, now_secs: u64) -> Self {
        let time = steps(now_secs / USED_STEP, USED_BITS) << KEEP_BITS;
        let mask = ((1 << USED_BITS) - 1) << KEEP_BITS;
        Self {
            facts: self.facts & !mask | time | 1 << 63,
            ..self
        }
    }

    /// The same record elsewhere, as if nobody had asked for it since.
    #[must_use]
    pub(crate) fn moved(self, head: Place, body: BodyPlace) -> Self {
        Self {
            head: head.pack(),
            body: body.pack(),
            facts: self.facts & !(1 << 63),
            ..self
        }
    }

    /// The same account holder under another number.
    #[must_use]
    pub(crate) fn owned_by(self, owner: u16) -> Self {
        let mask = (OWNERS_MAX as u64 - 1) << (KEEP_BITS + USED_BITS);
        let owner = (u64::from(owner) & (OWNERS_MAX as u64 - 1)) << (KEEP_BITS + USED_BITS);
        Self {
            facts: self.facts & !mask | owner,
            ..self
        }
    }

    /// Whether both are the very same record: a successor lies elsewhere.
    pub(crate) const fn is_same(self, other: Self) -> bool {
        self.short == other.short && self.head == other.head
    }

    /// As it lies in the snapshot and in sled.
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let mut out = [0; 32];
        let words = [
            self.short.to_be(),
            self.head.to_le(),
            self.body.to_le(),
            self.facts.to_le(),
        ];
        for (to, word) in out.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        out
    }

    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(bytes.get(at..at + 8).unwrap_or(&[0; 8]));
            word
        };
        Self {
            short: u64::from_be_bytes(word(0)),
            head: u64::from_le_bytes(word(8)),
            body: u64::from_le_bytes(word(16)),
            facts: u64::from_le_bytes(word(24)),
        }
    }
}

/// The lowest bits.
const fn steps(value: u64, bits: u32) -> u64 {
    value & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn parts(keep_until_secs: u64) -> Parts {
        let head = Place {
            seq: SEGMENTS_MAX - 1,
            at: u32::try_from(AT_MAX).unwrap(),
            len: 96,
        };
        Parts {
            short: u64::MAX - 3,
            kind: EntryKind::Object,
            head,
            body: BodyPlace::None,
            keep_until_secs,
            used_secs: NOW,
            owner: 1023,
        }
    }

    #[test]
    fn parts_come_back() {
        assert_eq!(size_of::<Entry>(), 32);
        let place = |seq, at, len| BodyPlace::Segment(Place { seq, at, len });
        let bodies = [
            BodyPlace::None,
            place(77, 64, 4 << 20),
            place(
                SEGMENTS_MAX - 1,
                u32::try_from(AT_MAX).unwrap(),
                u32::try_from(LEN_MAX).unwrap(),
            ),
            BodyPlace::File {
                number: (1 << 40) - 1,
                pages: (1 << 23) - 1,
            },
        ];
        for body in bodies {
            for kind in [EntryKind::Object, EntryKind::Variant, EntryKind::Directory] {
                let given = Parts {
                    kind,
                    body,
                    ..parts(NOW + 15)
                };
                let entry = Entry::new(given);
                assert_eq!(
                    (entry.kind(), entry.head(), entry.body(), entry.owner()),
                    (kind, given.head, body, 1023)
                );
                assert_eq!(Entry::from_bytes(&entry.to_bytes()), entry);
                let touched = entry.touched(NOW + 320);
                assert!(touched.is_used() && !entry.is_used() && touched.is_same(entry));
                assert_eq!((touched.kind(), touched.owner(), touched.body()), (kind, 1023, body));
                assert!(!touched.moved(given.head, body).is_used());
                assert_eq!(touched.owned_by(5).owner(), 5);
                assert_eq!(touched.idle_secs(NOW + 320 + 1600), 1600);
                assert_eq!(touched.idle_secs(NOW), 0, "the clock was set back");
            }
        }
    }

    #[test]
    fn what_is_over_is_over_a_step_later_at_most() {
        for ahead in [0, 1, 3, 4, 15, 86_400, 10 * 365 * 86_400] {
            let until = NOW + ahead;
            let entry = Entry::new(parts(until));
            let end = until.min(NOW + KEEP_MAX_SECS - KEEP_STEP);
            assert!(!entry.is_expired(NOW) && !entry.is_expired(end), "{ahead}");
            assert!(entry.is_expired(end + 2 * KEEP_STEP), "{ahead}");
        }
        assert!(!Entry::new(parts(u64::MAX)).is_expired(NOW + 8 * 365 * 86_400));
        assert!(Entry::new(parts(0)).is_expired(NOW));
    }
}
