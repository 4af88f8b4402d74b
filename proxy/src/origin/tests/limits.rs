use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::script::{Origin, ok};
use super::*;

fn capped(address: impl ToString, connections: usize, queue: usize) -> config::Upstream {
    config::Upstream {
        connections,
        queue,
        ..settings(address)
    }
}

fn worker(bench: &Bench, number: usize) -> Bench {
    Bench {
        pool: Pool::new(number),
        upstream: Arc::clone(&bench.upstream),
        seen: Arc::clone(&bench.seen),
    }
}

#[tokio::test]
async fn at_the_cap_a_worker_takes_what_lies_idle_at_another() {
    let origin = Origin::answering(ok("x")).await;
    let first = Bench::new(&capped(origin.address, 1, 0));
    let second = worker(&first, 1);
    for _ in 0..3 {
        assert_eq!(first.get("/").await, Ok((200, "x".to_owned())));
        assert_eq!(second.get("/").await, Ok((200, "x".to_owned())));
    }
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn below_the_cap_each_worker_has_its_own() {
    let origin = Origin::answering(ok("x")).await;
    let first = Bench::new(&capped(origin.address, 2, 0));
    let second = worker(&first, 1);
    for _ in 0..3 {
        first.get("/").await.unwrap();
        second.get("/").await.unwrap();
    }
    assert_eq!(origin.connections(), 2);
}

/// An origin that answers as often as the semaphore lets it.
async fn gated(gate: &Arc<Semaphore>) -> Origin {
    let gate = Arc::clone(gate);
    Origin::start(move |mut peer| {
        let gate = Arc::clone(&gate);
        async move {
            while peer.head().await.is_some() {
                gate.acquire().await.unwrap().forget();
                peer.send(ok("x")).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn the_queue_is_first_come_first_served_over_all_workers() {
    let gate = Arc::new(Semaphore::new(0));
    let origin = gated(&gate).await;
    let bench = Bench::new(&capped(origin.address, 1, 8));
    let mut tasks = Vec::new();
    for number in 0..5_usize {
        let worker = worker(&bench, number % 2);
        tasks.push(tokio::spawn(async move { worker.get(&format!("/{number}")).await }));
        eventually(|| origin.requests().len() == 1 && bench.upstream.gauges().queued == number as u64).await;
    }
    gate.add_permits(5);
    for task in tasks {
        within(task).await.unwrap().unwrap();
    }
    let order: Vec<_> = origin.requests().iter().map(|head| head[5..6].to_owned()).collect();
    assert_eq!(order, ["0", "1", "2", "3", "4"]);
    assert_eq!(origin.connections(), 1);
    assert_eq!(
        bench.upstream.gauges(),
        Gauges {
            active: 0,
            idle: 1,
            queued: 0
        }
    );
}

#[tokio::test]
async fn a_full_queue_is_503_at_once() {
    let gate = Arc::new(Semaphore::new(0));
    let origin = gated(&gate).await;
    let bench = Bench::new(&capped(origin.address, 1, 1));
    let mut tasks = Vec::new();
    for queued in 0..2 {
        let worker = worker(&bench, 0);
        tasks.push(tokio::spawn(async move { worker.get("/").await }));
        eventually(|| origin.requests().len() == 1 && bench.upstream.gauges().queued == queued).await;
    }
    let error = bench.send(request(Method::GET, "/")).await.unwrap_err();
    assert_eq!(
        (error.kind, error.side, error.retry, error.status()),
        (FailureKind::QueueFull, Side::Internal, Retry::Safe, 503)
    );
    gate.add_permits(2);
    for task in tasks {
        within(task).await.unwrap().unwrap();
    }
    assert_eq!(bench.failures(), [FailureKind::QueueFull]);
}

#[tokio::test]
async fn waiting_counts_as_connecting() {
    let origin = gated(&Arc::new(Semaphore::new(0))).await;
    let mut config = capped(origin.address, 1, 4);
    config.timeouts.connect = Duration::from_millis(40);
    let bench = Bench::new(&config);
    let holder = worker(&bench, 0);
    let holding = tokio::spawn(async move { holder.get("/").await });
    eventually(|| origin.requests().len() == 1).await;
    let error = bench.send(request(Method::GET, "/")).await.unwrap_err();
    assert_eq!((error.kind, error.status()), (FailureKind::QueueTimeout, 503));
    assert_eq!(
        bench.upstream.gauges(),
        Gauges {
            active: 1,
            idle: 0,
            queued: 0
        }
    );
    holding.abort();
}

#[tokio::test]
async fn who_leaves_the_queue_leaves_no_gap() {
    let gate = Arc::new(Semaphore::new(0));
    let origin = gated(&gate).await;
    let bench = Bench::new(&capped(origin.address, 1, 2));
    let mut tasks = Vec::new();
    for queued in 0..3 {
        let worker = worker(&bench, 0);
        tasks.push(tokio::spawn(async move { worker.get("/").await }));
        eventually(|| origin.requests().len() == 1 && bench.upstream.gauges().queued == queued).await;
    }
    tasks.remove(1).abort();
    eventually(|| bench.upstream.gauges().queued == 1).await;
    // The one in front gives up as well: its connection is closed, and the place goes to the one who waits.
    tasks.remove(0).abort();
    gate.add_permits(2);
    assert_eq!(within(tasks.remove(0)).await.unwrap(), Ok((200, "x".to_owned())));
    assert_eq!(
        bench.upstream.gauges(),
        Gauges {
            active: 0,
            idle: 1,
            queued: 0
        }
    );
}

#[tokio::test]
async fn failed_connections_give_their_places_back() {
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
    })
    .await;
    let bench = Bench::new(&capped(origin.address, 1, 0));
    for _ in 0..5 {
        assert_eq!(bench.get("/").await, Err(FailureKind::ClosedBeforeResponse));
        assert_eq!(bench.upstream.gauges(), Gauges::default());
    }
}

/// Workers as they are: a thread and a runtime each, connections handed from one to another.
#[test]
fn cap_two_over_four_threads_starves_nobody() {
    const EACH: usize = 100;
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let home = runtime();
    let busy = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (counted, peak) = (Arc::clone(&busy), Arc::clone(&most));
    let origin = home.block_on(Origin::start(move |mut peer| {
        let (counted, peak) = (Arc::clone(&counted), Arc::clone(&peak));
        async move {
            while peer.head().await.is_some() {
                peak.fetch_max(counted.fetch_add(1, SeqCst) + 1, SeqCst);
                tokio::task::yield_now().await;
                counted.fetch_sub(1, SeqCst);
                // Every eighth answer ends its connection, so that permits move as well as connections.
                let close = if peer.number.is_multiple_of(8) {
                    "Connection: close\r\n"
                } else {
                    ""
                };
                peer.send(format!("HTTP/1.1 200 OK\r\n{close}Content-Length: 1\r\n\r\nx"))
                    .await;
            }
        }
    }));
    let bench = Bench {
        upstream: Arc::new(Upstream::new(&capped(origin.address, 2, 64), 4)),
        ..Bench::new(&settings(origin.address))
    };
    let finished = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = scope.spawn(move || home.block_on(stopped));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let worker = worker(&bench, number);
                scope.spawn(move || {
                    runtime().block_on(async {
                        for _ in 0..EACH {
                            assert_eq!(worker.get("/").await, Ok((200, "x".to_owned())));
                        }
                        // A runtime takes along the connections that it drives, also those that another thread uses.
                        finished.fetch_add(1, SeqCst);
                        eventually(|| finished.load(SeqCst) == 4).await;
                    });
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        stop.send(()).unwrap();
        serving.join().unwrap().unwrap();
    });
    assert_eq!(bench.seen.retries.load(SeqCst), 0);
    assert!(most.load(SeqCst) <= 2);
    assert_eq!(origin.requests().len(), 4 * EACH);
}
