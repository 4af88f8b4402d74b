//! Composes the data plane, the admin plane and the store, and runs them until they are told to stop.

use std::net::SocketAddr;

use anyhow::bail;

use crate::config::Loaded;

/// Where the appliance serves, with the real ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    pub data: Vec<SocketAddr>,
    pub admin: SocketAddr,
}

/// Runs until a stop signal. `on_ready` is called once, when all sockets are bound and served.
pub fn run(loaded: Loaded, on_ready: impl FnOnce(&Ready) -> anyhow::Result<()>) -> anyhow::Result<()> {
    drop((loaded, on_ready));
    bail!("the appliance is not wired into this build")
}

/// The OpenAPI document of the admin plane, as JSON.
pub fn openapi() -> anyhow::Result<String> {
    bail!("the admin plane is not wired into this build")
}
