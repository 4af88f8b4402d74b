//! HTTP caching rules as pure functions: no IO, no clock, no runtime. `now` is always an argument.

mod fields;

pub use fields::Fields;
mod policy;
mod storing;

pub use policy::{Heuristic, Overrides, Policy, SetCookie, StatusMatch};
pub use storing::{LifetimeSource, Refusal};
