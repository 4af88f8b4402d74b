//! A client's socket under a deadline: every wait for the client ends.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::deadline::Deadline;
use crate::traffic::TimeoutKind;

/// Why nothing more can be read from or written to a client.
#[derive(Debug)]
pub(crate) enum ClientGone {
    Timeout(TimeoutKind),
    Io,
}

#[derive(Debug)]
pub(crate) struct ClientStream {
    pub(crate) socket: TcpStream,
    pub(crate) deadline: Deadline,
}

impl ClientStream {
    /// Reads what is there; 0 is the end of what the client sends.
    pub(crate) fn poll_read(&mut self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<usize, ClientGone>> {
        let mut buffer = ReadBuf::new(into);
        match Pin::new(&mut self.socket).poll_read(context, &mut buffer) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(buffer.filled().len())),
            Poll::Ready(Err(_)) => Poll::Ready(Err(ClientGone::Io)),
            Poll::Pending => self.pending(context),
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, ClientGone>> {
        match Pin::new(&mut self.socket).poll_write_vectored(context, parts) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(ClientGone::Io)),
            Poll::Ready(Ok(written)) => Poll::Ready(Ok(written)),
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => self.pending(context),
            Poll::Ready(Err(_)) => Poll::Ready(Err(ClientGone::Io)),
            Poll::Pending => self.pending(context),
        }
    }

    fn pending<T>(&self, context: &Context<'_>) -> Poll<Result<T, ClientGone>> {
        match self.deadline.check(context) {
            Some(kind) => Poll::Ready(Err(ClientGone::Timeout(kind))),
            None => Poll::Pending,
        }
    }

    pub(crate) async fn read(&mut self, into: &mut [u8]) -> Result<usize, ClientGone> {
        poll_fn(|context| self.poll_read(context, into)).await
    }
}
