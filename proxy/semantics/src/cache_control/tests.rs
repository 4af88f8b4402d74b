use proptest::prelude::*;

use super::{RequestDirectives, ResponseDirectives, Restriction};
use crate::fields::{any_value, header_map};
use crate::{DELTA_MAX, Delta};

fn response(lines: &[&str]) -> ResponseDirectives {
    let lines: Vec<_> = lines.iter().map(|line| ("cache-control", *line)).collect();
    ResponseDirectives::parse(&header_map(&lines))
}

fn request(lines: &[(&str, &str)]) -> RequestDirectives {
    RequestDirectives::parse(&header_map(lines))
}

#[test]
fn b07_unparsable_quoted_or_duplicate_max_age() {
    let seconds = Delta::Seconds;
    let cases: &[(&[&str], Delta)] = &[
        (&[], Delta::Absent),
        (&[""], Delta::Absent),
        (&["public"], Delta::Absent),
        (&["max-age=60"], seconds(60)),
        (&["MAX-Age=60"], seconds(60)),
        (&["max-age=0"], seconds(0)),
        (&["max-age=0060"], seconds(60)),
        (&["max-age=\"60\""], seconds(60)),
        (&["max-age='60'"], Delta::Invalid),
        (&["max-age=\"a\""], Delta::Invalid),
        (&["max-age=\"\""], Delta::Invalid),
        (&["max-age=\"60"], Delta::Invalid),
        (&["max-age=60\""], Delta::Invalid),
        (&["max-age=\" 60\""], Delta::Invalid),
        (&["max-age=-1"], Delta::Invalid),
        (&["max-age=+1"], Delta::Invalid),
        (&["max-age=1.5"], Delta::Invalid),
        (&["max-age=3600.0"], Delta::Invalid),
        (&["max-age=a3600"], Delta::Invalid),
        (&["max-age=3600a"], Delta::Invalid),
        (&["max-age=0x10"], Delta::Invalid),
        (&["max-age= 60"], Delta::Invalid),
        (&["max-age =60"], Delta::Invalid),
        (&["max-age\t=\t60"], Delta::Invalid),
        (&["max-age"], Delta::Invalid),
        (&["max-age="], Delta::Invalid),
        (&["max-age 60"], Delta::Invalid),
        (&["max-age=60;"], Delta::Invalid),
        (&["max-age=60; public"], Delta::Invalid),
        (&["max-age=60 s"], Delta::Invalid),
        (&["max-age==60"], Delta::Invalid),
        (&["max-age=60, max-age=1"], seconds(1)),
        (&["max-age=1, max-age=60"], seconds(1)),
        (&["max-age=60", "max-age=1"], seconds(1)),
        (&["max-age=60, max-age=x"], Delta::Invalid),
        (&["max-age=x", "max-age=60"], Delta::Invalid),
        (&["foo=\", max-age=60,\", max-age=1"], seconds(1)),
        (&["extension=\"max-age=3600\", max-age=1"], seconds(1)),
        (&["max-age=1, extension=\"max-age=3600\""], seconds(1)),
        (&["foo=\"a\\\", max-age=9, \", max-age=1"], seconds(1)),
        (&["foo=\", max-age=60"], Delta::Absent),
        (&["public,\tmax-age=60\t,"], seconds(60)),
        (&[",,, max-age=60"], seconds(60)),
        (&["public", "foo, max-age=60"], seconds(60)),
        (&["x-max-age=60"], Delta::Absent),
        (
            &["max-age-of-something-with-a-name-that-is-far-too-long=60"],
            Delta::Absent,
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(response(lines).max_age, *expected, "{lines:?}");
    }
}

#[test]
fn b06_rfc9111_1_2_2_huge_deltas_saturate() {
    let cases = [
        ("2147483647", 2_147_483_647),
        ("2147483648", DELTA_MAX),
        ("4294967297", DELTA_MAX),
        ("99999999999", DELTA_MAX),
        ("18446744073709551616", DELTA_MAX),
        ("999999999999999999999999999999", DELTA_MAX),
    ];
    for (digits, expected) in cases {
        let names = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"];
        let line = names.map(|name| format!("{name}={digits}")).join(", ");
        let parsed = response(&[&line]);
        for delta in [
            parsed.max_age,
            parsed.s_maxage,
            parsed.stale_while_revalidate,
            parsed.stale_if_error,
        ] {
            assert_eq!(delta, Delta::Seconds(expected), "{digits}");
        }
    }
}

#[test]
fn rfc9111_5_2_2_flags_in_any_case_and_among_unknown_ones() {
    let parsed = response(&[
        "NO-Store, foo, Must-Revalidate, bar=baz",
        "proxy-revalidate,must-understand , PUBLIC, no-transform",
    ]);
    assert!(parsed.no_store && parsed.must_revalidate && parsed.proxy_revalidate);
    assert!(parsed.must_understand && parsed.public && parsed.no_transform);
    assert_eq!(
        response(&["foo=\"no-store, private\", x-no-store"]),
        ResponseDirectives::default()
    );
}

#[test]
fn rfc9111_5_2_2_4_and_7_qualified_forms() {
    let named = |names: &[&str]| Restriction::Named(names.iter().map(ToString::to_string).collect());
    let cases = [
        ("private", Restriction::Whole),
        ("private=\"Set-Cookie\"", named(&["set-cookie"])),
        ("private=\"Set-Cookie, X-A\"", named(&["set-cookie", "x-a"])),
        ("private=set-cookie", named(&["set-cookie"])),
        ("private=\"a\", private=\"b\"", named(&["a", "b"])),
        ("private=\"a\", private", Restriction::Whole),
        ("private, private=\"a\"", Restriction::Whole),
        ("private=\"\"", Restriction::Whole),
        ("private=\"a b\"", Restriction::Whole),
        ("private=\"a", Restriction::Whole),
        ("private=", Restriction::Whole),
        ("private; max-age=60", Restriction::Whole),
        ("public", Restriction::Absent),
    ];
    for (line, expected) in cases {
        assert_eq!(response(&[line]).private, expected, "{line}");
        let swapped = line.replace("private", "no-cache");
        assert_eq!(response(&[&swapped]).no_cache, expected, "{swapped}");
    }
}

#[test]
fn what_is_malformed_forbids_but_does_not_permit() {
    assert!(response(&["no-store=1"]).no_store);
    assert!(response(&["no-store;"]).no_store);
    assert!(response(&["public; no-store"]).no_store);
    assert!(response(&["foo=\", no-store"]).no_store);
    assert!(response(&["max-age=60; private"]).private.is_present());
    assert!(response(&["max-age=60 no-cache"]).no_cache.is_present());
    assert!(!response(&["public; max-age=60"]).public);
    assert!(!response(&["public=1"]).public);
    assert!(!response(&["must-understand=1"]).must_understand);
}

#[test]
fn rfc9111_5_2_1_request_directives() {
    let parsed = request(&[
        ("cache-control", "No-Cache, no-store, only-if-cached, max-age=0"),
        ("cache-control", "min-fresh=9"),
    ]);
    assert!(parsed.no_cache && parsed.no_store && parsed.only_if_cached);
    assert_eq!(
        (parsed.max_age, parsed.min_fresh, parsed.max_stale),
        (Delta::Seconds(0), Delta::Seconds(9), Delta::Absent)
    );
    let stale = |line| request(&[("cache-control", line)]).max_stale;
    assert_eq!(stale("max-stale"), Delta::Seconds(DELTA_MAX));
    assert_eq!(stale("max-stale=5"), Delta::Seconds(5));
    assert_eq!(stale("max-stale, max-stale=5"), Delta::Seconds(5));
    assert_eq!(stale("max-stale=x"), Delta::Invalid);
    assert_eq!(
        request(&[("cache-control", "min-fresh=1, min-fresh=2")]).min_fresh,
        Delta::Seconds(2)
    );
}

#[test]
fn b17_rfc9111_5_4_pragma_counts_only_without_cache_control() {
    assert!(request(&[("pragma", "no-cache")]).no_cache);
    assert!(request(&[("pragma", "foo, NO-CACHE")]).no_cache);
    assert!(!request(&[("pragma", "foo=\"no-cache\"")]).no_cache);
    assert!(!request(&[("pragma", "no-cache"), ("cache-control", "max-age=5")]).no_cache);
    assert!(!request(&[("pragma", "no-cache"), ("cache-control", "")]).no_cache);
    assert!(!request(&[]).no_cache);
}

proptest! {
    #[test]
    fn random_bytes_never_panic_nor_exceed_the_limit(lines in prop::collection::vec(any_value(), 0..4)) {
        let lines: Vec<_> = lines.into_iter().map(|line| ("cache-control", line)).collect();
        let fields = header_map(&lines);
        let parsed = ResponseDirectives::parse(&fields);
        prop_assert!(parsed.max_age.seconds().is_none_or(|seconds| seconds <= DELTA_MAX));
        let _ = RequestDirectives::parse(&fields);
    }

    #[test]
    fn a_list_is_the_same_on_one_line_or_several(members in prop::collection::vec("[a-z-]{1,12}(=[0-9a-z\"]{0,6})?", 1..5)) {
        prop_assume!(members.iter().all(|member| member.matches('"').count() % 2 == 0));
        let several: Vec<_> = members.iter().map(String::as_str).collect();
        prop_assert_eq!(response(&several), response(&[&members.join(" ,")]));
    }

    #[test]
    fn one_more_max_age_never_lengthens_the_lifetime(one in 0..5000_u64, two in "[0-9a-z\"' ]{0,5}") {
        let parsed = response(&[&format!("max-age={one}"), &format!("max-age={two}")]);
        prop_assert!(parsed.max_age.seconds().is_none_or(|seconds| seconds <= one));
    }
}
