//! A request that waits for something, from its start to the line it leaves in counters and log.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use http::{HeaderValue, Method, StatusCode, header};

use super::account::account;
use super::client_side::{ClientSide, client_side};
use super::connection::{Connection, Continue};
use super::deliver::{Delivered, Manner, Output};
use super::stream::ClientGone;
use super::tunnel;
use super::upload::Uploaded;
use super::worker::Worker;
use crate::access_log::Entry;
use crate::clock::{Moment, unix_ms};
use crate::engine::{
    Answer, AnswerBody, CacheStore, CachedObject, Finding, ForwardPlan, Forwarding, Found, Persistence, Request, Route,
    Wanted, append_interim,
};
use crate::http1::response::PageBody;
use crate::http1::{self, Reject, Version};
use crate::origin::{OriginTunnel, RequestBody};
use crate::outcome::Outcome;
use crate::traffic::UNKNOWN;

/// A request on its way out of the fast path.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) request: Request,
    pub(super) framing: http1::Framing,
    pub(super) expect_continue: bool,
    pub(super) persistent: bool,
    pub(super) route: Option<Route>,
    pub(super) task: Task,
}

/// What is to be done for it.
#[derive(Debug)]
pub(super) enum Task {
    Forward {
        route: Route,
        key: Arc<[u8]>,
        plan: ForwardPlan,
    },
    /// The answer, or its body, may have to be read from a disk.
    Load {
        route: Route,
        key: Arc<[u8]>,
        wanted: Wanted,
        found: Option<Arc<CachedObject>>,
    },
    Purge {
        key: Arc<[u8]>,
    },
    /// Larder answers by itself.
    Say(StatusCode, &'static str),
}

/// Interim answers (1xx) that may wait for a client to take them; more are dropped, as RFC 9110 section 15.2 allows.
const INTERIM_MAX: usize = 16;

/// Status of requests whose client left before its answer, in counters and log; nginx's word for it.
const CLIENT_CLOSED_REQUEST: u16 = 499;

pub(super) async fn run(connection: &mut Connection, start: Box<Start>) -> Result<Continue, ClientGone> {
    let Start {
        request,
        framing,
        expect_continue,
        persistent,
        route,
        task,
    } = *start;
    let worker = Arc::clone(&connection.worker);
    let request = Arc::new(request);
    let counters = route
        .as_ref()
        .map_or_else(|| worker.shared().traffic.unknown(), |route| &route.vhost.counters);
    let _in_flight = counters.enter();
    connection.stream.deadline.clear();
    let mut talk = Talk::new(Arc::clone(&request), framing, persistent);
    let result = match task {
        Task::Forward { route, key, plan } => {
            let forwarding = Forwarding {
                worker: Arc::clone(&worker),
                request,
                route,
                key,
                plan,
            };
            talk.forward(connection, forwarding, expect_continue).await
        }
        Task::Load {
            route,
            key,
            wanted,
            found,
        } => {
            let finding = Finding {
                worker: Arc::clone(&worker),
                request,
                route,
                key,
                wanted,
                found,
            };
            match Box::pin(finding.find()).await {
                Found::Answer(answer) => talk.local(connection, *answer).await,
                Found::Forward(forwarding) => talk.forward(connection, *forwarding, expect_continue).await,
            }
        }
        Task::Purge { key } => {
            let answer = purge(&worker.shared().store, &key).await;
            talk.local(connection, answer).await
        }
        Task::Say(status, text) => talk.local(connection, Answer::local(status, text, Outcome::NONE)).await,
    };
    account(&worker, route.as_ref(), &talk.entry(route.as_ref()));
    result
}

/// Acknowledged once a restart can't undo it.
async fn purge(store: &CacheStore, key: &[u8]) -> Answer {
    let purged = match store.purge_durably(key).await {
        Ok(purged) => purged,
        Err(error) => {
            tracing::warn!(%error, "a purge may not outlive a restart");
            return Answer::local(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}."), Outcome::NONE);
        }
    };
    let body = serde_json::json!({
        "state": "done",
        "matched": purged.variants,
        "bytes": purged.bytes,
        "key": crate::key::url(key),
        "fence": purged.fence,
    });
    let json = HeaderValue::from_static("application/json");
    Answer::document(
        StatusCode::OK,
        json,
        format!("{body}\n").into_bytes().into(),
        Outcome::NONE,
    )
}

/// One request and what is known of its answer so far.
struct Talk {
    request: Arc<Request>,
    framing: http1::Framing,
    persistent: bool,
    body_received: u64,
    outcome: Outcome,
    status: u16,
    sent: u64,
    origin_us: Option<u64>,
}

impl Talk {
    const fn new(request: Arc<Request>, framing: http1::Framing, persistent: bool) -> Self {
        Self {
            request,
            framing,
            persistent,
            body_received: 0,
            outcome: Outcome::NONE,
            status: CLIENT_CLOSED_REQUEST,
            sent: 0,
            origin_us: None,
        }
    }

