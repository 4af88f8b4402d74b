//! One turn of a connection: every request that has come whole and needs no waiting is answered, in order, in one write.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Method, StatusCode};

use super::account::{Ending, account};
use super::buffers::{Buffers, Scratch};
use super::connection::{Connection, Continue};
use super::exchange::{Local, Start};
use super::stream::ClientGone;
use super::unsent::Unsent;
use crate::clock::{Moment, unix_secs};
use crate::engine::{
    CachedObject, Framing, Persistence, Plan, Request, Route, View, append_not_modified, finish_head, is_not_modified, plan,
    route,
};
use crate::http1::{self, Reject, RequestHead, Target as RequestTarget, Version};
use crate::outcome::{CacheStatus, Outcome};

/// A body up to this size is copied behind its head, so that pipelined answers leave in one write; a larger one is handed to
/// the kernel from where it lies.
const COPIED_BODY: u64 = 16 * 1024;

/// Output at which a turn stops to write, however much more input there is.
const OUTPUT_FULL: usize = 128 * 1024;

/// What a turn left to do.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) unsent: Option<Unsent>,
    pub(super) next: Next,
}

#[derive(Debug)]
pub(super) enum Next {
    /// More input is needed.
    Read,
    /// A request that waits for something.
    Exchange(Box<Start>),
    End(Continue),
}

impl Turn {
    pub(super) const fn end(how: Continue) -> Self {
        Self { unsent: None, next: Next::End(how) }
    }

    /// Nothing is left to do but to read on.
    pub(super) const fn is_over(&self) -> bool {
        self.unsent.is_none() && matches!(self.next, Next::Read)
    }
}

/// What became of one request.
enum Step {
    Answered(Persistence),
    /// The head is in the output; the body follows it.
    Large(Arc<CachedObject>, Persistence),
    Wait(Box<Start>),
}

