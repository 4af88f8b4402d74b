//! The chunked coding (RFC 9112 section 7.1): a strict, incremental decoder, and what writes chunks.
//!
//! The decoder holds no body bytes; it buffers only trailers. Stricter than the grammar: no white space around a chunk's size.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::body::Step;
use super::fields::{self, FieldSlots, is_tchar, is_value_byte};
use super::reject::{Reject, RejectReason};

/// 16 hexadecimal digits are 64 bits.
const SIZE_DIGITS_MAX: u8 = 16;
/// Nobody has a use for extensions; a signature per chunk (85 bytes, S3) is the largest one known.
const EXTENSION_BYTES_MAX: u16 = 256;
/// Of a whole message: 64 chunks with the longest extensions.
const EXTENSIONS_BYTES_MAX: u32 = 16 * 1024;
const TRAILER_BYTES_MAX: usize = 8 * 1024;
const TRAILER_LINES_MAX: usize = 32;

/// The end of a chunk's data.
pub const CRLF: &[u8] = b"\r\n";

#[derive(Debug)]
pub struct Decoder {
    state: State,
    /// Body bytes that may still come.
    allowed: u64,
    extensions: u32,
    trailers: Option<Box<Trailers>>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Size {
        digits: u8,
        value: u64,
    },
    /// After the `;`.
    ExtensionName {
        value: u64,
    },
    Extension {
        value: u64,
        bytes: u16,
    },
    SizeLf {
        value: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// The first byte after the last chunk's line.
    TrailerStart,
    /// In the empty line right after it.
    EndLf,
    Trailer,
    Done,
    Refused,
}

/// The trailer section, raw while it comes in, parsed when it is complete.
#[derive(Debug, Default)]
struct Trailers {
    raw: Vec<u8>,
    line: usize,
    lines: usize,
    fields: HeaderMap,
}

impl Decoder {
    #[must_use]
    pub fn new(body_bytes_max: u64) -> Self {
        Self {
            state: State::Size { digits: 0, value: 0 },
            allowed: body_bytes_max,
            extensions: 0,
            trailers: None,
        }
    }

    /// See [`super::body::Decoder::decode`].
    pub fn decode(&mut self, input: &[u8]) -> Result<Step, Reject> {
        self.run(input).map_err(|reason| {
            self.state = State::Refused;
            reason.into()
        })
    }

    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    #[must_use]
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers
            .as_ref()
            .filter(|_| self.is_done())
            .map(|trailers| &trailers.fields)
    }

    fn run(&mut self, input: &[u8]) -> Result<Step, RejectReason> {
        let mut at = 0;
        while !self.is_done() {
            let rest = input.get(at..).unwrap_or_default();
            let Some(byte) = rest.first() else {
                return Ok(Step::More(at));
            };
            if let State::Data { left } = self.state {
                let take = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                let left = left - take as u64;
                self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                return Ok(Step::Data(at..at + take));
            }
            self.state = self.next(*byte)?;
            at += 1;
        }
        Ok(Step::End(at))
    }

    /// The state after one byte that is not body.
    fn next(&mut self, byte: u8) -> Result<State, RejectReason> {
        match (self.state, byte) {
            (State::Size { digits: 1.., value }, b'\r') => Ok(State::SizeLf { value }),
            (State::Size { digits: 1.., value }, b';') => Ok(State::ExtensionName { value }),
            (State::Size { digits, value }, _) if digits < SIZE_DIGITS_MAX => {
                let digit = char::from(byte).to_digit(16).ok_or(RejectReason::BadChunk)?;
                Ok(State::Size {
                    digits: digits + 1,
                    value: value << 4 | u64::from(digit),
                })
            }
            (State::ExtensionName { value }, _) if is_tchar(byte) => self.extension(value, 1),
            (State::Extension { value, .. }, b'\r') => Ok(State::SizeLf { value }),
            (State::Extension { value, bytes }, _) if is_value_byte(byte) => self.extension(value, bytes + 1),
            (State::SizeLf { value: 0 }, b'\n') => Ok(State::TrailerStart),
            (State::SizeLf { value }, b'\n') => {
                self.allowed = self.allowed.checked_sub(value).ok_or(RejectReason::BodyTooLarge)?;
                Ok(State::Data { left: value })
            }
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::Size { digits: 0, value: 0 }),
            (State::TrailerStart, b'\r') => Ok(State::EndLf),
            (State::EndLf, b'\n') => Ok(State::Done),
            (State::EndLf, _) => Err(RejectReason::BareCr),
            (State::TrailerStart | State::Trailer, _) => self.trailer(byte),
            _ => Err(RejectReason::BadChunk),
        }
    }

    fn extension(&mut self, value: u64, bytes: u16) -> Result<State, RejectReason> {
        self.extensions += 1;
        if bytes > EXTENSION_BYTES_MAX || self.extensions > EXTENSIONS_BYTES_MAX {
            return Err(RejectReason::ChunkExtensionsTooLarge);
        }
        Ok(State::Extension { value, bytes })
    }

    fn trailer(&mut self, byte: u8) -> Result<State, RejectReason> {
        let trailers = self.trailers.get_or_insert_default();
        if trailers.push(byte)? {
            trailers.parse()?;
            return Ok(State::Done);
        }
        Ok(State::Trailer)
    }
}

