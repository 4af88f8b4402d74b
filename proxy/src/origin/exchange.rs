//! One request over one connection up to the final head: interim answers, deadlines, and what a failure allows.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::connection::Connection;
use super::failure::{FailureKind, FetchError};
use super::meter::Meter;
use super::request_body::{RequestBody, Upload};
use super::response::Account;
use crate::config::UpstreamTimeouts;

/// Interim answers to one request. A server has no use for many, and each costs a parse and a message to the client.
const INTERIM_MAX: u32 = 16;

/// Where interim answers go. They are counted over both attempts.
#[derive(Debug)]
pub(super) struct Interim {
    count: AtomicU32,
    flood: Notify,
    receiver: Option<mpsc::Sender<Response<()>>>,
}

impl Interim {
    pub(super) fn new(receiver: Option<mpsc::Sender<Response<()>>>) -> Arc<Self> {
        Arc::new(Self {
            count: AtomicU32::new(0),
            flood: Notify::new(),
            receiver,
        })
    }

    /// Called by hyper within its poll, so it can't wait: what the receiver has no room for is dropped, as RFC 9110
    /// section 15.2 allows a proxy. 100 is never handed on, since Expect was not.
    fn take(&self, status: StatusCode, headers: &HeaderMap) {
        if self.count.fetch_add(1, Relaxed) >= INTERIM_MAX {
            self.flood.notify_one();
            return;
        }
        if status == StatusCode::CONTINUE {
            return;
        }
        if let Some(receiver) = &self.receiver {
            let mut interim = Response::new(());
            *interim.status_mut() = status;
            *interim.headers_mut() = headers.clone();
            let _ = receiver.try_send(interim);
        }
    }

    fn attach(self: &Arc<Self>, request: &mut Request<RequestBody>) {
        let interim = Arc::clone(self);
        hyper::ext::on_informational(request, move |answer| interim.take(answer.status(), answer.headers()));
    }
}

/// Without an answer: why, and whether the request may be sent once more on a fresh connection.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: FetchError,
    pub(super) again: Option<Box<Request<RequestBody>>>,
}

/// A copy to send again, where that could do no harm: an idempotent method (RFC 9110 section 9.2.2) without a body.
fn spare(request: &Request<RequestBody>) -> Option<Box<Request<RequestBody>>> {
    let idempotent = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    );
    if !idempotent || !request.body().is_empty() {
        return None;
    }
    let mut copy = Request::new(RequestBody::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(Box::new(copy))
}

/// `reused`: the origin may have closed the connection while the request was on its way, which is nobody's fault and
/// the only failure that is worth a second try.
pub(super) async fn exchange(
    connection: &mut Connection,
    reused: bool,
    mut request: Request<RequestBody>,
    interim: &Arc<Interim>,
    account: &Account,
    limits: Limits,
) -> Result<Response<Incoming>, Failed> {
    let upload = request.body().upload();
    let spare = if reused { spare(&request) } else { None };
    interim.attach(&mut request);
    let meter = Arc::clone(&connection.meter);
    let answer = connection.sender.try_send_request(request);
    let mut failure = tokio::select! {
        biased;
        answer = answer => match answer {
            Ok(response) => return Ok(response),
            Err(failure) => failure,
        },
        () = interim.flood.notified() => return Err(FailureKind::MalformedResponse.into()),
        kind = limits.exceeded(&upload, &meter) => return Err(kind.into()),
    };
    let unsent = failure.take_message().map(Box::new);
    let kind = match &unsent {
        Some(_) if account.is_silent() || reused => FailureKind::ClosedBeforeResponse,
        Some(_) => FailureKind::MalformedResponse,
        None => kind_of(failure.error(), &upload, account),
    };
    let again = match unsent {
        Some(unsent) if reused => Some(unsent),
        _ if kind == FailureKind::ClosedBeforeResponse => spare,
        _ => None,
    };
    Err(Failed {
        error: FetchError::caused(kind, failure.into_error()),
        again,
    })
}

fn kind_of(error: &hyper::Error, upload: &Upload, account: &Account) -> FailureKind {
    if upload.is_broken() {
        FailureKind::RequestBody
    } else if error.is_parse() {
        FailureKind::MalformedResponse
    } else if account.is_silent() {
        FailureKind::ClosedBeforeResponse
    } else {
        FailureKind::Truncated
    }
}

impl From<FailureKind> for Failed {
    fn from(kind: FailureKind) -> Self {
        Self {
            error: kind.into(),
            again: None,
        }
    }
}

/// The deadlines of one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) timeouts: UpstreamTimeouts,
    pub(super) total: Option<Instant>,
}

impl Limits {
    /// `span` from now, but not beyond the total.
    pub(super) fn within(&self, span: std::time::Duration) -> Instant {
        let end = Instant::now() + span;
        self.total.map_or(end, |total| total.min(end))
    }

    /// A deadline that passed was the total one.
    pub(super) fn is_spent(&self) -> bool {
        self.total.is_some_and(|total| total <= Instant::now())
    }

    /// While the body goes out only a socket that takes nothing counts: how fast the client sends is the front's
    /// matter. From then on the head has `first_byte`, whether the connection is new or not.
    async fn exceeded(&self, upload: &Upload, meter: &Meter) -> FailureKind {
        tokio::select! {
            () = upload.over() => {}
            () = meter.stalled(self.timeouts.between_bytes) => return FailureKind::SendTimeout,
            () = until(self.total) => return FailureKind::TotalTimeout,
        }
        sleep_until(self.within(self.timeouts.first_byte)).await;
        if self.is_spent() {
            FailureKind::TotalTimeout
        } else {
            FailureKind::FirstByteTimeout
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
