use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::sync::Notify;

use super::script::{Origin, ok};
use super::*;

#[tokio::test]
async fn one_connection_serves_request_after_request() {
    let origin = Origin::answering(ok("hello")).await;
    let bench = Bench::new(&settings(origin.address));
    for _ in 0..5 {
        assert_eq!(bench.get("/p").await, Ok((200, "hello".to_owned())));
    }
    assert_eq!(origin.connections(), 1);
    assert_eq!(
        (bench.seen.connects.load(SeqCst), bench.seen.reused.load(SeqCst)),
        (1, 4)
    );
    assert_eq!(bench.seen.attempts.load(SeqCst), 5);
    assert_eq!(
        bench.upstream.gauges(),
        Gauges {
            active: 0,
            idle: 1,
            queued: 0
        }
    );
    assert_eq!(bench.seen.received.load(SeqCst), 5 * ok("hello").len() as u64);
    let sent: usize = origin.requests().iter().map(String::len).sum();
    assert_eq!(bench.seen.sent.load(SeqCst), sent as u64);
}

#[tokio::test]
async fn the_connection_is_back_as_soon_as_the_last_byte_is_read() {
    let origin = Origin::answering(ok("hello")).await;
    let bench = Bench::new(&settings(origin.address));
    let mut response = bench.send(request(Method::GET, "/")).await.unwrap();
    assert_eq!(response.known_length, Some(5));
    assert_eq!(bench.upstream.gauges().active, 1);
    assert_eq!(response.body.chunk().await.unwrap().unwrap(), "hello");
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
async fn the_newest_idle_connection_is_taken_first() {
    let origin = Origin::start(|mut peer| async move {
        while peer.head().await.is_some() {
            peer.send(ok(&peer.number.to_string())).await;
        }
    })
    .await;
    let bench = Bench::new(&settings(origin.address));
    let mut first = bench.send(request(Method::GET, "/")).await.unwrap();
    let mut second = bench.send(request(Method::GET, "/")).await.unwrap();
    assert_eq!(read(&mut second.body).await.unwrap(), "2");
    assert_eq!(read(&mut first.body).await.unwrap(), "1");
    assert_eq!(bench.upstream.gauges().idle, 2);
    for _ in 0..3 {
        assert_eq!(bench.get("/").await, Ok((200, "1".to_owned())), "parked last");
    }
}

#[tokio::test]
async fn no_more_lie_idle_than_configured() {
    let origin = Origin::answering(ok("x")).await;
    for keepalive in [0, 1, 2] {
        let bench = Bench::new(&config::Upstream {
            keepalive,
            ..settings(origin.address)
        });
        let mut open = Vec::new();
        for _ in 0..3 {
            open.push(bench.send(request(Method::GET, "/")).await.unwrap());
        }
        for response in &mut open {
            read(&mut response.body).await.unwrap();
        }
        assert_eq!(
            bench.upstream.gauges(),
            Gauges {
                active: 0,
                idle: keepalive as u64,
                queued: 0
            }
        );
    }
}

#[tokio::test]
async fn b108_idle_connection_that_the_origin_closes_is_removed() {
    let close = Arc::new(Notify::new());
    let told = Arc::clone(&close);
    let origin = Origin::start(move |mut peer| {
        let told = Arc::clone(&told);
        async move {
            peer.head().await;
            peer.send(ok("x")).await;
            told.notified().await;
        }
    })
    .await;
    let bench = Bench::new(&settings(origin.address));
    bench.get("/").await.unwrap();
    assert_eq!(bench.upstream.gauges().idle, 1);
    close.notify_one();
    eventually(|| bench.upstream.gauges() == Gauges::default()).await;
}

#[tokio::test]
async fn an_idle_connection_ends_at_its_age() {
    let origin = Origin::answering(ok("x")).await;
    let upstream = Arc::new(Upstream::with_idle_max(
        &settings(origin.address),
        1,
        Duration::from_millis(30),
    ));
    let bench = Bench {
        upstream,
        ..Bench::new(&settings(origin.address))
    };
    bench.get("/").await.unwrap();
    assert_eq!(bench.upstream.gauges().idle, 1);
    eventually(|| bench.upstream.gauges() == Gauges::default()).await;
    bench.get("/").await.unwrap();
    assert_eq!(origin.connections(), 2);
}

#[tokio::test]
async fn a_replaced_upstream_closes_its_idle_connections() {
    let closed = Arc::new(Notify::new());
    let tell = Arc::clone(&closed);
    let origin = Origin::start(move |mut peer| {
        let tell = Arc::clone(&tell);
        async move {
            while peer.head().await.is_some() {
                peer.send(ok("hello")).await;
            }
            tell.notify_one();
        }
    })
    .await;
    let bench = Bench::new(&settings(origin.address));
    bench.get("/").await.unwrap();
    let mut in_use = bench.send(request(Method::GET, "/")).await.unwrap();
    let Bench { upstream, .. } = bench;
    let gate = Arc::downgrade(&upstream.gate);
    drop(upstream);
    assert_eq!(
        read(&mut in_use.body).await.unwrap(),
        "hello",
        "what is in use ends with its answer"
    );
    within(closed.notified()).await;
    drop(in_use);
    eventually(|| gate.strong_count() == 0).await;
}

#[tokio::test]
async fn an_answer_that_is_not_read_to_its_end_closes_the_connection() {
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await;
        peer.rest().await;
    })
    .await;
    let bench = Bench::new(&settings(origin.address));
    let mut response = bench.send(request(Method::GET, "/")).await.unwrap();
    assert_eq!(response.body.chunk().await.unwrap().unwrap(), "hello");
    drop(response);
    assert_eq!(bench.upstream.gauges(), Gauges::default());
}

#[tokio::test]
async fn connection_close_and_http_1_0_are_not_reused() {
    for answer in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nConnection: X-A, Close\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
    ] {
        let origin = Origin::answering(answer).await;
        let bench = Bench::new(&settings(origin.address));
        bench.get("/").await.unwrap();
        assert_eq!(bench.upstream.gauges(), Gauges::default(), "{answer}");
    }
}

#[tokio::test]
async fn absolute_form_and_old_versions_become_origin_form_in_http_1_1() {
    let origin = Origin::answering(ok("x")).await;
    let bench = Bench::new(&settings(origin.address));
    let mut sent = request(Method::GET, "http://other.test/a?b=1");
    *sent.version_mut() = http::Version::HTTP_3;
    bench.send(sent).await.unwrap();
    assert_eq!(origin.requests(), ["GET /a?b=1 HTTP/1.1\r\nhost: a.test\r\n\r\n"]);
}
