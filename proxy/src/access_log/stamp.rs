//! Time as text. It changes once a second, so it is kept.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

/// The text of the last second that was asked for.
#[derive(Debug)]
pub(super) struct Stamp {
    zone: TimeZone,
    /// `strftime` form.
    pattern: &'static str,
    second: Option<u64>,
    text: String,
}

impl Stamp {
    pub(super) const fn new(zone: TimeZone, pattern: &'static str) -> Self {
        Self {
            zone,
            pattern,
            second: None,
            text: String::new(),
        }
    }

    pub(super) fn append(&mut self, second: u64, out: &mut Vec<u8>) {
        if self.second != Some(second) {
            self.second = Some(second);
            // A clock that is beyond what a date can say shows as the Unix epoch.
            let time = i64::try_from(second)
                .ok()
                .and_then(|second| Timestamp::from_second(second).ok());
            let time = ZonedDateTime::new(time.unwrap_or_default(), self.zone.clone());
            self.text = time.strftime(self.pattern).to_string();
        }
        out.extend_from_slice(self.text.as_bytes());
    }
}
