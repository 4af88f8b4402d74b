//! What one ending adds to.

use std::thread;

use super::*;

fn row(endings: &[Ending]) -> snapshot::VhostSnapshot {
    let traffic = Traffic::new(2, "main", 0);
    let vhost = traffic.vhost("www", &names(&["a", "b"]));
    configure(&traffic, &[("www", &["a", "b"])], &[]);
    endings.iter().for_each(|ending| vhost.record(FIRST, ending));
    let snapshot = traffic.snapshot(&Gauges::default());
    assert_eq!(snapshot.total, snapshot.vhosts[0].requests);
    snapshot.vhosts[0].clone()
}

/// The entries that are not zero.
fn only<'a>(entries: &'a [(&'static str, u64)]) -> Vec<(&'a str, u64)> {
    entries.iter().filter(|(_, count)| *count > 0).copied().collect()
}

#[test]
fn a_hit() {
    let row = row(&[
        hit(),
        Ending {
            rule: 1,
            status: 304,
            bytes_sent: 10,
            ..hit()
        },
    ]);
    let requests = &row.requests;
    assert_eq!(
        (requests.requests, requests.bytes_sent, requests.bytes_received),
        (2, 1010, 200)
    );
    assert_eq!(requests.responses, [0, 1, 1, 0, 0]);
    let hits: Vec<_> = requests.cache.iter().filter(|(_, count)| count.requests > 0).collect();
    assert_eq!(
        hits,
        [&(
            "HIT",
            snapshot::CacheCount {
                requests: 2,
                bytes_sent: 1010
            }
        )]
    );
    assert_eq!((requests.hit_latency.counts[1], requests.hit_latency.sum_us), (2, 140));
    assert_eq!((requests.miss_latency.sum_us, requests.origin_latency.sum_us), (0, 0));
    assert!(only(&requests.forwarded).is_empty());
    let rules: Vec<_> = row
        .rules
        .iter()
        .map(|rule| (&*rule.name, rule.requests, rule.hits, rule.bytes_sent))
        .collect();
    assert_eq!(rules, [("a", 1, 1, 1000), ("b", 1, 1, 10)]);
}

#[test]
fn a_miss_that_waited_for_another_fill() {
    let outcome = Outcome {
        cache: Some(CacheStatus::Miss),
        forward: Some(Forward::VaryMiss),
        collapsed: true,
        ..Outcome::NONE
    };
    let row = row(&[Ending {
        origin_us: Some(50),
        duration_us: 51,
        ..ending(outcome)
    }]);
    let requests = &row.requests;
    assert_eq!(only(&requests.forwarded), [("vary-miss", 1)]);
    assert_eq!((requests.collapsed, requests.stored), (1, 0));
    assert_eq!(
        (
            requests.hit_latency.sum_us,
            requests.miss_latency.sum_us,
            requests.origin_latency.sum_us
        ),
        (0, 51, 50)
    );
    assert_eq!(
        (requests.miss_latency.counts[1], requests.origin_latency.counts[0]),
        (1, 1)
    );
    assert_eq!((row.rules[0].requests, row.rules[0].hits), (1, 0));
}

#[test]
fn stale_after_a_failed_origin_is_a_wait_and_stale_at_once_is_not() {
    let stale = Outcome {
        cache: Some(CacheStatus::Stale),
        ..Outcome::NONE
    };
    let waited = Outcome {
        forward: Some(Forward::Stale),
        ..stale
    };
    let requests = row(&[
        ending(stale),
        Ending {
            duration_us: 9000,
            ..ending(waited)
        },
    ])
    .requests;
    assert_eq!((requests.hit_latency.sum_us, requests.miss_latency.sum_us), (70, 9000));
}

#[test]
fn answers_without_the_cache_count_as_requests_alone() {
    let cases = [
        (200, [0, 1, 0, 0, 0]),
        (99, [0; 5]),
        (0, [0; 5]),
        (600, [0; 5]),
        (599, [0, 0, 0, 0, 1]),
    ];
    for (status, responses) in cases {
        let row = row(&[Ending {
            status,
            rule: usize::MAX,
            ..ending(Outcome::NONE)
        }]);
        let requests = &row.requests;
        assert_eq!(
            (requests.requests, requests.bytes_sent, requests.responses),
            (1, 1000, responses),
            "{status}"
        );
        assert!(
            requests
                .cache
                .iter()
                .all(|(_, count)| *count == snapshot::CacheCount::default())
        );
        assert_eq!((requests.hit_latency.sum_us, requests.miss_latency.sum_us), (0, 0));
        assert!(row.rules.iter().all(|rule| rule.requests == 0));
    }
}

#[test]
fn all_names_are_shown_in_their_order() {
    let requests = row(&[]).requests;
    assert!(
        requests
            .cache
            .iter()
            .map(|(name, _)| *name)
            .eq(CacheStatus::ALL.map(CacheStatus::word))
    );
    assert!(
        requests
            .forwarded
            .iter()
            .map(|(name, _)| *name)
            .eq(Forward::ALL.map(Forward::name))
    );
    assert!(
        requests
            .not_stored
            .iter()
            .map(|(name, _)| *name)
            .eq(NotStored::all().map(NotStored::name))
    );
    assert_eq!(requests.hit_latency.counts.len(), BUCKETS_US.len() + 1);
}

#[test]
fn each_kind_is_counted_under_its_own_name() {
    let traffic = Traffic::new(1, "main", 0);
    configure(&traffic, &[("www", &[])], &[("app", "10.0.0.1:80")]);
    let (vhost, origin) = (traffic.vhost("www", &[]), traffic.origin("app", "10.0.0.1:80"));
    let times = |index: usize, add: &dyn Fn()| (0..=index).for_each(|_| add());
    NotStored::all()
        .enumerate()
        .for_each(|(index, why)| times(index, &|| vhost.record_not_stored(FIRST, why)));
    let connections = traffic.connections();
    TimeoutKind::ALL
        .into_iter()
        .enumerate()
        .for_each(|(index, kind)| times(index, &|| connections.timeout(kind)));
    RejectReason::ALL
        .into_iter()
        .enumerate()
        .for_each(|(index, why)| times(index, &|| connections.malformed(why)));
    FailureKind::ALL
        .into_iter()
        .enumerate()
        .for_each(|(index, kind)| times(index, &|| origin.failure(FIRST, kind)));

    let snapshot = traffic.snapshot(&Gauges::default());
    let expected = |names: Vec<&'static str>| names.into_iter().zip(1..).collect::<Vec<(_, u64)>>();
    assert_eq!(
        snapshot.total.not_stored,
        expected(NotStored::all().map(NotStored::name).collect())
    );
    assert_eq!(
        snapshot.connections.timeouts,
        expected(TimeoutKind::ALL.map(TimeoutKind::name).to_vec())
    );
    assert_eq!(
        snapshot.connections.malformed,
        expected(RejectReason::ALL.map(RejectReason::name).to_vec())
    );
    assert_eq!(
        snapshot.origins[0].failures,
        expected(FailureKind::ALL.map(FailureKind::name).to_vec())
    );
}

#[test]
fn requests_in_progress_are_a_gauge_that_ends_with_them() {
    let traffic = Traffic::new(1, "main", 0);
    configure(&traffic, &[("www", &[])], &[]);
    let vhost = traffic.vhost("www", &[]);
    let in_flight = || {
        let snapshot = traffic.snapshot(&Gauges::default());
        (snapshot.vhosts[0].requests.in_flight, snapshot.total.in_flight)
    };
    let first = vhost.enter();
    let second = traffic.vhost("www", &names(&["new"])).enter();
    let unrouted = traffic.unknown().enter();
    assert_eq!(in_flight(), (2, 3));
    drop((first, unrouted));
    // It ends though its task panics.
    let ended = thread::spawn(move || {
        let _in_flight = second;
        std::panic::resume_unwind(Box::new("a task fell over"));
    });
    assert!(ended.join().is_err());
    assert_eq!(in_flight(), (0, 0));
}

#[test]
fn threads_that_are_no_workers_lose_nothing() {
    let traffic = Traffic::new(1, "main", 0);
    let vhost = traffic.vhost("www", &[]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10_000).for_each(|_| vhost.record(WorkerId::new(usize::MAX), &hit())));
        }
    });
    assert_eq!(traffic.totals(&Gauges::default()).total.requests, 40_000);
}
