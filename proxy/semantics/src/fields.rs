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

#[cfg(test)]
pub(crate) fn header_map<V: AsRef<[u8]>>(lines: &[(&str, V)]) -> http::HeaderMap {
    let mut fields = http::HeaderMap::new();
    for (name, value) in lines {
        let name = http::HeaderName::from_bytes(name.as_bytes()).expect("a field name");
        fields.append(
            name,
            http::HeaderValue::from_bytes(value.as_ref()).expect("a field value"),
        );
    }
    fields
}

#[cfg(test)]
pub(crate) fn any_value() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;

    let byte = prop_oneof![
        4 => prop::sample::select(b" \t,;=\"\\'*/-.:0123456789".to_vec()),
        4 => b' '..=b'~',
        1 => 0x80..=0xff_u8,
    ];
    prop::collection::vec(byte, 0..60)
}