/// Answers what the first `length` bytes of the input hold. What is left of them is carried over.
pub(super) fn take_turn(
    connection: &mut Connection,
    context: &mut Context<'_>,
    buffers: &mut Buffers,
    length: usize,
) -> Result<Turn, ClientGone> {
    let now = Moment::now();
    let Buffers { input, scratch } = buffers;
    scratch.output.clear();
    let input = input.get(..length).unwrap_or_default();
    let mut used = 0;
    let mut next = Next::Read;
    let mut object = None;
    while matches!(next, Next::Read) && object.is_none() && scratch.output.len() < OUTPUT_FULL {
        let rest = input.get(used..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        let mut fields = [httparse::EMPTY_HEADER; http1::HEADERS_MAX];
        match http1::parse(rest, &mut fields, &connection.worker.head_limits) {
            Ok(None) => break,
            Ok(Some((head, head_length))) => {
                used += head_length;
                match answer(connection, &head, head_length, scratch, now) {
                    Step::Answered(persistence) => next = after(persistence),
                    Step::Large(body, persistence) => {
                        object = Some(body);
                        next = after(persistence);
                    }
                    Step::Wait(start) => next = Next::Exchange(start),
                }
            }
            Err(reject) => {
                next = refuse(connection, &reject, scratch);
                used = input.len();
            }
        }
    }
    let stopped_early = object.is_some() || scratch.output.len() >= OUTPUT_FULL;
    connection.carry = input.get(used..).unwrap_or_default().to_vec();
    connection.carry_is_new = stopped_early || matches!(next, Next::Exchange(_));
    if used > 0 {
        connection.in_head = false;
    }
    connection.wait_for_next(now);
    let unsent = send(connection, context, scratch, object)?;
    Ok(Turn { unsent, next })
}

const fn after(persistence: Persistence) -> Next {
    match persistence {
        Persistence::KeepAlive => Next::Read,
        Persistence::Close => Next::End(Continue::Linger),
    }
}

/// Hands the output to the kernel; what it does not take at once is left over.
fn send(
    connection: &mut Connection,
    context: &mut Context<'_>,
    scratch: &mut Scratch,
    object: Option<Arc<CachedObject>>,
) -> Result<Option<Unsent>, ClientGone> {
    if scratch.output.is_empty() && object.is_none() {
        return Ok(None);
    }
    let mut unsent = Unsent::new(std::mem::take(&mut scratch.output), object);
    match unsent.poll_send(context, &mut connection.stream) {
        Poll::Ready(result) => {
            scratch.output = unsent.into_bytes();
            result.map(|()| None)
        }
        Poll::Pending => Ok(Some(unsent)),
    }
}

fn refuse(connection: &Connection, reject: &Reject, scratch: &mut Scratch) -> Next {
    connection.worker.shared().traffic.connections().malformed(reject.reason as usize);
    let before = scratch.output.len();
    http1::append_error(&mut scratch.output, reject, unix_secs());
    let sent = (scratch.output.len() - before) as u64;
    account(&connection.worker, &Ending::unread(connection.peer, reject.status, sent));
    Next::End(Continue::Linger)
}

/// The request function up to the point where it would have to wait.
fn answer(
    connection: &Connection,
    head: &RequestHead<'_, '_>,
    head_length: usize,
    scratch: &mut Scratch,
    now: Moment,
) -> Step {
    let worker = &connection.worker;
    let Scratch { output, target, authority, key } = scratch;
    let host = normalise(head, target, authority);
    let method = Method::from_bytes(head.method.as_bytes()).unwrap_or_default();
    let router = worker.shared().router.load();
    let view = View {
        method: &method,
        scheme: "http",
        authority,
        host: authority.get(..host).unwrap_or_default(),
        fields: head,
        has_body: head.framing != http1::Framing::None,
        upgrade: head.upgrade,
        client: connection.peer.ip(),
    };
    let persistence =
        if head.persistent && !worker.shared().is_draining() { Persistence::KeepAlive } else { Persistence::Close };
    let raw_query = target.query().map(<[u8]>::to_vec);
    let Some(route) = route(&view, &router, target, key) else {
        return wait(connection, head, head_length, scratch, method, now, Local::Unrouted);
    };
    let local = match plan(&view, &route, raw_query.as_deref(), key, &worker.shared().store, now) {
        Plan::Hit(object, ttl) => {
            let hit = Hit { object, ttl, route: &route, method: &method, persistence, received: head_length as u64, now };
            return serve_hit(connection, head, output, hit);
        }
        Plan::Forward(plan) => Local::Forward { route, key: key.as_slice().into(), plan },
        Plan::OnlyIfCached => Local::OnlyIfCached(route),
        Plan::MethodNotAllowed => Local::MethodNotAllowed(route),
        Plan::Purge => Local::Purge { route, key: key.as_slice().into() },
        Plan::PurgeForbidden => Local::PurgeForbidden(route),
    };
    wait(connection, head, head_length, scratch, method, now, local)
}

/// Brings target and authority into the one form that routing, key and origin see. Returns the length of the host in
/// `authority`, without its port.
fn normalise(head: &RequestHead<'_, '_>, target: &mut crate::target::Target, authority: &mut Vec<u8>) -> usize {
    authority.clear();
    let raw = match &head.target {
        RequestTarget::Origin(path_and_query) | RequestTarget::Absolute { path_and_query, .. } => *path_and_query,
        RequestTarget::Authority(_) | RequestTarget::Asterisk => b"/",
    };
    target.normalise(raw);
    let Some(host) = &head.host else { return 0 };
    host.write_normalised(HTTP_PORT, authority);
    host_length(authority)
}

const HTTP_PORT: u16 = 80;

/// Where the port begins in a normalised authority.
pub(super) fn host_length(authority: &[u8]) -> usize {
    let after_literal = memchr::memchr(b']', authority).map_or(0, |at| at + 1);
    let rest = authority.get(after_literal..).unwrap_or_default();
    memchr::memchr(b':', rest).map_or(authority.len(), |at| after_literal + at)
}

/// What a hit is served from.
struct Hit<'a> {
    object: Arc<CachedObject>,
    ttl: i64,
    route: &'a Route,
    method: &'a Method,
    persistence: Persistence,
    received: u64,
    now: Moment,
}

fn serve_hit(connection: &Connection, head: &RequestHead<'_, '_>, output: &mut Vec<u8>, hit: Hit<'_>) -> Step {
    let Hit { object, ttl, route, method, persistence, received, now } = hit;
    let outcome = Outcome { cache: Some(CacheStatus::Hit), ttl_secs: Some(ttl), ..Outcome::NONE };
    let stored = &object.head;
    let length = object.body.len();
    let begin = output.len();
    let (status, body) = if is_not_modified(stored, head) {
        append_not_modified(&stored.shared, output);
        finish_head(output, Framing::Bodiless, Some(stored.age(now)), &outcome, head.version, persistence);
        (StatusCode::NOT_MODIFIED, 0)
    } else {
        output.extend_from_slice(&stored.shared);
        let framing = Framing::choose(stored.status, Some(length), head.version);
        finish_head(output, framing, Some(stored.age(now)), &outcome, head.version, persistence);
        (stored.status, if *method == Method::HEAD || framing == Framing::Bodiless { 0 } else { length })
    };
    let copied = body <= COPIED_BODY;
    let head_bytes = (output.len() - begin) as u64;
    if body > 0 && copied {
        object.body.chunks().iter().for_each(|chunk| output.extend_from_slice(chunk));
    }
    account(
        &connection.worker,
        &Ending {
            peer: connection.peer,
            route: Some(route),
            method: head.method.as_bytes(),
            authority: None,
            head: Some(head),
            status: status.as_u16(),
            outcome,
            bytes_received: received,
            bytes_sent: head_bytes + body,
            started: now,
            origin_us: None,
        },
    );
    if copied || body == 0 { Step::Answered(persistence) } else { Step::Large(object, persistence) }
}
