//! HTTP caching rules as pure functions: no IO, no clock, no runtime. `now` is always an argument.
#![deny(missing_docs)]

pub mod accept_encoding;
pub mod age;
pub mod cache_control;
pub mod cache_status;
pub mod date;
mod delta;
mod fields;
pub mod hop_by_hop;
mod policy;
pub mod preconditions;
mod storing;
mod syntax;
mod targeted;
mod vary;

pub use cache_status::CacheStatusItem;
pub use delta::{DELTA_MAX, Delta};
pub use fields::Fields;
pub use policy::{Heuristic, Overrides, Policy, SetCookie, StatusMatch};
pub use storing::{Exchange, Freshness, LifetimeSource, Refusal, judge};
pub use vary::Vary;
