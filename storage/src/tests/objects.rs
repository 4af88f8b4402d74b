//! Lookups, variants, purges and accounts of what is stored.

use super::*;
use crate::key_hash::KeyHash;

const LANG: [usize; 1] = [0];
const CODING: [usize; 1] = [1];

fn lang() -> Fields {
    Fields(LANG.to_vec())
}

#[test]
fn an_object_is_found_whole_until_it_is_purged() {
    let store = store(64 * MIB);
    assert!(matches!(store.get(b"a", PLAIN.variant()), Lookup::Nothing));
    let body: Vec<u8> = (0..700_000u32).map(|i| i.to_le_bytes()[1]).collect();
    let stored = fill(&store, "a", 1, None, &body).unwrap();
    let object = found(&store, "a", PLAIN).unwrap();
    assert!(Arc::ptr_eq(&stored, &object));
    assert_eq!((object.head.0, object.body.len()), (1, 700_000));
    assert_eq!(object.body.chunks().unwrap().concat(), body);
    assert_eq!(object.body.chunks().unwrap().len(), 3);
    assert!(object.body.as_single().is_none());
    let usage = store.usage();
    assert_eq!((usage.used, usage.objects, usage.inserted), (object.weight(), 1, 1));

    let purged = store.purge(b"a");
    assert_eq!((purged.variants, purged.bytes, purged.fence), (1, object.weight(), 1));
    assert!(matches!(store.get(b"a", PLAIN.variant()), Lookup::Nothing));
    assert_eq!(store.purge(b"a").variants, 0);
    let usage = store.usage();
    assert_eq!(
        (
            usage.used,
            usage.objects,
            usage.purged,
            usage.fills_active,
            usage.fill_bytes
        ),
        (0, 0, 1, 0, 0)
    );
}

#[test]
fn b29_keys_whose_hashes_are_equal_are_told_apart() {
    let store: Store<Number, Fields> = Store::with_hash(Config::with_max_size(64 * MIB), KeyHash::of_bits(8));
    let key = |n: u32| format!("http://a.test/{n}");
    for n in 0..1000 {
        fill(&store, &key(n), n.into(), None, n.to_string().as_bytes()).unwrap();
    }
    for n in 0..1000 {
        let object = found(&store, &key(n), PLAIN).unwrap();
        assert_eq!(object.body.chunks().unwrap().concat(), n.to_string().as_bytes());
    }
    assert_eq!(store.purge(key(500).as_bytes()).variants, 1);
    assert!(found(&store, &key(501), PLAIN).is_some());
    assert!(matches!(
        store.get(b"http://a.test/1000", PLAIN.variant()),
        Lookup::Nothing
    ));
}

#[test]
fn an_empty_body_is_an_object() {
    let store = store(64 * MIB);
    let (leader, mut reader) = lead(&store, "a", Join::Any);
    let filling = leader.head(Arc::new(Number(1)), keep(Keep::Store, Some(0)));
    // Complete with its head: whoever has seen it finds it stored.
    let object = found(&store, "a", PLAIN).unwrap();
    assert!(object.body.is_empty() && object.body.chunks().unwrap().is_empty());
    assert!(finish(filling).is_ok());
    now(reader.head(PLAIN.variant())).unwrap().unwrap();
    assert!(matches!(read_now(&mut reader), (body, Some(Ok(()))) if body.is_empty()));
}

#[test]
fn each_variant_is_found_by_its_own_requests_only() {
    let store = store(64 * MIB);
    let requests = [
        Request(&["de", "gzip"]),
        Request(&["en", "gzip"]),
        Request(&["", "gzip"]),
    ];
    for (i, request) in requests.into_iter().enumerate() {
        fill(&store, "a", i as u64, request.vary(&lang()), b"body").unwrap();
    }
    for (i, request) in requests.into_iter().enumerate() {
        assert_eq!(found(&store, "a", request).unwrap().head.0, i as u64);
    }
    assert_eq!(found(&store, "a", Request(&["en", "br"])).unwrap().head.0, 1);
    assert!(matches!(
        store.get(b"a", Request(&["fr", "gzip"]).variant()),
        Lookup::NoVariant
    ));
    assert_eq!((store.usage().objects, store.usage().variants), (3, 3));

    // B22: a purge takes all of them.
    let purged = store.purge(b"a");
    assert_eq!(purged.variants, 3);
    assert!(matches!(store.get(b"a", requests[0].variant()), Lookup::Nothing));
    let usage = store.usage();
    assert_eq!((usage.used, usage.objects, usage.variants, usage.purged), (0, 0, 0, 3));
}

