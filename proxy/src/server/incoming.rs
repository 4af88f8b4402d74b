//! A request that has come whole: answered at once where it is a hit, taken out of the buffers where it has to wait.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use larder_semantics::Fields;

use super::account::account;
use super::buffers::Scratch;
use super::connection::Connection;
use super::exchange::{Start, Task};
use crate::access_log::Entry;
use crate::clock::{Moment, unix_ms};
use crate::engine::{
    CachedObject, NOT_CACHED, Persistence, Plan, Request, Route, View, Wanted, append_not_modified, choose_framing,
    finish_head, plan, route, wanted,
};
use crate::http1::response::ResponseFraming;
use crate::http1::{Framing, RequestHead, Scheme, Target};
use crate::outcome::{CacheStatus, Outcome};

/// A body up to this size is copied behind its head, so that pipelined answers leave in one write; a larger one is handed to
/// the kernel from where it lies.
const COPIED_BODY: u64 = 16 * 1024;

/// Listeners speak clear text.
const SCHEME: Scheme = Scheme::Http;

/// What became of one request.
pub(super) enum Step {
    Answered(Persistence),
    /// The head is in the output; the body follows it.
    Large(Arc<CachedObject>, Persistence),
    Wait(Box<Start>),
}

/// One request in the buffers of its connection.
pub(super) struct Incoming<'a, 'b, 'h> {
    pub(super) connection: &'a Connection,
    pub(super) head: &'a RequestHead<'b, 'h>,
    /// Bytes.
    pub(super) head_length: usize,
    pub(super) now: Moment,
}

impl Incoming<'_, '_, '_> {
    /// The request function up to the point where it would have to wait.
    pub(super) fn answer(&self, scratch: &mut Scratch) -> Step {
        self.normalise(scratch);
        let Ok(method) = Method::from_bytes(self.head.method.as_bytes()) else {
            let task = Task::Say(StatusCode::BAD_REQUEST, "The method is not valid.");
            return Step::Wait(self.start(scratch, Method::GET, None, task));
        };
        let Scratch {
            target, authority, key, ..
        } = scratch;
        let shared = self.connection.worker.shared();
        let router = shared.router.load();
        let view = self.view(&method, authority);
        let Some((route, raw_query)) = route(&view, &router, target, key) else {
            let task = Task::Say(StatusCode::MISDIRECTED_REQUEST, "No virtual host answers to this name.");
            return Step::Wait(self.start(scratch, method, None, task));
        };
        if let Some(task) = self.answered_here() {
            return Step::Wait(self.start(scratch, method, Some(route), task));
        }
        let query = raw_query.as_deref().or_else(|| target.query());
        let task = match plan(&view, &route, query, key, &shared.store, &shared.uses, self.now) {
            Plan::Hit(object, ttl) if self.needs_no_disk(&method, &object) => {
                return self.serve_hit(scratch, &method, &route, object, ttl);
            }
            Plan::Hit(object, _) => {
                let wanted = wanted(&view, &route, query);
                load(wanted, Some(object), &route, key)
            }
            plan => task(plan, &route, key),
        };
        Step::Wait(self.start(scratch, method, Some(route), task))
    }

    /// What needs neither the store nor an origin.
    fn answered_here(&self) -> Option<Task> {
        let limits = &self.connection.worker.shared().boot.limits;
        match (self.head.target, self.head.framing) {
            // About the server, not about a resource (RFC 9110 section 9.3.7).
            (Target::Asterisk, _) => Some(Task::Say(StatusCode::NO_CONTENT, "")),
            // Said before the client is told to go on (RFC 9110 section 10.1.1).
            (_, Framing::Length(length)) if length > limits.body_bytes => Some(Task::Say(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The request body is larger than is taken here.",
            )),
            _ => None,
        }
    }

    /// Brings target and authority into the one form that routing, key and origin see.
    fn normalise(&self, scratch: &mut Scratch) {
        scratch.target.normalise(self.head.target.path_and_query());
        scratch.authority.clear();
        if let Some(host) = &self.head.host {
            host.write_normalised(SCHEME.default_port(), &mut scratch.authority);
        }
    }

    fn view<'v>(&'v self, method: &'v Method, authority: &'v [u8]) -> View<'v, RequestHead<'v, 'v>> {
        View {
            method,
            scheme: SCHEME.name(),
            authority,
            host: authority.get(..host_length(authority)).unwrap_or_default(),
            fields: self.head,
            has_body: !matches!(self.head.framing, Framing::None | Framing::Length(0)),
            upgrade: self.head.upgrade,
            version: self.head.version,
            client: self.connection.peer.ip(),
        }
    }

    /// Takes the request out of the buffers, to wait for something.
    fn start(&self, scratch: &Scratch, method: Method, route: Option<Route>, task: Task) -> Box<Start> {
        let head = self.head;
        let raw_target = match head.target {
            Target::Authority(authority) => authority.as_sent().as_bytes(),
            Target::Asterisk => b"*",
            Target::Origin(_) | Target::Absolute { .. } => head.target.path_and_query(),
        };
        let is_upgrade = matches!(&task, Task::Forward { plan, .. } if plan.is_upgrade());
        let upgrade = head
            .upgrade
            .filter(|_| is_upgrade)
            .and_then(|value| HeaderValue::from_bytes(value).ok());
        Box::new(Start {
            request: Request {
                method,
                scheme: SCHEME.name(),
                authority: String::from_utf8_lossy(&scratch.authority).into_owned(),
                target: scratch.target.clone(),
                raw_target: raw_target.into(),
                fields: owned_fields(head),
                upgrade,
                version: head.version,
                client: self.connection.peer,
                started: self.now,
                bytes_received: self.head_length as u64,
            },
            framing: head.framing,
            expect_continue: head.expect_continue,
            persistent: head.persistent,
            route,
            task,
        })
    }

    /// All that is sent of the object is in memory.
    fn needs_no_disk(&self, method: &Method, object: &CachedObject) -> bool {
        object.body.chunks().is_some() || *method == Method::HEAD || object.head.is_not_modified(self.head)
    }

    fn serve_hit(
        &self,
        scratch: &mut Scratch,
        method: &Method,
        route: &Route,
        object: Arc<CachedObject>,
        ttl: i64,
    ) -> Step {
        let worker = &self.connection.worker;
        let is_last = !self.head.persistent || worker.shared().is_draining();
        let persistence = if is_last {
            Persistence::Close
        } else {
            Persistence::KeepAlive
        };
        let outcome = Outcome {
            cache: Some(CacheStatus::Hit),
            ttl_secs: Some(ttl),
            tier: Some(object.tier()),
            ..Outcome::NONE
        };
        let output = &mut scratch.output;
        let begin = output.len();
        let (status, body) = self.append_head(output, &object, &outcome, persistence);
        let body = if *method == Method::HEAD { 0 } else { body };
        let head_bytes = (output.len() - begin) as u64;
        let is_copied = body <= COPIED_BODY;
        if body > 0 && is_copied {
            object
                .body
                .chunks()
                .unwrap_or_default()
                .iter()
                .for_each(|chunk| output.extend_from_slice(chunk));
        }
        let entry = Entry {
            unix_ms: unix_ms(),
            client: self.connection.peer.ip(),
            vhost: &route.vhost.name,
            rule: &route.rule.name,
            method: self.head.method.as_bytes(),
            host: &scratch.authority,
            target: self.head.target.path_and_query(),
            version: self.head.version,
            status: status.as_u16(),
            bytes_sent: head_bytes + body,
            bytes_received: self.head_length as u64,
            duration_us: Moment::now().micros_since(self.now),
            outcome: &outcome,
            origin_us: None,
            referer: self.head.lines("referer").next(),
            user_agent: self.head.lines("user-agent").next(),
        };
        account(worker, Some(route), &entry);
        if is_copied {
            Step::Answered(persistence)
        } else {
            Step::Large(object, persistence)
        }
    }

    /// Appends the head of a hit, or of the 304 that it is to this client. Returns the status and the length of the body.
    fn append_head(
        &self,
        output: &mut Vec<u8>,
        object: &CachedObject,
        outcome: &Outcome,
        persistence: Persistence,
    ) -> (StatusCode, u64) {
        let stored = &object.head;
        let version = self.head.version;
        let age = Some(stored.age(self.now));
        if stored.is_not_modified(self.head) {
            append_not_modified(&stored.shared, output);
            finish_head(output, ResponseFraming::Bodiless, age, outcome, version, persistence);
            return (StatusCode::NOT_MODIFIED, 0);
        }
        output.extend_from_slice(&stored.shared);
        let length = object.body.len();
        let framing = choose_framing(stored.status, Some(length), version);
        finish_head(output, framing, age, outcome, version, persistence);
        (
            stored.status,
            if framing == ResponseFraming::Bodiless {
                0
            } else {
                length
            },
        )
    }
}

