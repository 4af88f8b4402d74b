use proptest::prelude::*;

use super::CacheStatusItem;

fn written(item: &CacheStatusItem<'_>) -> String {
    let mut out = Vec::new();
    item.write(&mut out);
    String::from_utf8(out).expect("ASCII")
}

/// Judged is the member of a cache called `larder`, with what is given.
fn check(expected: &str, with: impl Fn(&mut CacheStatusItem<'static>)) {
    let mut item = CacheStatusItem {
        cache: "larder",
        ..CacheStatusItem::default()
    };
    with(&mut item);
    assert_eq!(written(&item), expected);
}

#[test]
fn rfc9211_2_parameters() {
    check("larder", |_| {});
    check("larder; hit; ttl=376", |item| (item.hit, item.ttl) = (true, Some(376)));
    check("larder; hit; ttl=-412; detail=MEMORY", |item| {
        (item.hit, item.ttl, item.detail) = (true, Some(-412), Some("MEMORY"));
    });
    check("larder; fwd=uri-miss", |item| item.fwd = Some("uri-miss"));
    check(
        "larder; fwd=uri-miss; fwd-status=200; stored; collapsed; ttl=60",
        |item| {
            (item.fwd, item.fwd_status, item.stored) = (Some("uri-miss"), Some(200), Some(true));
            (item.collapsed, item.ttl) = (true, Some(60));
        },
    );
    check("larder; fwd=bypass; stored=?0; detail=set-cookie", |item| {
        (item.fwd, item.stored, item.detail) = (Some("bypass"), Some(false), Some("set-cookie"));
    });
    // A hit was not forwarded.
    check("larder; hit", |item| {
        (item.hit, item.fwd, item.stored, item.collapsed) = (true, Some("stale"), Some(true), true);
    });
}

#[test]
fn rfc9651_3_3_values() {
    check("\"cache 1\"", |item| item.cache = "cache 1");
    check("\"1st\"", |item| item.cache = "1st");
    check("\"\"", |item| item.cache = "");
    check("www.example.test:80/a", |item| item.cache = "www.example.test:80/a");
    check(r#"larder; key="http://a/?\"q\"\\""#, |item| {
        item.key = Some(r#"http://a/?"q"\"#)
    });
    check("larder; key=\"%C3%A9%0D%0A\"", |item| item.key = Some("\u{e9}\r\n"));
    check("larder; ttl=999999999999999", |item| item.ttl = Some(i64::MAX));
    check("larder; ttl=-999999999999999", |item| item.ttl = Some(i64::MIN));
}

proptest! {
    #[test]
    fn the_member_is_a_valid_structured_field(
        cache in ".{0,12}", key in prop::option::of(".{0,40}"), detail in prop::option::of(".{0,12}"), hit: bool,
        fwd_status in prop::option::of(any::<u16>()), stored: Option<bool>, collapsed: bool, ttl: Option<i64>,
    ) {
        let item = CacheStatusItem {
            cache: &cache, hit, fwd: Some("stale"), fwd_status, stored, collapsed, ttl, key: key.as_deref(), detail: detail.as_deref(),
        };
        let text = written(&item);
        let parsed: sfv::List = sfv::Parser::new(&text).parse().expect("a list");
        prop_assert_eq!(parsed.len(), 1, "{}", text);
    }
}
