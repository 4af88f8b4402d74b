//! One connection to an origin: hyper's sender, the task that drives the socket, and the idle connection's end.

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use super::gate::{Gate, Permit};
use super::meter::{Meter, Metered};
use super::request_body::RequestBody;

/// The head of an answer, its trailers, and (roughly, since hyper may fill a buffer that it got larger) what is read at
/// once. The number of fields is bounded by hyper's default of 100, which it parses on the stack.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long an exchange that is over may take to show whether its connection is clean. Its driver needs one poll for
/// that; a second allows for one on a busy worker.
const SETTLE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<RequestBody>,
    pub(super) meter: Arc<Meter>,
    /// Taken only where the connection is given up for another.
    permit: Option<Permit<Self>>,
    link: Arc<Link>,
    driver: AbortHandle,
}

/// What a connection shares with its driver.
#[derive(Debug)]
struct Link {
    /// The shelf it lies on, and since when; `None` while in use.
    parked: Mutex<Option<(usize, Instant)>>,
    ended: AtomicBool,
}

/// What every connection of an upstream is opened with.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) idle_max: Duration,
    /// Bytes that came where no answer was due.
    pub(super) stray: Arc<AtomicU64>,
    pub(super) gate: Weak<Gate<Connection>>,
}

impl Connection {
    pub(super) async fn open(stream: TcpStream, permit: Permit<Self>, terms: Terms) -> Result<Self, hyper::Error> {
        let meter = Arc::new(Meter::new());
        let io = TokioIo::new(Metered {
            stream,
            meter: Arc::clone(&meter),
        });
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .max_header_size(HEAD_BYTES_MAX)
            .handshake(io)
            .await?;
        let link = Arc::new(Link {
            parked: Mutex::new(None),
            ended: AtomicBool::new(false),
        });
        let driver = tokio::spawn(drive(connection.with_upgrades(), Arc::clone(&link), terms)).abort_handle();
        Ok(Self {
            sender,
            meter,
            permit: Some(permit),
            link,
            driver,
        })
    }

    /// Marks it as in use again, and says whether it is worth trying.
    pub(super) fn wake(&self, idle_max: Duration) -> bool {
        let since = self.link.parked.lock().take().map(|(_, since)| since);
        self.meter.suspect();
        let young = since.is_none_or(|since| since.elapsed() < idle_max);
        young && self.sender.is_ready() && !self.link.ended.load(SeqCst)
    }

    /// Closes it and keeps its place, so that a fresh one needs no second wait.
    pub(super) fn into_permit(mut self) -> Option<Permit<Self>> {
        self.permit.take()
    }

    /// Back to the pool once hyper has found nothing behind the answer. Bytes behind it, or a close, end it here: they
    /// must never meet the next request.
    pub(super) fn settle(mut self, gate: Arc<Gate<Self>>, worker: usize) {
        match self.sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => self.park(&gate, worker),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                tokio::spawn(async move {
                    if let Ok(Ok(())) = timeout(SETTLE, self.sender.ready()).await {
                        self.park(&gate, worker);
                    }
                });
            }
        }
    }

    fn park(self, gate: &Gate<Self>, worker: usize) {
        let link = Arc::clone(&self.link);
        *link.parked.lock() = Some((worker, Instant::now()));
        gate.park(worker, self);
        // The driver may have ended on another worker between the last look and the parking, and found nothing to
        // remove.
        if link.ended.load(SeqCst) {
            drop(link.unshelve(gate, worker));
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A tunnel's driver has ended by then; any other must not go on reading or writing for nobody.
        self.driver.abort();
    }
}

impl Link {
    fn unshelve(self: &Arc<Self>, gate: &Gate<Connection>, worker: usize) -> Option<Connection> {
        gate.remove(worker, |connection| Arc::ptr_eq(&connection.link, self))
    }

    /// Takes the connection off its shelf if it has lain there too long; else says when to look again.
    fn expire(self: &Arc<Self>, terms: &Terms) -> Result<(), Instant> {
        let now = Instant::now();
        let Some((worker, since)) = *self.parked.lock() else {
            return Err(now + terms.idle_max);
        };
        if since + terms.idle_max > now {
            return Err(since + terms.idle_max);
        }
        match terms.gate.upgrade() {
            Some(gate) => self.unshelve(&gate, worker).map(drop).ok_or(now + terms.idle_max),
            None => Ok(()),
        }
    }
}

/// Drives one socket until either side closes it, or it has lain idle too long. The timer is armed once per idle period
/// of the whole connection, not per request: what it finds in use, it looks at again later.
async fn drive(connection: impl Future<Output = Result<(), hyper::Error>>, link: Arc<Link>, terms: Terms) {
    let mut connection = pin!(connection);
    let mut timer = pin!(sleep(terms.idle_max));
    let result = loop {
        tokio::select! {
            biased;
            result = &mut connection => break result,
            () = &mut timer => match link.expire(&terms) {
                Ok(()) => return,
                Err(again) => timer.as_mut().reset(again),
            },
        }
    };
    if let Err(error) = result {
        // hyper has no predicate for its "unexpected message": it is what is neither a cut nor caused by something
        // below.
        if error.source().is_none() && !error.is_incomplete_message() {
            terms.stray.fetch_add(1, Relaxed);
        }
        tracing::debug!(%error, "origin connection ended");
    }
    link.ended.store(true, SeqCst);
    let shelf = link.parked.lock().map(|(worker, _)| worker);
    if let (Some(worker), Some(gate)) = (shelf, terms.gate.upgrade()) {
        drop(link.unshelve(&gate, worker));
    }
}
