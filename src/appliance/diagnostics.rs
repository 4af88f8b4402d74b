//! What the process says of itself on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// Environment variable with the filter, such as `debug` or `larder_proxy=debug`.
const VARIABLE: &str = "LARDER_LOG";

/// Sends events to standard error, from `info` up unless the environment says otherwise.
pub(super) fn begin() {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // Fails where something else in the process listens already: then that is where events go.
    let _ = subscriber.try_init();
}