    fn entry<'a>(&'a self, route: Option<&'a Route>) -> Entry<'a> {
        let field = |name| self.request.fields.get(name).map(HeaderValue::as_bytes);
        Entry {
            unix_ms: unix_ms(),
            client: self.request.client.ip(),
            vhost: route.map_or(UNKNOWN, |route| &route.vhost.name),
            rule: route.map_or("", |route| &route.rule.name),
            method: self.request.method.as_str().as_bytes(),
            host: self.request.authority.as_bytes(),
            target: &self.request.raw_target,
            version: self.request.version,
            status: self.status,
            bytes_sent: self.sent,
            bytes_received: self.request.bytes_received + self.body_received,
            duration_us: Moment::now().micros_since(self.request.started),
            outcome: &self.outcome,
            origin_us: self.origin_us,
            referer: field(header::REFERER),
            user_agent: field(header::USER_AGENT),
        }
    }

    /// An answer for which the request's body is not wanted.
    async fn local(&mut self, connection: &mut Connection, mut answer: Answer) -> Result<Continue, ClientGone> {
        let boot = &connection.worker.shared().boot;
        let draining = connection.worker.shared().is_draining();
        let (_, half) = connection.stream.socket.split();
        let mut output = Output::new(half, &connection.stream.deadline, boot.timeouts.write);
        let keep = !draining && matches!(self.framing, http1::Framing::None | http1::Framing::Length(0));
        let end = self.deliver(&mut output, &mut answer, keep).await;
        self.sent = output.sent;
        end
    }

    async fn forward(
        &mut self,
        connection: &mut Connection,
        forwarding: Forwarding,
        expect_continue: bool,
    ) -> Result<Continue, ClientGone> {
        let worker = Arc::clone(&connection.worker);
        let boot = &worker.shared().boot;
        let body_deadline = worker.deadlines.add();
        let has_body = self.framing != http1::Framing::None;
        let early = if has_body {
            std::mem::take(&mut connection.carry)
        } else {
            Vec::new()
        };
        let (ended, rest) = {
            let (half, output) = connection.stream.socket.split();
            let mut output = Output::new(output, &connection.stream.deadline, boot.timeouts.write);
            let received = AtomicU64::new(0);
            let (side, body) = client_side(self.framing, early, half, &body_deadline, boot, &received);
            let mut client = ClientSide {
                future: pin!(side),
                end: None,
            };
            let ended = self
                .converse(&mut output, &mut client, forwarding, body, expect_continue)
                .await;
            self.sent = output.sent;
            self.body_received = received.load(Ordering::Relaxed);
            (ended, client.end)
        };
        if let Some(Uploaded::Whole { rest }) = rest {
            connection.carry = rest;
        }
        connection.carry_is_new = true;
        match ended? {
            End::Continue(goes_on) => Ok(goes_on),
            End::Tunnel(tunnel) => {
                self.tunnel(connection, *tunnel).await;
                Ok(Continue::No)
            }
        }
    }

