//! One turn of a connection: every request that has come whole and needs no waiting is answered, in order, in one write.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use larder_semantics::Fields;
use larder_semantics::preconditions::not_modified;

use super::account::account;
use super::buffers::{Buffers, Scratch};
use super::connection::{Connection, Continue};
use super::exchange::{Start, Task};
use super::stream::ClientGone;
use super::unsent::Unsent;
use crate::access_log::Entry;
use crate::clock::{Moment, unix_ms, unix_secs};
use crate::engine::{
    CachedObject, Persistence, Plan, Request, Route, StoredHead, View, append_not_modified, choose_framing, finish_head,
    plan, route,
};
use crate::http1::response::{PageBody, ResponseFraming, reject_page};
use crate::http1::{self, FieldSlots, Reject, RequestHead, Target as RequestTarget, Version};
use crate::outcome::{CacheStatus, Outcome};
use crate::traffic::UNKNOWN;

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
    let Taken { used, next, object, is_full } = answer_all(connection, input, scratch, now);
    let rest = input.get(used..).unwrap_or_default();
    connection.carry = rest.to_vec();
    connection.carry_is_new = is_full || object.is_some() || matches!(next, Next::Exchange(_));
    if used > 0 {
        connection.in_head = false;
    }
    connection.wait_for_next(now);
    let unsent = send(connection, context, scratch, object)?;
    Ok(Turn { unsent, next })
}

/// What was taken of the input, and where that led.
struct Taken {
    used: usize,
    next: Next,
    object: Option<Arc<CachedObject>>,
    /// It stopped for the output's sake.
    is_full: bool,
}

fn answer_all(connection: &Connection, input: &[u8], scratch: &mut Scratch, now: Moment) -> Taken {
    let mut taken = Taken { used: 0, next: Next::Read, object: None, is_full: false };
    let mut slots = FieldSlots::new();
    while matches!(taken.next, Next::Read) && taken.object.is_none() && taken.used < input.len() {
        if scratch.output.len() >= OUTPUT_FULL {
            taken.is_full = true;
            break;
        }
        let rest = input.get(taken.used..).unwrap_or_default();
        match http1::head::parse(rest, &mut slots, &connection.worker.head_limits) {
            Ok(None) => break,
            Ok(Some((head, head_length))) => {
                taken.used += head_length;
                match answer(connection, &head, head_length, scratch, now) {
                    Step::Answered(persistence) => taken.next = after(persistence),
                    Step::Large(body, persistence) => {
                        taken.object = Some(body);
                        taken.next = after(persistence);
                    }
                    Step::Wait(start) => taken.next = Next::Exchange(start),
                }
            }
            Err(reject) => {
                taken.next = refuse(connection, reject, scratch, now);
                taken.used = input.len();
            }
        }
    }
    taken
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

fn refuse(connection: &Connection, reject: Reject, scratch: &mut Scratch, now: Moment) -> Next {
    connection.worker.shared().traffic.connections().malformed(reject.reason);
    let page = reject_page(reject, PageBody::Sent, SystemTime::now());
    scratch.output.extend_from_slice(&page);
    let entry = Entry {
        unix_ms: unix_ms(),
        client: connection.peer.ip(),
        vhost: UNKNOWN,
        rule: "",
        method: b"-",
        host: b"-",
        target: b"-",
        version: Version::Http11,
        status: reject.status,
        bytes_sent: page.len() as u64,
        bytes_received: 0,
        duration_us: Moment::now().micros_since(now),
        outcome: &Outcome::NONE,
        origin_us: None,
        referer: None,
        user_agent: None,
    };
    account(&connection.worker, None, &entry);
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
    let shared = connection.worker.shared();
    let Scratch { target, authority, key, .. } = scratch;
    target.normalise(head.target.path_and_query());
    authority.clear();
    let scheme = http1::target::Scheme::Http;
    if let Some(host) = &head.host {
        host.write_normalised(scheme.default_port(), authority);
    }
    let Ok(method) = Method::from_bytes(head.method.as_bytes()) else {
        return Step::Wait(start(connection, head, head_length, scratch, (Method::GET, now), None, BAD_METHOD));
    };
    let router = shared.router.load();
    let view = View {
        method: &method,
        scheme: scheme.name(),
        authority,
        host: authority.get(..host_length(authority)).unwrap_or_default(),
        fields: head,
        has_body: head.framing != http1::Framing::None,
        upgrade: head.upgrade,
        client: connection.peer.ip(),
    };
    let Some((route, raw_query)) = route(&view, &router, target, key) else {
        return Step::Wait(start(connection, head, head_length, scratch, (method, now), None, UNROUTED));
    };
    let task = match plan(&view, &route, raw_query.as_deref().or(target.query()), key, &shared.store, now) {
        Plan::Hit(object, ttl) => {
            let persistence =
                if head.persistent && !shared.is_draining() { Persistence::KeepAlive } else { Persistence::Close };
            let hit = Hit { object, ttl, route: &route, method: &method, persistence, now };
            return serve_hit(connection, head, head_length, scratch, hit);
        }
        Plan::Forward(plan) => Task::Forward { route: route.clone(), key: key.as_slice().into(), plan },
        Plan::Purge => Task::Purge { key: key.as_slice().into() },
        Plan::OnlyIfCached => {
            Task::Refuse(StatusCode::GATEWAY_TIMEOUT, "The request wants a stored answer, and there is none.")
        }
        Plan::MethodNotAllowed => Task::Refuse(StatusCode::METHOD_NOT_ALLOWED, "TRACE and CONNECT are not served here."),
        Plan::PurgeForbidden => Task::Refuse(StatusCode::FORBIDDEN, "This address may not purge."),
    };
    Step::Wait(start(connection, head, head_length, scratch, (method, now), Some(route), task))
}

const UNROUTED: Task = Task::Refuse(StatusCode::MISDIRECTED_REQUEST, "No virtual host answers to this name.");
const BAD_METHOD: Task = Task::Refuse(StatusCode::BAD_REQUEST, "The method is not valid.");

/// Where the port begins in a normalised authority.
fn host_length(authority: &[u8]) -> usize {
    let after_literal = memchr::memchr(b']', authority).map_or(0, |at| at + 1);
    let rest = authority.get(after_literal..).unwrap_or_default();
    memchr::memchr(b':', rest).map_or(authority.len(), |at| after_literal + at)
}

/// Takes a request out of the buffers, to wait for something.
fn start(
    connection: &Connection,
    head: &RequestHead<'_, '_>,
    head_length: usize,
    scratch: &Scratch,
    (method, started): (Method, Moment),
    route: Option<Route>,
    task: Task,
) -> Box<Start> {
    let raw_target = match head.target {
        RequestTarget::Authority(authority) => authority.as_sent().as_bytes(),
        RequestTarget::Asterisk => b"*",
        _ => head.target.path_and_query(),
    };
    let upgrade = head.upgrade.filter(|_| matches!(&task, Task::Forward { plan, .. } if plan.is_upgrade()));
    Box::new(Start {
        request: Request {
            method,
            scheme: http1::target::Scheme::Http.name(),
            authority: String::from_utf8_lossy(&scratch.authority).into_owned(),
            target: scratch.target.clone(),
            raw_target: raw_target.into(),
            fields: owned_fields(head),
            upgrade: upgrade.and_then(|value| HeaderValue::from_bytes(value).ok()),
            version: head.version,
            client: connection.peer,
            started,
            bytes_received: head_length as u64,
        },
        framing: head.framing,
        expect_continue: head.expect_continue,
        persistent: head.persistent,
        route,
        task,
    })
}

fn owned_fields(head: &RequestHead<'_, '_>) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(head.headers.len());
    for line in head.headers {
        // The front let only names and values pass that these constructors take.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(line.name.as_bytes()), HeaderValue::from_bytes(line.value))
        {
            fields.append(name, value);
        }
    }
    fields
}

