//! What a line looks like, whatever clients send.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::LogFormat;
use crate::outcome::{Forward, NotStored, Stored};
use larder_semantics::Refusal;
use larder_storage::Tier;

fn combined(entry: &Entry<'_>) -> String {
    line(&mut Format::combined(TimeZone::UTC), entry)
}

fn line(format: &mut Format, entry: &Entry<'_>) -> String {
    let mut out = Vec::new();
    format.append(entry, &mut out);
    String::from_utf8(out).expect("a line is UTF-8")
}

fn json(entry: &Entry<'_>) -> Value {
    serde_json::from_str(&line(&mut Format::new(LogFormat::Json), entry)).expect("a line is JSON")
}

#[test]
fn combined_lines() {
    let base = entry();
    let head = "192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] ";
    let cases = [
        (
            base,
            "\"GET /a?b=1 HTTP/1.1\" 200 2326 \"http://r.test/\" \"agent/1\" \"HIT\" \"www\" 0.000042\n",
        ),
        (
            Entry {
                referer: None,
                user_agent: None,
                outcome: &Outcome::NONE,
                ..base
            },
            "\"GET /a?b=1 HTTP/1.1\" 200 2326 \"-\" \"-\" \"-\" \"www\" 0.000042\n",
        ),
        (
            Entry {
                version: Version::Http10,
                status: 404,
                bytes_sent: 0,
                duration_us: 61_234_567,
                ..base
            },
            "\"GET /a?b=1 HTTP/1.0\" 404 0 \"http://r.test/\" \"agent/1\" \"HIT\" \"www\" 61.234567\n",
        ),
        (
            Entry {
                target: b"/\"\\\x00\n\x1f\x7f\xc3\xa9",
                duration_us: 1_000_000,
                ..base
            },
            "\"GET /\\x22\\x5C\\x00\\x0A\\x1F\\x7F\\xC3\\xA9 HTTP/1.1\" 200 2326 \"http://r.test/\" \"agent/1\" \"HIT\" \"www\" 1.000000\n",
        ),
        (
            Entry {
                user_agent: Some(b""),
                referer: Some(b"\""),
                vhost: "a\"b",
                ..base
            },
            "\"GET /a?b=1 HTTP/1.1\" 200 2326 \"\\x22\" \"\" \"HIT\" \"a\\x22b\" 0.000042\n",
        ),
    ];
    for (entry, expected) in cases {
        assert_eq!(combined(&entry), format!("{head}{expected}"));
    }
}

