//! One way to read field lines, whatever holds them.

/// Field lines of one message. A name is compared without case; lines come in the order they arrived.
pub trait Fields {
    /// The values of every line called `name` (lower case), untrimmed.
    fn lines<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]>;
}

impl Fields for http::HeaderMap {
    fn lines<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.get_all(name).iter().map(http::HeaderValue::as_bytes)
    }
}
