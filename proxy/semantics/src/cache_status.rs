//! One member of the Cache-Status field (RFC 9211), written as structured fields want it (RFC 9651).

#[cfg(test)]
mod tests;

use crate::syntax::is_tchar;

/// How this cache handled a request. `hit` and `fwd` exclude each other (RFC 9211 sections 2.1 and 2.2): with a hit, what concerns
/// forwarding is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStatusItem<'a> {
    /// The name of this cache.
    pub cache: &'a str,
    /// Answered from the store, without asking the origin.
    pub hit: bool,
    /// Why the request went to the origin: a token of RFC 9211 section 2.2.
    pub fwd: Option<&'static str>,
    /// The status that the origin answered with.
    pub fwd_status: Option<u16>,
    /// Was the answer stored?
    pub stored: Option<bool>,
    /// Was the request joined to another one?
    pub collapsed: bool,
    /// Seconds of freshness left; negative once stale.
    pub ttl: Option<i64>,
    /// The key that it is stored under.
    pub key: Option<&'a str>,
    /// Anything else worth knowing.
    pub detail: Option<&'a str>,
}

impl CacheStatusItem<'_> {
    /// Appends the member. It allocates nothing but room in `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_word(self.cache, out);
        if self.hit {
            out.extend_from_slice(b"; hit");
        } else {
            self.write_forwarding(out);
        }
        if let Some(ttl) = self.ttl {
            out.extend_from_slice(b"; ttl=");
            write_integer(ttl, out);
        }
        if let Some(key) = self.key {
            out.extend_from_slice(b"; key=");
            write_string(key, out);
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b"; detail=");
            write_word(detail, out);
        }
    }

    fn write_forwarding(&self, out: &mut Vec<u8>) {
        if let Some(reason) = self.fwd {
            out.extend_from_slice(b"; fwd=");
            write_word(reason, out);
        }
        if let Some(status) = self.fwd_status {
            out.extend_from_slice(b"; fwd-status=");
            write_integer(i64::from(status), out);
        }
        match self.stored {
            Some(true) => out.extend_from_slice(b"; stored"),
            Some(false) => out.extend_from_slice(b"; stored=?0"),
            None => {}
        }
        if self.collapsed {
            out.extend_from_slice(b"; collapsed");
        }
    }
}

/// The largest integer of structured fields: 15 digits (RFC 9651 section 3.3.1).
const INTEGER_MAX: i64 = 999_999_999_999_999;

fn write_integer(value: i64, out: &mut Vec<u8>) {
    let value = value.clamp(-INTEGER_MAX, INTEGER_MAX);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A token if it can be one, else a string.
fn write_word(text: &str, out: &mut Vec<u8>) {
    let is_token = text
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'*')
        && text.bytes().all(|byte| is_tchar(byte) || matches!(byte, b':' | b'/'));
    if is_token {
        out.extend_from_slice(text.as_bytes());
    } else {
        write_string(text, out);
    }
}

/// A string holds visible ASCII and spaces (RFC 9651 section 3.3.3); other bytes are written as in a URL.
fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let hex = |digit: u8| HEX.get(usize::from(digit)).copied().unwrap_or(b'0');
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => out.extend_from_slice(&[b'%', hex(byte >> 4), hex(byte & 15)]),
        }
    }
    out.push(b'"');
}
