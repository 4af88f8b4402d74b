use http::{HeaderMap, HeaderName, HeaderValue};
use larder_storage::Head;
use proptest::prelude::*;

use super::*;
use crate::engine::head::RenderedHead;

const NOW: Moment = Moment::from_micros(1_793_966_400_000_000);

fn head(received: Moment, lifetime_secs: u64, initial_age_secs: u64) -> StoredHead {
    let fields: HeaderMap = [
        ("etag", "\"a\""),
        ("last-modified", "long ago"),
        ("content-encoding", "br"),
        ("date", "today"),
    ]
    .into_iter()
    .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
    .collect();
    let freshness = Freshness {
        lifetime_secs,
        source: LifetimeSource::SMaxage,
        initial_age_secs,
        must_revalidate: true,
        strip_set_cookie: false,
        stale_while_revalidate_secs: Some(7),
        stale_if_error_secs: None,
    };
    let rendered = RenderedHead::new(StatusCode::OK, &fields, false, 0);
    StoredHead::new(&rendered, &fields, freshness, received, true)
}

fn encoded(head: &StoredHead) -> Vec<u8> {
    let mut out = Vec::new();
    encode(head, &mut out);
    out
}

fn earlier(secs: u64) -> Moment {
    Moment::from_micros(NOW.as_micros() - secs * 1_000_000)
}

#[test]
fn a_head_comes_back_as_it_was() {
    let stored = head(earlier(10), 60, 5);
    let back = decode(&encoded(&stored), NOW).unwrap();
    assert_eq!(back, stored);
    assert_eq!(back.etag(), Some(&b"\"a\""[..]));
    assert_eq!(back.last_modified(), Some(&b"long ago"[..]));
    assert_eq!(back.content_encoding(), Some(&b"br"[..]));
    assert_eq!((back.age(NOW), back.ttl(NOW)), (15, 45));
}

#[test]
fn every_source_comes_back() {
    for source in SOURCES {
        let mut stored = head(NOW, 60, 0);
        stored.freshness.source = source;
        assert_eq!(decode(&encoded(&stored), NOW).unwrap().freshness.source, source);
    }
}

#[test]
fn what_is_of_another_version_or_not_whole_is_no_head() {
    let whole = encoded(&head(NOW, 60, 0));
    for length in 0..whole.len() {
        assert!(decode(&whole[..length], NOW).is_none(), "{length} bytes");
    }
    assert!(decode(&[&whole[..], b"x"].concat(), NOW).is_none());
    for version in (0..=u8::MAX).filter(|version| *version != VERSION) {
        let other = [&[version], &whole[1..]].concat();
        assert!(decode(&other, NOW).is_none(), "version {version}");
    }
}

#[test]
fn places_beyond_the_text_are_no_head() {
    let mut wrong = head(NOW, 60, 0);
    wrong.etag = Some(0..wrong.shared.len() + 1);
    assert!(decode(&encoded(&wrong), NOW).is_none());
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is wrong")]
    let backwards = 5..4;
    wrong.etag = Some(backwards);
    assert!(decode(&encoded(&wrong), NOW).is_none());
}

#[test]
fn rfc9111_4_2_3_the_time_on_disk_is_part_of_the_age() {
    for (ago, ttl) in [(0, 60), (59, 1), (60, 0), (100_000, -99_940)] {
        let back = decode(&encoded(&head(earlier(ago), 60, 0)), NOW).unwrap();
        assert_eq!(back.ttl(NOW), ttl, "stored {ago} s ago");
    }
}

#[test]
fn rfc9111_4_2_3_a_clock_that_was_set_back_makes_nothing_fresh() {
    for received in [
        NOW.after(std::time::Duration::from_micros(1)),
        NOW.after(std::time::Duration::from_secs(100_000)),
        Moment::from_micros(u64::MAX),
        // Stored while the clock stood at its epoch.
        Moment::from_micros(0),
        earlier(LONGEST_AGO_SECS + 1),
    ] {
        for (lifetime, age) in [(60, 0), (1 << 31, 5), (u64::MAX, 0), (60, 100)] {
            let back = decode(&encoded(&head(received, lifetime, age)), NOW).unwrap();
            assert!(back.ttl(NOW) <= 0, "{received:?} {lifetime} {age}");
            // It gets no fresher while it lies there.
            assert!(back.ttl(NOW.after(std::time::Duration::from_secs(5))) <= 0);
        }
    }
}

#[test]
fn it_is_kept_until_it_is_stale_and_a_minute_more() {
    let secs = NOW.as_micros() / 1_000_000;
    assert_eq!(head(NOW, 60, 5).keep_until_secs(), secs + 55 + 60);
    assert_eq!(head(NOW, u64::MAX, 0).keep_until_secs(), u64::MAX);
}

proptest! {
    #[test]
    fn random_bytes_are_a_head_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..200), versioned: bool) {
        if let (true, Some(first)) = (versioned, bytes.first_mut()) {
            *first = VERSION;
        }
        if let Some(head) = decode(&bytes, NOW) {
            let _ = (head.etag(), head.last_modified(), head.content_encoding(), head.ttl(NOW), head.keep_until_secs());
        }
    }

    #[test]
    fn a_head_with_one_byte_changed_is_a_head_or_none(at in 0..1000_usize, byte: u8) {
        let mut bytes = encoded(&head(earlier(10), 60, 5));
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Some(head) = decode(&bytes, NOW) {
            let _ = (head.etag(), head.last_modified(), head.content_encoding(), head.ttl(NOW), head.keep_until_secs());
        }
    }
}
