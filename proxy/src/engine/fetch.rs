//! One request to the origin, and the fill that its answer may become.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use larder_semantics::cache_control::{RequestDirectives, ResponseDirectives};
use larder_semantics::{Exchange, Freshness, Vary, judge};
use larder_storage::{FillError, Keep, NotKept, Object, Offer};
use tokio::sync::oneshot;

use super::forward::{Forwarding, Interim};
use super::head::{RenderedHead, StoredHead};
use super::plan::{FillMode, Leader, Selecting};
use super::respond::CACHE_NAME;
use crate::clock::{Moment, unix_secs};
use crate::origin::forward::{request_headers, response_headers};
use crate::origin::sent::CONDITIONAL;
use crate::origin::{Delimited, FetchError, OriginBody, OriginResponse, RequestBody};
use crate::outcome::NotStored;

/// What the client that caused a fill is told.
#[derive(Debug)]
pub(super) enum Fetched {
    Filling(Filling),
    /// Not for storing: the client gets it straight from the origin.
    Pass(Box<OriginResponse>, NotStored),
    Failed(FetchError),
}

/// An answer on its way into the cache, as the client sees it that caused it.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) head: Arc<StoredHead>,
    pub(super) private: Bytes,
    pub(super) length: Option<u64>,
    pub(super) origin_us: u64,
    /// Known by now, if it will not be stored after all.
    pub(super) not_stored: Option<NotStored>,
}

