use http_body::Body;

use super::script::{Origin, ok};
use super::*;

/// An origin that sends back all it was sent, once `end` is in it or the connection has ended.
async fn mirror(end: &'static str) -> (Origin, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer| {
        let sender = sender.clone();
        async move {
            let head = peer.head().await.unwrap_or_default();
            let body = peer.until(end).await;
            let _ = sender.send(format!("{head}{body}"));
            peer.send(ok("done")).await;
        }
    })
    .await;
    (origin, receiver)
}

fn with_body(method: Method, body: RequestBody) -> Request<RequestBody> {
    // What the client said about framing does not reach the origin.
    Request::builder()
        .method(method)
        .uri("/")
        .header("transfer-encoding", "gzip")
        .header("content-length", "99")
        .body(body)
        .unwrap()
}

#[tokio::test]
async fn a_body_has_one_framing_and_that_is_its_own() {
    for (method, length, expected) in [
        (
            Method::POST,
            Some(6),
            "POST / HTTP/1.1\r\ncontent-length: 6\r\n\r\nabcdef",
        ),
        (
            Method::GET,
            Some(6),
            "GET / HTTP/1.1\r\ncontent-length: 6\r\n\r\nabcdef",
        ),
        (
            Method::POST,
            None,
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
        ),
        (
            Method::GET,
            None,
            "GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
        ),
    ] {
        let (origin, mut seen) = mirror(if length.is_some() { "def" } else { "0\r\n\r\n" }).await;
        let bench = Bench::new(&settings(origin.address));
        let (mut sender, body) = RequestBody::channel(length);
        let feed = async move {
            for piece in ["abc", "", "def"] {
                sender.send(piece.into()).await.unwrap();
            }
            sender.finish();
        };
        let (result, ()) = tokio::join!(bench.send(with_body(method, body)), feed);
        assert_eq!(read(&mut result.unwrap().body).await.unwrap(), "done");
        assert_eq!(within(seen.recv()).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn no_body_is_said_where_one_is_expected() {
    for (method, expected) in [
        (Method::POST, "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n"),
        (Method::PUT, "PUT / HTTP/1.1\r\ncontent-length: 0\r\n\r\n"),
        (Method::GET, "GET / HTTP/1.1\r\n\r\n"),
        (Method::DELETE, "DELETE / HTTP/1.1\r\n\r\n"),
    ] {
        let origin = Origin::answering(ok("")).await;
        let bench = Bench::new(&settings(origin.address));
        bench.send(with_body(method, RequestBody::empty())).await.unwrap();
        assert_eq!(origin.requests(), [expected]);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Break {
    Abort,
    Drop,
    FinishShort,
    TooLong,
}

#[tokio::test]
async fn a_broken_upload_is_never_ended_cleanly() {
    for how in [Break::Abort, Break::Drop, Break::FinishShort, Break::TooLong] {
        for length in [Some(10), None] {
            if length.is_none() && matches!(how, Break::FinishShort | Break::TooLong) {
                continue;
            }
            let (origin, mut seen) = mirror("never").await;
            let bench = Bench::new(&settings(origin.address));
            let (mut sender, body) = RequestBody::channel(length);
            let feed = async move {
                sender.send("hello".into()).await.unwrap();
                match how {
                    Break::Abort => sender.abort(),
                    Break::Drop => drop(sender),
                    Break::FinishShort => sender.finish(),
                    Break::TooLong => {
                        assert_eq!(sender.send("too long".into()).await, Err(Closed));
                        sender.finish();
                    }
                }
            };
            let (result, ()) = tokio::join!(bench.send(with_body(Method::POST, body)), feed);
            let error = result.unwrap_err();
            let expected = (FailureKind::RequestBody, Side::Client, 400);
            assert_eq!((error.kind, error.side, error.status()), expected, "{how:?} {length:?}");
            let sent = within(seen.recv()).await.unwrap();
            assert!(!sent.ends_with("0\r\n\r\n"), "{how:?}: {sent}");
            assert_eq!(bench.upstream.gauges(), Gauges::default());
        }
    }
}

#[tokio::test]
async fn b104_an_early_answer_stops_the_upload() {
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
        peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
            .await;
        peer.rest().await;
    })
    .await;
    let bench = Bench::new(&settings(origin.address));
    let (mut sender, body) = RequestBody::channel(Some(1 << 40));
    let mut response = bench.send(with_body(Method::PUT, body)).await.unwrap();
    assert_eq!(response.head.status, 413);
    assert_eq!(read(&mut response.body).await.unwrap(), "big");
    drop(response);
    within(sender.closed()).await;
    assert_eq!(sender.send("x".into()).await, Err(Closed));
    eventually(|| bench.upstream.gauges() == Gauges::default()).await;
}

#[tokio::test]
async fn an_unreachable_origin_takes_nothing() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let bench = Bench::new(&settings(unused));
    let (mut sender, body) = RequestBody::channel(None);
    assert_eq!(
        bench.send(with_body(Method::POST, body)).await.unwrap_err().kind,
        FailureKind::ConnectRefused
    );
    assert_eq!(sender.send("x".into()).await, Err(Closed));
}

#[test]
fn an_empty_body_ends_at_once() {
    let (_sender, known) = RequestBody::channel(Some(0));
    for body in [RequestBody::empty(), known] {
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
    }
}
