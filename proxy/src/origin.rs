//! Origin servers: connections, their pool and its limits, one exchange with its deadlines, the one safe retry, and the
//! fields that a request or an answer may carry across. It refuses to know what a cache is: it never decides whether an
//! answer may be stored, only whether its framing could be trusted.

mod connect;
mod connection;
mod exchange;
mod failure;
pub mod forward;
mod gate;
mod hop_by_hop;
mod meter;
mod pool;
mod request_body;
mod response;
pub mod sent;
mod upstream;
mod verdict;

#[cfg(test)]
mod tests;

pub use failure::{FailureKind, FetchError, Retry, Side};
pub use pool::Pool;
pub use request_body::{Closed, RequestBody, RequestBodySender};
pub use response::{Delimited, OriginBody, OriginResponse, OriginTunnel, Timing};
pub use upstream::{Gauges, Upstream};

/// Told of everything that counts. Gauges are read from [`Upstream::gauges`].
pub trait Observe: Send + Sync {
    /// A request is about to be tried; called once more for a retry.
    fn attempt(&self) {}
    /// A connection was opened.
    fn connect(&self) {}
    /// An idle connection was taken.
    fn reuse(&self) {}
    /// A request is sent a second time, on a fresh connection.
    fn retry(&self) {}
    /// An attempt failed; also where a retry follows.
    fn failure(&self, _kind: FailureKind) {}
    /// A final head arrived, so long after the attempt began.
    fn response(&self, _status: u16, _latency_us: u64) {}
    /// Bytes to the origin, heads included.
    fn sent(&self, _bytes: u64) {}
    /// Bytes from the origin, heads included.
    fn received(&self, _bytes: u64) {}
}

/// Counts nothing: for probes and tests.
impl Observe for () {}
