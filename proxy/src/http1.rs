//! The HTTP/1 front without its sockets: bytes in, structures out, bytes out again.
//!
//! Owns request heads, request bodies, and how response heads and chunks are written. Knows no sockets, no clock, no routing and
//! no cache. Invariant: what is accepted here is exactly one message with exactly one framing, whoever reads it next; everything
//! that two implementations are known to read in two ways is refused, and a refusal ends the connection.

pub mod authority;
pub mod body;
pub mod chunked;
pub mod fields;
pub mod head;
pub mod reject;
pub mod response;
pub mod scan;
pub mod target;

pub use authority::Authority;
pub use fields::FieldSlots;
pub use head::{Framing, RequestHead, Version};
pub use reject::{Reject, RejectReason};
pub use scan::{HeadLimits, HeadScan};
pub use target::{Scheme, Target};

#[cfg(test)]
mod tests;
