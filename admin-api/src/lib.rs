//! The control plane: REST, OpenAPI, metrics, tokens, audit, and the listener they are served on.
//!
//! It owns how an operator talks to the appliance. It refuses to know how the appliance works: all it asks is behind
//! [`Appliance`], which the binary implements.

mod appliance;
mod audit;
mod guard;
mod hosts;
mod metrics;
mod problem;
mod purges;
mod routes;
mod server;
mod stats;
mod tokens;

#[cfg(test)]
mod fixture;

pub use appliance::{
    Appliance, ConfigInfo, Phase, PurgeError, PurgeErrorKind, PurgeReport, Purging, Readiness, Scope, Tier, TierState,
    UnknownName,
};
pub use audit::{AuditEntry, AuditLog};
pub use hosts::AllowedHosts;
pub use problem::{Code, Position, Problem};
pub use purges::{Purge, PurgeMode, PurgeState};
pub use routes::health::{ConfigVersion, Ready, Version};
pub use routes::{Parts, openapi_json, router};
pub use server::{Limits, serve};
pub use stats::{
    CacheStats, ConnectionStats, DiskStats, Latency, OriginStats, RequestStats, ResponseClasses, RuleStats, Stats,
    StatusStats, VhostCacheStats, VhostStats,
};
pub use tokens::Tokens;
