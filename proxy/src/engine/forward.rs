//! The second half of a request that is no hit: pass, collapse, fetch.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use larder_storage::{Begin, FillError, Join, ReaderEnd};
use tokio::sync::{mpsc, oneshot};

use super::answer::{Answer, AnswerBody};
use super::fetch::{Fetched, Filling, SharedFailure, micros};
use super::find::{Unreadable, stored_answer};
use super::head::RenderedHead;
use super::invalidate;
use super::plan::{FillMode, ForwardPlan, Leader, Reader, Route, Selecting};
use super::request::Request;
use crate::clock::{Moment, unix_secs};
use crate::origin::{FetchError, OriginResponse, RequestBody};
use crate::outcome::{NotStored, Outcome, Stored};
use crate::server::Worker;

pub(crate) type Interim = Option<mpsc::Sender<http::Response<()>>>;

/// Everything that one forwarded request needs. It is the same for each way to the answer.
#[derive(Debug, Clone)]
pub(crate) struct Forwarding {
    pub(crate) worker: Arc<Worker>,
    pub(crate) request: Arc<Request>,
    pub(crate) route: Route,
    pub(crate) key: Arc<[u8]>,
    pub(crate) plan: ForwardPlan,
}

impl Forwarding {
    /// Brings the answer: from the origin, or from a fill of the same key that is under way.
    pub(crate) async fn answer(self, body: RequestBody, interim: Interim) -> Answer {
        match self.plan.fill {
            FillMode::Pass(reason) => self.pass(body, interim, reason).await,
            FillMode::Alone => self.begin(Join::Never, interim).await,
            FillMode::Shared => self.begin(Join::Any, interim).await,
        }
    }

    async fn pass(self, body: RequestBody, interim: Interim, reason: NotStored) -> Answer {
        let fetched = self.fetch(body, interim).await;
        self.count_not_stored(if fetched.is_ok() {
            reason
        } else {
            NotStored::OriginFailed
        });
        let untrue = fetched
            .as_ref()
            .map_or_else(|_| Vec::new(), |response| self.made_untrue(response));
        let answer = match fetched {
            Ok(response) => self.pass_on(response, reason),
            Err(error) => self.failed(&error),
        };
        for key in untrue {
            if let Err(error) = self.worker.shared().store.purge_durably(&key).await {
                tracing::warn!(%error, "an invalidation may not outlive a restart");
            }
        }
        answer
    }

    /// The keys of what is stored and no longer true (RFC 9111 section 4.4): an answer that is no error tells so.
    fn made_untrue(&self, response: &OriginResponse) -> Vec<Vec<u8>> {
        let status = response.head.status;
        if self.request.method.is_safe() || !(status.is_success() || status.is_redirection()) {
            return Vec::new();
        }
        invalidate::keys(&self.request, &self.route.vhost, &response.head.headers)
    }

    async fn begin(mut self, join: Join, interim: Interim) -> Answer {
        let variant = |vary: &Selecting, out: &mut Vec<u8>| self.request.variant_key(&self.route.vhost, vary, out);
        match self
            .worker
            .shared()
            .store
            .begin(&self.key, join, self.plan.found.as_ref(), variant)
        {
            Begin::Lead(leader, reader) => self.lead(leader, reader, interim).await,
            Begin::Join(reader) => self.join(reader, interim).await,
            // It was stored between the lookup and now.
            Begin::Found(object) => match stored_answer(&self.request, &object).await {
                Ok(answer) => answer,
                Err(Unreadable) => {
                    self.plan.found = Some(object);
                    Box::pin(self.begin(join, interim)).await
                }
            },
        }
    }

    /// Fetches in a task of its own, so that a client that leaves does not take the fill with it.
    async fn lead(self, leader: Leader, reader: Reader, interim: Interim) -> Answer {
        let (tell, told) = oneshot::channel();
        tokio::spawn(self.clone().fill(leader, interim, tell));
        match told.await {
            Ok(Fetched::Filling(filling)) => self.filling(filling, reader),
            Ok(Fetched::Pass(response, reason)) => self.pass_on(*response, reason),
            Ok(Fetched::Failed(error)) => self.failed(&error),
            // The fill's task ends without a word only where it was ended with the worker.
            Err(_) => Answer::local(
                StatusCode::SERVICE_UNAVAILABLE,
                "Larder is stopping.",
                self.outcome(None),
            ),
        }
    }

