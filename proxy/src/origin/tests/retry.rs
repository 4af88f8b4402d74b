use std::sync::atomic::Ordering::SeqCst;

use super::script::{Origin, Peer, ok};
use super::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Close,
    Reset,
}

/// Answers once per connection; takes the second request and ends without an answer.
async fn ends_on_second(end: End) -> Origin {
    Origin::start(move |mut peer: Peer| async move {
        peer.head().await;
        peer.send(ok("")).await;
        if peer.head().await.is_some() && end == End::Reset {
            peer.reset();
        }
    })
    .await
}

#[tokio::test]
async fn b108_reused_connection_fails_after_the_request_was_sent() {
    for end in [End::Close, End::Reset] {
        for (method, repeated) in [
            (Method::GET, true),
            (Method::HEAD, true),
            (Method::PUT, true),
            (Method::DELETE, true),
            (Method::OPTIONS, true),
            (Method::POST, false),
            (Method::PATCH, false),
        ] {
            let origin = ends_on_second(end).await;
            let bench = Bench::new(&settings(origin.address));
            bench.get("/first").await.unwrap();
            let result = bench.fetch(method.clone(), "/second").await;
            let sent = origin.count(&format!("{method} /second"));
            let retries = bench.seen.retries.load(SeqCst);
            if repeated {
                assert_eq!(
                    (result, sent, retries),
                    (Ok((200, String::new())), 2, 1),
                    "{method} {end:?}"
                );
            } else {
                let closed = Err(FailureKind::ClosedBeforeResponse);
                assert_eq!((result, sent, retries), (closed, 1, 0), "{method} {end:?}");
            }
            assert_eq!(bench.failures(), [FailureKind::ClosedBeforeResponse]);
            assert_eq!(origin.connections(), if repeated { 2 } else { 1 });
        }
    }
}

#[tokio::test]
async fn b108_with_a_body_nothing_is_sent_twice() {
    for method in [Method::PUT, Method::POST] {
        let origin = ends_on_second(End::Close).await;
        let bench = Bench::new(&settings(origin.address));
        bench.get("/first").await.unwrap();
        let (mut sender, body) = RequestBody::channel(Some(4));
        let head = Request::builder().method(&method).uri("/second").body(body).unwrap();
        let feed = async {
            let _ = sender.send("data".into()).await;
            sender.finish();
        };
        let (result, ()) = tokio::join!(bench.send(head), feed);
        assert_eq!(result.unwrap_err().kind, FailureKind::ClosedBeforeResponse);
        assert_eq!(origin.count(&format!("{method} /second")), 1);
    }
}

/// The origin has closed, and whether we know it yet or not, nothing is lost: not even a POST, of which nothing was
/// sent.
#[tokio::test]
async fn b108_closed_while_idle() {
    for method in [Method::GET, Method::POST] {
        let origin = Origin::closing_after(ok("")).await;
        let bench = Bench::new(&settings(origin.address));
        for round in 1..=5 {
            assert_eq!(bench.fetch(method.clone(), "/p").await, Ok((200, String::new())));
            assert_eq!(origin.count(method.as_str()), round);
            eventually(|| bench.upstream.gauges().idle == 0).await;
        }
    }
}

#[tokio::test]
async fn b108_many_gets_at_the_keep_alive_edge() {
    let origin = Origin::closing_after(ok("x")).await;
    let bench = Bench::new(&settings(origin.address));
    for _ in 0..1000 {
        assert_eq!(bench.get("/").await, Ok((200, "x".to_owned())));
    }
}

#[tokio::test]
async fn a_request_is_repeated_once_at_most() {
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
        if peer.number == 1 {
            peer.send(ok("")).await;
            peer.head().await;
        }
    })
    .await;
    let bench = Bench::new(&settings(origin.address));
    bench.get("/first").await.unwrap();
    let error = bench.send(request(Method::GET, "/second")).await.unwrap_err();
    assert_eq!((error.kind, error.status()), (FailureKind::ClosedBeforeResponse, 502));
    assert_eq!((origin.count("GET /second"), origin.connections()), (2, 2));
    assert_eq!(bench.failures(), [FailureKind::ClosedBeforeResponse; 2]);
    assert_eq!(bench.upstream.gauges(), Gauges::default());
}

#[tokio::test]
async fn a_fresh_connection_is_not_repeated() {
    for end in [End::Close, End::Reset] {
        let origin = Origin::start(move |mut peer| async move {
            peer.head().await;
            if end == End::Reset {
                peer.reset();
            }
        })
        .await;
        let bench = Bench::new(&settings(origin.address));
        assert_eq!(bench.get("/").await, Err(FailureKind::ClosedBeforeResponse));
        assert_eq!(origin.requests().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_began_is_not_repeated() {
    for (begun, kind) in [
        ("H", FailureKind::Truncated),
        ("HTTP/1.1 200 OK\r\nContent-Le", FailureKind::Truncated),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", FailureKind::Truncated),
        ("nonsense\r\n\r\n", FailureKind::MalformedResponse),
    ] {
        let origin = Origin::start(move |mut peer| async move {
            peer.head().await;
            peer.send(ok("")).await;
            peer.head().await;
            peer.send(begun).await;
        })
        .await;
        let bench = Bench::new(&settings(origin.address));
        bench.get("/first").await.unwrap();
        assert_eq!(bench.get("/second").await, Err(kind), "{begun}");
        assert_eq!(origin.count("GET /second"), 1);
    }
}

#[tokio::test]
async fn at_the_cap_a_retry_needs_no_second_place() {
    let origin = ends_on_second(End::Close).await;
    let bench = Bench::new(&config::Upstream {
        connections: 1,
        queue: 0,
        ..settings(origin.address)
    });
    bench.get("/first").await.unwrap();
    assert_eq!(bench.get("/second").await, Ok((200, String::new())));
}

#[tokio::test]
async fn connect_refused_is_not_repeated() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let bench = Bench::new(&settings(unused));
    let error = bench.send(request(Method::GET, "/")).await.unwrap_err();
    assert_eq!(
        (error.kind, error.retry, error.status()),
        (FailureKind::ConnectRefused, Retry::Safe, 502)
    );
    assert_eq!(bench.upstream.gauges(), Gauges::default());
}

#[tokio::test]
async fn a_name_is_looked_up_and_a_bad_one_is_502() {
    let origin = Origin::answering(ok("x")).await;
    let bench = Bench::new(&settings(format!("localhost:{}", origin.address.port())));
    assert_eq!(bench.get("/").await, Ok((200, "x".to_owned())));
    let bench = Bench::new(&settings("no port"));
    assert_eq!(bench.get("/").await, Err(FailureKind::Resolve));
}