#[test]
fn another_rule_takes_the_place_of_all_variants() {
    let store = store(64 * MIB);
    let request = Request(&["de", "gzip"]);
    fill(&store, "a", 1, request.vary(&lang()), b"body").unwrap();
    fill(&store, "a", 2, Request(&["en", "gzip"]).vary(&lang()), b"body").unwrap();
    fill(&store, "a", 3, request.vary(&Fields(CODING.to_vec())), b"body").unwrap();
    assert_eq!(found(&store, "a", Request(&["en", "gzip"])).unwrap().head.0, 3);
    assert_eq!((store.usage().objects, store.usage().variants), (1, 1));

    fill(&store, "a", 4, None, b"body").unwrap();
    assert_eq!(found(&store, "a", request).unwrap().head.0, 4);
    assert_eq!((store.usage().objects, store.usage().variants), (1, 0));

    fill(&store, "a", 5, request.vary(&lang()), b"body").unwrap();
    assert_eq!((store.usage().objects, store.usage().variants), (1, 1));
    assert!(found(&store, "a", Request(&["en", "gzip"])).is_none());
}

#[test]
fn b28_variants_of_a_key_are_capped() {
    let store = Store::new(Config {
        variants: 4,
        ..Config::with_max_size(64 * MIB)
    });
    fill(&store, "other", 7, None, b"body").unwrap();
    let agents: Vec<String> = (0..1000).map(|i| format!("agent {i}")).collect();
    for (i, agent) in agents.iter().enumerate() {
        // The first is stored again and again, so it never is the least recently stored.
        for (head, agent) in [(0, &agents[0]), (i as u64, agent)] {
            fill(&store, "a", head, Request(&[agent]).vary(&lang()), b"body").unwrap();
        }
    }
    let usage = store.usage();
    assert_eq!((usage.variants, usage.objects, usage.variants_capped), (4, 5, 996));
    assert!(found(&store, "a", Request(&[&agents[0]])).is_some());
    assert!(found(&store, "a", Request(&[&agents[996]])).is_none());
    for i in [997, 998, 999] {
        assert_eq!(found(&store, "a", Request(&[&agents[i]])).unwrap().head.0, i as u64);
    }
    assert!(found(&store, "other", PLAIN).is_some());
}

#[test]
fn b25_missed_variants_leave_nothing_behind() {
    let store = store(64 * MIB);
    fill(&store, "a", 1, Request(&["de"]).vary(&lang()), b"body").unwrap();
    let before = store.usage();
    for i in 0..100_000 {
        let value = i.to_string();
        let fields = [&*value];
        let request = Request(&fields);
        assert!(matches!(store.get(b"a", request.variant()), Lookup::NoVariant));
        let Begin::Lead(leader, _reader) = store.begin(b"a", Join::Any, None, request.variant()) else {
            panic!("nobody else fills it");
        };
        let filling = leader.head(Arc::new(Number(2)), keep(Keep::Private, Some(0)));
        assert_eq!(finish(filling).unwrap_err(), NotKept::Declined);
    }
    assert_eq!(store.usage(), before);
    // Eviction still works.
    let body = vec![0; 512 << 10];
    for i in 0..300 {
        fill(&store, &format!("k{i}"), i, None, &body).unwrap();
    }
    let usage = store.usage();
    assert!(usage.evicted > 100 && usage.used <= usage.max, "{usage:?}");
}

