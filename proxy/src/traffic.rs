//! Traffic counters: what is counted, by whom, and how it is read and reset.
//!
//! Counters are keyed by name and live outside the reloadable configuration. Each worker writes its own slots; a reading sums
//! them. A reset is a baseline that is subtracted from then on: no count is lost between reading and resetting, and what
//! `/metrics` shows never falls. Readers take a lock that no worker ever takes.

mod cells;
mod connections;
mod latency;
mod origins;
mod registry;
pub mod snapshot;
mod vhosts;

use std::sync::Arc;

use larder_storage::Usage;
use larder_storage::disk::{DiskCounters, DiskUsage};
use parking_lot::Mutex;

pub use cells::WorkerId;
pub use connections::{ConnectionCounters, TimeoutKind};
pub use latency::BUCKETS_US;
pub use origins::OriginCounters;
pub use vhosts::{Ending, InFlight, VhostCounters};

use cells::{Reading, Since};
use connections::ConnectionReading;
use registry::Registry;
use snapshot::{CacheSnapshot, Snapshot};

/// The row of requests that no configured vhost answers.
pub const UNKNOWN: &str = "_unknown";

/// All counters of one appliance.
#[derive(Debug)]
pub struct Traffic {
    workers: usize,
    cache_name: String,
    started_ms: u64,
    connections: ConnectionCounters,
    unknown: Arc<VhostCounters>,
    books: Mutex<Books>,
}

/// What a reader reads, shows and rebases in one step.
#[derive(Debug)]
struct Books {
    epoch: u64,
    registry: Registry,
    connections: ConnectionReading,
    cache: Reading<5>,
    /// By the disks' order.
    disks: Vec<Reading<16>>,
    cache_since_ms: u64,
    log_lines_dropped: Reading<1>,
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

impl Traffic {
    /// `workers` write; `now_ms` is Unix time in milliseconds.
    #[must_use]
    pub fn new(workers: usize, cache_name: &str, now_ms: u64) -> Self {
        let mut registry = Registry::new(workers, now_ms);
        let unknown = Arc::clone(&registry.vhost(UNKNOWN).core);
        registry.configure(&[], &[]);
        Self {
            workers,
            cache_name: cache_name.to_owned(),
            started_ms: now_ms,
            connections: ConnectionCounters::default(),
            unknown: Arc::new(VhostCounters::new(unknown, Vec::new())),
            books: Mutex::new(Books {
                epoch: 1,
                registry,
                connections: Reading::default(),
                cache: Reading::default(),
                disks: Vec::new(),
                cache_since_ms: now_ms,
                log_lines_dropped: Reading::default(),
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
    pub const fn unknown(&self) -> &Arc<VhostCounters> {
        &self.unknown
    }

    /// The counters of a vhost with these rules; the same ones for the same names.
    pub fn vhost(&self, name: &str, rules: &[String]) -> Arc<VhostCounters> {
        let mut books = self.books.lock();
        let core = Arc::clone(&books.registry.vhost(name).core);
        let rules = books.registry.rules(name, rules);
        Arc::new(VhostCounters::new(core, rules))
    }

    /// The counters of one server of an upstream; the same ones for the same names.
    pub fn origin(&self, upstream: &str, server: &str) -> Arc<OriginCounters> {
        Arc::clone(self.books.lock().registry.origin(upstream, server))
    }

    /// Which rows a reading shows, in this order. Rows that are not named keep their counts, out of sight.
    pub fn configure(&self, vhosts: &[(String, Vec<String>)], origins: &[(String, String)]) {
        self.books.lock().registry.configure(vhosts, origins);
    }

    /// Figures since the last reset.
    #[must_use]
    pub fn snapshot(&self, gauges: &Gauges) -> Snapshot {
        let mut books = self.books.lock();
        self.read(&mut books, gauges);
        self.show(&books, Since::Reset, gauges)
    }

    /// Figures since the start: they never fall.
    #[must_use]
    pub fn totals(&self, gauges: &Gauges) -> Snapshot {
        let mut books = self.books.lock();
        self.read(&mut books, gauges);
        self.show(&books, Since::Start, gauges)
    }

    /// Makes the figures in `scope` start from zero and returns all figures as of that moment, still under the old epoch.
    ///
    /// # Errors
    /// A name that is not configured; nothing is reset then.
    pub fn reset(&self, scope: &Scope, now_ms: u64, gauges: &Gauges) -> Result<Snapshot, UnknownName> {
        let mut books = self.books.lock();
        if let (false, Scope::Vhost(name) | Scope::Origin(name)) = (books.registry.knows(scope), scope) {
            return Err(UnknownName(name.clone()));
        }
        self.read(&mut books, gauges);
        let snapshot = self.show(&books, Since::Reset, gauges);
        books.rebase(scope, now_ms);
        Ok(snapshot)
    }

    fn read(&self, books: &mut Books, gauges: &Gauges) {
        let Usage {
            inserted,
            evicted,
            refused,
            purged,
            variants_capped,
            ..
        } = gauges.storage;
        books.registry.read();
        books.connections.set(self.connections.read());
        books.cache.set([inserted, evicted, refused, purged, variants_capped]);
        books.disks.resize_with(gauges.storage.disks.len(), Reading::default);
        for (reading, disk) in books.disks.iter_mut().zip(&gauges.storage.disks) {
            reading.set(disk.counters.to_array());
        }
        books.log_lines_dropped.set([gauges.log_lines_dropped]);
    }

    fn show(&self, books: &Books, since: Since, gauges: &Gauges) -> Snapshot {
        let [log_lines_dropped] = books.log_lines_dropped.counts(since);
        Snapshot {
            epoch: books.epoch,
            now_ms: gauges.now_ms,
            started_ms: self.started_ms,
            connections: connections::show(&books.connections, since, gauges.connections_active),
            total: books.registry.show_total(since),
            vhosts: books.registry.show_vhosts(since),
            origins: books.registry.show_origins(since, gauges),
            cache: self.show_cache(books, since, &gauges.storage),
            log_lines_dropped,
        }
    }

    fn show_cache(&self, books: &Books, since: Since, now: &Usage) -> CacheSnapshot {
        let [inserted, evicted, refused, purged, variants_capped] = books.cache.counts(since);
        let disks = now.disks.iter().zip(&books.disks).map(|(disk, reading)| DiskUsage {
            counters: DiskCounters::from_array(reading.counts(since)),
            ..disk.clone()
        });
        CacheSnapshot {
            name: self.cache_name.clone(),
            since_ms: match since {
                Since::Reset => books.cache_since_ms,
                Since::Start => self.started_ms,
            },
            memory_used: now.used,
            memory_max: now.max,
            objects: now.objects,
            fills_active: now.fills_active,
            fill_bytes: now.fill_bytes,
            inserted,
            evicted,
            refused,
            purged,
            variants_capped,
            disks: disks.collect(),
            owners: now.owners.clone(),
        }
    }
}

impl Books {
    fn rebase(&mut self, scope: &Scope, now_ms: u64) {
        self.registry.rebase(scope, now_ms);
        if matches!(scope, Scope::All | Scope::Cache) {
            self.cache.rebase();
            self.disks.iter_mut().for_each(Reading::rebase);
            self.cache_since_ms = now_ms;
        }
        if *scope == Scope::All {
            self.connections.rebase();
            self.log_lines_dropped.rebase();
            self.epoch += 1;
        }
    }
}

#[cfg(test)]
mod tests;
