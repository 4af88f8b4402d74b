//! The seam to the data plane: everything that the control plane may ask of it, in its own words. No HTTP here.

use std::collections::BTreeMap;
use std::pin::Pin;

use larder_proxy::traffic::snapshot::Snapshot;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the control plane controls. The calls are short and do not wait for the network; an
/// invalidation waits for the disks.
pub trait Appliance: Send + Sync + 'static {
    /// The figures since the last reset.
    fn snapshot(&self) -> Snapshot;

    /// The figures since the start; a reset does not touch them.
    fn totals(&self) -> Snapshot;

    /// Upper bounds of the latency buckets in microseconds, ascending. A histogram has one count more than there are bounds.
    fn latency_bounds_us(&self) -> &'static [u64];

    /// Makes the figures in scope start from zero, and returns them as they were at that moment, taken in one step.
    ///
    /// # Errors
    /// Where the scope names something that is not configured; nothing is reset then.
    fn reset(&self, scope: Scope) -> Result<Snapshot, UnknownName>;

    /// Invalidates every variant of one absolute URL for all requests that begin after it resolves, also after a restart.
    ///
    /// # Errors
    /// Where the URL cannot be the key of an object. A URL under which nothing is stored is no error.
    fn purge_url<'a>(&'a self, url: &'a str) -> Purging<'a>;

    fn readiness(&self) -> Readiness;

    fn config_version(&self) -> ConfigInfo;
}

/// An invalidation on its way to the disks.
pub type Purging<'a> = Pin<Box<dyn Future<Output = Result<PurgeReport, PurgeError>> + Send + 'a>>;

/// Which figures a reset is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    All,
    /// A vhost by its name.
    Vhost(String),
    /// An upstream by its name.
    Origin(String),
    Cache,
}

/// The scope of a reset names nothing that is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing in this scope is named {0:?}")]
pub struct UnknownName(pub String);

/// What an invalidation of one URL did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Variants that were stored under the key.
    pub matched: u64,
    /// Their size, heads included.
    pub bytes: u64,
    /// Variants by vhost.
    pub vhosts: BTreeMap<String, u64>,
    /// The key that was looked up, for a person to read.
    pub key: String,
    /// The number of this invalidation.
    pub fence: u64,
    /// Where nothing matched: what the caller may have meant.
    pub hint: Option<String>,
}

/// Why a URL cannot be purged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {position})")]
pub struct PurgeError {
    pub kind: PurgeErrorKind,
    /// Byte offset into the URL.
    pub position: usize,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeErrorKind {
    /// It is not an absolute URL.
    BadUrl,
    /// Neither `http` nor `https`.
    UnknownScheme,
    /// No vhost answers for its host.
    NoVhost,
    /// It is in force, but a disk could not note it.
    NotDurable,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    pub phase: Phase,
    pub tiers: Vec<Tier>,
}

/// Whether the data plane takes requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Starting,
    Ready,
    /// Asked to stop; open connections are being finished.
    Draining,
}

/// One storage tier. A tier in trouble does not make the appliance unready: it serves without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tier {
    /// `memory`, or the path of a disk.
    pub name: String,
    pub state: TierState,
    /// Why it is not up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TierState {
    Up,
    /// It works in part, or is being left out for a while.
    Degraded,
    Off,
}

/// Which configuration is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigInfo {
    /// Of the file's text, in hexadecimal.
    pub hash: String,
    /// Unix time in milliseconds.
    pub loaded_ms: u64,
    /// Reloads that took effect since the start.
    pub reloads: u64,
    /// Reloads that were refused since the start.
    pub reload_failures: u64,
    /// Why the last reload was refused; `None` where it took effect.
    pub last_reload_error: Option<String>,
}
