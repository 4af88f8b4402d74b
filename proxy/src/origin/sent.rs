//! A client's request as the origin gets it, field by field and without making the request: what selects a variant. It says
//! what [`request_headers`](super::forward::request_headers) would put into the request that fills the cache, less the client's
//! own conditions, which such a request does not have.

use std::cell::OnceCell;

use http::header::{self, HeaderName};
use larder_semantics::Fields;

use super::forward::{ForwardContext, crosses, forwarded_element, list_with, via_element};

#[cfg(test)]
mod tests;

/// Fields of a client's own conditions: they are about what that client holds, not about what is to be stored.
pub const CONDITIONAL: [HeaderName; 5] = [
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
];

/// The view. Fields that cross as they came are read where they are; lists that the proxy appends to are made when they are
/// asked for.
#[derive(Debug)]
pub struct Sent<'a, F> {
    client: &'a F,
    context: ForwardContext<'a>,
    forwarded_for: OnceCell<Vec<u8>>,
    forwarded: OnceCell<Vec<u8>>,
    via: OnceCell<Vec<u8>>,
}

impl<'a, F: Fields> Sent<'a, F> {
    #[must_use]
    pub const fn new(client: &'a F, context: ForwardContext<'a>) -> Self {
        Self {
            client,
            context,
            forwarded_for: OnceCell::new(),
            forwarded: OnceCell::new(),
            via: OnceCell::new(),
        }
    }

    fn crosses(&self, name: &str) -> bool {
        crosses(self.client, name, &self.context) && !CONDITIONAL.iter().any(|condition| condition == name)
    }

    /// The lines of the client's that go on.
    fn crossing<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s [u8]> {
        self.crosses(name)
            .then(|| self.client.lines(name))
            .into_iter()
            .flatten()
    }

    /// The one line of a field that is the proxy's own; `None` where the client's lines stand.
    fn own(&self, name: &str) -> Option<&[u8]> {
        let context = &self.context;
        match name {
            "host" => Some(context.host.as_bytes()),
            "x-forwarded-host" => self.unless_told(name, context.host),
            "x-forwarded-proto" => self.unless_told(name, context.scheme),
            "x-forwarded-for" => Some(self.list(&self.forwarded_for, name, || context.peer().to_string())),
            "forwarded" => Some(self.list(&self.forwarded, name, || forwarded_element(context))),
            "via" => Some(self.list(&self.via, name, || via_element(context.version, context.received_by))),
            _ => None,
        }
    }

    fn unless_told<'s>(&'s self, name: &str, own: &'s str) -> Option<&'s [u8]> {
        let is_told = self.crosses(name) && self.client.lines(name).next().is_some();
        (!is_told).then_some(own.as_bytes())
    }

    fn list<'s>(&self, made: &'s OnceCell<Vec<u8>>, name: &str, element: impl FnOnce() -> String) -> &'s [u8] {
        made.get_or_init(|| list_with(self.crossing(name), &element()))
    }
}

impl<F: Fields> Fields for Sent<'_, F> {
    fn lines<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let own = self.own(name);
        let client = own.is_none().then(|| self.crossing(name));
        own.into_iter().chain(client.into_iter().flatten())
    }
}
