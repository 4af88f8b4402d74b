//! The data plane's sockets: listeners, workers, client connections, deadlines, the drain.

pub(crate) mod accept;
mod account;
mod admission;
mod buffers;
mod client_side;
mod connection;
mod deadline;
mod deliver;
mod exchange;
mod incoming;
pub mod listen;
mod readiness;
mod shared;
mod stream;
mod tunnel;
mod turn;
mod unsent;
mod upload;
mod worker;

pub(crate) use accept::Accepted;
pub(crate) use shared::Shared;
pub(crate) use worker::Worker;
