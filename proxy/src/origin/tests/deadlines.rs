use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::time::Instant;

use super::script::{Origin, ok};
use super::*;

const SHORT: Duration = Duration::from_millis(60);

fn with(address: impl ToString, change: impl FnOnce(&mut UpstreamTimeouts)) -> Bench {
    let mut config = settings(address);
    change(&mut config.timeouts);
    Bench::new(&config)
}

/// Fails so, and neither much before nor much after the deadline.
async fn fails_in_time(bench: &Bench, kind: FailureKind) {
    let began = Instant::now();
    assert_eq!(bench.get("/").await, Err(kind));
    let took = began.elapsed();
    assert!(took >= SHORT && took < SHORT * 10, "{took:?}");
    assert_eq!(kind.status(), 504);
    assert_eq!(bench.failures(), [kind]);
    assert_eq!(bench.upstream.gauges(), Gauges::default());
}

#[tokio::test]
async fn b110_connect_black_hole() {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket
        .bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into())
        .unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    // Nobody accepts; what is beyond the backlog gets no answer to its SYN.
    let fill: Vec<_> = (0..4)
        .map(|_| tokio::spawn(tokio::net::TcpStream::connect(address)))
        .collect();
    eventually(|| fill.iter().filter(|task| task.is_finished()).count() >= 1).await;
    let bench = with(address, |timeouts| timeouts.connect = SHORT);
    fails_in_time(&bench, FailureKind::ConnectTimeout).await;
    fill.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn b110_silence_on_a_new_connection() {
    let origin = Origin::answering("").await;
    let bench = with(origin.address, |timeouts| timeouts.first_byte = SHORT);
    fails_in_time(&bench, FailureKind::FirstByteTimeout).await;
    assert_eq!(origin.requests().len(), 1, "not repeated");
}

#[tokio::test]
async fn b110_silence_on_a_reused_connection() {
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
        peer.send(ok("x")).await;
        peer.rest().await;
    })
    .await;
    let bench = with(origin.address, |timeouts| timeouts.first_byte = SHORT);
    bench.get("/").await.unwrap();
    fails_in_time(&bench, FailureKind::FirstByteTimeout).await;
    assert_eq!(origin.connections(), 1, "not repeated");
}

/// The head has one deadline, however its bytes drip.
#[tokio::test]
async fn b110_dripping_head() {
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
        peer.send("HTTP/1.1 200 OK\r\n").await;
        let mut tick = tokio::time::interval(SHORT / 6);
        for _ in 0..200 {
            tick.tick().await;
            peer.send("X").await;
        }
    })
    .await;
    let bench = with(origin.address, |timeouts| {
        timeouts.first_byte = SHORT;
        timeouts.between_bytes = SHORT / 2;
    });
    fails_in_time(&bench, FailureKind::FirstByteTimeout).await;
}

#[tokio::test]
async fn b110_stall_in_the_body() {
    for framing in ["Content-Length: 10", "Transfer-Encoding: chunked", "X: y"] {
        let origin = Origin::answering(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n5\r\nhe")).await;
        let bench = with(origin.address, |timeouts| timeouts.between_bytes = SHORT);
        fails_in_time(&bench, FailureKind::BetweenBytesTimeout).await;
    }
}

#[tokio::test]
async fn b110_total_covers_a_dripping_body() {
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await;
        let mut tick = tokio::time::interval(SHORT / 6);
        for _ in 0..200 {
            tick.tick().await;
            peer.send("x").await;
        }
    })
    .await;
    let bench = with(origin.address, |timeouts| timeouts.total = Some(SHORT));
    fails_in_time(&bench, FailureKind::TotalTimeout).await;
}

#[tokio::test]
async fn b110_total_covers_the_head() {
    let origin = Origin::answering("").await;
    let bench = with(origin.address, |timeouts| timeouts.total = Some(SHORT));
    fails_in_time(&bench, FailureKind::TotalTimeout).await;
}

#[tokio::test]
async fn an_upload_has_its_own_time_and_first_byte_begins_after_it() {
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
        peer.exactly(4).await;
        peer.send(ok("x")).await;
    })
    .await;
    let bench = with(origin.address, |timeouts| timeouts.first_byte = SHORT);
    let (mut sender, body) = RequestBody::channel(Some(4));
    let feed = async move {
        let mut tick = tokio::time::interval(SHORT / 2);
        for piece in ["d", "a", "t", "a"] {
            tick.tick().await;
            sender.send(piece.into()).await.unwrap();
        }
        sender.finish();
    };
    let (result, ()) = tokio::join!(bench.send(Request::post("/").body(body).unwrap()), feed);
    assert_eq!(result.unwrap().head.status, 200);
}

#[tokio::test]
async fn b110_an_origin_that_does_not_read_the_upload() {
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
        std::future::pending::<()>().await;
    })
    .await;
    let bench = with(origin.address, |timeouts| timeouts.between_bytes = SHORT);
    let (mut sender, body) = RequestBody::channel(None);
    let feed = async move { while sender.send(vec![0; 64 * 1024].into()).await.is_ok() {} };
    let (result, ()) = tokio::join!(bench.send(Request::post("/").body(body).unwrap()), feed);
    let error = result.unwrap_err();
    assert_eq!((error.kind, error.status()), (FailureKind::SendTimeout, 504));
    assert_eq!(bench.upstream.gauges(), Gauges::default());
}
