//! Traffic counters: what they hold and how they are read.

pub mod snapshot;
