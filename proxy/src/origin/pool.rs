//! Sends a request to an upstream: takes or opens a connection, exchanges, retries once where that is safe, judges the
//! answer.

use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, Uri, Version};
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::Observe;
use super::connection::Connection;
use super::exchange::{Failed, Interim, Limits, exchange};
use super::failure::{FailureKind, FetchError};
use super::gate::{Full, Grant, Permit};
use super::request_body::{RequestBody, Upload};
use super::response::{Account, Delimited, Lease, OriginBody, OriginResponse, OriginTunnel, Patience, Timing};
use super::upstream::Upstream;
use super::verdict::{Asked, judge};

/// One worker's hold on the upstreams: which idle connections it takes first, and where it lays its own.
#[derive(Debug, Clone, Copy)]
pub struct Pool {
    worker: usize,
}

/// A connection to try, and how it came about.
struct Taken {
    connection: Connection,
    reused: bool,
    waited: Duration,
}

/// One call of [`Pool::send`].
struct Call<'a> {
    worker: usize,
    upstream: &'a Arc<Upstream>,
    observe: Arc<dyn Observe>,
    interim: Arc<Interim>,
    asked: Asked,
    limits: Limits,
    began: Instant,
}

impl Pool {
    /// `worker` counts from 0 to the number of workers that the upstreams were made for.
    #[must_use]
    pub const fn new(worker: usize) -> Self {
        Self { worker }
    }

    /// Sends the request and gives the final answer's head; its body follows through [`OriginBody::chunk`].
    ///
    /// The fields must be those to send ([`super::forward::request_headers`]); framing is set here, from the body.
    /// Interim answers other than 100 go to `interim`, or nowhere. Dropping the future closes the connection.
    pub async fn send(
        &self,
        upstream: &Arc<Upstream>,
        request: Request<RequestBody>,
        interim: Option<mpsc::Sender<Response<()>>>,
        observe: Arc<dyn Observe>,
    ) -> Result<OriginResponse, FetchError> {
        let request = outgoing(request);
        let began = Instant::now();
        let call = Call {
            worker: self.worker,
            upstream,
            observe,
            interim: Interim::new(interim),
            asked: Asked::of(request.method(), request.headers()),
            limits: Limits {
                timeouts: upstream.timeouts,
                total: upstream.timeouts.total.map(|total| began + total),
            },
            began,
        };
        // Some 8 KiB of state, which the caller's own future (one per client connection) is spared.
        Box::pin(call.run(request)).await
    }
}

