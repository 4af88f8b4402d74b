use proptest::prelude::*;

use super::{NAMES_MAX, Vary};
use crate::Refusal;
use crate::fields::{any_value, header_map};

fn vary<V: AsRef<[u8]>>(values: &[V]) -> Result<Vary, Refusal> {
    let lines: Vec<_> = values.iter().map(|value| ("vary", value)).collect();
    Vary::parse(&header_map(&lines))
}

fn names(values: &[&str]) -> Vec<String> {
    vary(values).expect("a Vary").names().map(ToOwned::to_owned).collect()
}

fn key<V: AsRef<[u8]>>(names: &str, request: &[(&str, V)]) -> Vec<u8> {
    let mut out = Vec::new();
    vary(&[names])
        .expect("a Vary")
        .variant_key(&header_map(request), &mut out);
    out
}

#[test]
fn b20_several_lines_are_one_list() {
    assert_eq!(
        names(&["Accept-Encoding", "X-Requested-With"]),
        ["accept-encoding", "x-requested-with"]
    );
    assert_eq!(names(&["b, A,,b ,\ta", "", "c"]), ["a", "b", "c"]);
    assert_eq!(
        vary(&["b, a"]).map(|vary| vary.as_str().to_owned()),
        Ok("a,b".to_owned())
    );
    for nothing in [&[][..], &[""], &[" , ,"]] {
        let empty = vary(nothing).expect("a Vary");
        assert!(empty.is_empty() && empty.names().next().is_none(), "{nothing:?}");
    }
}

#[test]
fn b21_vary_star_anywhere() {
    for values in [
        &["*"][..],
        &["*, Foo"],
        &["Foo, *"],
        &[", *"],
        &["", "*"],
        &[" * "],
        &["*, *"],
        &["a b, *"],
        &["Foo", "Bar", "*"],
    ] {
        assert_eq!(vary(values), Err(Refusal::VaryAny), "{values:?}");
    }
}

#[test]
fn b27_long_or_malformed_vary() {
    let many = |count: usize| (0..count).map(|at| format!("x-{at}")).collect::<Vec<_>>().join(", ");
    for value in [
        ":",
        "a b",
        "\u{e9}",
        "a;q=1",
        "\"a\"",
        "**, @",
        &"x".repeat(128),
        &"x".repeat(200),
        &many(17),
        &many(500),
    ] {
        assert_eq!(vary(&[value]), Err(Refusal::VaryMalformed), "{value}");
    }
    assert_eq!(names(&[&"X".repeat(127)]), ["x".repeat(127)]);
    assert_eq!(names(&[&many(16)]).len(), NAMES_MAX);
    assert_eq!(names(&[&"a, A, ".repeat(400)]), ["a"]);
}

#[test]
fn rfc9111_4_1_absent_and_empty_differ() {
    let absent = key::<&str>("foo", &[]);
    assert_eq!(absent, key("foo", &[("bar", "1")]));
    assert_ne!(absent, key("foo", &[("foo", "")]));
    assert_ne!(key("foo", &[("foo", "1")]), key("foo", &[("foo", "2")]));
    assert_ne!(key("foo", &[("foo", "1")]), key("foo", &[("foo", "1"), ("foo", "")]));
    assert!(key("", &[("foo", "1")]).is_empty());
}

#[test]
fn rfc9111_4_1_parts_cannot_imitate_each_other() {
    assert_ne!(
        key("a, b", &[("a", "1"), ("b", "")]),
        key("a, b", &[("a", ""), ("b", "1")])
    );
    assert_ne!(key("a, b", &[("a", "1")]), key("a, b", &[("b", "1")]));
    assert_ne!(key("a", &[("a", "\tb")]), key("a, b", &[("a", ""), ("b", "")]));
    assert_eq!(
        key("a, b", &[("b", "2"), ("a", "1")]),
        key("B, A", &[("a", "1"), ("b", "2")])
    );
}

#[test]
fn rfc9111_4_1_lines_are_joined_and_whitespace_around_commas_is_dropped() {
    let same = [
        &[("foo", "1, 2")][..],
        &[("foo", "1,2")],
        &[("foo", " 1 \t,\t2 ")],
        &[("foo", "1"), ("foo", "2")],
    ];
    for request in same {
        assert_eq!(key("foo", request), key("foo", same[0]), "{request:?}");
    }
    let different =
        ["1 2", "12", "2, 1", "\"1, 2\"", "\"1,2\"", "1, \"2", "1,, 2"].map(|value| key("foo", &[("foo", value)]));
    for (at, one) in different.iter().enumerate() {
        assert!(different.iter().skip(at + 1).all(|two| two != one), "{at}");
        assert_ne!(*one, key("foo", same[0]), "{at}");
    }
}

#[test]
fn accept_language_is_compared_by_meaning() {
    let of = |value: &str| key("accept-language", &[("accept-language", value)]);
    let same = [
        "en, de;q=0.5, fr;q=0.5",
        "EN,fr;q=0.5,de;q=0.50",
        " de ; q=0.5 , fr;Q=0.500,, en;q=1 ",
    ];
    for value in same {
        assert_eq!(of(value), of(same[0]), "{value}");
    }
    for value in [
        "",
        "en",
        "en, de, fr",
        "en;q=0.5, de, fr",
        "en, de;q=0.6, fr;q=0.5",
        "en, de;q=500, fr;q=500",
        "en-de, fr",
    ] {
        assert_ne!(of(value), of(same[0]), "{value}");
    }
    // What cannot be read is compared as it came, but for case and whitespace.
    assert_eq!(of("en;q=x, DE"), of("EN;q=X,de"));
    assert_ne!(of("en;q=x, de"), of("de, en;q=x"));
    let many = (0..40).map(|at| format!("x-{at}")).collect::<Vec<_>>();
    assert_ne!(of(&many.join(",")), of(&many[..39].join(",")));
}

#[test]
fn b23_accept_encoding_is_compared_by_meaning() {
    let of = |value: &str| key("Accept-Encoding", &[("accept-encoding", value)]);
    assert_eq!(of("gzip, deflate, br"), of("BR , x-gzip;q=1.0"));
    assert_eq!(of(""), of("identity"));
    assert_ne!(of("identity;q=0"), of(""));
    assert_ne!(of("gzip;q=0, br"), of("gzip, br"));
    assert_ne!(key::<&str>("accept-encoding", &[]), of(""));
    assert_ne!(key::<&str>("accept-encoding", &[]), of("*"));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(values in prop::collection::vec(any_value(), 0..4), request in prop::collection::vec(any_value(), 0..4)) {
        let lines = |name| request.iter().map(move |value| (name, value));
        let request: Vec<_> = ["accept-encoding", "accept-language", "foo"].into_iter().flat_map(lines).collect();
        let request = header_map(&request);
        let mut out = Vec::new();
        if let Ok(vary) = vary(&values) {
            vary.variant_key(&request, &mut out);
            prop_assert!(vary.names().count() <= NAMES_MAX);
            prop_assert_eq!(Vary::parse(&header_map(&[("vary", vary.as_str())])), Ok(vary));
        }
        vary(&["accept-encoding, accept-language, foo"]).expect("a Vary").variant_key(&request, &mut out);
    }

    #[test]
    fn different_values_of_unknown_fields_have_different_keys(one in "[a-z]{0,3}", two in "[a-z]{0,3}", three in "[a-z]{0,6}") {
        let same = key("a, b", &[("a", &one), ("b", &three)]) == key("a, b", &[("a", &two), ("b", &three)]);
        prop_assert_eq!(same, one == two);
    }
}
