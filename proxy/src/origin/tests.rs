//! Real sockets on loopback against a scripted origin; names say which known case a test is of.

mod deadlines;
mod framing;
mod interim;
mod limits;
mod retry;
mod reuse;
mod script;
mod upload;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use http::{Method, Request};
use parking_lot::Mutex;

use super::*;
use crate::config::{self, UpstreamTimeouts};

/// Far above what anything here takes: reaching it is a hang.
const DEADLINE: Duration = Duration::from_secs(10);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("hangs")
}

/// Lets everything else run until `condition` holds.
async fn eventually(condition: impl Fn() -> bool) {
    within(async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[derive(Debug, Default)]
struct Recorder {
    attempts: AtomicU64,
    connects: AtomicU64,
    reused: AtomicU64,
    retries: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    failures: Mutex<Vec<FailureKind>>,
}

impl Observe for Recorder {
    fn attempt(&self) {
        self.attempts.fetch_add(1, SeqCst);
    }

    fn connect(&self) {
        self.connects.fetch_add(1, SeqCst);
    }

    fn reuse(&self) {
        self.reused.fetch_add(1, SeqCst);
    }

    fn retry(&self) {
        self.retries.fetch_add(1, SeqCst);
    }

    fn failure(&self, kind: FailureKind) {
        self.failures.lock().push(kind);
    }

    fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, SeqCst);
    }

    fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, SeqCst);
    }
}

/// Roomy limits; a test narrows what it is about.
fn settings(address: impl ToString) -> config::Upstream {
    config::Upstream {
        name: "app".to_owned(),
        address: address.to_string(),
        keepalive: 8,
        connections: 64,
        queue: 64,
        timeouts: UpstreamTimeouts {
            connect: DEADLINE,
            first_byte: DEADLINE,
            between_bytes: DEADLINE,
            total: None,
        },
    }
}

/// One worker and one upstream.
struct Bench {
    pool: Pool,
    upstream: Arc<Upstream>,
    seen: Arc<Recorder>,
}

impl Bench {
    fn new(config: &config::Upstream) -> Self {
        Self {
            pool: Pool::new(0),
            upstream: Arc::new(Upstream::new(config, 2)),
            seen: Arc::default(),
        }
    }

    async fn send(&self, request: Request<RequestBody>) -> Result<OriginResponse, FetchError> {
        within(self.pool.send(
            &self.upstream,
            request,
            None,
            Arc::clone(&self.seen) as Arc<dyn Observe>,
        ))
        .await
    }

    /// The whole exchange: status and body, or why not.
    async fn fetch(&self, method: Method, path: &str) -> Result<(u16, String), FailureKind> {
        let mut response = self.send(request(method, path)).await.map_err(|error| error.kind)?;
        let body = read(&mut response.body).await?;
        Ok((response.head.status.as_u16(), body))
    }

    async fn get(&self, path: &str) -> Result<(u16, String), FailureKind> {
        self.fetch(Method::GET, path).await
    }

    fn failures(&self) -> Vec<FailureKind> {
        self.seen.failures.lock().clone()
    }
}

fn request(method: Method, path: &str) -> Request<RequestBody> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "a.test")
        .body(RequestBody::empty())
        .unwrap()
}

async fn read(body: &mut OriginBody) -> Result<String, FailureKind> {
    let mut whole = Vec::new();
    while let Some(piece) = within(body.chunk()).await.map_err(|error| error.kind)? {
        whole.extend_from_slice(&piece);
    }
    Ok(String::from_utf8(whole).unwrap())
}
