//! A reset zeroes what is in its scope, whole, and loses nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

/// Two vhosts, two upstreams; every counter of `www`, `_unknown`, `app` and the connections has counted.
fn busy() -> Traffic {
    let traffic = Traffic::new(4, "main", 1000);
    configure(
        &traffic,
        &[("www", &["a", "b"]), ("shop", &["a"])],
        &[("app", "10.0.0.1:80"), ("app", "10.0.0.2:80"), ("db", "10.0.0.1:80")],
    );
    let www = traffic.vhost("www", &names(&["a", "b"]));
    count_everything(&traffic, &www, &traffic.origin("app", "10.0.0.1:80"));
    traffic.vhost("shop", &names(&["a"])).record(FIRST, &hit());
    traffic.origin("app", "10.0.0.2:80").attempt(FIRST);
    traffic.origin("db", "10.0.0.1:80").attempt(FIRST);
    traffic
}

#[test]
fn b79_a_reset_of_all_leaves_no_counter() {
    let traffic = busy();
    let in_flight = traffic.vhost("www", &[]).enter();
    let before = traffic.snapshot(&gauges(2000));
    // The walk below proves nothing about a counter that has not counted.
    for (path, count) in counters(&before) {
        let is_idle = ["/vhosts/1/", "/origins/1/", "/origins/2/"]
            .iter()
            .any(|idle| path.starts_with(idle));
        assert!(is_idle || count > 0, "{path} has not counted");
    }

    let returned = traffic
        .reset(&Scope::All, 2000, &gauges(2000))
        .expect("all is always known");
    assert_eq!(returned, before);
    let after = traffic.snapshot(&gauges(2000));
    assert_eq!((before.epoch, after.epoch), (1, 2));
    let before = numbers(&before);
    assert!(numbers(&after).keys().eq(before.keys()));
    for (path, value) in numbers(&after) {
        match name_of(&path) {
            "epoch" => {}
            "since_ms" => assert_eq!(value, 2000, "{path}"),
            _ if is_counter(&path) => assert_eq!(value, 0, "{path}"),
            _ => assert_eq!(value, before[&path], "{path} is a gauge"),
        }
    }
    drop(in_flight);
}

#[test]
fn a_reset_keeps_to_its_scope() {
    let cases: [(Scope, &[&str]); 5] = [
        (Scope::Vhost("www".to_owned()), &["/total/", "/vhosts/0/"]),
        (Scope::Vhost("shop".to_owned()), &["/total/", "/vhosts/1/"]),
        (Scope::Vhost(UNKNOWN.to_owned()), &["/total/", "/vhosts/2/"]),
        (Scope::Origin("app".to_owned()), &["/origins/0/", "/origins/1/"]),
        (Scope::Cache, &["/cache/"]),
    ];
    for (scope, prefixes) in cases {
        let traffic = busy();
        let before = traffic.snapshot(&gauges(2000));
        assert_eq!(
            traffic.reset(&scope, 3000, &gauges(2000)).expect("a known name"),
            before
        );
        let after = traffic.snapshot(&gauges(2000));
        assert_eq!(after.epoch, before.epoch, "{scope:?}");
        let before = numbers(&before);
        for (path, value) in numbers(&after) {
            let is_in_scope = prefixes.iter().any(|prefix| path.starts_with(prefix));
            match name_of(&path) {
                "since_ms" => assert_eq!(value, if is_in_scope { 3000 } else { 1000 }, "{scope:?} {path}"),
                _ if is_in_scope && path.starts_with("/total/") => assert!(value <= before[&path], "{scope:?} {path}"),
                _ if is_in_scope && is_counter(&path) => assert_eq!(value, 0, "{scope:?} {path}"),
                _ => assert_eq!(value, before[&path], "{scope:?} {path}"),
            }
        }
        let rows = after.vhosts.iter().map(|row| row.requests.requests).sum::<u64>();
        assert_eq!(after.total.requests, rows, "the total is the sum of what is shown");
    }
}

#[test]
fn a_name_that_is_not_shown_is_an_error_and_resets_nothing() {
    let traffic = busy();
    configure(&traffic, &[("www", &[])], &[("app", "10.0.0.1:80")]);
    let before = traffic.snapshot(&gauges(2000));
    for scope in [
        Scope::Vhost("shop".to_owned()),
        Scope::Vhost(String::new()),
        Scope::Vhost("app".to_owned()),
        Scope::Origin("db".to_owned()),
        Scope::Origin("10.0.0.1:80".to_owned()),
    ] {
        let (Scope::Vhost(name) | Scope::Origin(name)) = &scope else {
            continue;
        };
        assert_eq!(
            traffic.reset(&scope, 3000, &gauges(2000)),
            Err(UnknownName(name.clone()))
        );
    }
    assert_eq!(traffic.snapshot(&gauges(2000)), before);
}

