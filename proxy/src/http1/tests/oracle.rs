//! A second reading of request heads, written apart from the first: byte by byte, no `httparse`, no `memchr`. It knows syntax and
//! framing only. What the front accepts, this must accept as the very same message.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) method: Vec<u8>,
    pub(crate) target: Vec<u8>,
    pub(crate) minor: u8,
    /// Names in lower case.
    pub(crate) fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) length: Option<u64>,
    pub(crate) chunked: bool,
    pub(crate) end: usize,
}

fn token(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

/// The line at `*at` without its CRLF; `None` where it ends in anything else or holds a control byte.
fn line<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let from = *at;
    loop {
        match (*bytes.get(*at)?, bytes.get(*at + 1)) {
            (b'\r', Some(b'\n')) => {
                *at += 2;
                return Some(&bytes[from..*at - 2]);
            }
            (b'\t', _) => {}
            (byte, _) if byte < 32 || byte == 127 => return None,
            _ => {}
        }
        *at += 1;
    }
}

pub(crate) fn read(bytes: &[u8]) -> Option<Message> {
    let mut at = if bytes.starts_with(b"\r\n") { 2 } else { 0 };
    let words: Vec<&[u8]> = line(bytes, &mut at)?.split(|b| *b == b' ').collect();
    let [method, target, version] = words[..] else {
        return None;
    };
    let minor = match version.strip_prefix(b"HTTP/1.")? {
        [digit @ b'0'..=b'9'] => digit - b'0',
        _ => return None,
    };
    if !token(method) || target.is_empty() || target.contains(&b'\t') || target.contains(&b'#') {
        return None;
    }
    let mut fields = Vec::new();
    loop {
        let text = line(bytes, &mut at)?;
        if text.is_empty() {
            break;
        }
        let mut colon = 0;
        while *text.get(colon)? != b':' {
            colon += 1;
        }
        if !token(&text[..colon]) {
            return None;
        }
        let (mut from, mut to) = (colon + 1, text.len());
        while from < to && (text[from] == b' ' || text[from] == b'\t') {
            from += 1;
        }
        while to > from && (text[to - 1] == b' ' || text[to - 1] == b'\t') {
            to -= 1;
        }
        fields.push((text[..colon].to_ascii_lowercase(), text[from..to].to_vec()));
    }
    let all = |name: &[u8]| {
        fields
            .iter()
            .filter(|f| f.0 == name)
            .map(|f| f.1.clone())
            .collect::<Vec<_>>()
    };
    let (lengths, codings) = (all(b"content-length"), all(b"transfer-encoding"));
    let (length, chunked) = match (&lengths[..], &codings[..]) {
        ([], []) => (None, false),
        ([one], []) if !one.is_empty() && one.iter().all(u8::is_ascii_digit) => {
            (Some(std::str::from_utf8(one).ok()?.parse().ok()?), false)
        }
        ([], [one]) if minor > 0 && one.eq_ignore_ascii_case(b"chunked") => (None, true),
        _ => return None,
    };
    Some(Message {
        method: method.to_vec(),
        target: target.to_vec(),
        minor,
        fields,
        length,
        chunked,
        end: at,
    })
}
