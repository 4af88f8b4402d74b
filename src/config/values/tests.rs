use proptest::prelude::*;

use super::*;

fn parse<T: FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse()
}

#[test]
fn sizes() {
    for (text, bytes, printed) in [
        ("0", 0, "0"),
        ("1B", 1, "1B"),
        ("32KiB", 32 << 10, "32KiB"),
        ("64MiB", 64 << 20, "64MiB"),
        ("1TiB", 1 << 40, "1TiB"),
        ("1024MiB", 1 << 30, "1GiB"),
        ("10MB", 10_000_000, "10000000B"),
        ("5kB", 5_000, "5000B"),
    ] {
        assert_eq!(parse(text), Ok(ByteSize(bytes)), "{text}");
        assert_eq!(ByteSize(bytes).to_string(), printed);
    }
    for (text, advice) in [
        ("", "write a whole number and a unit, such as \"64MiB\""),
        ("MiB", "write a whole number and a unit, such as \"64MiB\""),
        ("10", "the units are B, KiB, MiB, GiB and TiB"),
        ("10m", "write \"10MiB\""),
        ("10g", "write \"10GiB\""),
        ("10 MiB", "the units are B, KiB, MiB, GiB and TiB"),
        ("1.5GiB", "the units are B, KiB, MiB, GiB and TiB"),
        ("-1", "a size cannot be negative"),
        ("99999999TiB", "it is larger than any disk"),
    ] {
        assert_eq!(
            parse::<ByteSize>(text),
            Err(format!("`{text}` is not a size\n{advice}"))
        );
    }
}

#[test]
fn durations() {
    for (text, ms, printed) in [
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("500ms", 500, "500ms"),
        ("1500ms", 1_500, "1500ms"),
        ("90s", 90_000, "90s"),
        ("1h30m", 5_400_000, "90m"),
        ("1d", 86_400_000, "1d"),
        ("2w", 1_209_600_000, "14d"),
        ("1y", 31_536_000_000, "365d"),
    ] {
        let span = TimeSpan(Duration::from_millis(ms));
        assert_eq!(parse(text), Ok(span), "{text}");
        assert_eq!(span.to_string(), printed);
    }
    for (text, advice) in [
        ("", "write a whole number and a unit, such as \"10m\""),
        ("s", "write a whole number and a unit, such as \"10m\""),
        ("10", "a unit is missing: ms, s, m, h, d, w or y"),
        ("1M", "a month has no fixed length: write days, and minutes as \"m\""),
        ("10sec", "the units are ms, s, m, h, d, w and y"),
        ("1s1s", "larger units come first, each once, as in \"1h30m\""),
        ("-1s", "a duration cannot be negative"),
        ("99999999999999999y", "it is longer than time lasts"),
        (
            "99999999999999999999s",
            "write a whole number and a unit, such as \"10m\"",
        ),
    ] {
        assert_eq!(
            parse::<TimeSpan>(text),
            Err(format!("`{text}` is not a duration\n{advice}"))
        );
    }
}

#[test]
fn networks() {
    for (text, printed) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("127.0.0.1", "127.0.0.1/32"),
        ("::1", "::1/128"),
    ] {
        assert_eq!(parse::<Cidr>(text).unwrap().to_string(), printed);
    }
    assert_eq!(
        parse::<Cidr>("fe80::1/10"),
        Err("`fe80::1/10` has address bits beyond its prefix\nwrite \"fe80::/10\"".to_owned())
    );
    assert!(parse::<Cidr>("10.0.0.0/33").is_err());
}

#[test]
fn quoted_values_are_short_and_on_one_line() {
    assert_eq!(shown("a\"b\nc"), "a\"b\\nc");
    assert_eq!(shown("\u{1b}[31m"), "\\u{1b}[31m");
    assert_eq!(shown(&"x".repeat(100)).chars().count(), 61);
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(number in any::<u64>(), ms in 0..u64::from(u32::MAX) * 1000) {
        prop_assert_eq!(parse(&ByteSize(number).to_string()), Ok(ByteSize(number)));
        let span = TimeSpan(Duration::from_millis(ms));
        prop_assert_eq!(parse(&span.to_string()), Ok(span));
    }

    #[test]
    fn no_text_is_too_odd(text in any::<String>()) {
        let _ = (parse::<ByteSize>(&text), parse::<TimeSpan>(&text), parse::<Cidr>(&text), shown(&text));
    }
}
