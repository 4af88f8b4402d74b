//! A strict reader of HTTP/1.1 messages (RFC 9112), written for these tests alone and sharing nothing with the product.
//!
//! It is the oracle: what it refuses must not have been sent. It owns no socket; bytes come from a [`Source`].

use std::io;

use crate::fields::{Fields, latin1};

/// Largest head that is read at all: four times what any test sends through.
const HEAD_MAX: usize = 4 << 20;

/// Where bytes come from. `Ok(0)` is the end.
pub trait Source {
    /// Reads what is there, or waits for something.
    ///
    /// # Errors
    /// As the socket says, `WouldBlock` and `TimedOut` when its deadline passed.
    fn read_some(&mut self, into: &mut [u8]) -> io::Result<usize>;
}

impl Source for &[u8] {
    fn read_some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        io::Read::read(self, into)
    }
}

/// Why a message could not be read to its end.
#[derive(Debug)]
pub enum Broken {
    /// The stream ended, with this many bytes of the message read.
    Ended(usize),
    /// The socket failed or its deadline passed.
    Io(io::Error),
    /// The bytes are no message.
    Malformed(String),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn malformed<T>(what: impl Into<String>) -> Result<T, Broken> {
    Err(Broken::Malformed(what.into()))
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
    /// Until the connection is closed; answers only.
    Close,
}

/// How much a reader puts up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// What a proxy may send on: HTTP/1.1, one way to write everything.
    Exact,
    /// What RFC 9112 lets a server accept from a client: empty lines before the request, HTTP/1.0, chunk extensions; and
    /// targets that should have been percent-encoded.
    AsRead,
}

/// Bytes read and not yet used.
#[derive(Debug)]
pub struct Reader<S> {
    pub source: S,
    buffer: Vec<u8>,
    at: usize,
}

impl<S: Source> Reader<S> {
    pub const fn new(source: S) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            at: 0,
        }
    }

    /// What was read beyond the last message.
    #[must_use]
    pub fn rest(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    /// Reads more; false at the end of the stream.
    fn more(&mut self) -> io::Result<bool> {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        let mut piece = [0; 64 << 10];
        let n = self.source.read_some(&mut piece)?;
        self.buffer.extend_from_slice(piece.get(..n).unwrap_or_default());
        Ok(n > 0)
    }

    fn take(&mut self, n: usize) -> Vec<u8> {
        let taken = self.rest().get(..n).unwrap_or_default().to_vec();
        self.at += taken.len();
        taken
    }

    /// Everything up to and with the first `mark`.
    fn until(&mut self, mark: &[u8], max: usize) -> Result<Vec<u8>, Broken> {
        let mut searched = 0;
        loop {
            let rest = self.rest();
            let from = searched.min(rest.len());
            let tail = rest.get(from..).unwrap_or_default();
            if let Some(found) = tail.windows(mark.len()).position(|w| w == mark) {
                return Ok(self.take(from + found + mark.len()));
            }
            searched = rest.len().saturating_sub(mark.len() - 1);
            if rest.len() > max {
                return malformed(format!("no {:?} within {max} bytes", latin1(mark)));
            }
            let have = rest.len();
            if !self.more()? {
                return Err(Broken::Ended(have));
            }
        }
    }

    /// A head with its empty line, byte for byte. `None` where the stream ends before its first byte.
    ///
    /// # Errors
    /// Where it is broken off or too long.
    pub fn head(&mut self, strictness: Strictness) -> Result<Option<Vec<u8>>, Broken> {
        while self.rest().is_empty() || (strictness == Strictness::AsRead && self.rest().starts_with(b"\r\n")) {
            if self.rest().is_empty() {
                if !self.more()? {
                    return Ok(None);
                }
            } else {
                self.take(2);
            }
        }
        self.until(b"\r\n\r\n", HEAD_MAX).map(Some)
    }

    /// Hands the body to `each` as it arrives; the trailers of a chunked one come back.
    ///
    /// # Errors
    /// Where it is broken off or malformed.
    pub fn body(
        &mut self,
        framing: Framing,
        strictness: Strictness,
        mut each: impl FnMut(&[u8]),
    ) -> Result<Fields, Broken> {
        match framing {
            Framing::None => {}
            Framing::Length(n) => self.exactly(n, &mut each)?,
            Framing::Chunked => return self.chunks(strictness, &mut each),
            Framing::Close => loop {
                each(self.rest());
                self.at = self.buffer.len();
                if !self.more()? {
                    break;
                }
            },
        }
        Ok(Fields::default())
    }

    fn exactly(&mut self, n: u64, each: &mut impl FnMut(&[u8])) -> Result<(), Broken> {
        let mut left = n;
        while left > 0 {
            let here = usize::try_from(left).unwrap_or(usize::MAX).min(self.rest().len());
            if here == 0 {
                if !self.more()? {
                    return Err(Broken::Ended(usize::try_from(n - left).unwrap_or(usize::MAX)));
                }
                continue;
            }
            each(self.rest().get(..here).unwrap_or_default());
            self.at += here;
            left -= here as u64;
        }
        Ok(())
    }

    fn chunks(&mut self, strictness: Strictness, each: &mut impl FnMut(&[u8])) -> Result<Fields, Broken> {
        loop {
            let line = self.until(b"\r\n", 64 << 10)?;
            let size = chunk_size(&line, strictness)?;
            if size == 0 {
                break;
            }
            self.exactly(size, each)?;
            if self.until(b"\r\n", 2)? != b"\r\n" {
                return malformed("chunk data without CRLF behind it");
            }
        }
        let mut trailers = Fields::default();
        loop {
            let line = self.until(b"\r\n", HEAD_MAX)?;
            if line == b"\r\n" {
                return Ok(trailers);
            }
            let (name, value) = field(line.strip_suffix(b"\r\n").unwrap_or_default())?;
            if ["content-length", "transfer-encoding", "host"].contains(&name.to_ascii_lowercase().as_str()) {
                return malformed(format!("{name} as a trailer"));
            }
            trailers.push(&name, &value);
        }
    }
}

