//! Composes the data plane and the admin plane, and runs them until they are told to stop. The only place that knows both.

mod control;
mod diagnostics;
mod signals;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use larder_admin_api::{AllowedHosts, AuditLog, Limits, Parts, Tokens, router, serve};
use larder_proxy::DataPlane;
use larder_proxy::server::listen;
use tokio::sync::oneshot;

use crate::config::Loaded;
use crate::huge_pages;
use crate::state_dir::StateDir;
use control::Control;
use signals::{Signal, Signals};

/// Environment variable that replaces the token in `{state_dir}/admin.token`.
const TOKEN_VARIABLE: &str = "LARDER_ADMIN_TOKEN";

/// Where the appliance serves, with the real ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    pub data: Vec<SocketAddr>,
    pub admin: SocketAddr,
}

/// Runs until a stop signal. `on_ready` is called once, when all sockets are bound and served.
///
/// # Errors
/// Whatever keeps it from starting: a port in use, a directory that cannot be written or that another process has, no threads.
pub fn run(loaded: Loaded, on_ready: impl FnOnce(&Ready) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let state = StateDir::take(&loaded.resolved.state_dir)?;
    run_in(state, loaded, on_ready)
}

/// The same in a directory that was taken before.
///
/// # Errors
/// See [`run`].
pub fn run_in(
    _state: StateDir,
    loaded: Loaded,
    on_ready: impl FnOnce(&Ready) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    diagnostics::begin();
    huge_pages::switch_off();
    // The control plane has this thread and its runtime to itself: traffic cannot starve it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run_here(loaded, on_ready))
}

/// The OpenAPI document of the admin plane, as JSON.
pub fn openapi() -> anyhow::Result<String> {
    Ok(larder_admin_api::openapi_json())
}

async fn run_here(loaded: Loaded, on_ready: impl FnOnce(&Ready) -> anyhow::Result<()>) -> anyhow::Result<()> {
    // Before anything else: a signal that comes during the start must not be lost, nor end the process half started.
    let signals = Signals::listen().context("cannot listen for signals")?;
    let resolved = &loaded.resolved;
    let listeners = resolved
        .boot
        .listeners
        .iter()
        .map(|address| bind(*address, "listener"))
        .collect::<anyhow::Result<_>>()?;
    let admin = bind(resolved.admin.listen, "admin")?;
    let admin_address = admin.local_addr()?;
    let parts = admin_parts(resolved, admin_address)?;
    let plane =
        DataPlane::start(resolved.boot.clone(), &resolved.live, listeners).context("the data plane cannot start")?;
    let plane = Arc::new(plane);
    let control = Arc::new(Control::new(Arc::clone(&plane), loaded));
    let (tokens, audit, hosts) = parts;
    let app = router(Parts {
        appliance: Arc::clone(&control) as _,
        tokens,
        audit,
        hosts,
    });
    let (stop_admin, admin_stopped) = oneshot::channel::<()>();
    let admin = tokio::net::TcpListener::from_std(admin)?;
    let serving = tokio::spawn(serve(admin, app, Limits::default(), async {
        // Either word from `stop` or its end.
        let _ = admin_stopped.await;
    }));
    on_ready(&Ready {
        data: plane.addresses().to_vec(),
        admin: admin_address,
    })?;
    obey(signals, &control, &plane).await;
    // Fails only where the admin plane has ended already.
    let _ = stop_admin.send(());
    serving.await?;
    Ok(())
}

type AdminParts = (Tokens, AuditLog, AllowedHosts);

fn admin_parts(resolved: &crate::config::Resolved, address: SocketAddr) -> anyhow::Result<AdminParts> {
    let tokens = match std::env::var(TOKEN_VARIABLE) {
        Ok(secret) => Tokens::from_secret(&secret).with_context(|| format!("{TOKEN_VARIABLE} cannot be used"))?,
        Err(_) => Tokens::load_or_create(&resolved.state_dir)
            .with_context(|| format!("the admin token in {} cannot be used", resolved.state_dir.display()))?,
    };
    let audit = AuditLog::open(&resolved.state_dir)
        .with_context(|| format!("the audit log in {} cannot be opened", resolved.state_dir.display()))?;
    Ok((tokens, audit, AllowedHosts::new(address, &[])))
}

/// Carries out signals until one says stop; then drains, while the admin plane goes on to tell so.
async fn obey(mut signals: Signals, control: &Control, plane: &Arc<DataPlane>) {
    loop {
        match signals.next().await {
            Signal::Stop => break,
            Signal::Reload => control.reload(),
            Signal::ReopenLog => plane.reopen_log(),
        }
    }
    tracing::info!("stopping: no new connections, open ones end with their answers");
    let draining = Arc::clone(plane);
    let drained = tokio::task::spawn_blocking(move || draining.stop());
    tokio::select! {
        result = drained => if let Err(error) = result {
            tracing::error!(%error, "the drain failed");
        },
        () = signals.stop() => {
            tracing::warn!("a second signal: stopping at once");
            std::process::exit(1);
        }
    }
}

fn bind(address: SocketAddr, what: &str) -> anyhow::Result<std::net::TcpListener> {
    listen::bind(address).with_context(|| {
        format!("cannot listen on {address} ({what}): is another process using the port, or is the address not this machine's?")
    })
}
