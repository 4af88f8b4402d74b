//! HTTP dates to and from seconds since 1970 (RFC 9110 section 5.6.7).
//!
//! Reading is strict about form and lenient about case: a date that is nearly right is no date, since a lenient reader takes an
//! `Expires` for fresh that its sender never meant so. The name of the weekday must be one, but need not fit the date: many senders
//! have a wrong one built in, and nothing depends on it.

use crate::syntax::trim;

#[cfg(test)]
mod tests;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
/// From Thursday on, the day of 1 January 1970.
const WEEKDAYS: [&[u8]; 7] = [
    b"Thursday",
    b"Friday",
    b"Saturday",
    b"Sunday",
    b"Monday",
    b"Tuesday",
    b"Wednesday",
];

const DAY_SECS: i64 = 86_400;
/// 50 years of 365.2425 days: what RFC 9110 section 5.6.7 lets a two-digit year reach into the future.
const FIFTY_YEARS_SECS: i64 = 50 * 31_556_952;
/// 0000-01-01 and the last second of 9999: what four digits can say.
const EARLIEST: i64 = -62_167_219_200;
const LATEST: i64 = 253_402_300_799;

/// Reads a date in any of the three forms that RFC 9110 section 5.6.7 obliges recipients to accept. `now` settles the century of a
/// two-digit year.
#[must_use]
pub fn parse(value: &[u8], now: i64) -> Option<i64> {
    let value = trim(value);
    imf_fixdate(value)
        .or_else(|| rfc850(value, now))
        .or_else(|| asctime(value))
}

/// Appends the date in the form that RFC 9110 section 5.6.7 obliges senders to use. A time beyond four-digit years is cut to them.
pub fn write(unix_secs: i64, out: &mut Vec<u8>) {
    let unix_secs = unix_secs.clamp(EARLIEST, LATEST);
    let days = unix_secs.div_euclid(DAY_SECS);
    let second_of_day = unix_secs.rem_euclid(DAY_SECS);
    let (year, month, day) = civil_from_days(days);
    let weekday = usize::try_from(days.rem_euclid(7)).unwrap_or(0);
    out.extend_from_slice(WEEKDAYS.get(weekday).and_then(|name| name.get(..3)).unwrap_or(b"Thu"));
    out.extend_from_slice(b", ");
    write_padded(day, 2, out);
    out.push(b' ');
    let month = usize::try_from(month - 1).unwrap_or(0);
    out.extend_from_slice(MONTHS.get(month).copied().unwrap_or(b"Jan"));
    out.push(b' ');
    write_padded(year, 4, out);
    for (unit_secs, before) in [(3600, b' '), (60, b':'), (1, b':')] {
        out.push(before);
        let modulus = if unit_secs == 3600 { 24 } else { 60 };
        write_padded(second_of_day / unit_secs % modulus, 2, out);
    }
    out.extend_from_slice(b" GMT");
}

fn write_padded(value: i64, width: u32, out: &mut Vec<u8>) {
    for place in (0..width).rev() {
        let digit = u8::try_from(value / 10_i64.pow(place) % 10).unwrap_or(0);
        out.push(b'0' + digit);
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(value: &[u8]) -> Option<i64> {
    let mut reader = Reader(value);
    reader.weekday(Weekday::Short)?;
    reader.exactly(b", ")?;
    let day = reader.number(2)?;
    reader.exactly(b" ")?;
    let month = reader.month()?;
    reader.exactly(b" ")?;
    let year = reader.number(4)?;
    reader.exactly(b" ")?;
    let second = reader.time_of_day()?;
    reader.exactly(b" GMT")?;
    reader.end()?;
    seconds(year, month, day, second)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(value: &[u8], now: i64) -> Option<i64> {
    let mut reader = Reader(value);
    reader.weekday(Weekday::Long)?;
    reader.exactly(b", ")?;
    let day = reader.number(2)?;
    reader.exactly(b"-")?;
    let month = reader.month()?;
    reader.exactly(b"-")?;
    let year_of_century = reader.number(2)?;
    reader.exactly(b" ")?;
    let second = reader.time_of_day()?;
    reader.exactly(b" GMT")?;
    reader.end()?;

    let (this_year, ..) = civil_from_days(now.clamp(EARLIEST, LATEST).div_euclid(DAY_SECS));
    let century = this_year - this_year.rem_euclid(100);
    // The latest year with these two digits that is not more than 50 years ahead.
    [century + 100, century, century - 100]
        .into_iter()
        .filter_map(|century| seconds(century + year_of_century, month, day, second))
        .find(|&date| date <= now.saturating_add(FIFTY_YEARS_SECS))
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(value: &[u8]) -> Option<i64> {
    let mut reader = Reader(value);
    reader.weekday(Weekday::Short)?;
    reader.exactly(b" ")?;
    let month = reader.month()?;
    reader.exactly(b" ")?;
    let day = match reader.exactly(b" ") {
        Some(()) => reader.number(1)?,
        None => reader.number(2)?,
    };
    reader.exactly(b" ")?;
    let second = reader.time_of_day()?;
    reader.exactly(b" ")?;
    let year = reader.number(4)?;
    reader.end()?;
    seconds(year, month, day, second)
}

#[derive(Clone, Copy)]
enum Weekday {
    Short,
    Long,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// Moves past `text`, in any case, or stays where it is.
    fn exactly(&mut self, text: &[u8]) -> Option<()> {
        let (taken, rest) = self.0.split_at_checked(text.len())?;
        if !taken.eq_ignore_ascii_case(text) {
            return None;
        }
        self.0 = rest;
        Some(())
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        self.take(digits)?.iter().try_fold(0, |value, &byte| {
            byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
        })
    }

    fn weekday(&mut self, form: Weekday) -> Option<()> {
        WEEKDAYS.iter().find_map(|name| match form {
            Weekday::Short => self.exactly(name.get(..3)?),
            Weekday::Long => self.exactly(name),
        })
    }

    fn month(&mut self) -> Option<i64> {
        let name = self.take(3)?;
        let at = MONTHS.iter().position(|month| name.eq_ignore_ascii_case(*month))?;
        i64::try_from(at + 1).ok()
    }

    /// `08:49:37` as a number of seconds. A 60th second is allowed, since leap seconds are.
    fn time_of_day(&mut self) -> Option<i64> {
        let hour = self.number(2)?;
        self.exactly(b":")?;
        let minute = self.number(2)?;
        self.exactly(b":")?;
        let second = self.number(2)?;
        (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
    }
}

fn seconds(year: i64, month: i64, day: i64, second_of_day: i64) -> Option<i64> {
    let days = days_from_civil(year, month, day);
    // A day that its month does not have would come back as another date.
    (civil_from_days(days) == (year, month, day)).then_some(days * DAY_SECS + second_of_day)
}

/// Days since 1970-01-01 in the Gregorian calendar. The year is taken to begin in March, so that a leap day ends it.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_from_civil`]: year, month, day.
const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}