/// RFC 9112 section 7.1: hexadecimal digits, at most 16 of them so that 64 bits hold the value.
fn chunk_size(line: &[u8], strictness: Strictness) -> Result<u64, Broken> {
    let line = line.strip_suffix(b"\r\n").unwrap_or_default();
    if line.iter().any(|&b| b == b'\r' || b == b'\n' || b == 0) {
        return malformed("control byte in a chunk-size line");
    }
    let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let (size, extension) = line.split_at(digits);
    let extension = latin1(extension);
    let extension = extension.trim_start_matches([' ', '\t']);
    let allowed = extension.starts_with(';') && strictness == Strictness::AsRead;
    if !(line.len() == digits || allowed) || digits == 0 || digits > 16 {
        return malformed(format!("chunk-size line {:?}", latin1(line)));
    }
    u64::from_str_radix(&latin1(size), 16).map_err(|e| Broken::Malformed(e.to_string()))
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// RFC 9112 section 5: token, colon at once, value without control bytes.
fn field(line: &[u8]) -> Result<(String, String), Broken> {
    let text = latin1(line);
    let Some((name, value)) = text.split_once(':') else {
        return malformed(format!("field line without a colon: {text:?}"));
    };
    if !is_token(name) {
        return malformed(format!("field name {name:?}"));
    }
    if value.bytes().any(|b| (b < 0x20 && b != b'\t') || b == 0x7f) {
        return malformed(format!("control byte in the value of {name}: {value:?}"));
    }
    Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
}

/// The first line and the fields of a head that ends in an empty line.
///
/// # Errors
/// Where a line is malformed.
pub fn parse_head(head: &[u8]) -> Result<(String, Fields), Broken> {
    let Some(text) = head.strip_suffix(b"\r\n\r\n") else {
        return malformed("head without an empty line");
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(cut) = rest.windows(2).position(|w| w == b"\r\n") {
        let (line, behind) = rest.split_at(cut);
        lines.push(line);
        rest = behind.get(2..).unwrap_or_default();
    }
    lines.push(rest);
    let (first, fields) = lines.split_first().expect("there is always one line");
    if first.iter().any(|&b| b < 0x20 || b == 0x7f) {
        return malformed(format!("control byte in the first line: {:?}", latin1(first)));
    }
    let mut parsed = Fields::default();
    for line in fields {
        let (name, value) = field(line)?;
        parsed.push(&name, &value);
    }
    Ok((latin1(first), parsed))
}

/// The one framing that the fields state (RFC 9112 section 6.3); `None` where they state none.
///
/// # Errors
/// Where they state more than one, or an invalid one.
pub fn framing(fields: &Fields) -> Result<Option<Framing>, Broken> {
    let (codings, lengths) = (fields.all("transfer-encoding"), fields.all("content-length"));
    match (codings.as_slice(), lengths.as_slice()) {
        ([], []) => Ok(None),
        ([coding], []) if coding.eq_ignore_ascii_case("chunked") => Ok(Some(Framing::Chunked)),
        ([], [length]) if !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) => match length.parse() {
            Ok(n) => Ok(Some(Framing::Length(n))),
            Err(e) => malformed(format!("content-length {length}: {e}")),
        },
        _ => malformed(format!(
            "framing: transfer-encoding {codings:?}, content-length {lengths:?}"
        )),
    }
}

/// A request line and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    pub method: String,
    pub target: String,
    pub fields: Fields,
    pub framing: Framing,
}

/// Reads a request head.
///
/// # Errors
/// Where anything in it isn't as RFC 9112 says.
pub fn parse_request(head: &[u8], strictness: Strictness) -> Result<RequestHead, Broken> {
    let (line, fields) = parse_head(head)?;
    let parts: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = parts.as_slice() else {
        return malformed(format!("request line {line:?}"));
    };
    let old = *version == "HTTP/1.0" && strictness == Strictness::AsRead;
    // Clients send targets in raw UTF-8; a proxy encodes them.
    let is_target = !target.is_empty() && (target.is_ascii() || strictness == Strictness::AsRead);
    if !is_token(method) || !is_target || !(old || *version == "HTTP/1.1") {
        return malformed(format!("request line {line:?}"));
    }
    let hosts = fields.all("host");
    if hosts.len() > 1 || (hosts.is_empty() && !old) || hosts.iter().any(|h| !is_host(h)) {
        return malformed(format!("Host {hosts:?}"));
    }
    let framing = framing(&fields)?.unwrap_or(Framing::None);
    if old && framing == Framing::Chunked {
        return malformed("transfer-encoding in HTTP/1.0");
    }
    Ok(RequestHead {
        method: (*method).to_owned(),
        target: (*target).to_owned(),
        fields,
        framing,
    })
}

fn is_host(host: &str) -> bool {
    !host.is_empty()
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%[]:".contains(&b))
}

#[cfg(test)]
mod tests;
