//! The data plane as a whole: started, reloaded, read, reset, purged and stopped from outside.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use arc_swap::ArcSwap;
use larder_storage::{NotDurable, Store};
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::access_log::AccessLog;
use crate::clock::{steady_unix_ms, unix_ms};
use crate::config::{Boot, Live};
use crate::engine::key_of_get;
use crate::http1::authority::Authority;
use crate::http1::target::Scheme;
use crate::key;
use crate::routing::{CompileError, Router};
use crate::server::{Accepted, Shared, Worker, accept};
use crate::traffic::snapshot::Snapshot;
use crate::traffic::{Gauges, Scope, Traffic, UnknownName, WorkerId};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error("the disk tier cannot be opened")]
    Disk(#[from] larder_storage::disk::OpenError),
    #[error("the access log cannot be opened")]
    AccessLog(#[source] io::Error),
    #[error("a worker thread cannot be started")]
    Thread(#[source] io::Error),
}

/// What a purge of one URL did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPurged {
    /// Objects that are gone: all variants.
    pub variants: u64,
    pub bytes: u64,
    /// Name of the vhost that answers to the URL.
    pub vhost: String,
    /// The URL as the key has it.
    pub url: String,
    pub fence: u64,
}

/// Why a URL cannot be purged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PurgeUrlError {
    #[error("the URL must be absolute, such as http://www.example.test/page")]
    NotAbsolute,
    #[error("the scheme must be http or https")]
    Scheme,
    #[error("the authority of the URL is not valid")]
    Authority,
    #[error("byte {position} may not stand in a URL")]
    Byte { position: usize },
    #[error("no virtual host answers to {host}")]
    NoVhost { host: String },
    /// It is in effect, but a restart might undo it.
    #[error(transparent)]
    NotDurable(#[from] NotDurable),
}

/// Running. Dropping it without [`Self::stop`] leaves the threads to the end of the process.
#[derive(Debug)]
pub struct DataPlane {
    shared: Arc<Shared>,
    log: Option<AccessLog>,
    addresses: Vec<SocketAddr>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl DataPlane {
    /// Starts workers on sockets that listen already ([`crate::server::listen::bind`]).
    ///
    /// # Errors
    /// Rules that do not compile, an access log that cannot be opened, no threads.
    pub fn start(boot: Boot, live: &Live, listeners: Vec<TcpListener>) -> Result<Self, StartError> {
        let traffic = Arc::new(Traffic::new(boot.workers, &boot.cache_name, unix_ms()));
        let router = Router::compile(live, &traffic, None)?;
        let log = boot
            .access_log
            .as_ref()
            .map(AccessLog::open)
            .transpose()
            .map_err(StartError::AccessLog)?;
        let addresses = listeners
            .iter()
            .filter_map(|listener| listener.local_addr().ok())
            .collect();
        let workers = boot.workers;
        let options = larder_storage::Options {
            memory: boot.memory,
            disks: boot.disks.clone(),
            clock: steady_unix_ms,
            owner_of: key::vhost,
        };
        let store = Store::open(&options)?;
        let shared = Arc::new(Shared::new(boot, ArcSwap::from_pointee(router), store, traffic));
        let mut threads = Vec::with_capacity(workers + 1);
        let mut senders = Vec::with_capacity(workers);
        let mut listeners = Some(listeners);
        for index in 0..workers {
            let (sender, accepted) = unbounded_channel();
            senders.push(sender);
            let worker = Worker::new(
                WorkerId::new(index),
                Arc::clone(&shared),
                log.as_ref().map(AccessLog::handle),
            );
            // A single worker accepts by itself: there is nobody to share connections with.
            let own = if workers == 1 {
                listeners.take().unwrap_or_default()
            } else {
                Vec::new()
            };
            let all = senders.clone();
            threads.push(spawn(format!("larder-worker-{index}"), move |runtime| {
                runtime.block_on(async move {
                    let worker = Arc::new(worker);
                    accept_all(own, worker.shared_arc(), &all);
                    worker.run(accepted).await;
                });
            })?);
        }
        if let Some(listeners) = listeners {
            let shared = Arc::clone(&shared);
            threads.push(spawn("larder-accept".to_owned(), move |runtime| {
                runtime.block_on(async move {
                    accept_all(listeners, Arc::clone(&shared), &senders);
                    shared.stopping().await;
                });
            })?);
        }
        Ok(Self {
            shared,
            log,
            addresses,
            threads: Mutex::new(threads),
        })
    }

    /// Where it listens, with the real ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Takes in another set of rules and vhosts, or none of it. Connections, objects and counters stay.
    ///
    /// # Errors
    /// Rules that do not compile; the old ones stay in force.
    pub fn reload(&self, live: &Live) -> Result<(), CompileError> {
        let router = Router::compile(live, &self.shared.traffic, Some(&self.shared.router.load()))?;
        self.shared.router.store(Arc::new(router));
        Ok(())
    }

    /// Figures since the last reset.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.traffic.snapshot(&self.gauges())
    }

    /// Figures since the start.
    #[must_use]
    pub fn totals(&self) -> Snapshot {
        self.shared.traffic.totals(&self.gauges())
    }

    /// Makes the figures in `scope` start from zero; returns them as of that moment.
    ///
    /// # Errors
    /// A name that is not configured.
    pub fn reset(&self, scope: &Scope) -> Result<Snapshot, UnknownName> {
        self.shared.traffic.reset(scope, unix_ms(), &self.gauges())
    }

    fn gauges(&self) -> Gauges {
        let router = self.shared.router.load();
        Gauges {
            now_ms: unix_ms(),
            connections_active: self.shared.connections() as u64,
            storage: self.shared.store.usage(),
            upstreams: router
                .upstreams()
                .iter()
                .map(|up| (up.name().to_owned(), up.gauges()))
                .collect(),
            log_lines_dropped: self.log.as_ref().map_or(0, AccessLog::dropped),
        }
    }

    /// Removes every variant of an absolute URL, at once and for good: what begins after the first poll never sees them, and when
    /// the future resolves not even a crash can bring them back.
    ///
    /// # Errors
    /// A URL that cannot be a key; a disk that cannot note the purge, which is in effect all the same.
    pub async fn purge_url(&self, url: &str) -> Result<UrlPurged, PurgeUrlError> {
        let (key, vhost) = self.key_of(url)?;
        let purged = self.shared.store.purge_durably(&key).await?;
        Ok(UrlPurged {
            variants: purged.variants,
            bytes: purged.bytes,
            vhost,
            url: key::url(&key),
            fence: purged.fence,
        })
    }

    /// The key of an absolute URL, and the name of the vhost that answers to it.
    fn key_of(&self, url: &str) -> Result<(Vec<u8>, String), PurgeUrlError> {
        let (scheme, authority, rest) = split_url(url)?;
        let mut name = Vec::new();
        authority.write_normalised(scheme.default_port(), &mut name);
        let mut host = Vec::new();
        authority.write_host(&mut host);
        let router = self.shared.router.load();
        let vhost = router.vhost(&host).ok_or_else(|| PurgeUrlError::NoVhost {
            host: String::from_utf8_lossy(&host).into_owned(),
        })?;
        let key = key_of_get(vhost, scheme.name(), &name, rest.as_bytes(), &http::HeaderMap::new());
        Ok((key, vhost.name.clone()))
    }

    /// Opens the access log anew, after it was renamed.
    pub fn reopen_log(&self) {
        if let Some(log) = &self.log {
            log.reopen();
        }
    }

    /// Why lines of the access log are being lost, while they are.
    #[must_use]
    pub fn log_trouble(&self) -> Option<String> {
        self.log.as_ref().and_then(AccessLog::trouble)
    }

    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.is_draining()
    }

    /// Stops accepting, lets what is under way end within the drain time, then writes out the log. Returns when all that is
    /// done; a second call returns at once.
    pub fn stop(&self) {
        self.shared.begin_drain();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a worker thread had panicked");
            }
        }
        // Nothing is stored any more: what waits for the disks is written out.
        self.shared.store.stop();
        if let Some(log) = &self.log {
            log.close();
        }
    }
}

