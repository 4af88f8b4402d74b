//! What was invalidated lately. It keeps the answers, not the work: a purge of one URL is done when it is answered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// With a URL of 8 KiB and a reason of 1 KiB in each, at most some 26 MiB; a typical one is below 1 KiB.
pub(crate) const KEPT_MAX: usize = 1000;

/// An invalidation and what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Purge {
    pub id: String,
    pub state: PurgeState,
    pub mode: PurgeMode,
    /// As it was asked for.
    pub url: String,
    /// Objects that were stored, each variant counted. 0 is no error: nothing was there.
    pub matched: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Objects by vhost.
    pub vhosts: BTreeMap<String, u64>,
    /// Some of the URLs that matched.
    pub samples: Vec<String>,
    /// The key that was looked up.
    pub key: String,
    /// Number of this invalidation. No answer that was asked of an origin before it is stored after it.
    pub fence: u64,
    /// Where nothing matched: what may have been meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of the token it was asked for with.
    pub token: String,
    /// Unix time in milliseconds.
    pub created_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PurgeState {
    Done,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PurgeMode {
    /// Gone at once.
    #[default]
    Hard,
    /// Marked stale.
    Soft,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    kept: Mutex<VecDeque<Purge>>,
    numbered: AtomicU64,
}

impl History {
    /// Unique also across restarts, as long as no two start in one millisecond.
    pub(crate) fn next_id(&self, started_ms: u64) -> String {
        format!("{started_ms:x}-{}", self.numbered.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn push(&self, purge: Purge) {
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(purge);
    }

    pub(crate) fn get(&self, id: &str) -> Option<Purge> {
        self.kept.lock().iter().find(|purge| purge.id == id).cloned()
    }

    /// Newest first.
    pub(crate) fn latest(&self, limit: usize) -> Vec<Purge> {
        self.kept.lock().iter().rev().take(limit).cloned().collect()
    }
}
