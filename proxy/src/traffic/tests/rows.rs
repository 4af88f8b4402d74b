//! Which rows there are, and what becomes of those that go.

use super::*;

fn shown(snapshot: &Snapshot) -> Vec<(&str, u64)> {
    snapshot
        .vhosts
        .iter()
        .map(|row| (&*row.name, row.requests.requests))
        .collect()
}

#[test]
fn rows_are_shown_in_the_order_of_the_configuration_and_unknown_last() {
    let traffic = Traffic::new(1, "main", 0);
    let read = || traffic.snapshot(&Gauges::default());
    assert_eq!(shown(&read()), [("_unknown", 0)]);
    configure(
        &traffic,
        &[("b", &["2", "1", "2"]), ("a", &[]), ("b", &[]), ("_unknown", &["x"])],
        &[("u", "s"), ("u", "s")],
    );
    let snapshot = read();
    assert_eq!(shown(&snapshot), [("b", 0), ("a", 0), ("_unknown", 0)]);
    assert_eq!(
        snapshot.vhosts[0]
            .rules
            .iter()
            .map(|rule| &*rule.name)
            .collect::<Vec<_>>(),
        ["2", "1"]
    );
    assert_eq!(snapshot.origins.len(), 1);
}

#[test]
fn b82_a_reload_keeps_counters() {
    let traffic = Traffic::new(1, "main", 0);
    let read = || traffic.snapshot(&Gauges::default());
    for _ in 0..100 {
        let www = traffic.vhost("www", &names(&["a", "b"]));
        configure(&traffic, &[("www", &["a", "b"])], &[("app", "s:1")]);
        www.record(FIRST, &hit());
        traffic.origin("app", "s:1").attempt(FIRST);
    }
    // The rules change places, one is new: counts stay with the names.
    let www = traffic.vhost("www", &names(&["new", "a"]));
    configure(&traffic, &[("www", &["new", "a"])], &[("app", "s:1")]);
    www.record(FIRST, &hit());
    let snapshot = read();
    assert_eq!(shown(&snapshot), [("www", 101), ("_unknown", 0)]);
    let rules: Vec<_> = snapshot.vhosts[0]
        .rules
        .iter()
        .map(|rule| (&*rule.name, rule.requests))
        .collect();
    assert_eq!(rules, [("new", 1), ("a", 100)]);
    assert_eq!(snapshot.origins[0].requests, 100);
}

#[test]
fn a_row_that_goes_stays_in_the_total_and_may_come_back() {
    let traffic = Traffic::new(1, "main", 0);
    let read = || traffic.snapshot(&Gauges::default());
    let old = traffic.vhost("old", &[]);
    configure(&traffic, &[("old", &[])], &[]);
    old.record(FIRST, &hit());
    configure(&traffic, &[("www", &[])], &[]);
    // A request that began before the reload ends after it.
    old.record(FIRST, &hit());
    assert_eq!(
        (shown(&read()), read().total.requests),
        (vec![("www", 0), ("_unknown", 0)], 2)
    );
    configure(&traffic, &[("old", &[])], &[]);
    assert_eq!(shown(&read()), [("old", 2), ("_unknown", 0)]);

    configure(&traffic, &[], &[]);
    traffic
        .reset(&Scope::All, 0, &Gauges::default())
        .expect("all is always known");
    assert_eq!(
        read().total.requests,
        0,
        "a reset of all reaches rows that are out of sight"
    );
    configure(&traffic, &[("old", &[])], &[]);
    assert_eq!(shown(&read()), [("old", 0), ("_unknown", 0)]);
}

#[test]
fn b76_rows_of_bygone_configurations_are_bounded_and_their_counts_stay() {
    let traffic = Traffic::new(1, "main", 0);
    traffic.vhost("kept", &names(&["a"])).record(FIRST, &hit());
    configure(&traffic, &[("kept", &["a"])], &[]);
    let held = traffic.vhost("held", &[]);
    for n in 0..5000 {
        traffic.vhost(&format!("v{n}"), &[]).record(FIRST, &hit());
        traffic.vhost("kept", &[format!("r{n}")]);
        traffic.origin("app", &format!("s{n}"));
        if n == 2500 {
            traffic
                .reset(&Scope::All, 0, &Gauges::default())
                .expect("all is always known");
        }
    }
    held.record(FIRST, &hit());
    let (vhosts, rules, origins) = traffic.books.lock().registry.sizes("kept");
    assert!(
        vhosts < 1600 && rules < 1600 && origins < 1600,
        "{vhosts} {rules} {origins}"
    );
    let (snapshot, totals) = (traffic.snapshot(&Gauges::default()), traffic.totals(&Gauges::default()));
    assert_eq!((snapshot.total.requests, totals.total.requests), (2500, 5002));
    assert_eq!(shown(&totals), [("kept", 1), ("_unknown", 0)]);
    configure(&traffic, &[("held", &[]), ("kept", &["a"])], &[]);
    let totals = traffic.totals(&Gauges::default());
    assert_eq!(shown(&totals), [("held", 1), ("kept", 1), ("_unknown", 0)]);
    assert_eq!(totals.vhosts[1].rules[0].requests, 1);
}

#[test]
fn a_snapshot_shows_what_others_measured() {
    let traffic = Traffic::new(1, "disk-cache", 5);
    configure(&traffic, &[], &[("app", "s:1"), ("other", "s:2")]);
    let snapshot = traffic.snapshot(&gauges(2000));
    assert_eq!(
        (snapshot.now_ms, snapshot.started_ms, snapshot.connections.active),
        (2000, 5, 1)
    );
    let CacheSnapshot {
        name,
        memory_used,
        memory_max,
        objects,
        inserted,
        ..
    } = &snapshot.cache;
    assert_eq!(
        (&**name, *memory_used, *memory_max, *objects, *inserted),
        ("disk-cache", 2, 3, 4, 80)
    );
    let open = |index: usize| {
        let origin = &snapshot.origins[index];
        (origin.connections_active, origin.connections_idle, origin.queued)
    };
    assert_eq!((open(0), open(1)), ((13, 14, 15), (0, 0, 0)));
}
