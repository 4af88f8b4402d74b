//! Waiting for what another process does and can't tell us: looked at again and again, until a deadline.

use std::thread::park_timeout;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine, short enough for a person.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// How long to wait between two looks: 5 ms is below what a test's time shows, and two hundred looks per second cost nothing.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Looks until `look` gives something.
///
/// # Panics
/// With `what` when the deadline passes first.
pub fn wait_for<T>(what: &str, deadline: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited {deadline:?} in vain for {what}");
        park_timeout(BETWEEN_LOOKS);
    }
}

/// Looks until `holds` is true, for at most [`DEADLINE`].
///
/// # Panics
/// With `what` when the deadline passes first.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, DEADLINE, || holds().then_some(()));
}

/// Whether `LARDER_TEST_FULL` asks for the full form of tests that have a short one: minutes instead of seconds.
#[must_use]
pub fn full() -> bool {
    std::env::var_os("LARDER_TEST_FULL").is_some_and(|value| value == "1")
}
