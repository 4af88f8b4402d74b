//! One origin server as all workers share it: its limits, its idle connections and its figures.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::Instant;

use super::connect::Resolver;
use super::connection::{Connection, Terms};
use super::failure::{FailureKind, FetchError};
use super::gate::{Gate, Permit};
use crate::config::{self, UpstreamTimeouts};

/// How long an unused connection is kept: below the idle timeout of common origins (nginx 75 s), so that we close
/// first.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Shared by all workers. Dropped by a reload, it closes its idle connections; those in use end with their answers.
#[derive(Debug)]
pub struct Upstream {
    settings: config::Upstream,
    pub(super) timeouts: UpstreamTimeouts,
    pub(super) gate: Arc<Gate<Connection>>,
    resolver: Resolver,
    terms: Terms,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Connections with a request on them, or being opened.
    pub active: u64,
    pub idle: u64,
    /// Requests that wait for a connection.
    pub queued: u64,
}

impl Upstream {
    #[must_use]
    pub fn new(config: &config::Upstream, workers: usize) -> Self {
        Self::with_idle_max(config, workers, IDLE_MAX)
    }

    #[must_use]
    pub fn with_idle_max(config: &config::Upstream, workers: usize, idle_max: Duration) -> Self {
        let gate = Arc::new(Gate::new(workers, config.connections, config.keepalive, config.queue));
        Self {
            settings: config.clone(),
            timeouts: config.timeouts,
            terms: Terms {
                idle_max,
                stray: Arc::default(),
                gate: Arc::downgrade(&gate),
            },
            gate,
            resolver: Resolver::new(&config.address),
        }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// What it was made from: a reload keeps it where that is the same.
    #[must_use]
    pub const fn settings(&self) -> &config::Upstream {
        &self.settings
    }

    /// `host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.settings.address
    }

    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let reading = self.gate.reading();
        Gauges {
            active: reading.open.saturating_sub(reading.idle) as u64,
            idle: reading.idle as u64,
            queued: reading.waiting as u64,
        }
    }

    /// How often a connection was closed since bytes came on it where no answer was due.
    #[must_use]
    pub fn stray_messages(&self) -> u64 {
        self.terms.stray.load(Relaxed)
    }

    pub(super) fn idle_max(&self) -> Duration {
        self.terms.idle_max
    }

    pub(super) async fn open(&self, permit: Permit<Connection>, deadline: Instant) -> Result<Connection, FetchError> {
        let stream = self.resolver.connect(deadline).await?;
        Connection::open(stream, permit, self.terms.clone())
            .await
            .map_err(|error| FetchError::caused(FailureKind::ConnectFailed, error))
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.gate.close();
    }
}