    /// Waits for the answer while the body goes up, then sends it, while the rest of the body still may.
    async fn converse(
        &mut self,
        output: &mut Output<'_>,
        client: &mut ClientSide<'_, impl Future<Output = Uploaded>>,
        forwarding: Forwarding,
        body: RequestBody,
        expect_continue: bool,
    ) -> Result<End, ClientGone> {
        let worker = Arc::clone(&forwarding.worker);
        if expect_continue && self.framing != http1::Framing::None {
            // Answered here, at once: waiting for an origin that may not know the expectation would only cost time.
            output.write_all(&[b"HTTP/1.1 100 Continue\r\n\r\n"]).await?;
        }
        let mut answer = match self.wait_for_answer(output, client, forwarding, body).await? {
            Ok(answer) => answer,
            Err(reject) => return self.reject(output, reject, &worker).await.map(End::Continue),
        };
        let keep = client.is_whole(self.framing) && !worker.shared().is_draining();
        let body = std::mem::replace(&mut answer.body, AnswerBody::EMPTY);
        if let AnswerBody::Tunnel(tunnel) = body {
            self.deliver(output, &mut answer, true).await?;
            return Ok(End::Tunnel(tunnel));
        }
        answer.body = body;
        let mut delivering = pin!(self.deliver(output, &mut answer, keep));
        loop {
            tokio::select! {
                biased;
                end = &mut delivering => return end.map(End::Continue),
                gone = client.wait() => if let Some(gone) = gone { return Err(gone) },
            }
        }
    }

    async fn wait_for_answer(
        &self,
        output: &mut Output<'_>,
        client: &mut ClientSide<'_, impl Future<Output = Uploaded>>,
        forwarding: Forwarding,
        body: RequestBody,
    ) -> Result<Result<Answer, Reject>, ClientGone> {
        let (tell, mut told) = tokio::sync::mpsc::channel(INTERIM_MAX);
        let interim = (self.request.version == Version::Http11).then_some(tell);
        let mut answering = Box::pin(forwarding.answer(body, interim));
        loop {
            tokio::select! {
                biased;
                Some(interim) = told.recv() => {
                    let mut head = Vec::new();
                    append_interim(interim, &mut head);
                    output.write_all(&[&head]).await?;
                }
                answer = &mut answering => return Ok(Ok(answer)),
                gone = client.wait() => match (gone, client.take_reject()) {
                    (Some(gone), _) => return Err(gone),
                    (None, Some(reject)) => return Ok(Err(reject)),
                    (None, None) => {}
                },
            }
        }
    }

    /// The body broke the protocol before an answer began: that is the answer.
    async fn reject(
        &mut self,
        output: &mut Output<'_>,
        reject: Reject,
        worker: &Worker,
    ) -> Result<Continue, ClientGone> {
        worker.shared().traffic.connections().malformed(reject.reason);
        let page = http1::response::reject_page(reject, PageBody::Sent, SystemTime::now());
        self.status = reject.status;
        output.write_all(&[&page]).await?;
        Ok(Continue::Linger)
    }

    /// Sends the answer. `keep`: nothing but the answer itself stands against using the connection again.
    async fn deliver(
        &mut self,
        output: &mut Output<'_>,
        answer: &mut Answer,
        keep: bool,
    ) -> Result<Continue, ClientGone> {
        let persistent = keep && self.persistent && !answer.close;
        self.status = answer.head.status.as_u16();
        self.outcome = answer.outcome;
        self.origin_us = answer.origin_us;
        let manner = Manner {
            version: self.request.version,
            persistence: if persistent {
                Persistence::KeepAlive
            } else {
                Persistence::Close
            },
            head_only: self.request.method == Method::HEAD,
        };
        Ok(match output.deliver(answer, manner).await? {
            Delivered::Whole if persistent && manner.keeps_connection(answer) => Continue::Yes,
            // Who asked for the end sends nothing more that could turn it into a reset.
            Delivered::Whole if keep && !self.persistent => Continue::No,
            Delivered::Whole => Continue::Linger,
            Delivered::BrokenOff if manner.keeps_connection(answer) => Continue::No,
            Delivered::BrokenOff => Continue::Reset,
        })
    }

    async fn tunnel(&mut self, connection: &mut Connection, tunnel: OriginTunnel) {
        let shared = connection.worker.shared();
        shared.traffic.connections().upgraded();
        connection.stream.deadline.clear();
        let early = std::mem::take(&mut connection.carry);
        let idle = shared.boot.timeouts.idle;
        let (to_origin, to_client) = tunnel::run(&mut connection.stream.socket, tunnel, &early, idle).await;
        self.body_received += to_origin;
        self.sent += to_client;
    }
}

/// How a conversation ends.
enum End {
    Continue(Continue),
    Tunnel(Box<OriginTunnel>),
}