#[test]
fn a_new_head_keeps_the_body() {
    let store = store(64 * MIB);
    let requests = [PLAIN, Request(&["de"])];
    for (key, request) in ["plain", "varied"].into_iter().zip(requests) {
        let vary = (request != PLAIN).then(|| request.vary(&lang())).flatten();
        let old = fill(&store, key, 1, vary, b"body").unwrap();
        let used = store.usage().used;
        let new = store.replace(key.as_bytes(), &old, Arc::new(Number(2))).unwrap();
        assert!(Arc::ptr_eq(&found(&store, key, request).unwrap(), &new));
        assert_eq!(
            (new.head.0, new.body.as_single().unwrap()),
            (2, old.body.as_single().unwrap())
        );
        assert_eq!(store.usage().used, used);
        assert_eq!(
            store.replace(key.as_bytes(), &old, Arc::new(Number(3))).unwrap_err(),
            NotKept::Replaced
        );
        assert!(!store.remove_if_same(key.as_bytes(), &old));
        assert_eq!(store.purge(key.as_bytes()).variants, 1);
        // A validation that was under way when the purge came does not bring it back.
        assert_eq!(
            store.replace(key.as_bytes(), &new, Arc::new(Number(3))).unwrap_err(),
            NotKept::Replaced
        );
        assert!(found(&store, key, request).is_none());
    }
    assert_eq!(
        (store.usage().objects, store.usage().variants, store.usage().used),
        (0, 0, 0)
    );
}

#[test]
fn an_object_is_removed_only_if_it_is_the_same() {
    let store = store(64 * MIB);
    let request = Request(&["de"]);
    let plain = fill(&store, "plain", 1, None, b"body").unwrap();
    let varied = fill(&store, "varied", 1, request.vary(&lang()), b"body").unwrap();
    assert!(store.remove_if_same(b"varied", &varied));
    let again = fill(&store, "plain", 2, None, b"body").unwrap();
    assert!(!store.remove_if_same(b"plain", &plain));
    assert!(store.remove_if_same(b"plain", &again));
    assert_eq!(store.usage().objects, 0);
    let varied = fill(&store, "varied", 3, request.vary(&lang()), b"body").unwrap();
    assert!(store.remove_if_same(b"varied", &varied));
    assert!(matches!(store.get(b"varied", request.variant()), Lookup::NoVariant));
}

#[test]
fn bounds_are_told_apart() {
    let body = vec![7; 40 << 10];
    let cases = [
        (store(0), NotKept::Disabled),
        (store(2 * MIB), NotKept::TooLarge),
        // Its own bound allows it, but no shard would take it.
        (
            Store::new(Config {
                max_size: 32 << 10,
                max_object: 1 << 20,
                variants: 64,
            }),
            NotKept::Refused,
        ),
    ];
    for (store, expected) in cases {
        assert_eq!(fill(&store, "a", 1, None, &body).unwrap_err(), expected);
        let usage = store.usage();
        assert_eq!(
            (usage.used, usage.objects, usage.fill_bytes, usage.fills_active),
            (0, 0, 0, 0)
        );
        assert_eq!(usage.refused, u64::from(expected == NotKept::Refused));
    }
}

#[test]
fn clear_takes_everything_and_dooms_every_fill() {
    let store = store(64 * MIB);
    let (leader, _reader) = lead(&store, "late", Join::Any);
    for i in 0..100 {
        let name = i.to_string();
        fill(&store, &name, i, None, b"body").unwrap();
        fill(&store, "varied", i, Request(&[&name]).vary(&lang()), b"body").unwrap();
    }
    assert_eq!((store.usage().objects, store.usage().variants), (164, 64));
    let purged = store.clear();
    assert_eq!(purged.variants, 164);
    let filling = leader.head(Arc::new(Number(1)), keep(Keep::Store, None));
    assert_eq!(finish(filling).unwrap_err(), NotKept::Doomed);
    let usage = store.usage();
    assert_eq!(
        (usage.used, usage.objects, usage.variants, usage.fill_bytes),
        (0, 0, 0, 0)
    );
}
