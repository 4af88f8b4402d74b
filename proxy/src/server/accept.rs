//! Accepting connections and handing them to workers, evenly. With one worker it accepts by itself; with more, a thread of its
//! own gives each new connection to the worker that has the fewest.

use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SocketFlags, acceptfrom_with, sockopt};
use tokio::sync::mpsc::UnboundedSender;

use super::admission::{Admission, ConnectionGuard};
use super::readiness;
use super::shared::Shared;

/// A connection on its way to a worker.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(super) socket: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) guard: ConnectionGuard,
}

/// How long to wait when the process has no file descriptor left.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepted without going back to the runtime: a burst is taken at once, and others get their turn.
const BURST: usize = 64;

const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n\
Connection: close\r\nRetry-After: 1\r\nContent-Length: 53\r\n\r\n503 Service Unavailable\nToo many connections at once.\n";

/// Accepts until the appliance drains. The channels to the workers are unbounded in form only: what waits in them is counted
/// by the connection cap.
pub(crate) async fn run(
    listener: TcpListener,
    shared: Arc<Shared>,
    workers: Vec<UnboundedSender<Accepted>>,
) -> io::Result<()> {
    let listener = readiness::register(listener)?;
    loop {
        let ready = tokio::select! {
            ready = listener.readable() => ready,
            () = shared.stopping() => return Ok(()),
        };
        let mut ready = ready?;
        for _ in 0..BURST {
            match accept(listener.get_ref()) {
                Ok((socket, peer)) => dispatch(socket, peer, &shared, &workers),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ready.clear_ready();
                    break;
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    shared.traffic.connections().refused();
                    tracing::warn!(%error, "cannot accept connections; trying again");
                    tokio::time::sleep(PAUSE).await;
                    break;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, peer) = acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    let peer = peer
        .and_then(|peer| SocketAddr::try_from(peer).ok())
        .unwrap_or_else(|| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
    Ok((socket.into(), peer))
}

/// Errors that say something of the connection that was to be accepted, not of the listener (accept(2)).
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted
    )
}

fn dispatch(socket: TcpStream, peer: SocketAddr, shared: &Arc<Shared>, workers: &[UnboundedSender<Accepted>]) {
    let Some(guard) = Admission::enter(&shared.admission, peer.ip()) else {
        shared.traffic.connections().refused();
        refuse(socket);
        return;
    };
    // Answers are written whole; waiting for more to fill a segment would only delay them. Fails on a dead socket alone.
    let _ = sockopt::set_tcp_nodelay(&socket, true);
    shared.traffic.connections().accepted();
    let worker = guard.worker();
    if let Some(worker) = workers.get(worker) {
        // Fails only where the worker has ended: the connection is closed by the drop.
        let _ = worker.send(Accepted { socket, peer, guard });
    }
}

/// Says why, as far as the socket's buffer takes it: whoever floods us is not waited for.
fn refuse(mut socket: TcpStream) {
    let _ = socket.write_all(TOO_MANY);
    let _ = socket.shutdown(std::net::Shutdown::Write);
}
