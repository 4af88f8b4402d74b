use larder_proxy::traffic::snapshot::{CacheCount, CacheSnapshot, Requests, Snapshot, VhostSnapshot};
use serde_json::json;

use super::*;

fn requests(miss: u64, hit: u64, bypass: u64) -> Requests {
    let count = |requests| CacheCount {
        requests,
        bytes_sent: 0,
    };
    Requests {
        requests: miss + hit + bypass,
        bytes_sent: 2048 * hit,
        bytes_received: 100,
        cache: vec![
            ("MISS", count(miss)),
            ("BYPASS", count(bypass)),
            ("STALE", count(0)),
            ("HIT", count(hit)),
        ],
        ..Requests::default()
    }
}

#[test]
fn the_snapshot_of_the_data_plane_is_a_table() {
    let vhost = |name: &str, requests| VhostSnapshot {
        name: name.to_owned(),
        requests,
        ..VhostSnapshot::default()
    };
    let snapshot = Snapshot {
        total: requests(10, 30, 1),
        vhosts: vec![vhost("www", requests(10, 30, 1)), vhost("_unknown", requests(0, 0, 0))],
        cache: CacheSnapshot {
            name: "main".to_owned(),
            memory_used: 3 << 20,
            memory_max: 256 << 20,
            objects: 12,
            ..CacheSnapshot::default()
        },
        ..Snapshot::default()
    };
    let expected = "\
VHOST     REQUESTS  HIT RATIO  MISS  BYPASS  HIT      SENT  RECEIVED
www             41      73.2%    10       1   30  60.0 KiB     100 B
_unknown         0          -     0       0    0       0 B     100 B
total           41      73.2%    10       1   30  60.0 KiB     100 B

cache main: 12 objects, 3.0 MiB of 256.0 MiB, 0 evicted
";
    assert_eq!(report(&serde_json::to_value(snapshot).unwrap()), expected);
}

#[test]
fn other_forms_are_read_as_far_as_they_go() {
    for (cache, expected) in [
        (json!({ "hit": 3, "miss": { "requests": 1 } }), "75.0%"),
        (json!([["HIT", 1], ["MISS", 1], [7], "x"]), "50.0%"),
        (json!([]), "-"),
        (json!("nonsense"), "-"),
    ] {
        let text = report(&json!({ "total": { "requests": 4, "cache": cache } }));
        let row = text.lines().nth(1).unwrap_or_default().to_owned();
        assert_eq!(row.split_whitespace().nth(2), Some(expected), "{text}");
    }
    for odd in [
        json!(null),
        json!([1]),
        json!({ "vhosts": 3, "cache": [] }),
        json!({ "vhosts": [1] }),
    ] {
        assert!(report(&odd).starts_with("VHOST"));
    }
}
