//! One form for each request target. What comes out of here is what rules match, what the key holds and what the origin is
//! sent: there is no second reading of a path that could disagree with the first.

use memchr::memchr;

/// A normalised path and query, in a buffer that can be used again.
#[derive(Debug, Default, Clone)]
pub struct Target {
    bytes: Vec<u8>,
    path_len: usize,
}

impl Target {
    #[must_use]
    pub fn path(&self) -> &[u8] {
        self.bytes.get(..self.path_len).unwrap_or_default()
    }

    /// Without the question mark; `None` where there is none.
    #[must_use]
    pub fn query(&self) -> Option<&[u8]> {
        self.bytes.get(self.path_len + 1..)
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes in a target in origin-form (RFC 9112 section 3.2.1) that the front let pass: it starts with `/` (or is empty, or
    /// starts with `?`, in what absolute-form leaves), and holds no control bytes, spaces or `#`.
    ///
    /// - Bytes that no URI holds (above 0x7F, and `"<>\\^\`{|}`) are percent-encoded.
    /// - Percent-encodings are written in capitals, and decoded where they stand for unreserved characters (RFC 3986
    ///   section 6.2.2).
    /// - Dot segments are resolved (RFC 3986 section 5.2.4), so that no rule can be walked around.
    pub fn normalise(&mut self, raw: &[u8]) {
        self.bytes.clear();
        let (path, query) = match memchr(b'?', raw) {
            Some(at) => (raw.get(..at).unwrap_or_default(), raw.get(at + 1..)),
            None => (raw, None),
        };
        if path.first() != Some(&b'/') {
            self.bytes.push(b'/');
        }
        append_encoded(path, &mut self.bytes);
        if has_dot_segment(&self.bytes) {
            self.bytes = remove_dot_segments(&self.bytes);
        }
        self.path_len = self.bytes.len();
        if let Some(query) = query {
            self.bytes.push(b'?');
            append_encoded(query, &mut self.bytes);
        }
    }

    /// Replaces the query; `None` leaves none.
    pub fn set_query(&mut self, query: Option<&[u8]>) {
        self.bytes.truncate(self.path_len);
        if let Some(query) = query {
            self.bytes.push(b'?');
            self.bytes.extend_from_slice(query);
        }
    }
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether `byte` may stand in a URI as it is (RFC 3986 section 2), or starts a percent-encoding.
const fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

const HEX: [u8; 16] = *b"0123456789ABCDEF";

fn push_encoded(byte: u8, out: &mut Vec<u8>) {
    let digit = |n: u8| HEX.get(usize::from(n)).copied().unwrap_or(b'0');
    out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
}

fn hex_pair(bytes: &[u8]) -> Option<u8> {
    let digit = |b: &u8| char::from(*b).to_digit(16);
    let [high, low, ..] = bytes else { return None };
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

fn append_encoded(raw: &[u8], out: &mut Vec<u8>) {
    if !raw.iter().any(|&b| b == b'%' || !is_uri_byte(b)) {
        out.extend_from_slice(raw);
        return;
    }
    let mut rest = raw;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'%' => match hex_pair(tail) {
                Some(decoded) => {
                    if is_unreserved(decoded) {
                        out.push(decoded);
                    } else {
                        push_encoded(decoded, out);
                    }
                    rest = tail.get(2..).unwrap_or_default();
                }
                None => push_encoded(b'%', out),
            },
            _ if is_uri_byte(byte) => out.push(byte),
            _ => push_encoded(byte, out),
        }
    }
}

fn has_dot_segment(path: &[u8]) -> bool {
    memchr::memmem::find(path, b"/.").is_some()
}

/// RFC 3986 section 5.2.4, for a path that starts with a slash.
fn remove_dot_segments(path: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    let mut segments = path.split(|&b| b == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    let parent = memchr::memrchr(b'/', &out).unwrap_or(0);
                    out.truncate(parent);
                }
                if last {
                    out.push(b'/');
                }
            }
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(raw: &str, expected: &str) {
        let mut target = Target::default();
        target.normalise(raw.as_bytes());
        assert_eq!(String::from_utf8_lossy(target.as_bytes()), expected, "{raw}");
    }

    #[test]
    fn b72_one_form_for_encoded_and_raw_paths() {
        check("/", "/");
        check("", "/");
        check("?a", "/?a");
        check("/a%20b", "/a%20b");
        check("/%d9%85", "/%D9%85");
        check("/م", "/%D9%85");
        check("/健康/", "/%E5%81%A5%E5%BA%B7/");
        check("/%7euser/%41", "/~user/A");
        check("/a%2fb", "/a%2Fb");
        check("/x?y=1&z=%26", "/x?y=1&z=%26");
        check("/x?y=%7e", "/x?y=~");
        check("/100%", "/100%25");
        check("/a?", "/a?");
        check("/<x>?q={\"a\"|b}", "/%3Cx%3E?q=%7B%22a%22%7Cb%7D");
    }

    #[test]
    fn b38_dot_segments_are_resolved_before_any_rule_sees_them() {
        check("/a/../b", "/b");
        check("/a/./b/.", "/a/b/");
        check("/../../x", "/x");
        check("/a/%2e%2e/b", "/b");
        check("/a/..%2fstatic/x.css", "/a/..%2Fstatic/x.css");
        check("/a/..", "/");
        check("/.hidden", "/.hidden");
        check("//a/../b", "//b");
        check("/a?x=/../y", "/a?x=/../y");
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(raw in "/[ -~\u{80}-\u{ff}]{0,40}") {
            let raw: String = raw.chars().filter(|c| !matches!(c, ' ' | '#')).collect();
            let mut once = Target::default();
            once.normalise(raw.as_bytes());
            let mut twice = Target::default();
            twice.normalise(once.as_bytes());
            prop_assert_eq!(once.as_bytes(), twice.as_bytes());
            prop_assert!(once.path().starts_with(b"/"));
            prop_assert!(once.as_bytes().is_ascii());
        }
    }
}
