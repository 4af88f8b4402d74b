use http::{Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::script::{Origin, ok};
use super::*;

async fn with_interim(bench: &Bench) -> (Result<OriginResponse, FetchError>, Vec<Response<()>>) {
    let (sender, mut receiver) = mpsc::channel(64);
    let observe = Arc::clone(&bench.seen) as Arc<dyn Observe>;
    let result = within(
        bench
            .pool
            .send(&bench.upstream, request(Method::GET, "/"), Some(sender), observe),
    )
    .await;
    let mut interim = Vec::new();
    while let Some(answer) = within(receiver.recv()).await {
        interim.push(answer);
    }
    (result, interim)
}

#[tokio::test]
async fn b105_early_hints_are_handed_on_and_the_final_answer_is_unchanged() {
    let origin = Origin::answering(format!(
        "HTTP/1.1 100 Continue\r\n\r\n\
         HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n\
         HTTP/1.1 199 Odd\r\n\r\n\
         HTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n{}",
        ok("hello")
    ))
    .await;
    let bench = Bench::new(&settings(origin.address));
    for _ in 0..2 {
        let (result, interim) = with_interim(&bench).await;
        let mut response = result.unwrap();
        assert_eq!(response.head.status, 200);
        assert!(!response.head.headers.contains_key("link"));
        assert_eq!(read(&mut response.body).await.unwrap(), "hello");
        let seen: Vec<_> = interim.iter().map(|answer| answer.status().as_u16()).collect();
        assert_eq!(seen, [103, 199, 103]);
        assert_eq!(interim[2].headers()["link"], "</b.css>");
    }
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn b105_early_hints_and_then_a_close() {
    let origin = Origin::closing_after("HTTP/1.1 103 Early Hints\r\n\r\n").await;
    let bench = Bench::new(&settings(origin.address));
    let (result, interim) = with_interim(&bench).await;
    assert_eq!(result.unwrap_err().kind, FailureKind::Truncated);
    assert_eq!(interim.len(), 1);
}

#[tokio::test]
async fn b105_a_flood_of_interim_answers_is_502() {
    for count in [17, 100_000] {
        let origin = Origin::start(move |mut peer| async move {
            peer.head().await;
            peer.send("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count)).await;
            peer.rest().await;
        })
        .await;
        let bench = Bench::new(&settings(origin.address));
        let (result, interim) = with_interim(&bench).await;
        assert_eq!(result.unwrap_err().kind, FailureKind::MalformedResponse);
        assert_eq!(interim.len(), 16);
        assert_eq!(bench.upstream.gauges(), Gauges::default());
    }
}

#[tokio::test]
async fn b105_unsolicited_101_is_502() {
    let origin =
        Origin::answering("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            .await;
    let bench = Bench::new(&settings(origin.address));
    let error = bench.send(request(Method::GET, "/")).await.unwrap_err();
    assert_eq!((error.kind, error.status()), (FailureKind::UnexpectedSwitching, 502));
    assert_eq!(bench.upstream.gauges(), Gauges::default());
}

fn upgrade() -> Request<RequestBody> {
    let mut asked = request(Method::GET, "/chat");
    asked.headers_mut().insert("connection", "upgrade".parse().unwrap());
    asked.headers_mut().insert("upgrade", "WebSocket".parse().unwrap());
    asked
}

#[tokio::test]
async fn b106_a_switch_to_what_was_not_offered_is_502() {
    for upgrade_line in ["Upgrade: h2c\r\n", "", "Upgrade: websocket, h2c\r\n"] {
        let origin = Origin::answering(format!("HTTP/1.1 101 Switching Protocols\r\n{upgrade_line}\r\n")).await;
        let bench = Bench::new(&settings(origin.address));
        let error = bench.send(upgrade()).await.unwrap_err();
        assert_eq!(error.kind, FailureKind::UnexpectedSwitching, "{upgrade_line}");
    }
}

#[tokio::test]
async fn b106_tunnel_both_ways() {
    const SIZE: usize = 10 << 20;
    let origin = Origin::start(|mut peer| async move {
        peer.head().await;
        peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nearly")
            .await;
        peer.echo().await;
    })
    .await;
    let bench = Bench::new(&config::Upstream {
        connections: 1,
        queue: 0,
        ..settings(origin.address)
    });
    let response = bench.send(upgrade()).await.unwrap();
    assert_eq!(response.head.status, StatusCode::SWITCHING_PROTOCOLS);
    let tunnel = response.upgraded.unwrap();
    assert_eq!(bench.upstream.gauges().active, 1);
    assert_eq!(
        bench.get("/").await,
        Err(FailureKind::QueueFull),
        "the tunnel counts as a connection"
    );

    let (mut from, mut to) = tokio::io::split(tunnel);
    let write = async {
        to.write_all(&vec![7; SIZE]).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let mut early = [0; 5];
    within(from.read_exact(&mut early)).await.unwrap();
    assert_eq!(&early, b"early");
    let mut back = Vec::new();
    let (_, read) = within(async { tokio::join!(write, from.read_to_end(&mut back)) }).await;
    assert_eq!(read.unwrap(), SIZE);
    assert!(back.iter().all(|byte| *byte == 7));
    drop((from, to));
    assert_eq!(bench.upstream.gauges(), Gauges::default());
    assert!(bench.seen.sent.load(SeqCst) > SIZE as u64);
}

#[tokio::test]
async fn b106_an_offer_may_be_declined() {
    for status in [200, 426] {
        let origin = Origin::answering(format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\nno")).await;
        let bench = Bench::new(&settings(origin.address));
        let mut response = bench.send(upgrade()).await.unwrap();
        assert!(response.upgraded.is_none());
        assert_eq!(read(&mut response.body).await.unwrap(), "no");
        assert_eq!(bench.upstream.gauges().idle, 1);
    }
}
