//! How old a response was when it came (RFC 9111 sections 4.2.3 and 5.1).

use crate::Fields;
use crate::delta::saturating_digits;
use crate::syntax::{members, trim};

/// The value of Age, at most [`DELTA_MAX`](crate::DELTA_MAX). Only the first member of the first line counts, and it must be all
/// digits: anything else is as good as no Age, since a number that nobody meant would keep a fresh response from being used, or
/// worse (RFC 9111 section 5.1).
#[must_use]
pub fn parse_age(fields: &impl Fields) -> Option<u64> {
    let line = fields.lines("age").next()?;
    saturating_digits(trim(members(line).next()?))
}

/// The age at the moment of receipt: `corrected_initial_age` of RFC 9111 section 4.2.3, from Age, Date and the two times of the
/// exchange.
///
/// Date is cut to whole seconds, so a response that left at 9.9 s and came at 10.0 s seems one second old. A difference of one
/// second therefore counts as none; without that, answers with `max-age=1` would be dead on arrival at random.
#[must_use]
pub fn corrected_initial_age(age: Option<u64>, date: Option<i64>, request_time: i64, response_time: i64) -> u64 {
    let apparent = match date.map_or(0, |date| elapsed(date, response_time)) {
        0 | 1 => 0,
        seconds => seconds,
    };
    let corrected = age.unwrap_or(0).saturating_add(elapsed(request_time, response_time));
    apparent.max(corrected)
}

/// Seconds from `from` to `to`, none if `to` comes first.
pub(crate) fn elapsed(from: i64, to: i64) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{corrected_initial_age, parse_age};
    use crate::DELTA_MAX;
    use crate::fields::header_map;

    #[test]
    fn b10_rfc9111_5_1_age() {
        let cases: &[(&[&str], Option<u64>)] = &[
            (&[], None),
            (&[""], None),
            (&["0"], Some(0)),
            (&[" 7200\t"], Some(7200)),
            (&["007200"], Some(7200)),
            (&["0, 0"], Some(0)),
            (&["0, 7200"], Some(0)),
            (&["7200, 0"], Some(7200)),
            (&["7200,x"], Some(7200)),
            (&["0", "7200"], Some(0)),
            (&["7200", "0"], Some(7200)),
            (&["x", "7200"], None),
            (&[", 7200"], None),
            (&["abc"], None),
            (&["-7200"], None),
            (&["+7200"], None),
            (&["7200.0"], None),
            (&["7200;foo=bar"], None),
            (&["72 00"], None),
            (&["\"7200\""], None),
            (&["2147483647"], Some(2_147_483_647)),
            (&["2147483648"], Some(DELTA_MAX)),
            (&["99999999999"], Some(DELTA_MAX)),
            (&["999999999999999999999999999999"], Some(DELTA_MAX)),
        ];
        for (lines, expected) in cases {
            let lines: Vec<_> = lines.iter().map(|line| ("age", *line)).collect();
            assert_eq!(parse_age(&header_map(&lines)), *expected, "{lines:?}");
        }
    }

    #[test]
    fn rfc9111_4_2_3_corrected_initial_age() {
        // Age, Date, request time, response time.
        let cases = [
            (None, None, 100, 100, 0),
            (None, Some(100), 100, 100, 0),
            // Age runs from the request, since it may be as old as that.
            (Some(5), Some(95), 100, 103, 8),
            (Some(5), None, 100, 100, 5),
            (None, None, 100, 103, 3),
            // A Date of long ago, without Age: an old cache in between, or a slow clock; we cannot tell.
            (None, Some(40), 100, 100, 60),
            (Some(10), Some(40), 100, 100, 60),
            (Some(90), Some(40), 100, 100, 90),
            // The turn of a second is no age.
            (None, Some(99), 100, 100, 0),
            (None, Some(98), 100, 100, 2),
            // Clocks that run ahead or are set back.
            (None, Some(500), 100, 100, 0),
            (Some(7), Some(500), 100, 40, 7),
        ];
        for (age, date, request, response, expected) in cases {
            assert_eq!(
                corrected_initial_age(age, date, request, response),
                expected,
                "{age:?} {date:?} {request} {response}"
            );
        }
        assert_eq!(
            corrected_initial_age(Some(u64::MAX), Some(i64::MIN), i64::MIN, i64::MAX),
            u64::MAX
        );
    }
}