fn spawn(
    name: String,
    body: impl FnOnce(&tokio::runtime::Runtime) + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Thread)?;
    thread::Builder::new()
        .name(name)
        .spawn(move || body(&runtime))
        .map_err(StartError::Thread)
}

fn accept_all(listeners: Vec<TcpListener>, shared: Arc<Shared>, workers: &[UnboundedSender<Accepted>]) {
    for listener in listeners {
        let accepting = accept::run(listener, Arc::clone(&shared), workers.to_vec());
        tokio::spawn(async move {
            if let Err(error) = accepting.await {
                tracing::error!(%error, "a listener stopped");
            }
        });
    }
}

/// Scheme, authority and the rest of an absolute URL, without the fragment.
fn split_url(url: &str) -> Result<(Scheme, Authority<'_>, &str), PurgeUrlError> {
    let (scheme, rest) = url.split_once("://").ok_or(PurgeUrlError::NotAbsolute)?;
    let scheme = match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => Scheme::Http,
        _ if scheme.eq_ignore_ascii_case("https") => Scheme::Https,
        _ => return Err(PurgeUrlError::Scheme),
    };
    if let Some(position) = url.bytes().position(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(PurgeUrlError::Byte { position });
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let authority = Authority::parse(authority.as_bytes()).map_err(|_| PurgeUrlError::Authority)?;
    Ok((scheme, authority, rest))
}

#[cfg(test)]
mod tests;
