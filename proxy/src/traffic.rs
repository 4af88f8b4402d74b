//! Traffic counters: what is counted, by whom, and how it is read and reset.
//!
//! Counters are keyed by name and live outside the reloadable configuration. Each worker writes its own slots; a reading sums
//! them. A reset is a baseline that is subtracted from then on: no count is lost between reading and resetting, and what
//! `/metrics` shows never falls.

mod cells;
mod connections;
mod latency;
mod origins;
pub mod snapshot;
mod vhosts;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_storage::Usage;
use parking_lot::Mutex;

pub use cells::WorkerId;
pub use connections::{ConnectionCounters, TimeoutKind};
pub use latency::BUCKETS_US;
pub use origins::OriginCounters;
pub use vhosts::{Ending, InFlight, VhostCounters};

use connections::ConnectionReading;
use origins::OriginReading;
use snapshot::{CacheSnapshot, Snapshot};
use vhosts::{RuleCore, VhostCore, VhostReading, VhostRow};

/// The row of requests that no configured vhost answers.
pub const UNKNOWN: &str = "_unknown";

/// All counters of one appliance.
#[derive(Debug)]
pub struct Traffic {
    workers: usize,
    cache_name: String,
    started_ms: u64,
    epoch: AtomicU64,
    connections: ConnectionCounters,
    unknown: Arc<VhostCounters>,
    registry: Mutex<Registry>,
}

/// Rows by name, and which of them are shown. Names come from the configuration alone, never from requests.
#[derive(Debug, Default)]
struct Registry {
    vhosts: Vec<Arc<VhostCore>>,
    origins: Vec<Arc<OriginCounters>>,
    shown_vhosts: Vec<VhostRow>,
    shown_origins: Vec<Arc<OriginCounters>>,
    baseline: Baseline,
}

/// Of what is not a row.
#[derive(Debug, Default)]
struct Baseline {
    connections: ConnectionReading,
    cache: Usage,
    cache_since_ms: u64,
    log_lines_dropped: u64,
}

/// What is read elsewhere when the counters are: gauges, and counts that others keep.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// Unix time in milliseconds.
    pub now_ms: u64,
    pub connections_active: u64,
    pub storage: Usage,
    /// By upstream name.
    pub upstreams: Vec<(String, crate::origin::Gauges)>,
    pub log_lines_dropped: u64,
}

/// Which figures a reset is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    All,
    Vhost(String),
    /// An upstream by its name.
    Origin(String),
    Cache,
}

/// Nothing that is configured has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing is named `{0}`")]
pub struct UnknownName(pub String);

/// Whether a reading is since the last reset or since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    Reset,
    Start,
}

/// One reading of every cell: what is shown and what becomes the baseline are the same numbers.
struct Reading {
    vhosts: Vec<(VhostRow, VhostReading)>,
    origins: Vec<(Arc<OriginCounters>, OriginReading)>,
    connections: ConnectionReading,
}

impl Traffic {
    /// `workers` write; `now_ms` is Unix time in milliseconds.
    #[must_use]
    pub fn new(workers: usize, cache_name: &str, now_ms: u64) -> Self {
        let core = Arc::new(VhostCore::new(UNKNOWN, workers, now_ms));
        Self {
            workers,
            cache_name: cache_name.to_owned(),
            started_ms: now_ms,
            epoch: AtomicU64::new(1),
            connections: ConnectionCounters::default(),
            unknown: Arc::new(VhostCounters::new(core, Vec::new())),
            registry: Mutex::new(Registry {
                baseline: Baseline {
                    cache_since_ms: now_ms,
                    ..Baseline::default()
                },
                ..Registry::default()
            }),
        }
    }

    #[must_use]
    pub const fn workers(&self) -> usize {
        self.workers
    }

    #[must_use]
    pub const fn connections(&self) -> &ConnectionCounters {
        &self.connections
    }

    #[must_use]
    pub fn unknown(&self) -> &Arc<VhostCounters> {
        &self.unknown
    }

    /// The counters of a vhost with these rules; the same ones for the same names.
    pub fn vhost(&self, name: &str, rules: &[String]) -> Arc<VhostCounters> {
        let core = self.registry.lock().vhost(name, self.workers, self.started_ms);
        let rules = rules.iter().map(|rule| core.rule(rule, self.workers)).collect();
        Arc::new(VhostCounters::new(core, rules))
    }

    /// The counters of one server of an upstream.
    pub fn origin(&self, upstream: &str, server: &str) -> Arc<OriginCounters> {
        self.registry
            .lock()
            .origin(upstream, server, self.workers, self.started_ms)
    }

    /// Which rows a reading shows, in this order. Rows that are not named keep their counts, out of sight.
    pub fn configure(&self, vhosts: &[(String, Vec<String>)], origins: &[(String, String)]) {
        let mut registry = self.registry.lock();
        registry.shown_vhosts = vhosts
            .iter()
            .map(|(name, rules)| {
                let core = registry.vhost(name, self.workers, self.started_ms);
                let rules: Vec<Arc<RuleCore>> = rules.iter().map(|rule| core.rule(rule, self.workers)).collect();
                VhostRow { core, rules }
            })
            .collect();
        registry.shown_origins = origins
            .iter()
            .map(|(upstream, server)| registry.origin(upstream, server, self.workers, self.started_ms))
            .collect();
    }

    /// Figures since the last reset.
    #[must_use]
    pub fn snapshot(&self, gauges: &Gauges) -> Snapshot {
        let registry = self.registry.lock();
        self.show(&registry, &self.read(&registry), Since::Reset, gauges)
    }

