//! Waiting for a listening socket without giving up its own `accept`: tokio's listener would register each new connection
//! with the accepting runtime, only for it to be taken out again for the worker's.
#![expect(
    unsafe_code,
    reason = "the registration of a descriptor is unsafe in tokio; std's listener keeps its promise"
)]

use std::io;
use std::net::TcpListener;

use tokio::io::unix::AsyncFd;

/// Registers `listener` with the current runtime.
pub(super) fn register(listener: TcpListener) -> io::Result<AsyncFd<TcpListener>> {
    // SAFETY: std's listener owns one descriptor that stays open and the same until it is dropped, and the AsyncFd owns the
    // listener.
    let registered = unsafe { AsyncFd::register(listener) };
    Ok(registered?)
}
