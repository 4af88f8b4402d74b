use std::collections::HashSet;

use proptest::prelude::*;

use super::{AcceptEncoding, Coding, accepts};
use crate::fields::{any_value, header_map};

fn lines<V: AsRef<[u8]>>(values: &[V]) -> http::HeaderMap {
    let lines: Vec<_> = values.iter().map(|value| ("accept-encoding", value)).collect();
    header_map(&lines)
}

fn written(parsed: AcceptEncoding) -> String {
    let mut out = Vec::new();
    parsed.write(&mut out);
    String::from_utf8(out).expect("ASCII")
}

#[test]
fn b23_rfc9110_12_5_3_normal_form() {
    let cases = [
        ("", "identity"),
        ("identity", "identity"),
        ("deflate, compress", "identity"),
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("GZip , BR", "br, gzip"),
        ("gzip, deflate, br, zstd", "br, zstd, gzip"),
        ("zstd;q=1, br;q=1.000, gzip;q=1.0", "br, zstd, gzip"),
        ("br;q=0.1, gzip", "gzip, br;q=0.5"),
        ("gzip;q=0.1", "gzip"),
        ("gzip;q=0.001", "gzip"),
        ("gzip ; Q=0.5", "gzip"),
        ("gzip;q=0", "identity"),
        ("gzip;q=0.000, br", "br"),
        ("gzip;q=0, x-gzip", "identity"),
        ("gzip, gzip;q=0", "identity"),
        ("identity, gzip", "gzip"),
        ("identity;q=1, gzip;q=0.5", "identity, gzip;q=0.5"),
        ("identity;q=0", "identity;q=0"),
        ("identity;q=0, gzip", "gzip, identity;q=0"),
        ("*", "br, zstd, gzip"),
        ("*;q=0", "identity;q=0"),
        ("*;q=0, gzip", "gzip, identity;q=0"),
        ("*;q=0, identity", "identity"),
        ("*, br;q=0", "zstd, gzip"),
        ("*;q=0.5, gzip", "gzip, br;q=0.5, zstd;q=0.5"),
        ("gzip;q=x", "identity"),
        ("gzip;q=2", "identity"),
        ("gzip;q=0.0001", "identity"),
        ("gzip;level=9", "identity"),
        ("gzip q=1", "identity"),
        ("identity;q=x", "identity"),
        ("*;q=x", "identity"),
        (",,,,,,,,,,,,,,,,", "identity"),
        (",,,gzip,,,", "gzip"),
    ];
    for (value, expected) in cases {
        let parsed = AcceptEncoding::parse(&lines(&[value])).expect("present");
        assert_eq!(written(parsed), expected, "{value}");
    }
    assert_eq!(AcceptEncoding::parse(&lines::<&str>(&[])), None);
    assert_eq!(
        AcceptEncoding::parse(&lines(&["gzip", "br"])),
        AcceptEncoding::parse(&lines(&["br,gzip"]))
    );
    assert_eq!(
        AcceptEncoding::parse(&lines(&[",".repeat(64)])),
        AcceptEncoding::parse(&lines(&[""]))
    );
    assert_eq!(
        AcceptEncoding::parse(&lines(&["\u{e9};\"=".repeat(2048)])),
        AcceptEncoding::parse(&lines(&[""]))
    );
}

#[test]
fn b23_what_is_served_must_be_acceptable() {
    let cases = [
        ("gzip", "gzip", true),
        ("gzip", "x-gzip", true),
        ("gzip", "", true),
        ("gzip", "identity", true),
        ("gzip", "br", false),
        ("gzip", "gzip, br", false),
        ("gzip, br", "gzip, br", true),
        ("deflate", "deflate", true),
        ("deflate;q=0", "deflate", false),
        ("deflate;q=x", "deflate", false),
        ("*", "deflate", true),
        ("*, deflate;q=0", "DEFLATE", false),
        ("identity;q=0", "", false),
        ("*;q=0", "gzip", false),
        ("", "gzip", false),
        ("", "", true),
        ("*", "a b", false),
    ];
    for (value, coding, expected) in cases {
        assert_eq!(
            accepts(&lines(&[value]), coding.as_bytes()),
            expected,
            "{value} {coding}"
        );
    }
    assert!(accepts(&lines::<&str>(&[]), b"anything"));
}

/// Whole field values out of parts that mean something.
fn field_value() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "br", "gzip", "x-gzip", "zstd", "identity", "*", "deflate", "", "GZIP",
    ]);
    let weight = prop::sample::select(vec!["", ";q=0", ";q=0.5", "; q=1", ";q=0.001", ";q=9", ";x"]);
    prop::collection::vec((name, weight), 0..6).prop_map(|members| {
        members
            .into_iter()
            .map(|(name, weight)| format!("{name}{weight}"))
            .collect::<Vec<_>>()
            .join(", ")
    })
}

fn check_consistent(values: &[Vec<u8>]) {
    let request = lines(values);
    let Some(parsed) = AcceptEncoding::parse(&request) else {
        assert!(values.is_empty());
        return;
    };
    for coding in Coding::ALL {
        assert_eq!(
            parsed.accepts(coding),
            accepts(&request, coding.token().as_bytes()),
            "{coding:?}"
        );
    }
    assert!(parsed.preferred().is_none_or(|coding| parsed.accepts(coding)));
    // What an origin is sent means the same.
    assert_eq!(AcceptEncoding::parse(&lines(&[written(parsed)])), Some(parsed));
}

proptest! {
    #[test]
    fn b23_the_value_says_exactly_what_is_acceptable(values in prop::collection::vec(field_value(), 0..3)) {
        check_consistent(&values.into_iter().map(String::into_bytes).collect::<Vec<_>>());
    }

    #[test]
    fn b23_random_bytes_never_panic(values in prop::collection::vec(any_value(), 0..3)) {
        check_consistent(&values);
    }

    #[test]
    fn b23_a_coding_negotiated_for_one_is_acceptable_to_all_with_the_same_value(one in field_value(), two in field_value()) {
        let (one, two) = (lines(&[one]), lines(&[two]));
        prop_assume!(AcceptEncoding::parse(&one) == AcceptEncoding::parse(&two));
        for coding in Coding::ALL {
            prop_assert_eq!(accepts(&one, coding.token().as_bytes()), accepts(&two, coding.token().as_bytes()));
        }
    }

    #[test]
    fn b23_values_are_few(values in prop::collection::vec(field_value(), 300)) {
        let seen: HashSet<_> = values.iter().filter_map(|value| AcceptEncoding::parse(&lines(&[value]))).collect();
        prop_assert!(seen.len() <= 33);
        let bytes: HashSet<_> = seen.iter().map(|parsed| parsed.to_byte()).collect();
        prop_assert_eq!(bytes.len(), seen.len());
    }
}