impl Call<'_> {
    async fn run(mut self, request: Request<RequestBody>) -> Result<OriginResponse, FetchError> {
        let taken = self.counted(self.checkout().await)?;
        let (failed, permit) = match self.attempt(taken, request, false).await {
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        self.observe.failure(failed.error.kind);
        let (Some(again), Some(permit)) = (failed.again, permit) else {
            return Err(failed.error);
        };
        self.observe.retry();
        self.began = Instant::now();
        let deadline = self.limits.within(self.limits.timeouts.connect);
        let fresh = self.counted(self.open(permit, deadline).await)?;
        self.attempt(fresh, *again, true).await.map_err(|(failed, _)| {
            self.observe.failure(failed.error.kind);
            failed.error
        })
    }

    fn counted<T>(&self, result: Result<T, FetchError>) -> Result<T, FetchError> {
        result.inspect_err(|error| self.observe.failure(error.kind))
    }

    /// An idle connection, else a fresh one, else one that another request gives back: all within the connect deadline.
    async fn checkout(&self) -> Result<Taken, FetchError> {
        let gate = &self.upstream.gate;
        while let Some(connection) = gate.take(self.worker) {
            if connection.wake(self.upstream.idle_max()) {
                return Ok(self.reuse(connection));
            }
        }
        let deadline = self.limits.within(self.limits.timeouts.connect);
        let grant = match timeout_at(deadline, gate.acquire(self.worker)).await {
            Ok(Ok(grant)) => grant,
            Ok(Err(Full)) => return Err(FailureKind::QueueFull.into()),
            Err(_) => return Err(self.late(FailureKind::QueueTimeout)),
        };
        let permit = match grant {
            Grant::Open(permit) => permit,
            Grant::Idle(connection) if connection.wake(self.upstream.idle_max()) => {
                return Ok(self.reuse(connection));
            }
            Grant::Idle(closed) => closed.into_permit().ok_or(FailureKind::ConnectFailed)?,
        };
        self.open(permit, deadline).await
    }

    fn reuse(&self, connection: Connection) -> Taken {
        self.observe.reuse();
        Taken {
            connection,
            reused: true,
            waited: self.began.elapsed(),
        }
    }

    async fn open(&self, permit: Permit<Connection>, deadline: Instant) -> Result<Taken, FetchError> {
        let connection = self
            .upstream
            .open(permit, deadline)
            .await
            .map_err(|error| match error.kind {
                FailureKind::ConnectTimeout => self.late(FailureKind::ConnectTimeout),
                _ => error,
            })?;
        self.observe.connect();
        Ok(Taken {
            connection,
            reused: false,
            waited: self.began.elapsed(),
        })
    }

    fn late(&self, kind: FailureKind) -> FetchError {
        if self.limits.is_spent() {
            FailureKind::TotalTimeout.into()
        } else {
            kind.into()
        }
    }

    /// A failure comes with the failed connection's place where it may be tried again.
    async fn attempt(
        &self,
        taken: Taken,
        request: Request<RequestBody>,
        retried: bool,
    ) -> Result<OriginResponse, (Failed, Option<Permit<Connection>>)> {
        let Taken {
            mut connection,
            reused,
            waited,
        } = taken;
        self.observe.attempt();
        let account = Account::begin(Arc::clone(&self.observe), Arc::clone(&connection.meter));
        let upload = request.body().upload();
        let exchanged = exchange(&mut connection, reused, request, &self.interim, &account, self.limits).await;
        let response = match exchanged {
            Ok(response) => response,
            Err(failed) => return Err((failed, connection.into_permit())),
        };
        let first_byte = self.began.elapsed();
        let latency_us = u64::try_from(first_byte.as_micros()).unwrap_or(u64::MAX);
        self.observe.response(response.status().as_u16(), latency_us);
        let timing = Timing {
            connect: waited,
            first_byte,
            reused,
            retried,
        };
        self.accept(response, connection, account, upload, timing)
            .await
            .map_err(|kind| (Failed::from(kind), None))
    }

    async fn accept(
        &self,
        response: Response<Incoming>,
        connection: Connection,
        account: Account,
        upload: Arc<Upload>,
        timing: Timing,
    ) -> Result<OriginResponse, FailureKind> {
        let (mut head, incoming) = response.into_parts();
        let framing = judge(&self.asked, &mut head)?;
        let patience = Patience {
            between_bytes: self.limits.timeouts.between_bytes,
            total: self.limits.total,
        };
        let (lease, upgraded) = match head.extensions.remove::<hyper::upgrade::OnUpgrade>() {
            Some(switch) => {
                let deadline = self.limits.within(self.limits.timeouts.first_byte);
                let switched = timeout_at(deadline, switch)
                    .await
                    .map_err(|_| FailureKind::FirstByteTimeout)?;
                let upgraded = switched.map_err(|_| FailureKind::Truncated)?;
                (None, Some(OriginTunnel::new(upgraded, account, connection)))
            }
            None => {
                let gate = Arc::clone(&self.upstream.gate);
                let (persistent, worker) = (framing.persistent, self.worker);
                (
                    Some(Lease {
                        connection,
                        account,
                        upload,
                        persistent,
                        gate,
                        worker,
                    }),
                    None,
                )
            }
        };
        Ok(OriginResponse {
            head,
            body: OriginBody::new(incoming, lease, patience),
            framing_ambiguous: framing.ambiguous,
            known_length: match framing.delimited {
                Delimited::Bodiless => Some(0),
                Delimited::Length(length) => Some(length),
                Delimited::Chunked | Delimited::Close => None,
            },
            delimited: framing.delimited,
            upgraded,
            timing,
        })
    }
}

/// The request as it goes out: origin form, HTTP/1.1 (hyper panics at other versions), and one framing that is the
/// body's own.
fn outgoing(request: Request<RequestBody>) -> Request<RequestBody> {
    let (mut head, body) = request.into_parts();
    head.version = Version::HTTP_11;
    head.extensions.clear();
    if head.uri.authority().is_some() && head.method != Method::CONNECT {
        head.uri = origin_form(&head.uri);
    }
    frame(&mut head.headers, &head.method, &body);
    Request::from_parts(head, body)
}

fn origin_form(uri: &Uri) -> Uri {
    // The default is `/`.
    uri.path_and_query().cloned().map(Uri::from).unwrap_or_default()
}

/// hyper drops a body of unknown length from a GET unless its framing is said here.
fn frame(headers: &mut HeaderMap, method: &Method, body: &RequestBody) {
    headers.remove(header::TRANSFER_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    match body.length() {
        // RFC 9110 section 8.6: said where the method anticipates content.
        Some(0) if matches!(*method, Method::POST | Method::PUT | Method::PATCH) => {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(0));
        }
        Some(0) => {}
        Some(length) => {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        None => {
            headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
}
