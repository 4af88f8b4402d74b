//! A scripted, byte-exact origin that keeps a log of what reaches it and judges it.
//!
//! A thread per connection, so that a script reads as what happens. It knows nothing of caching.

mod connection;
mod reply;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

pub use self::reply::{Reply, Step, http_date};
use crate::fields::Fields;
use crate::wait::DEADLINE;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct LoggedRequest {
    /// Number of its connection, from 1.
    pub connection: usize,
    pub method: String,
    pub target: String,
    pub fields: Fields,
    /// The head byte for byte, with its empty line.
    pub head: Vec<u8>,
    pub body: Vec<u8>,
    pub trailers: Fields,
    /// The body was read to its end.
    pub complete: bool,
}

impl LoggedRequest {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.fields.get(name)
    }

    /// The target without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(&self.target, |(path, _)| path)
    }
}

type Dynamic = Arc<dyn Fn(&LoggedRequest, usize) -> Vec<Step> + Send + Sync>;

#[derive(Clone)]
enum Script {
    Sequence(Arc<[Reply]>),
    Dynamic(Dynamic),
}

/// Connections to the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    pub total: usize,
    pub open: usize,
}

#[derive(Default)]
struct State {
    scripts: HashMap<String, (Script, usize)>,
    log: Vec<LoggedRequest>,
    violations: Vec<String>,
    gates: HashSet<String>,
    sockets: HashMap<usize, TcpStream>,
    total: usize,
    /// Requests in progress and the most there were, by path.
    concurrency: HashMap<String, (usize, usize)>,
    stopped: bool,
    /// Bodies are not kept where a test sends more than memory should hold.
    forget: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state.lock());
        self.changed.notify_all();
        result
    }

    /// Waits until `holds`; false when the time is up or the origin stops.
    fn wait(&self, deadline: Duration, holds: impl Fn(&State) -> bool) -> bool {
        let end = Instant::now() + deadline;
        let mut state = self.state.lock();
        while !holds(&state) {
            if state.stopped || self.changed.wait_until(&mut state, end).timed_out() {
                return holds(&state);
            }
        }
        true
    }
}

/// The origin; stops when dropped.
pub struct Origin {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Origin {
    /// Listens on a free port of 127.0.0.1. A path without a script is answered 404.
    ///
    /// # Panics
    /// Where no port can be had.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port for the origin");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Self { address, shared }
    }

    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The n-th request to `path` gets the n-th reply, the last one repeats. `path` is a target with query, or a path for
    /// any query, or `*` for the rest.
    pub fn on(&self, path: &str, replies: impl IntoIterator<Item = Reply>) -> &Self {
        let replies: Arc<[Reply]> = replies.into_iter().collect();
        assert!(!replies.is_empty(), "a script needs a reply");
        self.script(path, Script::Sequence(replies))
    }

    /// Replies made for the request at hand; `n` counts from 1.
    pub fn on_each(
        &self,
        path: &str,
        reply: impl Fn(&LoggedRequest, usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> &Self {
        self.script(path, Script::Dynamic(Arc::new(reply)))
    }

    fn script(&self, path: &str, script: Script) -> &Self {
        self.shared
            .update(|state| state.scripts.insert(path.to_owned(), (script, 0)));
        self
    }

    /// Keeps neither bodies nor heads in the log, for tests with very many requests.
    pub fn forget_requests(&self) -> &Self {
        self.shared.update(|state| state.forget = true);
        self
    }

    /// Requests to a target, or to a path with any query where `path` has none.
    #[must_use]
    pub fn count(&self, path: &str) -> usize {
        self.state()
            .log
            .iter()
            .filter(|r| r.target == path || r.path() == path)
            .count()
    }

    #[must_use]
    pub fn log(&self) -> Vec<LoggedRequest> {
        self.state().log.clone()
    }

    /// The last request to a path.
    ///
    /// # Panics
    /// Where there was none.
    #[must_use]
    pub fn last(&self, path: &str) -> LoggedRequest {
        let found = self
            .state()
            .log
            .iter()
            .rfind(|r| r.target == path || r.path() == path)
            .cloned();
        found.unwrap_or_else(|| panic!("no request for {path} reached the origin"))
    }

    /// What arrived and was not exactly one well-formed message.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    #[must_use]
    pub fn connections(&self) -> Connections {
        let state = self.state();
        Connections {
            total: state.total,
            open: state.sockets.len(),
        }
    }

    /// The most requests to a path that were in progress at once.
    #[must_use]
    pub fn peak(&self, path: &str) -> usize {
        self.state().concurrency.get(path).map_or(0, |(_, peak)| *peak)
    }

    /// Opens a gate for good.
    pub fn open_gate(&self, name: &str) {
        self.shared.update(|state| state.gates.insert(name.to_owned()));
    }

    /// Closes a gate again.
    pub fn close_gate(&self, name: &str) {
        self.shared.update(|state| state.gates.remove(name));
    }

    /// Forgets the log and the violations; scripts and gates stay.
    pub fn clear_log(&self) {
        self.shared.update(|state| {
            state.log.clear();
            state.violations.clear();
            state.concurrency.clear();
        });
    }

    /// Waits for the log to hold something.
    ///
    /// # Panics
    /// When the deadline passes, with the log.
    pub fn wait_for(&self, what: &str, deadline: Duration, holds: impl Fn(&[LoggedRequest]) -> bool) {
        if !self.shared.wait(deadline, |state| holds(&state.log)) {
            let state = self.state();
            let lines: Vec<_> = state.log.iter().map(|r| format!("{} {}", r.method, r.target)).collect();
            panic!(
                "waited {deadline:?} in vain for {what}; log: {lines:#?}; violations: {:#?}",
                state.violations
            );
        }
    }

    /// Waits until that many requests to `path` have arrived.
    pub fn wait_count(&self, path: &str, n: usize) {
        self.wait_for(&format!("{n} requests to {path}"), DEADLINE, |log| {
            log.iter().filter(|r| r.target == path || r.path() == path).count() >= n
        });
    }

    /// Waits until that many connections, at most, are open.
    ///
    /// # Panics
    /// When the deadline passes.
    pub fn wait_open_at_most(&self, n: usize) {
        assert!(
            self.shared.wait(DEADLINE, |state| state.sockets.len() <= n),
            "more than {n} connections stay open"
        );
    }

    /// Closes every connection that is open now.
    pub fn close_connections(&self) {
        for socket in self.state().sockets.values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.update(|state| state.stopped = true);
        self.close_connections();
        // Wakes the accepting thread, which then sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for socket in listener.incoming() {
        let Ok(socket) = socket else { continue };
        let number = shared.update(|state| {
            if state.stopped {
                return None;
            }
            state.total += 1;
            let copy = socket.try_clone().ok()?;
            state.sockets.insert(state.total, copy);
            Some(state.total)
        });
        let Some(number) = number else { return };
        let shared = Arc::clone(shared);
        thread::spawn(move || connection::serve(number, socket, &shared));
    }
}

#[cfg(test)]
mod tests;
