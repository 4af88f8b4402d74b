//! What the process is told by signals.

use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP.
    Reload,
    /// SIGUSR1.
    ReopenLog,
}

#[derive(Debug)]
pub(super) struct Signals {
    terminate: Stream,
    interrupt: Stream,
    hangup: Stream,
    user: Stream,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
            _ = self.user.recv() => Signal::ReopenLog,
        }
    }

    /// Waits for a stop signal, whatever else comes.
    pub(super) async fn stop(&mut self) {
        while self.next().await != Signal::Stop {}
    }
}