impl Trailers {
    /// True when the section is complete.
    fn push(&mut self, byte: u8) -> Result<bool, RejectReason> {
        if self.raw.len() >= TRAILER_BYTES_MAX {
            return Err(RejectReason::TrailersTooLarge);
        }
        if byte == b'\n' {
            if self.raw.last() != Some(&b'\r') {
                return Err(RejectReason::BareLf);
            }
            if self.raw.len() == self.line + 1 {
                self.raw.push(byte);
                return Ok(true);
            }
            self.lines += 1;
            self.line = self.raw.len() + 1;
            if self.lines > TRAILER_LINES_MAX {
                return Err(RejectReason::TrailersTooLarge);
            }
        }
        self.raw.push(byte);
        Ok(false)
    }

    fn parse(&mut self) -> Result<(), RejectReason> {
        let raw = std::mem::take(&mut self.raw);
        let mut slots = FieldSlots::new();
        fields::parse(&raw, self.lines, &mut slots)?;
        for line in &slots {
            let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| RejectReason::BadName)?;
            let value = HeaderValue::from_bytes(line.value).map_err(|_| RejectReason::ControlByte)?;
            if may_be_trailer(&name) {
                self.fields
                    .try_append(name, value)
                    .map_err(|_| RejectReason::TrailersTooLarge)?;
            }
        }
        Ok(())
    }
}

/// Fields that matter before the body is read (framing, routing, authentication, conditions, content) have no meaning after it,
/// and are a way around whoever checked the head (RFC 9110 section 6.5.1).
#[must_use]
pub fn may_be_trailer(name: &HeaderName) -> bool {
    const FORBIDDEN: [HeaderName; 36] = [
        header::AGE,
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONNECTION,
        header::CONTENT_DISPOSITION,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::COOKIE,
        header::DATE,
        header::EXPECT,
        header::EXPIRES,
        header::FORWARDED,
        header::HOST,
        header::IF_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_NONE_MATCH,
        header::IF_RANGE,
        header::IF_UNMODIFIED_SINCE,
        header::LOCATION,
        header::MAX_FORWARDS,
        header::ORIGIN,
        header::PRAGMA,
        header::RANGE,
        header::RETRY_AFTER,
        header::SET_COOKIE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::VARY,
        header::VIA,
        header::WARNING,
        header::WWW_AUTHENTICATE,
        HeaderName::from_static("keep-alive"),
    ];
    let text = name.as_str();
    !FORBIDDEN.contains(name) && !text.starts_with("proxy-") && !text.starts_with("x-forwarded-")
}

/// Writes the line before a chunk's data; [`CRLF`] goes after the data. `len` must not be 0, which would end the body.
pub fn write_chunk_head(len: usize, out: &mut Vec<u8>) {
    debug_assert!(len > 0, "an empty chunk ends the body");
    let digits = (usize::BITS - len.leading_zeros()).div_ceil(4);
    for place in (0..digits).rev() {
        let digit = (len >> (place * 4) & 0xf) as u32;
        out.extend(char::from_digit(digit, 16).map(|digit| digit as u8));
    }
    out.extend_from_slice(CRLF);
}

/// Ends a body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[cfg(test)]
mod tests;
