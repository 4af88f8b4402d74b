//! A request whose answer may lie on disk: loaded, then served or sent on by the same rules as one that memory answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use larder_storage::disk::{BodyReader, DiskBody};
use larder_storage::{Lookup, Place};
use tokio::time::timeout;

use super::answer::{Answer, AnswerBody, BrokenOff};
use super::forward::Forwarding;
use super::head::RenderedHead;
use super::plan::{CachedObject, Miss, Route, Wanted, choose};
use super::request::Request;
use super::respond::append_not_modified;
use crate::clock::Moment;
use crate::outcome::{CacheStatus, Forward, Outcome};
use crate::server::Worker;

/// A disk that does not answer in this time has nothing: the origin is faster. Far above what a disk takes that is well.
const DISK_PATIENCE: Duration = Duration::from_secs(5);

/// Said to a client that wants a stored answer or none (RFC 9111 section 5.2.1.7).
pub(crate) const NOT_CACHED: &str = "The request wants a stored answer, and there is none.";

/// Everything that it takes to find the answer, and to go on without it.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) worker: Arc<Worker>,
    pub(crate) request: Arc<Request>,
    pub(crate) route: Route,
    pub(crate) key: Arc<[u8]>,
    pub(crate) wanted: Wanted,
    /// Found already, and only its body is to be read.
    pub(crate) found: Option<Arc<CachedObject>>,
}

/// Where it led.
#[derive(Debug)]
pub(crate) enum Found {
    Answer(Box<Answer>),
    /// To the origin.
    Forward(Box<Forwarding>),
}

/// The body of an object cannot be read. The store drops it, and the origin is asked as if it had never been there.
#[derive(Debug)]
pub(super) struct Unreadable;

impl Finding {
    pub(crate) async fn find(self) -> Found {
        let found = match &self.found {
            Some(object) => Ok(Arc::clone(object)),
            None => self.load().await,
        };
        match found {
            Ok(object) => match stored_answer(&self.request, &object).await {
                Ok(answer) => Found::Answer(Box::new(answer)),
                Err(Unreadable) => self.forward(Miss::new(Forward::UriMiss, CacheStatus::Miss, Some(object))),
            },
            Err(miss) => self.forward(miss),
        }
    }

    async fn load(&self) -> Result<Arc<CachedObject>, Miss> {
        let Self { request, route, .. } = self;
        let store = &self.worker.shared().store;
        let loading = store.load(&self.key, |vary, out| request.variant_key(&route.vhost, vary, out));
        let found = timeout(DISK_PATIENCE, loading).await.unwrap_or(Lookup::Nothing);
        choose(found, &request.fields, Moment::now()).map(|(object, _)| object)
    }

    fn forward(self, miss: Miss) -> Found {
        let Self {
            worker,
            request,
            route,
            key,
            wanted,
            ..
        } = self;
        match wanted.forward(miss, &key, &worker.shared().uses) {
            Some(plan) => Found::Forward(Box::new(Forwarding {
                worker,
                request,
                route,
                key,
                plan,
            })),
            None => Found::Answer(Box::new(Answer::local(
                StatusCode::GATEWAY_TIMEOUT,
                NOT_CACHED,
                Outcome::NONE,
            ))),
        }
    }
}

/// What a client is sent of a stored object: all of it, its head, or that it has it already. The first piece of a body on disk is
/// read before anything is said, so that a damaged one costs nobody an answer.
pub(super) async fn stored_answer(request: &Request, object: &Arc<CachedObject>) -> Result<Answer, Unreadable> {
    let now = Moment::now();
    let stored = &object.head;
    let mut answer = Answer {
        head: RenderedHead {
            status: stored.status,
            shared: stored.shared.clone(),
            private: Bytes::new(),
        },
        age: Some(stored.age(now)),
        outcome: Outcome {
            cache: Some(CacheStatus::Hit),
            ttl_secs: Some(stored.ttl(now)),
            tier: Some(object.tier()),
            ..Outcome::NONE
        },
        length: Some(object.body.len()),
        body: AnswerBody::EMPTY,
        origin_us: None,
        close: false,
    };
    if stored.is_not_modified(&request.fields) {
        let mut head = Vec::with_capacity(stored.shared.len());
        append_not_modified(&stored.shared, &mut head);
        answer.head.status = StatusCode::NOT_MODIFIED;
        answer.head.shared = head.into();
    } else if request.method != Method::HEAD {
        answer.body = match object.body.place() {
            Place::Memory(_) => AnswerBody::Object {
                object: Arc::clone(object),
                next: 0,
            },
            Place::Disk(body) => AnswerBody::Disk(Box::new(DiskPieces::begin(body).await?)),
        };
    }
    Ok(answer)
}

/// A body on disk, of which the next piece is there already or has to be read.
#[derive(Debug)]
pub(crate) struct DiskPieces {
    first: Option<Bytes>,
    reader: BodyReader,
}

impl DiskPieces {
    async fn begin(body: &DiskBody) -> Result<Self, Unreadable> {
        let mut reader = body.reader();
        let first = next_piece(&mut reader).await.map_err(|BrokenOff| Unreadable)?;
        Ok(Self { first, reader })
    }

    /// The next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, BrokenOff> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => next_piece(&mut self.reader).await,
        }
    }
}

async fn next_piece(reader: &mut BodyReader) -> Result<Option<Bytes>, BrokenOff> {
    match timeout(DISK_PATIENCE, reader.next_chunk()).await {
        Ok(Ok(piece)) => Ok(piece),
        // Why is the store's to count and to say.
        Ok(Err(_)) | Err(_) => Err(BrokenOff),
    }
}
