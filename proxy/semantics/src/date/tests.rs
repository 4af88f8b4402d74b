use proptest::prelude::*;

use super::{EARLIEST, LATEST, parse, write};
use crate::fields::any_value;

/// 2026-11-30 00:00:00
const NOW: i64 = 1_795_996_800;

fn written(unix_secs: i64) -> String {
    let mut out = Vec::new();
    write(unix_secs, &mut out);
    String::from_utf8(out).expect("ASCII")
}

#[test]
fn rfc9110_5_6_7_the_three_forms() {
    let cases = [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777),
        ("Sun Nov 16 08:49:37 1994", 784_975_777),
        ("Sun Nov 06 08:49:37 1994", 784_111_777),
        (" Sun, 06 Nov 1994 08:49:37 GMT\t", 784_111_777),
        ("sUN, 06 nOV 1994 08:49:37 gmt", 784_111_777),
        ("THU, 18 AUG 2050 02:01:18 gMT", 2_544_400_878),
        ("Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878),
        ("Thu Aug 18 02:01:18 2050", 2_544_400_878),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
        ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
        ("Sat, 20 Nov 2286 17:46:39 GMT", 9_999_999_999),
        ("Tue, 29 Feb 2028 12:00:00 GMT", 1_835_438_400),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
        // The weekday does not fit: it was a Friday.
        ("Mon, 26 Jul 1997 05:00:00 GMT", 869_893_200),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LATEST),
        ("Sat, 01 Jan 0000 00:00:00 GMT", EARLIEST),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text.as_bytes(), NOW), Some(expected), "{text}");
    }
}

#[test]
fn b09_what_is_no_date() {
    let cases = [
        "",
        "0",
        "-1",
        "foo",
        "Thu, 18 Aug 2050 02:01:18 UTC",
        "Thu, 18 Aug 2050 02:01:18 AEST",
        "Thu, 18 Aug 2050 02:01:18 +0000",
        "Thu, 18 Aug 2050 02:01:18",
        "Thu, 18 Aug 50 02:01:18 GMT",
        "Thu 18 Aug 2050 02:01:18 GMT",
        "Thu,18 Aug 2050 02:01:18 GMT",
        "Thu, 18  Aug  2050 02:01:18 GMT",
        "Thu,  18 Aug 2050 02:01:18 GMT",
        "Thu, 18-Aug-2050 02:01:18 GMT",
        "Thu, 18-Aug-50 02:01:18 GMT",
        "Thursday, 18 Aug 2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 02.01.18 GMT",
        "Thu, 18 Aug 2050 2:01:18 GMT",
        "Thu, 8 Aug 2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 24:00:00 GMT",
        "Thu, 18 Aug 2050 02:60:18 GMT",
        "Thu, 18 Aug 2050 02:01:61 GMT",
        "Thu, 32 Aug 2050 02:01:18 GMT",
        "Thu, 00 Aug 2050 02:01:18 GMT",
        "Thu, 31 Jun 2050 02:01:18 GMT",
        "Mon, 29 Feb 2027 12:00:00 GMT",
        "Xyz, 18 Aug 2050 02:01:18 GMT",
        "Thu, 18 Xyz 2050 02:01:18 GMT",
        "Thu, 18 August 2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 02:01:18 GMT; foo",
        "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
        "2050-08-18T02:01:18Z",
        "Th\u{fc}, 18 Aug 2050 02:01:18 GMT",
    ];
    for text in cases {
        assert_eq!(parse(text.as_bytes(), NOW), None, "{text}");
    }
}

#[test]
fn rfc9110_5_6_7_two_digit_years_reach_fifty_years_ahead() {
    let at = |year: i64| parse(format!("Mon, 30 Nov {year} 00:00:00 GMT").as_bytes(), NOW).expect("a date");
    let short = |year: i64, now| parse(format!("Monday, 30-Nov-{year:02} 00:00:00 GMT").as_bytes(), now);
    assert_eq!(short(26, NOW), Some(at(2026)));
    assert_eq!(short(75, NOW), Some(at(2075)));
    assert_eq!(short(78, NOW), Some(at(1978)));
    assert_eq!(short(99, NOW), Some(at(1999)));
    assert_eq!(short(0, NOW), Some(at(2000)));
    // Near the end of a century the next one is not far.
    assert_eq!(short(5, at(2090)), Some(at(2105)));
    assert_eq!(short(5, at(1990)), Some(at(2005)));
    // 2100 is no leap year, so this can only be another century's.
    assert_eq!(
        parse(b"Monday, 29-Feb-00 00:00:00 GMT", at(2090)),
        parse(b"Tue, 29 Feb 2000 00:00:00 GMT", NOW)
    );
}

#[test]
fn dates_are_written_in_the_fixed_form() {
    assert_eq!(written(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(written(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(written(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
    assert_eq!(written(1_835_438_400), "Tue, 29 Feb 2028 12:00:00 GMT");
    assert_eq!(written(i64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(written(i64::MIN), "Sat, 01 Jan 0000 00:00:00 GMT");
}

proptest! {
    #[test]
    fn what_is_written_can_be_read(unix_secs in EARLIEST..=LATEST) {
        prop_assert_eq!(parse(written(unix_secs).as_bytes(), NOW), Some(unix_secs));
    }

    #[test]
    fn random_bytes_and_times_never_panic(value in any_value(), now: i64) {
        let _ = parse(&value, now);
    }

    #[test]
    fn one_wrong_byte_never_panics(unix_secs in EARLIEST..=LATEST, at in 0_usize..29, byte: u8, now: i64) {
        let mut text = written(unix_secs).into_bytes();
        text[at] = byte;
        let _ = parse(&text, now);
    }

    #[test]
    fn two_digit_years_are_never_more_than_fifty_years_ahead(year in 0..100, now in 0..LATEST) {
        let date = parse(format!("Monday, 15-Jun-{year:02} 00:00:00 GMT").as_bytes(), now).expect("a date");
        prop_assert!(date <= now + super::FIFTY_YEARS_SECS);
        prop_assert!(date > now - super::FIFTY_YEARS_SECS - 2 * 366 * super::DAY_SECS);
    }
}
