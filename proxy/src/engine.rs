//! The request function: normalize, route, key, lookup, then serve, or fetch and collapse. It decides; sockets are the
//! server's.

mod answer;
mod fetch;
mod find;
mod forward;
mod head;
mod invalidate;
mod plan;
mod request;
mod respond;

pub(crate) use answer::{Answer, AnswerBody};
pub(crate) use find::{Finding, Found, NOT_CACHED};
pub(crate) use forward::Forwarding;
pub(crate) use invalidate::key_of_get;
pub(crate) use plan::{CacheStore, CachedObject, ForwardPlan, Plan, Route, View, Wanted, plan, route, wanted};
pub(crate) use request::Request;
pub(crate) use respond::{Persistence, append_interim, append_not_modified, choose_framing, finish_head};
