//! What end-to-end tests stand on: a scripted origin, a raw client and a node that is the real binary.
//!
//! Nothing here knows Larder's crates: it speaks bytes on sockets, so it can judge them. Everything that waits has a
//! deadline, and everything that goes wrong ends the test by a panic that says what was seen.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "the harness fails a test by panicking, with what it saw"
)]

pub mod client;
pub mod corpus;
pub mod fields;
pub mod load;
pub mod message;
pub mod node;
pub mod origin;
pub mod wait;

pub use client::{Client, End, ReadError, Response};
pub use corpus::{Corpus, Random, Sizes};
pub use fields::Fields;
pub use load::{Answer, Load, paths};
pub use node::{Builder, TestNode};
pub use origin::{LoggedRequest, Origin, Reply, Step};
pub use wait::{DEADLINE, full, wait_until};
