//! What a record costs in memory beyond the bytes that it was given. Weights are computed once, when a record is made,
//! since the table asks for them during evictions and they must not change.

/// One record: a key of 24 bytes, a value of 16 and 21 of the table's own, half as much again for the ghosts of evicted
/// records, and up to twice that while the table has just doubled (183 bytes), plus the allocator's rounding of the key.
pub(crate) const RECORD: usize = 192;

/// One chunk of a body: its handle (32 bytes), the counter that the first clone allocates (32) and the allocator's
/// rounding (16).
pub(crate) const CHUNK: usize = 80;

/// The counts in front of anything in an `Arc`.
pub(crate) const COUNTS: usize = 16;

/// A variant's place in the list of its directory: a handle of 16 bytes in a list that may have just doubled.
pub(crate) const LISTED: usize = 32;
