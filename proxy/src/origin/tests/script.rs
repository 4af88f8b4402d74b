//! A raw origin: each connection runs a script that says, byte for byte, what a server may do wrong.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(super) struct Origin {
    pub(super) address: SocketAddr,
    log: Arc<Log>,
    listening: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    connections: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

/// The origin's end of one connection.
pub(super) struct Peer {
    stream: TcpStream,
    unread: Vec<u8>,
    log: Arc<Log>,
    /// Counts from 1.
    pub(super) number: usize,
}

impl Origin {
    pub(super) async fn start<F, S>(script: S) -> Self
    where
        S: Fn(Peer) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::<Log>::default();
        let shared = Arc::clone(&log);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let number = shared.connections.fetch_add(1, SeqCst) + 1;
                tokio::spawn(script(Peer {
                    stream,
                    unread: Vec::new(),
                    log: Arc::clone(&shared),
                    number,
                }));
            }
        });
        Self {
            address,
            log,
            listening,
        }
    }

    /// Answers every request on every connection with these bytes.
    pub(super) async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |mut peer| {
            let bytes = bytes.clone();
            async move {
                while peer.head().await.is_some() {
                    peer.send(&bytes).await;
                }
            }
        })
        .await
    }

    /// Answers the first request of every connection with these bytes, and closes.
    pub(super) async fn closing_after(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |mut peer| {
            let bytes = bytes.clone();
            async move {
                peer.head().await;
                peer.send(&bytes).await;
            }
        })
        .await
    }

    pub(super) fn connections(&self) -> usize {
        self.log.connections.load(SeqCst)
    }

    /// The request heads in the order of their arrival.
    pub(super) fn requests(&self) -> Vec<String> {
        self.log.requests.lock().clone()
    }

    /// How many requests began so.
    pub(super) fn count(&self, start: &str) -> usize {
        self.log
            .requests
            .lock()
            .iter()
            .filter(|head| head.starts_with(start))
            .count()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Peer {
    /// The next request head; `None` at the end of the connection.
    pub(super) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                let rest = self.unread.split_off(end + 4);
                let head = String::from_utf8(std::mem::replace(&mut self.unread, rest)).unwrap();
                self.log.requests.lock().push(head.clone());
                return Some(head);
            }
            self.more().await?;
        }
    }

    /// So many bytes that follow a head.
    pub(super) async fn exactly(&mut self, count: usize) -> Option<String> {
        while self.unread.len() < count {
            self.more().await?;
        }
        let rest = self.unread.split_off(count);
        Some(String::from_utf8(std::mem::replace(&mut self.unread, rest)).unwrap())
    }

    /// All that still comes until the other side closes or resets.
    pub(super) async fn rest(&mut self) -> String {
        while self.more().await.is_some() {}
        String::from_utf8(std::mem::take(&mut self.unread)).unwrap()
    }

    /// All up to these bytes, or to the end.
    pub(super) async fn until(&mut self, end: &str) -> String {
        while !String::from_utf8_lossy(&self.unread).contains(end) {
            if self.more().await.is_none() {
                break;
            }
        }
        String::from_utf8(std::mem::take(&mut self.unread)).unwrap()
    }

    /// Sends back what comes, until it ends.
    pub(super) async fn echo(&mut self) {
        let (mut from, mut to) = self.stream.split();
        let _ = tokio::io::copy(&mut from, &mut to).await;
    }

    async fn more(&mut self) -> Option<()> {
        match self.stream.read_buf(&mut self.unread).await {
            Ok(count) if count > 0 => Some(()),
            _ => None,
        }
    }

    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Closes with RST.
    pub(super) fn reset(self) {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }
}

/// A 200 with this body and its length.
pub(super) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
