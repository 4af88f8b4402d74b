//! The whole data plane on loopback, with an origin that answers by a function.

mod rig;

use larder_storage::disk::DiskConfig;

use self::rig::{Rig, Settings};
use crate::config;

fn ok(fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
}

fn in_language(head: &str) -> String {
    let language = rig::field(head, "accept-language").unwrap_or("default");
    ok("Vary: Accept-Language\r\n", language)
}

#[test]
fn rfc9111_4_1_a_client_cannot_fill_a_variant_with_what_is_not_for_it() {
    let rig = Rig::new(Settings::default(), in_language);
    let hidden = rig.get("/", "Connection: accept-language\r\nAccept-Language: de\r\n");
    assert_eq!((hidden.status(), hidden.body.as_str()), ("MISS", "default"));
    let german = rig.get("/", "Accept-Language: de\r\n");
    assert_eq!((german.status(), german.body.as_str()), ("MISS", "de"));
    let none = rig.get("/", "");
    assert_eq!((none.status(), none.body.as_str()), ("HIT", "default"));
    assert_eq!(rig.get("/", "Accept-Language: de\r\n").status(), "HIT");
    assert_eq!(rig.asked(), 2);
}

#[test]
fn rfc9111_4_1_what_the_proxy_says_itself_selects_by_its_own_word() {
    let echo = |head: &str| {
        ok(
            "Vary: X-Forwarded-Proto\r\n",
            rig::field(head, "x-forwarded-proto").unwrap_or("-"),
        )
    };
    let rig = Rig::new(Settings::default(), echo);
    assert_eq!(rig.get("/", "").body, "http");
    let forged = rig.get("/", "X-Forwarded-Proto: https\r\n");
    assert_eq!((forged.status(), forged.body.as_str()), ("HIT", "http"));
}

#[test]
fn every_request_that_goes_to_the_origin_is_a_use() {
    let rule = config::Rule {
        name: "often".to_owned(),
        min_uses: 3,
        ..config::Rule::default()
    };
    let rig = Rig::new(
        Settings {
            rules: vec![rule],
            ..Settings::default()
        },
        |_| ok("", "x"),
    );
    let head = rig.ask("HEAD", "/", "");
    assert_eq!(head.status(), "MISS");
    let second = rig.get("/", "");
    assert_eq!(second.status(), "SCARCE");
    assert!(second.head.contains("; detail=min-uses"), "{}", second.head);
    assert_eq!(rig.get("/other", "").status(), "SCARCE");
    assert_eq!(
        rig.get("/", "Cache-Control: only-if-cached\r\n").code(),
        504,
        "it does not go there"
    );
    assert_eq!(rig.get("/", "").status(), "MISS");
    assert_eq!(rig.get("/", "").status(), "HIT");
    assert_eq!(rig.get("/other", "").status(), "SCARCE");
    assert_eq!(rig.get("/other", "").status(), "MISS");
    assert_eq!(rig.asked(), 6);
}

fn with_disk(directory: &tempfile::TempDir) -> Settings {
    Settings {
        disks: vec![DiskConfig {
            path: directory.path().join("cache"),
            max_size: 32 << 20,
            min_free: 0,
            inactive: None,
        }],
        ..Settings::default()
    }
}

/// Bytes; many pieces.
const LARGE: usize = 700_000;

fn any_size(head: &str) -> String {
    let body = if head.starts_with("GET /large") {
        "0123456789".repeat(LARGE / 10)
    } else {
        "small".to_owned()
    };
    ok("ETag: \"a\"\r\n", &body)
}

#[test]
fn what_is_on_disk_outlives_the_process_and_answers_as_memory_does() {
    let directory = tempfile::tempdir().unwrap();
    let first = Rig::new(with_disk(&directory), any_size);
    assert_eq!(first.get("/small", "").status(), "MISS");
    assert_eq!(first.get("/large", "").status(), "MISS");
    first.plane.stop();

    // The large one is never brought into memory here: it is sent from the disk piece by piece.
    let settings = Settings {
        max_object: 64 << 10,
        ..with_disk(&directory)
    };
    let second = Rig::new(settings, any_size);
    for path in ["/small", "/large"] {
        let held = second.get(path, "If-None-Match: \"a\"\r\n");
        assert_eq!((held.code(), held.status(), held.body.len()), (304, "HIT", 0), "{path}");
        let head = second.ask("HEAD", path, "");
        assert_eq!((head.code(), head.status(), head.body.len()), (200, "HIT", 0), "{path}");
    }
    assert_eq!(second.get("/small", "").body, "small");
    let large = second.get("/large", "");
    assert_eq!((large.status(), large.body.len()), ("HIT", LARGE));
    assert_eq!(large.body, "0123456789".repeat(LARGE / 10));
    assert!(large.head.contains("Content-Length: 700000\r\n"), "{}", large.head);
    assert_eq!(second.asked(), 0);
    // RFC 9111 section 3.5.
    let refused = second.get("/large", "Authorization: Basic eA==\r\n");
    assert_eq!((refused.status(), second.asked()), ("BYPASS", 1));
    second.plane.stop();
}

#[test]
fn what_was_purged_does_not_come_back_with_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let first = Rig::new(with_disk(&directory), any_size);
    for path in ["/small", "/large", "/changed"] {
        assert_eq!(first.get(path, "").status(), "MISS");
    }
    let purged = first.ask("PURGE", "/small", "");
    assert_eq!(purged.code(), 200);
    assert!(purged.body.contains("\"matched\":1"), "{}", purged.body);
    let url = Rig::url("/large");
    assert_eq!(rig::wait(first.plane.purge_url(&url)).unwrap().variants, 1);
    // RFC 9111 section 4.4: an unsafe method invalidates.
    assert_eq!(first.ask("DELETE", "/changed", "").code(), 200);
    first.plane.stop();

    let second = Rig::new(with_disk(&directory), any_size);
    for path in ["/small", "/large", "/changed"] {
        assert_eq!(second.get(path, "").status(), "MISS", "{path}");
    }
    second.plane.stop();
}

#[test]
fn a_body_that_cannot_be_read_costs_a_fetch_and_no_answer() {
    let directory = tempfile::tempdir().unwrap();
    let first = Rig::new(with_disk(&directory), any_size);
    assert_eq!(first.get("/large", "").status(), "MISS");
    first.plane.stop();
    rig::damage_bodies(&directory.path().join("cache"), b"0123456789");

    let second = Rig::new(with_disk(&directory), any_size);
    let fetched = second.get("/large", "");
    assert_eq!((fetched.status(), fetched.body.len()), ("MISS", LARGE));
    assert_eq!(second.get("/large", "").status(), "HIT");
    second.plane.stop();
}
