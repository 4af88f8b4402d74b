//! The data plane: listeners, the HTTP/1 front, routing, the cache engine, origins, counters and the access log.

pub mod config;
<<<<<<< HEAD
pub mod origin;
=======
pub mod http1;
>>>>>>> http1
pub mod outcome;
pub mod traffic;
