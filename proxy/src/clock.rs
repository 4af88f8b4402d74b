//! Time as the data plane uses it. Resident objects age by the monotonic clock, so that a step of the wall clock never makes
//! one live longer; the wall clock is for header dates and logs only.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now)
}

/// A moment of the monotonic clock, in microseconds since the first use of it in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment(u64);

impl Moment {
    #[must_use]
    pub fn now() -> Self {
        Self(u64::try_from(base().elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Microseconds from `earlier` to this moment; 0 where it lies before.
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whole seconds from `earlier` to this moment.
    #[must_use]
    pub const fn secs_since(self, earlier: Self) -> u64 {
        self.micros_since(earlier) / 1_000_000
    }

    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)),
        )
    }

    #[must_use]
    pub(crate) const fn as_micros(self) -> u64 {
        self.0
    }

    #[must_use]
    pub(crate) const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }
}

/// Unix time in milliseconds.
#[must_use]
pub fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Unix time in seconds.
#[must_use]
pub fn unix_secs() -> i64 {
    i64::try_from(unix_ms() / 1000).unwrap_or(i64::MAX)
}