    fn filling(&self, filling: Filling, reader: Reader) -> Answer {
        let Filling {
            head,
            private,
            length,
            origin_us,
            not_stored,
        } = filling;
        let stored = not_stored.map_or(Stored::Yes, Stored::No);
        Answer {
            head: RenderedHead {
                status: head.status,
                shared: head.shared.clone(),
                private,
            },
            age: None,
            outcome: Outcome {
                stored: Some(stored),
                ..self.outcome(Some(head.status))
            },
            length,
            body: AnswerBody::Fill(Box::new(reader)),
            origin_us: Some(origin_us),
            close: false,
        }
    }

    async fn join(self, mut reader: Reader, interim: Interim) -> Answer {
        match reader
            .head(|vary, out| self.request.variant_key(&self.route.vhost, vary, out))
            .await
        {
            Ok(head) => {
                let now = Moment::now();
                Answer {
                    head: RenderedHead {
                        status: head.status,
                        shared: head.shared.clone(),
                        private: Bytes::new(),
                    },
                    age: Some(head.age(now)),
                    outcome: Outcome {
                        collapsed: true,
                        ttl_secs: Some(head.ttl(now)),
                        ..self.outcome(None)
                    },
                    length: reader.expected_len(),
                    body: AnswerBody::Fill(Box::new(reader)),
                    origin_us: None,
                    close: false,
                }
            }
            // What came is not for this request. It does not wait in vain twice, or a row of them would go one by one.
            Err(ReaderEnd::Retry) => Box::pin(self.begin(Join::Answered, interim)).await,
            Err(ReaderEnd::Failed(error)) => {
                let status = StatusCode::from_u16(shared_status(&error)).unwrap_or(StatusCode::BAD_GATEWAY);
                let outcome = Outcome {
                    collapsed: true,
                    ..self.outcome(None)
                };
                Answer::local(
                    status,
                    "The origin did not answer the request that this one waited for.",
                    outcome,
                )
            }
        }
    }

    fn pass_on(&self, response: OriginResponse, reason: NotStored) -> Answer {
        let status = response.head.status;
        let body = match response.upgraded {
            Some(tunnel) => AnswerBody::Tunnel(Box::new(tunnel)),
            None => AnswerBody::Origin(Box::new(response.body)),
        };
        Answer {
            head: RenderedHead::new(status, &response.head.headers, false, unix_secs()),
            age: None,
            outcome: Outcome {
                stored: Some(Stored::No(reason)),
                ..self.outcome(Some(status))
            },
            length: self.length(&response.head.headers, response.known_length),
            body,
            origin_us: Some(micros(response.timing.first_byte)),
            close: false,
        }
    }

    /// The answer to HEAD has no body, and says how long that of GET would be (RFC 9110 section 8.6).
    fn length(&self, fields: &HeaderMap, of_body: Option<u64>) -> Option<u64> {
        if self.request.method == Method::HEAD {
            fields.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
        } else {
            of_body
        }
    }

    fn failed(&self, error: &FetchError) -> Answer {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_GATEWAY);
        let outcome = Outcome {
            stored: Some(Stored::No(NotStored::OriginFailed)),
            ..self.outcome(None)
        };
        let text = format!("The origin gave no usable answer: {}.", error.kind.name());
        Answer::local(status, &text, outcome)
    }

    fn outcome(&self, forward_status: Option<StatusCode>) -> Outcome {
        Outcome {
            cache: Some(self.plan.cache),
            forward: Some(self.plan.why),
            forward_status: forward_status.map(|status| status.as_u16()),
            stored: None,
            collapsed: false,
            ttl_secs: None,
            tier: None,
        }
    }
}

/// The status that those get who waited for a fill that failed.
fn shared_status(error: &FillError) -> u16 {
    match error {
        FillError::Failed(cause) => cause
            .downcast_ref::<SharedFailure>()
            .map_or(502, |failure| failure.status),
        FillError::Length { .. } | FillError::Lost => 502,
    }
}