    /// Figures since the start: they never fall.
    #[must_use]
    pub fn totals(&self, gauges: &Gauges) -> Snapshot {
        let registry = self.registry.lock();
        self.show(&registry, &self.read(&registry), Since::Start, gauges)
    }

    /// Makes the figures in `scope` start from zero and returns all figures as of that moment.
    ///
    /// # Errors
    /// A name that is not configured; nothing is reset then.
    pub fn reset(&self, scope: &Scope, now_ms: u64, gauges: &Gauges) -> Result<Snapshot, UnknownName> {
        let mut registry = self.registry.lock();
        let reading = self.read(&registry);
        let is_in_scope = |vhost: &VhostRow| match scope {
            Scope::All => true,
            Scope::Vhost(name) => vhost.core.name == *name,
            Scope::Origin(_) | Scope::Cache => false,
        };
        let is_origin_in_scope = |origin: &OriginCounters| match scope {
            Scope::All => true,
            Scope::Origin(name) => origin.upstream == *name,
            Scope::Vhost(_) | Scope::Cache => false,
        };
        let is_named = match scope {
            Scope::All | Scope::Cache => true,
            Scope::Vhost(_) => reading.vhosts.iter().any(|(row, _)| is_in_scope(row)),
            Scope::Origin(_) => reading.origins.iter().any(|(origin, _)| is_origin_in_scope(origin)),
        };
        if let (false, Scope::Vhost(name) | Scope::Origin(name)) = (is_named, scope) {
            return Err(UnknownName(name.clone()));
        }
        let snapshot = self.show(&registry, &reading, Since::Reset, gauges);
        for (row, reading) in reading.vhosts.iter().filter(|(row, _)| is_in_scope(row)) {
            row.rebase(reading, now_ms);
        }
        for (origin, reading) in reading.origins.iter().filter(|(origin, _)| is_origin_in_scope(origin)) {
            origin.rebase(reading, now_ms);
        }
        if matches!(scope, Scope::All | Scope::Cache) {
            registry.baseline.cache = gauges.storage;
            registry.baseline.cache_since_ms = now_ms;
        }
        if *scope == Scope::All {
            registry.baseline.connections = reading.connections;
            registry.baseline.log_lines_dropped = gauges.log_lines_dropped;
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
        Ok(snapshot)
    }

    fn read(&self, registry: &Registry) -> Reading {
        let unknown = VhostRow {
            core: Arc::clone(self.unknown.core()),
            rules: Vec::new(),
        };
        let vhosts = registry.shown_vhosts.iter().cloned().chain([unknown]);
        Reading {
            vhosts: vhosts.map(|row| (row.clone(), row.read())).collect(),
            origins: registry
                .shown_origins
                .iter()
                .map(|origin| (Arc::clone(origin), origin.read()))
                .collect(),
            connections: self.connections.read(),
        }
    }

    fn show(&self, registry: &Registry, reading: &Reading, since: Since, gauges: &Gauges) -> Snapshot {
        let vhosts: Vec<_> = reading
            .vhosts
            .iter()
            .map(|(row, counts)| row.show(counts, since, self.started_ms))
            .collect();
        let mut total = snapshot::Requests::zero();
        for vhost in &vhosts {
            total.add(&vhost.requests);
        }
        let baseline = &registry.baseline;
        let log_base = if since == Since::Reset {
            baseline.log_lines_dropped
        } else {
            0
        };
        Snapshot {
            epoch: self.epoch.load(Ordering::Relaxed),
            now_ms: gauges.now_ms,
            started_ms: self.started_ms,
            connections: reading
                .connections
                .show(since, &baseline.connections, gauges.connections_active),
            total,
            vhosts,
            origins: reading
                .origins
                .iter()
                .map(|(origin, counts)| origin.show(counts, since, self.started_ms, gauges))
                .collect(),
            cache: self.show_cache(baseline, since, gauges),
            log_lines_dropped: gauges.log_lines_dropped.saturating_sub(log_base),
        }
    }

    fn show_cache(&self, baseline: &Baseline, since: Since, gauges: &Gauges) -> CacheSnapshot {
        let now = &gauges.storage;
        let (base, since_ms) = match since {
            Since::Reset => (baseline.cache, baseline.cache_since_ms),
            Since::Start => (Usage::default(), self.started_ms),
        };
        CacheSnapshot {
            name: self.cache_name.clone(),
            since_ms,
            memory_used: now.used,
            memory_max: now.max,
            objects: now.objects,
            fills_active: now.fills_active,
            fill_bytes: now.fill_bytes,
            inserted: now.inserted.saturating_sub(base.inserted),
            evicted: now.evicted.saturating_sub(base.evicted),
            refused: now.refused.saturating_sub(base.refused),
            purged: now.purged.saturating_sub(base.purged),
            variants_capped: now.variants_capped.saturating_sub(base.variants_capped),
        }
    }
}

impl Registry {
    fn vhost(&mut self, name: &str, workers: usize, started_ms: u64) -> Arc<VhostCore> {
        if let Some(known) = self.vhosts.iter().find(|core| core.name == name) {
            return Arc::clone(known);
        }
        let core = Arc::new(VhostCore::new(name, workers, started_ms));
        self.vhosts.push(Arc::clone(&core));
        core
    }

    fn origin(&mut self, upstream: &str, server: &str, workers: usize, started_ms: u64) -> Arc<OriginCounters> {
        let is_it = |known: &&Arc<OriginCounters>| known.upstream == upstream && known.server == server;
        if let Some(known) = self.origins.iter().find(is_it) {
            return Arc::clone(known);
        }
        let origin = Arc::new(OriginCounters::new(upstream, server, workers, started_ms));
        self.origins.push(Arc::clone(&origin));
        origin
    }
}

#[cfg(test)]
mod tests;
