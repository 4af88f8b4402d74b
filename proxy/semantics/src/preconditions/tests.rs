use proptest::prelude::*;

use super::not_modified;
use crate::fields::{any_value, header_map};

const NOW: i64 = 1_795_996_800;
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn check(request: &[(&str, &str)], etag: Option<&str>, modified: Option<&str>) -> bool {
    not_modified(
        &header_map(request),
        etag.map(str::as_bytes),
        modified.map(str::as_bytes),
        NOW,
    )
}

#[test]
fn b53_rfc9110_13_2_2_if_none_match_decides_alone() {
    let cases: &[(&[(&str, &str)], bool)] = &[
        (&[], false),
        (&[("if-none-match", "\"x\"")], true),
        (&[("if-none-match", "W/\"x\"")], true),
        (&[("if-none-match", "\"y\"")], false),
        (&[("if-none-match", "w/\"x\"")], false),
        (&[("if-none-match", "x")], false),
        (&[("if-none-match", "\"x")], false),
        (&[("if-none-match", "\"X\"")], false),
        (&[("if-none-match", "*")], true),
        (&[("if-none-match", " * ")], true),
        (&[("if-none-match", "\"*\"")], false),
        (&[("if-none-match", "*, \"y\"")], false),
        (&[("if-none-match", "")], false),
        (&[("if-none-match", "\"x\", \"y\", \"z\"")], true),
        (&[("if-none-match", "\"y\" ,W/\"x\",\"z\"")], true),
        (&[("if-none-match", "\"y\",, \"z\", \"x\"")], true),
        (&[("if-none-match", "\"y\""), ("if-none-match", "\"x\"")], true),
        (&[("if-none-match", "\"a,\"x\"")], false),
        (&[("if-none-match", "\"y\""), ("if-modified-since", LATER)], false),
        (&[("if-none-match", "\"x\""), ("if-modified-since", EARLIER)], true),
        (&[("if-none-match", ""), ("if-modified-since", LATER)], false),
    ];
    for (request, expected) in cases {
        for etag in ["\"x\"", "W/\"x\""] {
            assert_eq!(
                check(request, Some(etag), Some(MODIFIED)),
                *expected,
                "{request:?} {etag}"
            );
        }
    }
}

#[test]
fn rfc9110_8_8_3_tags_with_commas_and_backslashes() {
    assert!(check(&[("if-none-match", "\"y\", \"a,b\"")], Some("\"a,b\""), None));
    assert!(check(&[("if-none-match", "\"a\\\", \"x\"")], Some("\"x\""), None));
    assert!(!check(&[("if-none-match", "\"a,b\"")], Some("\"a\""), None));
    // Not a tag, but the same nonsense on both sides.
    assert!(check(&[("if-none-match", "abc")], Some("abc"), None));
}

#[test]
fn rfc9110_13_1_2_without_a_stored_tag_only_the_star_matches() {
    assert!(!check(&[("if-none-match", "\"x\"")], None, Some(MODIFIED)));
    assert!(!check(
        &[("if-none-match", "\"x\""), ("if-modified-since", LATER)],
        None,
        Some(MODIFIED)
    ));
    assert!(check(&[("if-none-match", "*")], None, None));
}

/// Request fields, the stored Last-Modified, and whether the client has it already.
type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, bool);

#[test]
fn rfc9110_13_1_3_if_modified_since() {
    let cases: &[Case<'_>] = &[
        (&[("if-modified-since", MODIFIED)], Some(MODIFIED), true),
        (&[("if-modified-since", LATER)], Some(MODIFIED), true),
        (
            &[("if-modified-since", "Sunday, 06-Nov-94 08:49:37 GMT")],
            Some(MODIFIED),
            true,
        ),
        (
            &[("if-modified-since", MODIFIED)],
            Some("Sun Nov  6 08:49:37 1994"),
            true,
        ),
        (&[("if-modified-since", EARLIER)], Some(MODIFIED), false),
        (&[("if-modified-since", LATER)], None, false),
        (&[("if-modified-since", "0")], Some(MODIFIED), false),
        (&[("if-modified-since", "yesterday")], Some("yesterday"), false),
        (&[("if-modified-since", LATER)], Some("yesterday"), false),
        (
            &[("if-modified-since", LATER), ("if-modified-since", LATER)],
            Some(MODIFIED),
            false,
        ),
    ];
    for (request, modified, expected) in cases {
        assert_eq!(
            check(request, Some("\"x\""), *modified),
            *expected,
            "{request:?} {modified:?}"
        );
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(none_match in any_value(), since in any_value(), etag in any_value(), now: i64) {
        let request = header_map(&[("if-none-match", &none_match), ("if-modified-since", &since)]);
        let _ = not_modified(&request, Some(&etag), Some(&since), now);
        let request = header_map(&[("if-modified-since", &since)]);
        let _ = not_modified(&request, Some(&etag), Some(&since), now);
    }

    #[test]
    fn a_tag_among_others_matches(before in "(\"[a-z,]{0,3}\", ?){0,3}", tag in "(W/)?\"[!#-~]{0,9}\"", after in "(, ?\"[a-z,]{0,3}\"){0,3}") {
        let list = format!("{before}{tag}{after}");
        prop_assert!(check(&[("if-none-match", &list)], Some(&tag), None));
    }
}
