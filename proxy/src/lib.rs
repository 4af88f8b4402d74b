//! The data plane: listeners, the HTTP/1 front, routing, the cache engine, origins, counters and the access log.

pub mod access_log;
pub mod clock;
pub mod config;
mod engine;
pub mod http1;
pub mod key;
pub mod origin;
pub mod outcome;
pub mod plane;
pub mod query;
pub mod routing;
pub mod server;
pub mod target;
pub mod traffic;

pub use plane::DataPlane;