fn task(plan: Plan, route: &Route, key: &[u8]) -> Task {
    match plan {
        Plan::Forward(plan) => Task::Forward {
            route: route.clone(),
            key: key.into(),
            plan,
        },
        Plan::Load(wanted) => load(wanted, None, route, key),
        Plan::Purge => Task::Purge { key: key.into() },
        Plan::PurgeForbidden => Task::Say(StatusCode::FORBIDDEN, "This address may not purge."),
        Plan::MethodNotAllowed => Task::Say(StatusCode::METHOD_NOT_ALLOWED, "TRACE and CONNECT are not served here."),
        // A hit that came this far would have been served.
        Plan::OnlyIfCached | Plan::Hit(..) => Task::Say(StatusCode::GATEWAY_TIMEOUT, NOT_CACHED),
    }
}

fn load(wanted: Wanted, found: Option<Arc<CachedObject>>, route: &Route, key: &[u8]) -> Task {
    Task::Load {
        route: route.clone(),
        key: key.into(),
        wanted,
        found,
    }
}

/// Where the port begins in a normalised authority.
fn host_length(authority: &[u8]) -> usize {
    let after_literal = memchr::memchr(b']', authority).map_or(0, |at| at + 1);
    let rest = authority.get(after_literal..).unwrap_or_default();
    memchr::memchr(b':', rest).map_or(authority.len(), |at| after_literal + at)
}

fn owned_fields(head: &RequestHead<'_, '_>) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(head.headers.len());
    for line in head.headers {
        // The front let only names and values pass that these constructors take.
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(line.name.as_bytes()),
            HeaderValue::from_bytes(line.value),
        ) {
            fields.append(name, value);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_ends_before_its_port() {
        for (authority, host) in [
            ("a.test", "a.test"),
            ("a.test:8080", "a.test"),
            ("[::1]", "[::1]"),
            ("[::1]:8080", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(&authority[..host_length(authority.as_bytes())], host);
        }
    }
}