/// What a hit is served from.
struct Hit<'a> {
    object: Arc<CachedObject>,
    ttl: i64,
    route: &'a Route,
    method: &'a Method,
    persistence: Persistence,
    now: Moment,
}

fn serve_hit(
    connection: &Connection,
    head: &RequestHead<'_, '_>,
    head_length: usize,
    scratch: &mut Scratch,
    hit: Hit<'_>,
) -> Step {
    let Hit { object, ttl, route, method, persistence, now } = hit;
    let Scratch { output, authority, .. } = scratch;
    let outcome = Outcome { cache: Some(CacheStatus::Hit), ttl_secs: Some(ttl), ..Outcome::NONE };
    let begin = output.len();
    let (status, body) = append_hit_head(output, &object, head, &outcome, persistence, now);
    let body = if *method == Method::HEAD { 0 } else { body };
    let is_copied = body <= COPIED_BODY;
    let head_bytes = (output.len() - begin) as u64;
    if body > 0 && is_copied {
        object.body.chunks().iter().for_each(|chunk| output.extend_from_slice(chunk));
    }
    let field = |name| head.lines(name).next();
    let entry = Entry {
        unix_ms: unix_ms(),
        client: connection.peer.ip(),
        vhost: &route.vhost.name,
        rule: &route.rule.name,
        method: head.method.as_bytes(),
        host: authority,
        target: head.target.path_and_query(),
        version: head.version,
        status: status.as_u16(),
        bytes_sent: head_bytes + body,
        bytes_received: head_length as u64,
        duration_us: Moment::now().micros_since(now),
        outcome: &outcome,
        origin_us: None,
        referer: None,
        user_agent: None,
    };
    let entry = Entry { referer: field("referer"), user_agent: field("user-agent"), ..entry };
    account(&connection.worker, Some(route), &entry);
    if is_copied { Step::Answered(persistence) } else { Step::Large(object, persistence) }
}

/// Appends the head of a hit, or of the 304 that it is to this client. Returns the status and the length of the body.
fn append_hit_head(
    output: &mut Vec<u8>,
    object: &CachedObject,
    head: &RequestHead<'_, '_>,
    outcome: &Outcome,
    persistence: Persistence,
    now: Moment,
) -> (StatusCode, u64) {
    let stored = &object.head;
    let age = Some(stored.age(now));
    if is_not_modified(stored, head) {
        append_not_modified(&stored.shared, output);
        finish_head(output, ResponseFraming::Bodiless, age, outcome, head.version, persistence);
        return (StatusCode::NOT_MODIFIED, 0);
    }
    output.extend_from_slice(&stored.shared);
    let length = object.body.len();
    let framing = choose_framing(stored.status, Some(length), head.version);
    finish_head(output, framing, age, outcome, head.version, persistence);
    (stored.status, if framing == ResponseFraming::Bodiless { 0 } else { length })
}

/// Whether the client holds what is stored (RFC 9110 section 13.2.2).
fn is_not_modified(stored: &StoredHead, head: &RequestHead<'_, '_>) -> bool {
    stored.status == StatusCode::OK && not_modified(head, stored.etag(), stored.last_modified(), unix_secs())
}
