//! Time as the data plane uses it. Objects age by a clock that never steps while the process lives: the wall clock as it was at
//! the start, and the monotonic clock from there on. So a step of the wall clock never makes one live longer, and what is on
//! disk can be told the time it was away. The wall clock itself is for header dates and logs only.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The two clocks at their first use: the monotonic one, and the wall clock in microseconds since 1970.
fn base() -> (Instant, u64) {
    static BASE: OnceLock<(Instant, u64)> = OnceLock::new();
    *BASE.get_or_init(|| (Instant::now(), unix_ms().saturating_mul(1000)))
}

/// A moment of the steady clock, in microseconds since 1970. Moments of two runs of the process compare as well as the wall clock
/// was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment(u64);

impl Moment {
    #[must_use]
    pub fn now() -> Self {
        let (start, start_us) = base();
        let elapsed_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        Self(start_us.saturating_add(elapsed_us))
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

/// Unix time in milliseconds by the steady clock: for what must not see a step within the life of the process.
#[must_use]
pub fn steady_unix_ms() -> u64 {
    Moment::now().as_micros() / 1000
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_since_1970_that_does_not_go_back() {
        let before = Moment::now();
        let steady_ms = steady_unix_ms();
        let after = Moment::now();
        assert!(before <= after);
        assert!((before.as_micros() / 1000..=after.as_micros() / 1000).contains(&steady_ms));
        // The base was taken from the wall clock.
        let (_, start_us) = base();
        assert!(start_us > 1_700_000_000_000_000, "{start_us}");
        assert_eq!(start_us % 1000, 0);
    }

    #[test]
    fn a_span_that_would_be_negative_is_none() {
        let (early, late) = (Moment::from_micros(5_000_000), Moment::from_micros(8_999_999));
        assert_eq!(late.secs_since(early), 3);
        assert_eq!(early.secs_since(late), 0);
        assert_eq!(early.after(Duration::from_micros(3_999_999)), late);
        assert_eq!(
            Moment::from_micros(u64::MAX).after(Duration::MAX),
            Moment::from_micros(u64::MAX)
        );
    }
}
