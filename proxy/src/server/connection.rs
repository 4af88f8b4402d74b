//! One client connection: requests are read, answered in order, and the connection ends when either side says so.
//!
//! While it is idle it holds no buffer: reading, parsing and answering hits happen in one step on buffers of the thread.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use http::StatusCode;
use tokio::net::TcpStream;

use super::accept::Accepted;
use super::admission::ConnectionGuard;
use super::buffers::{Buffers, with_buffers};
use super::exchange;
use super::stream::{ClientGone, ClientStream};
use super::turn::{Next, Turn, take_turn};
use super::worker::Worker;
use crate::clock::Moment;
use crate::http1;
use crate::http1::response::{ErrorPage, PageBody};
use crate::traffic::TimeoutKind;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: ClientStream,
    pub(super) peer: SocketAddr,
    pub(super) worker: Arc<Worker>,
    /// Bytes that came and are not used yet: the beginning of a head, or what follows one. Empty, it holds no memory.
    pub(super) carry: Vec<u8>,
    /// `carry` was not looked at since it changed: it may hold a whole head.
    pub(super) carry_is_new: bool,
    /// The deadline of an incomplete head runs.
    pub(super) in_head: bool,
    _guard: ConnectionGuard,
}

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Continue {
    Yes,
    /// It ends, after the client had time to read the answer.
    Linger,
    /// The client must see that its answer was broken off: where the connection's end is what ends a body, a plain end would
    /// look like the right one.
    Reset,
    No,
}

/// Bytes and time that a client which still sends is given to read its last answer, before a reset could take it away.
const LINGER_BYTES: usize = 1024 * 1024;
const LINGER: std::time::Duration = std::time::Duration::from_secs(2);

impl Connection {
    pub(super) fn new(accepted: Accepted, worker: Arc<Worker>) -> io::Result<Self> {
        let deadline = worker.deadlines.add();
        deadline.set(
            TimeoutKind::Idle,
            Moment::now().after(worker.shared().boot.timeouts.idle),
        );
        let socket = TcpStream::from_std(accepted.socket)?;
        Ok(Self {
            stream: ClientStream { socket, deadline },
            peer: accepted.peer,
            worker,
            carry: Vec::new(),
            carry_is_new: false,
            in_head: false,
            _guard: accepted.guard,
        })
    }

    pub(super) async fn run(mut self) {
        match self.serve().await {
            Ok(Continue::Linger) => Box::pin(self.linger()).await,
            Ok(Continue::Reset) => self.reset(),
            Ok(_) | Err(ClientGone::Io) => {}
            Err(ClientGone::Timeout(kind)) => {
                self.worker.shared().traffic.connections().timeout(kind);
                match kind {
                    TimeoutKind::Header => self.say_timeout(),
                    // What the client does not take would stay in the kernel's buffers for minutes after a plain close.
                    TimeoutKind::Write => self.reset(),
                    TimeoutKind::Idle | TimeoutKind::Body => {}
                }
            }
        }
    }

    /// Tells a client whose head did not come to its end (RFC 9110 section 15.5.9), as far as it takes it at once.
    fn say_timeout(&self) {
        let mut page = Vec::new();
        ErrorPage {
            status: StatusCode::REQUEST_TIMEOUT,
            detail: "the head of the request did not come in time",
            connection: http1::response::Connection::Close,
            body: PageBody::Sent,
            fields: &[],
            now: SystemTime::now(),
        }
        .write(&mut page);
        // Whoever does not read it has been cut off with reason.
        let _ = self.stream.socket.try_write(&page);
    }

    async fn serve(&mut self) -> Result<Continue, ClientGone> {
        loop {
            let turn = poll_fn(|context| self.poll_turn(context)).await?;
            if let Some(unsent) = turn.unsent {
                let patience = self.worker.shared().boot.timeouts.write;
                Box::pin(unsent.send(&mut self.stream, patience)).await?;
            }
            let goes_on = match turn.next {
                Next::Read => Continue::Yes,
                Next::End(end) => end,
                Next::Exchange(start) => Box::pin(exchange::run(self, start)).await?,
            };
            if goes_on != Continue::Yes {
                return Ok(goes_on);
            }
            self.wait_for_next(Moment::now());
        }
    }

    /// Sets the deadline that fits what is held of the next request.
    pub(super) fn wait_for_next(&mut self, now: Moment) {
        let timeouts = &self.worker.shared().boot.timeouts;
        if self.carry.is_empty() {
            self.in_head = false;
            self.stream.deadline.set(TimeoutKind::Idle, now.after(timeouts.idle));
        } else if !self.in_head {
            self.in_head = true;
            self.stream
                .deadline
                .set(TimeoutKind::Header, now.after(timeouts.header));
        }
    }

    /// Reads what is there and answers what can be answered at once. Pending while nothing comes.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<Turn, ClientGone>> {
        with_buffers(|buffers| {
            loop {
                let length = ready!(self.poll_input(context, buffers))?;
                if length == 0 {
                    return Poll::Ready(Ok(Turn::end(Continue::No)));
                }
                let turn = take_turn(self, context, buffers, length)?;
                if !turn.is_over() {
                    return Poll::Ready(Ok(turn));
                }
            }
        })
    }

    /// Fills the input buffer; 0 is the end of the connection.
    fn poll_input(&mut self, context: &mut Context<'_>, buffers: &mut Buffers) -> Poll<Result<usize, ClientGone>> {
        let held = buffers.take_in(&self.carry);
        if self.carry_is_new && held > 0 {
            self.carry_is_new = false;
            self.carry = Vec::new();
            return Poll::Ready(Ok(held));
        }
        match self.stream.poll_read(context, buffers.input_after(held)) {
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(0)),
            Poll::Ready(Ok(read)) => {
                self.carry = Vec::new();
                Poll::Ready(Ok(held + read))
            }
            Poll::Ready(Err(gone)) => Poll::Ready(Err(gone)),
            Poll::Pending if held == 0 && self.worker.shared().is_draining() => Poll::Ready(Ok(0)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn reset(&self) {
        // Fails on a socket that is gone already.
        let _ = socket2::SockRef::from(&self.stream.socket).set_linger(Some(std::time::Duration::ZERO));
    }

    /// Closes our side and reads on for a while: closing with unread input would reset the connection, and the reset could
    /// overtake the answer (RFC 9112 section 9.6).
    async fn linger(&mut self) {
        use tokio::io::AsyncWriteExt;
        if self.stream.socket.shutdown().await.is_err() {
            return;
        }
        self.stream.deadline.set(TimeoutKind::Idle, Moment::now().after(LINGER));
        let mut sink = vec![0; 16 * 1024];
        let mut left = LINGER_BYTES;
        while let Ok(read @ 1..) = self.stream.read(&mut sink).await {
            let Some(rest) = left.checked_sub(read) else { return };
            left = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_size<F>(_: impl FnOnce(Connection) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_idle_connection_is_small() {
        let size = future_size(Connection::run);
        assert!(size <= 512, "the future of a connection takes {size} bytes");
    }
}