impl Forwarding {
    /// Sends the request to the vhost's origin and waits for the head of the answer.
    pub(super) async fn fetch(&self, body: RequestBody, interim: Interim) -> Result<OriginResponse, FetchError> {
        let vhost = &self.route.vhost;
        let mut outgoing = http::Request::new(body);
        *outgoing.method_mut() = self.request.method.clone();
        *outgoing.uri_mut() = self.request.origin_form();
        *outgoing.headers_mut() = self.outgoing_fields();
        let observer = vhost.observer(self.worker.id);
        let mut response = self
            .worker
            .pool()
            .send(&vhost.upstream, outgoing, interim, observer)
            .await?;
        let upgrade = response.head.headers.get(header::UPGRADE).cloned();
        response_headers(&mut response.head.headers, response.head.version, CACHE_NAME);
        if response.upgraded.is_some()
            && let Some(upgrade) = upgrade
        {
            response.head.headers.insert(header::UPGRADE, upgrade);
            response
                .head
                .headers
                .insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        Ok(response)
    }

    fn outgoing_fields(&self) -> HeaderMap {
        let request = &self.request;
        let mut fields = request_headers(&request.fields, &request.context(&self.route.vhost));
        if !matches!(self.plan.fill, FillMode::Pass(_)) {
            for name in &CONDITIONAL {
                fields.remove(name);
            }
        }
        if let Some(protocol) = &request.upgrade {
            fields.insert(header::UPGRADE, protocol.clone());
            fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        fields
    }

    /// Leads a fill to its end, in a task that no client can cancel.
    pub(super) async fn fill(self, leader: Leader, interim: Interim, tell: oneshot::Sender<Fetched>) {
        let asked = Moment::now();
        let fetched = tokio::select! {
            fetched = self.fetch(RequestBody::empty(), interim) => fetched,
            () = leader.abandoned() => return,
        };
        match fetched {
            Err(error) => {
                self.count_not_stored(NotStored::OriginFailed);
                leader.fail(FillError::new(SharedFailure { status: error.status() }));
                // Whoever is not told has left.
                let _ = tell.send(Fetched::Failed(error));
            }
            Ok(response) => match self.judge(&response, asked) {
                Ok(freshness) => self.store(leader, response, freshness, tell).await,
                Err(reason) => {
                    self.count_not_stored(reason);
                    leader.retry(FillError::Lost);
                    let _ = tell.send(Fetched::Pass(Box::new(response), reason));
                }
            },
        }
    }

    fn judge(&self, response: &OriginResponse, asked: Moment) -> Result<Freshness, NotStored> {
        let response_time = unix_secs();
        let delay = i64::try_from(Moment::now().secs_since(asked)).unwrap_or(i64::MAX);
        let fields = &self.request.fields;
        let exchange = Exchange {
            request_method: &Method::GET,
            request_authorization: fields.contains_key(header::AUTHORIZATION),
            request_no_store: RequestDirectives::parse(fields).no_store,
            status: response.head.status.as_u16(),
            fields: &response.head.headers,
            request_time: response_time.saturating_sub(delay),
            response_time,
            framing_ambiguous: response.framing_ambiguous,
        };
        let freshness = judge(&exchange, &self.route.rule.policy).map_err(NotStored::Refused)?;
        match response.delimited {
            Delimited::Close => Err(NotStored::CloseDelimited),
            Delimited::Bodiless | Delimited::Length(_) | Delimited::Chunked => Ok(freshness),
        }
    }

    async fn store(
        &self,
        leader: Leader,
        response: OriginResponse,
        freshness: Freshness,
        tell: oneshot::Sender<Fetched>,
    ) {
        let OriginResponse {
            head,
            body,
            known_length,
            timing,
            ..
        } = response;
        let rendered = RenderedHead::new(head.status, &head.headers, freshness.strip_set_cookie, unix_secs());
        let directives = ResponseDirectives::parse(&head.headers);
        let authorized = directives.public || directives.must_revalidate || directives.s_maxage.is_present();
        let stored = Arc::new(StoredHead::new(
            &rendered,
            &head.headers,
            freshness,
            Moment::now(),
            authorized,
        ));
        let offer = Offer {
            expected_len: known_length,
            keep: Keep::Store,
            vary: self.vary(&head.headers),
        };
        let filling = leader.head(Arc::clone(&stored), offer);
        let _ = tell.send(Fetched::Filling(Filling {
            head: stored,
            private: rendered.private,
            length: known_length,
            origin_us: micros(timing.first_byte),
            not_stored: filling.not_kept().map(not_stored),
        }));
        match pour(body, filling).await {
            Ok(_) => self.route.vhost.counters.record_stored(self.worker.id),
            Err(reason) => self.count_not_stored(reason),
        }
    }

    fn vary(&self, fields: &HeaderMap) -> Option<(Selecting, Vec<u8>)> {
        // What cannot be parsed was refused by `judge`.
        let vary = Vary::parse(fields).ok().filter(|vary| !vary.is_empty())?;
        let mut variant = Vec::new();
        let vary = Selecting(vary);
        self.request.variant_key(&self.route.vhost, &vary, &mut variant);
        Some((vary, variant))
    }

    pub(super) fn count_not_stored(&self, reason: NotStored) {
        self.route.vhost.counters.record_not_stored(self.worker.id, reason);
    }
}

/// Pours a body into a fill. Tells why it was not stored, if it wasn't.
async fn pour(
    mut body: OriginBody,
    mut filling: larder_storage::Filling<StoredHead, Selecting>,
) -> Result<Arc<Object<StoredHead>>, NotStored> {
    loop {
        let chunk = tokio::select! {
            biased;
            chunk = body.chunk() => chunk,
            () = filling.abandoned() => return Err(NotStored::Abandoned),
        };
        match chunk {
            Ok(Some(chunk)) => {
                if filling.push(chunk).await.is_err() {
                    return Err(NotStored::Abandoned);
                }
            }
            Ok(None) => return filling.finish().await.map_err(not_stored),
            Err(error) => {
                filling.fail(FillError::new(error));
                return Err(NotStored::Truncated);
            }
        }
    }
}

/// The storage's words in the outcome's.
pub(super) const fn not_stored(why: NotKept) -> NotStored {
    match why {
        NotKept::TooLarge => NotStored::TooLarge,
        NotKept::FillMemory => NotStored::FillMemory,
        NotKept::Doomed => NotStored::Purged,
        NotKept::Abandoned => NotStored::Abandoned,
        NotKept::Failed => NotStored::Truncated,
        NotKept::Replaced => NotStored::Superseded,
        NotKept::Refused => NotStored::NoRoom,
        NotKept::DiskBusy => NotStored::DiskBusy,
        NotKept::DiskUnavailable => NotStored::DiskUnavailable,
        NotKept::Disabled | NotKept::Declined => NotStored::NoTier,
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// What those who waited for a fill are told of its failure.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the origin gave no usable answer")]
pub(super) struct SharedFailure {
    pub(super) status: u16,
}
