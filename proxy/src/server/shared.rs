//! What all workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
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
    pub(crate) store: Arc<CacheStore>,
    pub(crate) traffic: Arc<Traffic>,
    pub(super) admission: Arc<Admission>,
    pub(super) drain: Drain,
}

impl Shared {
    pub(crate) fn is_draining(&self) -> bool {
        self.drain.begun.load(Ordering::Relaxed)
    }

    /// Returns when the drain begins.
    pub(super) async fn stopping(&self) {
        let told = self.drain.notify.notified();
        if !self.is_draining() {
            told.await;
        }
    }
}

/// The switch from serving to draining. It is thrown once.
#[derive(Debug, Default)]
pub(super) struct Drain {
    begun: AtomicBool,
    notify: Notify,
}

impl Drain {
    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
        self.notify.notify_waiters();
    }
}