#[test]
fn totals_do_not_know_of_resets() {
    let traffic = busy();
    let before = traffic.totals(&gauges(2000));
    traffic
        .reset(&Scope::All, 2000, &gauges(2000))
        .expect("all is always known");
    assert_eq!(traffic.totals(&gauges(2000)), Snapshot { epoch: 2, ..before });
}

#[test]
fn counts_that_fell_show_as_zero() {
    let traffic = Traffic::new(1, "main", 0);
    traffic.reset(&Scope::All, 0, &gauges(0)).expect("all is always known");
    let snapshot = traffic.snapshot(&Gauges::default());
    assert_eq!((snapshot.cache.inserted, snapshot.log_lines_dropped), (0, 0));
}

#[test]
fn a_reset_with_an_older_reading_returns_nothing_twice() {
    let traffic = Traffic::new(1, "main", 0);
    let reading = |inserted| Gauges {
        storage: Usage {
            inserted,
            ..Usage::default()
        },
        ..Gauges::default()
    };
    let reset = |inserted| {
        traffic
            .reset(&Scope::Cache, 0, &reading(inserted))
            .expect("known")
            .cache
            .inserted
    };
    // The second was read before the first, and came to the counters after it.
    let returned = reset(20) + reset(15);
    assert_eq!(returned + traffic.snapshot(&reading(30)).cache.inserted, 30);
}

const WORKERS: usize = 8;
const REQUESTS: usize = 20_000;

/// Eight workers record while another thread resets. Returns the sums of what was returned and of what is left.
fn pop_under_load(traffic: &Traffic, scope: &Scope) -> BTreeMap<String, u64> {
    let www = traffic.vhost("www", &names(&["a", "b"]));
    let origin = traffic.origin("app", "10.0.0.1:80");
    let is_over = AtomicBool::new(false);
    let mut sums = BTreeMap::new();
    let mut add = |snapshot: &Snapshot| {
        for (path, count) in counters(snapshot) {
            *sums.entry(path).or_default() += count;
        }
    };
    thread::scope(|scope_of_threads| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|index| {
                let (www, origin) = (&www, &origin);
                scope_of_threads.spawn(move || {
                    let worker = WorkerId::new(index);
                    for n in 0..REQUESTS {
                        www.record(worker, &ending_of(n));
                        www.record_stored(worker);
                        origin.response(worker, 200, n as u64);
                        origin.sent(worker, 3);
                        traffic.connections().accepted();
                    }
                })
            })
            .collect();
        let is_over = &is_over;
        let waiting = scope_of_threads.spawn(move || {
            let results: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            is_over.store(true, Ordering::Release);
            assert!(results.iter().all(Result::is_ok));
        });
        while !is_over.load(Ordering::Acquire) {
            add(&traffic.reset(scope, 0, &Gauges::default()).expect("a known name"));
        }
        waiting.join().expect("all workers end");
    });
    add(&traffic.snapshot(&Gauges::default()));
    sums
}

fn two_rows() -> Traffic {
    let traffic = Traffic::new(WORKERS, "main", 0);
    configure(&traffic, &[("www", &["a", "b"])], &[("app", "10.0.0.1:80")]);
    traffic
}

#[test]
fn b80_what_resets_return_and_what_is_left_is_everything() {
    for (scope, prefix) in [
        (Scope::All, "/"),
        (Scope::Vhost("www".to_owned()), "/vhosts/0/"),
        (Scope::Origin("app".to_owned()), "/origins/0/"),
    ] {
        let traffic = two_rows();
        let sums = pop_under_load(&traffic, &scope);
        let truth = counters(&traffic.totals(&Gauges::default()));
        assert_eq!(truth["/total/requests"], (WORKERS * REQUESTS) as u64);
        assert_eq!(truth["/origins/0/bytes_sent"], 3 * (WORKERS * REQUESTS) as u64);
        let in_scope = |(path, _): &(&String, &u64)| path.starts_with(prefix);
        assert!(
            sums.iter().filter(in_scope).eq(truth.iter().filter(in_scope)),
            "{scope:?}"
        );
        // What was counted is what was recorded, cell by cell.
        let alone = two_rows();
        let www = alone.vhost("www", &names(&["a", "b"]));
        (0..REQUESTS).for_each(|n| www.record(FIRST, &ending_of(n)));
        let alone = counters(&alone.totals(&Gauges::default()));
        for (path, count) in truth
            .iter()
            .filter(|(path, _)| path.starts_with("/vhosts/0/") && !path.ends_with("/stored"))
        {
            assert_eq!(*count, WORKERS as u64 * alone[path], "{path}");
        }
    }
}
