//! A request that waits for something: owned, so that the connection's buffers are free for others meanwhile.

use std::net::SocketAddr;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Uri};

use super::plan::{Selecting, context};
use crate::clock::Moment;
use crate::http1::Version;
use crate::origin::forward::ForwardContext;
use crate::origin::sent::Sent;
use crate::routing::Vhost;
use crate::target::Target;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) scheme: &'static str,
    /// Host in lower case, with the port where it is not the scheme's default.
    pub(crate) authority: String,
    pub(crate) target: Target,
    /// The target as the client sent it, for the log.
    pub(crate) raw_target: Box<[u8]>,
    pub(crate) fields: HeaderMap,
    /// The protocol to upgrade to, where that is passed on.
    pub(crate) upgrade: Option<HeaderValue>,
    pub(crate) version: Version,
    pub(crate) client: SocketAddr,
    /// When its head was complete.
    pub(crate) started: Moment,
    /// Bytes of its head; the body's are added as they come.
    pub(crate) bytes_received: u64,
}

impl Request {
    /// What the fields of the request to the origin depend on besides the client's.
    pub(super) fn context<'a>(&'a self, vhost: &'a Vhost) -> ForwardContext<'a> {
        context(vhost, self.scheme, &self.authority, self.version, self.client.ip())
    }

    /// Appends the variant key: what the request says in the fields that select, as the origin gets them.
    pub(super) fn variant_key(&self, vhost: &Vhost, vary: &Selecting, out: &mut Vec<u8>) {
        vary.0.variant_key(&Sent::new(&self.fields, self.context(vhost)), out);
    }

    /// What the origin is asked for (RFC 9112 section 3.2.1).
    pub(crate) fn origin_form(&self) -> Uri {
        // A normalised target holds nothing that a URI may not, so this falls back to `/` for none.
        PathAndQuery::try_from(self.target.as_bytes()).map_or_else(|_| Uri::default(), Uri::from)
    }
}
