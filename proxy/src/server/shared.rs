//! What all workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use larder_storage::UseCounts;
use tokio::sync::Notify;

use super::admission::Admission;
use crate::config::Boot;
use crate::engine::CacheStore;
use crate::routing::Router;
use crate::traffic::Traffic;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) boot: Boot,
    pub(crate) router: ArcSwap<Router>,
    pub(crate) store: CacheStore,
    /// Of keys whose rule wants several before an answer is stored.
    pub(crate) uses: UseCounts,
    pub(crate) traffic: Arc<Traffic>,
    pub(super) admission: Arc<Admission>,
    drain: Drain,
}

impl Shared {
    pub(crate) fn new(boot: Boot, router: ArcSwap<Router>, store: CacheStore, traffic: Arc<Traffic>) -> Self {
        let limits = &boot.limits;
        let admission = Arc::new(Admission::new(
            boot.workers,
            limits.connections,
            limits.connections_per_client,
        ));
        Self {
            boot,
            router,
            store,
            uses: UseCounts::default(),
            traffic,
            admission,
            drain: Drain::default(),
        }
    }

    /// Open client connections.
    pub(crate) fn connections(&self) -> usize {
        self.admission.active()
    }

    pub(crate) fn begin_drain(&self) {
        self.drain.begun.store(true, Ordering::SeqCst);
        self.drain.notify.notify_waiters();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drain.begun.load(Ordering::Relaxed)
    }

    /// Returns when the drain begins.
    pub(crate) async fn stopping(&self) {
        let told = self.drain.notify.notified();
        if !self.is_draining() {
            told.await;
        }
    }
}

/// The switch from serving to draining. It is thrown once.
#[derive(Debug, Default)]
struct Drain {
    begun: AtomicBool,
    notify: Notify,
}
