//! Who may connect: the cap on all connections, the cap on those of one client, and the worker that gets the next one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct Admission {
    connections_max: usize,
    per_client_max: Option<usize>,
    active: AtomicUsize,
    /// Connections of each worker.
    workers: Vec<AtomicUsize>,
    /// Bounded by the cap on all connections; empty where clients have no cap of their own.
    clients: Mutex<HashMap<IpAddr, usize, RandomState>>,
    /// Told whenever the last connection of a worker ends.
    idle: Notify,
}

impl Admission {
    pub(super) fn new(workers: usize, connections_max: usize, per_client_max: Option<usize>) -> Self {
        Self {
            connections_max,
            per_client_max,
            active: AtomicUsize::new(0),
            workers: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            clients: Mutex::default(),
            idle: Notify::new(),
        }
    }

    /// A place for one more connection, or `None` where a cap is reached.
    pub(super) fn enter(admission: &Arc<Self>, client: IpAddr) -> Option<ConnectionGuard> {
        if admission.active.fetch_add(1, Ordering::Relaxed) >= admission.connections_max {
            admission.active.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        if !admission.enter_client(client) {
            admission.active.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let worker = admission.least_busy();
        if let Some(count) = admission.workers.get(worker) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Some(ConnectionGuard {
            admission: Arc::clone(admission),
            worker,
            client,
        })
    }

    fn enter_client(&self, client: IpAddr) -> bool {
        let Some(max) = self.per_client_max else { return true };
        let mut clients = self.clients.lock();
        let count = clients.entry(client).or_insert(0);
        let admitted = *count < max;
        if admitted {
            *count += 1;
        }
        admitted
    }

    fn least_busy(&self) -> usize {
        let load = |(_, count): &(usize, &AtomicUsize)| count.load(Ordering::Relaxed);
        self.workers
            .iter()
            .enumerate()
            .min_by_key(load)
            .map_or(0, |(index, _)| index)
    }

    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Returns when no connection is left.
    pub(super) async fn emptied(&self) {
        loop {
            let told = self.idle.notified();
            if self.active() == 0 {
                return;
            }
            told.await;
        }
    }
}

/// The place of one connection; given back by the drop.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    admission: Arc<Admission>,
    worker: usize,
    client: IpAddr,
}

impl ConnectionGuard {
    pub(super) const fn worker(&self) -> usize {
        self.worker
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let admission = &self.admission;
        if let Some(count) = admission.workers.get(self.worker) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        if admission.per_client_max.is_some() {
            let mut clients = admission.clients.lock();
            if let Some(count) = clients.get_mut(&self.client) {
                *count -= 1;
                if *count == 0 {
                    clients.remove(&self.client);
                }
            }
        }
        if admission.active.fetch_sub(1, Ordering::Relaxed) == 1 {
            admission.idle.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[test]
    fn connections_spread_evenly_and_caps_hold() {
        let admission = Arc::new(Admission::new(3, 100, None));
        let guards: Vec<_> = (0..100)
            .map(|_| Admission::enter(&admission, client(1)).unwrap())
            .collect();
        assert!(Admission::enter(&admission, client(1)).is_none());
        for worker in 0..3 {
            let count = guards.iter().filter(|guard| guard.worker() == worker).count();
            assert!((33..=34).contains(&count), "worker {worker} has {count}");
        }
        drop(guards);
        assert_eq!(admission.active(), 0);
        assert!(Admission::enter(&admission, client(1)).is_some());
    }

    #[test]
    fn b103_one_client_cannot_take_all_connections() {
        let admission = Arc::new(Admission::new(1, 10, Some(2)));
        let first = Admission::enter(&admission, client(1)).unwrap();
        let _second = Admission::enter(&admission, client(1)).unwrap();
        assert!(Admission::enter(&admission, client(1)).is_none());
        assert!(Admission::enter(&admission, client(2)).is_some());
        drop(first);
        assert!(Admission::enter(&admission, client(1)).is_some());
        assert_eq!(admission.active(), 1);
        assert_eq!(
            admission.clients.lock().len(),
            1,
            "clients without connections are forgotten"
        );
    }
}
