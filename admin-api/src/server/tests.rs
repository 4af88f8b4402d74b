use std::time::Duration;

use axum::routing::{get, post};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

/// Longer than anything here takes; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

const LIMITS: Limits = Limits {
    connections: 2,
    header: Duration::from_millis(200),
    write: Duration::from_millis(200),
    drain: Duration::from_secs(5),
};

struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(app: Router, limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(listener, app, limits, async move {
            let _ = stopped.await;
        }));
        Self { address, stop, task }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// All until the server closes. A reset counts as closed.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = within(stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One answer with a body of `ok`.
async fn ask(stream: &mut TcpStream) {
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\nok") {
        assert_ne!(
            within(stream.read_buf(&mut seen)).await.unwrap(),
            0,
            "{:?}",
            String::from_utf8_lossy(&seen)
        );
    }
}

fn app() -> Router {
    Router::new().route("/", get(async || "ok"))
}

#[tokio::test]
async fn b103_a_head_that_drips_is_cut_off_at_the_deadline() {
    let server = Server::start(app(), LIMITS).await;
    let begun = Instant::now();
    let (mut reader, mut writer) = server.connect().await.into_split();
    let drip = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
            .iter()
            .copied()
            .chain(std::iter::repeat(b'x'));
        for byte in head {
            ticks.tick().await;
            if writer.write_all(&[byte]).await.is_err() {
                break;
            }
        }
    });
    let mut bytes = Vec::new();
    let _ = within(reader.read_to_end(&mut bytes)).await;
    assert!(!bytes.starts_with(b"HTTP/1.1 200"));
    assert!(begun.elapsed() >= LIMITS.header);
    within(drip).await.unwrap();
}

#[tokio::test]
async fn a_silent_connection_is_closed_before_and_between_requests() {
    let server = Server::start(app(), LIMITS).await;
    let mut silent = server.connect().await;
    rest(&mut silent).await;
    let mut idle = server.connect().await;
    ask(&mut idle).await;
    rest(&mut idle).await;
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let limits = Limits {
        header: PATIENCE,
        ..LIMITS
    };
    let server = Server::start(app(), limits).await;
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    ask(&mut first).await;
    ask(&mut second).await;
    let mut third = server.connect().await;
    assert!(rest(&mut third).await.starts_with("HTTP/1.1 503 "));

    drop(first);
    // The place is free once the server has seen the end of the first.
    within(async {
        loop {
            let mut fourth = server.connect().await;
            fourth
                .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .await
                .unwrap();
            if rest(&mut fourth).await.starts_with("HTTP/1.1 200 ") {
                break;
            }
        }
    })
    .await;
    ask(&mut second).await;
}

#[tokio::test]
async fn an_answer_that_is_not_taken_is_given_up() {
    const LARGE: usize = 64 << 20;
    // The body tells when it is dropped, which is when the server lets go of the connection.
    struct Told(Option<oneshot::Sender<()>>);
    impl AsRef<[u8]> for Told {
        fn as_ref(&self) -> &[u8] {
            const { &[b'x'; LARGE] }
        }
    }
    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.take().map(|told| told.send(()));
        }
    }
    let (told, dropped) = oneshot::channel();
    let body = Arc::new(parking_lot::Mutex::new(Some(Bytes::from_owner(Told(Some(told))))));
    let app = Router::new().route(
        "/",
        get(move || std::future::ready(body.lock().take().unwrap_or_default())),
    );
    let server = Server::start(app, LIMITS).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    within(dropped).await.unwrap();
}

#[tokio::test]
async fn heads_are_bounded() {
    let server = Server::start(app(), LIMITS).await;
    for head in [
        format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
            "x".repeat(HEAD_BYTES_MAX)
        ),
        format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
            "X: y\r\n".repeat(HEADERS_MAX)
        ),
        format!(
            "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "x".repeat(HEAD_BYTES_MAX)
        ),
    ] {
        let mut stream = server.connect().await;
        let _ = stream.write_all(head.as_bytes()).await;
        let answer = rest(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
}

#[tokio::test]
async fn the_caller_is_known_to_the_handlers() {
    let app = Router::new().route(
        "/",
        get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string()),
    );
    let server = Server::start(app, LIMITS).await;
    let mut stream = server.connect().await;
    let own = stream.local_addr().unwrap().to_string();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    assert!(rest(&mut stream).await.ends_with(&own));
}

#[tokio::test]
async fn the_stop_lets_requests_finish_and_closes_the_rest() {
    let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
    let (finish, may_finish) = watch::channel(false);
    let app = app().route(
        "/slow",
        post(async move || {
            begun.send(()).await.unwrap();
            may_finish.clone().wait_for(|finish| *finish).await.unwrap();
            "done"
        }),
    );
    let server = Server::start(
        app,
        Limits {
            header: PATIENCE,
            drain: PATIENCE,
            ..LIMITS
        },
    )
    .await;
    let mut idle = server.connect().await;
    ask(&mut idle).await;
    let mut busy = server.connect().await;
    busy.write_all(b"POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        .await
        .unwrap();
    within(has_begun.recv()).await.unwrap();

    server.stop.send(()).unwrap();
    assert_eq!(rest(&mut idle).await, "");
    finish.send_replace(true);
    let answer = rest(&mut busy).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("done"),
        "{answer}"
    );
    within(server.task).await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn the_stop_does_not_wait_for_ever() {
    let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
    let app = Router::new().route(
        "/",
        get(async move || {
            begun.send(()).await.unwrap();
            std::future::pending::<()>().await;
        }),
    );
    let server = Server::start(
        app,
        Limits {
            drain: Duration::from_millis(50),
            ..LIMITS
        },
    )
    .await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    within(has_begun.recv()).await.unwrap();
    server.stop.send(()).unwrap();
    within(server.task).await.unwrap();
}
