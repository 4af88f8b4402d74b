//! The origin as a server: its own thread, a loopback port of the system's choice, and a count of requests by path, so that one
//! can see how many reached it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

use super::pages::{Pages, plain};

/// The cache in front keeps far fewer.
const CONNECTIONS_MAX: usize = 256;
/// Paths that are counted; the rest share the row `*`.
const PATHS_MAX: usize = 1000;
const HEADER_MAX: Duration = Duration::from_secs(10);
/// Long enough for a second request to come in the meantime.
const SLOW: Duration = Duration::from_secs(1);

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    pub fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("demo-origin".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serve(listener) => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // Dropping the sender stops the server as well as sending would.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener) {
    let state = Arc::new(State {
        pages: Pages::new(),
        counts: Mutex::default(),
        serial: AtomicU64::new(0),
    });
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        // Out of descriptors, accept fails at once and again; the pause keeps that from being a busy loop.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&state, request));
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEADER_MAX);
            // A connection that breaks is the client's to notice.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
            drop(slot);
        });
    }
}

#[derive(Debug)]
struct State {
    pages: Pages,
    counts: Mutex<BTreeMap<String, u64>>,
    serial: AtomicU64,
}

async fn answer(state: &State, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    if path == "/__count" {
        return Ok(state.count(request.uri().query().unwrap_or_default()));
    }
    state.note(path);
    if path == "/api/slow" {
        tokio::time::sleep(SLOW).await;
    }
    let serial = state.serial.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(state.pages.answer(request.method(), path, request.headers(), serial))
}

impl State {
    fn note(&self, path: &str) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(path) {
            *count += 1;
            return;
        }
        let row = if counts.len() < PATHS_MAX { path } else { "*" };
        *counts.entry(row.to_owned()).or_default() += 1;
    }

    /// `path=/about` asks for one path; without it all are listed.
    fn count(&self, query: &str) -> Response<Full<Bytes>> {
        let counts = self.counts.lock();
        let text = match query.strip_prefix("path=") {
            Some(path) => format!("{}\n", counts.get(&path.replace("%2F", "/")).unwrap_or(&0)),
            None => counts
                .iter()
                .map(|(path, count)| format!("{count:>8}  {path}\n"))
                .collect(),
        };
        plain(StatusCode::OK, text)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn get(origin: &Origin, target: &str) -> String {
        let mut stream = TcpStream::connect(origin.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: www.example.test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn requests_are_counted_by_path() {
        let origin = Origin::start().unwrap();
        for target in ["/about", "/about?x=1", "/nowhere"] {
            get(&origin, target);
        }
        for (target, expected) in [
            ("/__count?path=/about", "\r\n\r\n2\n"),
            ("/__count?path=%2Fnowhere", "\r\n\r\n1\n"),
            ("/__count?path=/never", "\r\n\r\n0\n"),
            ("/__count", "\r\n\r\n       2  /about\n       1  /nowhere\n"),
        ] {
            let answer = get(&origin, target);
            assert!(answer.ends_with(expected), "{target}: {answer}");
        }
    }

    #[test]
    fn a_dropped_origin_lets_go_of_its_port() {
        let origin = Origin::start().unwrap();
        let address = origin.address();
        let answer = get(&origin, "/");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        drop(origin);
        assert!(TcpStream::connect(address).is_err());
    }
}