#[test]
fn addresses() {
    let cases = [
        ("0.0.0.0", "0.0.0.0"),
        ("255.10.200.1", "255.10.200.1"),
        ("::1", "::1"),
        ("2001:db8::a:1", "2001:db8::a:1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ];
    for (address, expected) in cases {
        let entry = Entry {
            client: address.parse().expect("an address"),
            ..entry()
        };
        assert!(combined(&entry).starts_with(&format!("{expected} - - [")), "{address}");
        assert_eq!(json(&entry)["client"], expected);
    }
}

#[test]
fn combined_lines_have_local_time() {
    let zone = TimeZone::fixed(jiff::tz::offset(-7));
    let line = line(&mut Format::combined(zone), &entry());
    assert!(line.contains(" [10/Oct/2026:06:55:36 -0700] "), "{line}");
}

#[test]
fn the_time_moves_on_and_back_and_never_fails() {
    let mut format = Format::combined(TimeZone::UTC);
    let cases = [
        (0, "01/Jan/1970:00:00:00 +0000"),
        (999, "01/Jan/1970:00:00:00 +0000"),
        (1000, "01/Jan/1970:00:00:01 +0000"),
        (1_791_640_536_042, "10/Oct/2026:13:55:36 +0000"),
        (1000, "01/Jan/1970:00:00:01 +0000"),
        (u64::MAX, "01/Jan/1970:00:00:00 +0000"),
    ];
    for (unix_ms, expected) in cases {
        let line = line(&mut format, &Entry { unix_ms, ..entry() });
        assert!(line.contains(&format!("[{expected}]")), "{unix_ms}: {line}");
    }
}

#[test]
fn json_lines_name_the_tier_of_a_hit() {
    for (tier, name) in [(Tier::Memory, "memory"), (Tier::Disk, "disk")] {
        let outcome = Outcome {
            tier: Some(tier),
            ..HIT
        };
        let value = json(&Entry {
            outcome: &outcome,
            ..entry()
        });
        assert_eq!(value["tier"], name);
    }
}

#[test]
fn json_lines_hold_all_members_in_order() {
    let refused = Outcome {
        cache: Some(CacheStatus::Miss),
        forward: Some(Forward::UriMiss),
        stored: Some(Stored::No(NotStored::Refused(Refusal::Private))),
        ..Outcome::NONE
    };
    let text = line(
        &mut Format::new(LogFormat::Json),
        &Entry {
            outcome: &refused,
            origin_us: Some(1234),
            rule: "",
            referer: None,
            ..entry()
        },
    );
    assert_eq!(
        text,
        "{\"time\":\"2026-10-10T13:55:36.042Z\",\"client\":\"192.0.2.7\",\"vhost\":\"www\",\"rule\":null,\"method\":\"GET\",\
         \"host\":\"www.example.test\",\"target\":\"/a?b=1\",\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes_sent\":2326,\
         \"bytes_received\":120,\"duration_us\":42,\"cache\":\"MISS\",\"tier\":null,\"forward\":\"uri-miss\",\"not_stored\":\"private\",\
         \"origin_us\":1234,\"referer\":null,\"user_agent\":\"agent/1\"}\n"
    );
    let stored = Outcome {
        stored: Some(Stored::Yes),
        ..refused
    };
    let value = json(&Entry {
        outcome: &stored,
        unix_ms: 5,
        ..entry()
    });
    assert_eq!(
        (
            &value["not_stored"],
            &value["origin_us"],
            &value["rule"],
            &value["time"]
        ),
        (
            &Value::Null,
            &Value::Null,
            &json!("assets"),
            &json!("1970-01-01T00:00:00.005Z")
        )
    );
}

#[test]
fn json_strings_come_back_as_they_were() {
    let cases: [(&[u8], &str); 7] = [
        (b"", ""),
        (b"\"\\/", "\"\\/"),
        (b"\x00\x1f\x7f\r\n\t", "\x00\x1f\x7f\r\n\t"),
        (
            "\u{e4}\u{2028}\u{1f600}</script>".as_bytes(),
            "\u{e4}\u{2028}\u{1f600}</script>",
        ),
        (b"\xff", "\u{fffd}"),
        (b"a\xe2\x82b\xffc", "a\u{fffd}b\u{fffd}c"),
        (b"\xf0\x9f\x98", "\u{fffd}"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(
            json(&Entry {
                user_agent: Some(bytes),
                ..entry()
            })["user_agent"],
            expected,
            "{bytes:?}"
        );
    }
}

/// Undoes `\xHH`.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'\\' {
            assert_eq!(tail[0], b'x');
            let digits = std::str::from_utf8(&tail[1..3]).expect("digits");
            bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal"));
            rest = &tail[3..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    bytes
}

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        "[ -~]{1,8}".prop_map(String::into_bytes),
        any::<char>().prop_map(|char| char.to_string().into_bytes()),
        prop::sample::select(vec![
            &b"\""[..],
            b"\\",
            b"\\x",
            b"\n",
            b"\r\n",
            b"\x00",
            b"\x7f",
            b"\xff"
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_line_is_one_line_and_can_be_read_back(
        method in hostile(), host in hostile(), target in hostile(), referer in hostile(), agent in hostile(),
        vhost in any::<String>(), numbers in any::<[u64; 4]>(), status in any::<u16>(),
    ) {
        let [unix_ms, bytes_sent, bytes_received, duration_us] = numbers;
        let entry = Entry {
            unix_ms, bytes_sent, bytes_received, duration_us, status,
            method: &method, host: &host, target: &target, vhost: &vhost, rule: &vhost,
            referer: Some(&referer), user_agent: Some(&agent),
            ..entry()
        };
        let text = combined(&entry);
        let body = text.strip_suffix('\n').expect("a line ends");
        prop_assert!(body.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{}", text);
        let fields: Vec<_> = body.split('"').collect();
        prop_assert_eq!(fields.len(), 11, "quotes: {}", text);
        prop_assert_eq!(unescape(fields[3]), &referer[..]);
        prop_assert_eq!(unescape(fields[5]), &agent[..]);
        prop_assert_eq!(unescape(fields[9]), vhost.as_bytes());
        let request = [&method[..], b" ", &target, b" HTTP/1.1"].concat();
        prop_assert_eq!(unescape(fields[1]), request);

        let text = line(&mut Format::new(LogFormat::Json), &entry);
        prop_assert_eq!(text.find('\n'), Some(text.len() - 1));
        let value: Value = serde_json::from_str(&text).expect("JSON");
        for (member, bytes) in [("method", &method), ("host", &host), ("target", &target), ("referer", &referer)] {
            prop_assert_eq!(value[member].as_str(), Some(&*String::from_utf8_lossy(bytes)), "{}", member);
        }
        prop_assert_eq!(value["vhost"].as_str(), Some(&*vhost));
        prop_assert_eq!(value["duration_us"].as_u64(), Some(duration_us));
    }
}
