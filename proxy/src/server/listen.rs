//! Listening sockets. One per address, bound once and without SO_REUSEPORT: a second process on the same port must be an
//! error, not a silent share of the traffic.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that the kernel completes while no worker has accepted them yet. Beyond it clients retry their SYN after a
/// second, which a flood should meet later than the connection cap.
const BACKLOG: i32 = 4096;

/// # Errors
/// The address is in use, not this machine's, or needs a privilege.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A port whose old connections are still in TIME_WAIT can be bound again; one that is listened on can't.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
