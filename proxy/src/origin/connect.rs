//! From `host:port` to a connected socket: look-up with a short memory, then each address in turn within one deadline.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::failure::{FailureKind, FetchError};

/// How long a look-up is believed. The system's resolver tells no TTL; this is short enough for a moved backend, and
/// long enough that a busy pool does not live in the resolver.
const BELIEVED: Duration = Duration::from_secs(5);
/// How long a failed look-up is not repeated.
const FAILED: Duration = Duration::from_secs(1);
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Resolver {
    address: String,
    literal: Option<SocketAddr>,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    addresses: Vec<SocketAddr>,
    /// When to ask again.
    until: Option<Instant>,
}

impl Resolver {
    pub(super) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            literal: address.parse().ok(),
            known: Arc::default(),
        }
    }

    /// The addresses to try. A name that can't be looked up keeps its last ones.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, FetchError> {
        if let Some(address) = self.literal {
            return Ok(vec![address]);
        }
        let mut known = Arc::clone(&self.known).lock_owned().await;
        if known.until.is_none_or(|until| until <= Instant::now()) {
            // A task of its own, which holds the lock: a look-up can't be cancelled, so those who give up on one must
            // not start a second beside it and use up the runtime's blocking threads.
            let address = self.address.clone();
            let look_up = tokio::spawn(async move {
                let found = lookup_host(address)
                    .await
                    .map(|found| found.take(ADDRESSES_MAX).collect::<Vec<_>>());
                let believed = match found {
                    Ok(addresses) if !addresses.is_empty() => {
                        known.addresses = addresses;
                        BELIEVED
                    }
                    Ok(_) => FAILED,
                    Err(error) => {
                        tracing::debug!(%error, "look-up of an origin failed");
                        FAILED
                    }
                };
                known.until = Some(Instant::now() + believed);
                known
            });
            known = look_up
                .await
                .map_err(|error| FetchError::caused(FailureKind::Resolve, error))?;
        }
        if known.addresses.is_empty() {
            Err(FailureKind::Resolve.into())
        } else {
            Ok(known.addresses.clone())
        }
    }

    pub(super) async fn connect(&self, deadline: Instant) -> Result<TcpStream, FetchError> {
        let addresses = timeout_at(deadline, self.addresses())
            .await
            .map_err(|_| FetchError::new(FailureKind::ConnectTimeout))??;
        let mut failure = FetchError::new(FailureKind::Resolve);
        for (tried, address) in addresses.iter().enumerate() {
            // A black hole must leave the others their share of the time.
            let now = Instant::now();
            let share = deadline.saturating_duration_since(now) / u32::try_from(addresses.len() - tried).unwrap_or(1);
            match timeout_at(now + share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream
                        .set_nodelay(true)
                        .map_err(|error| FetchError::caused(FailureKind::ConnectFailed, error))?;
                    return Ok(stream);
                }
                Ok(Err(error)) => failure = FetchError::caused(kind_of(&error), error),
                Err(_) => failure = FailureKind::ConnectTimeout.into(),
            }
        }
        Err(failure)
    }
}

fn kind_of(error: &io::Error) -> FailureKind {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => FailureKind::ConnectRefused,
        io::ErrorKind::TimedOut => FailureKind::ConnectTimeout,
        _ => FailureKind::ConnectFailed,
    }
}
