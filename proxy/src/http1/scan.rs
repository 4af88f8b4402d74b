//! Finds the end of a request head and refuses, on the way, what shows in the line ends alone: bare LF, and too much of anything.
//! It remembers how far it came, so a head that drips in byte by byte is still read once.

use memchr::memchr_iter;

use super::fields::is_tchar;
use super::reject::{Reject, RejectReason};
use crate::config::Limits;

/// IANA's longest method has 17 letters (UPDATEREDIRECTREF); the rest is room for private ones.
pub const METHOD_BYTES_MAX: usize = 64;
/// SP before the target, SP and `HTTP/1.1` after it, CRLF.
const LINE_OVERHEAD_BYTES: usize = 1 + 1 + 8 + 2;
/// RFC 9112 section 3 asks for at least 8000.
const TARGET_BYTES_LEAST: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Request line and field section together, line ends and an empty line before them included.
    pub head_bytes: usize,
    /// Field lines.
    pub headers: usize,
    /// Request target.
    pub target_bytes: usize,
}

impl From<&Limits> for HeadLimits {
    /// Half of the head may be target, so that fields always have room beside the longest one.
    fn from(limits: &Limits) -> Self {
        let target_bytes = (limits.head_bytes / 2).max(TARGET_BYTES_LEAST).min(limits.head_bytes);
        Self {
            head_bytes: limits.head_bytes,
            headers: limits.headers,
            target_bytes,
        }
    }
}

impl HeadLimits {
    fn line_bytes(&self) -> usize {
        METHOD_BYTES_MAX
            .saturating_add(self.target_bytes)
            .saturating_add(LINE_OVERHEAD_BYTES)
    }
}

/// Where the parts of a complete head are in its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte of the request line.
    pub start: usize,
    /// First byte after the request line.
    pub fields: usize,
    /// First byte after the empty line that ends the head.
    pub end: usize,
    /// Number of field lines.
    pub lines: usize,
}

/// The search through one head. The buffer may only grow between two calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadScan {
    scanned: usize,
    start: usize,
    fields: usize,
    line: usize,
    lines: usize,
}

impl HeadScan {
    /// `None`: more bytes are needed. A refusal depends on the bytes only, never on how they were cut into calls.
    pub fn advance(&mut self, buf: &[u8], limits: &HeadLimits) -> Result<Option<Extent>, Reject> {
        if self.line == 0 && !self.begin(buf)? {
            return Ok(None);
        }
        let window = buf.get(..limits.head_bytes).unwrap_or(buf);
        let scanned = self.scanned;
        for at in memchr_iter(b'\n', window.get(scanned..).unwrap_or_default()) {
            if self.line_end(scanned + at, window, limits)? {
                let end = scanned + at + 1;
                return Ok(Some(Extent {
                    start: self.start,
                    fields: self.fields,
                    end,
                    lines: self.lines - 1,
                }));
            }
        }
        self.scanned = window.len();
        let within_line = self.lines == 0;
        if within_line && window.len().saturating_sub(self.start) >= limits.line_bytes() {
            return Err(self.oversized_line(window).into());
        }
        if buf.len() >= limits.head_bytes {
            let reason = if within_line {
                self.oversized_line(window)
            } else {
                RejectReason::HeadTooLarge
            };
            return Err(reason.into());
        }
        Ok(None)
    }

    /// Skips one CRLF before the request line: RFC 9112 section 2.2 asks for it, since old clients send one after a body. The
    /// first byte is judged at once, so that a TLS hello is not waited for.
    fn begin(&mut self, buf: &[u8]) -> Result<bool, RejectReason> {
        self.start = 0;
        let rest = match buf {
            [] | [b'\r'] | [b'\r', b'\n'] => return Ok(false),
            [b'\r', b'\n', rest @ ..] => {
                self.start = 2;
                rest
            }
            [b'\r', ..] => return Err(RejectReason::BareCr),
            _ => buf,
        };
        let first = rest.first().copied().unwrap_or_default();
        if !is_tchar(first) {
            return Err(match first {
                b'\n' => RejectReason::BareLf,
                b'\r' | b' ' => RejectReason::BadRequestLine,
                0..=31 | 127 => RejectReason::ControlByte,
                _ => RejectReason::BadMethod,
            });
        }
        self.line = self.line.max(self.start);
        self.scanned = self.scanned.max(self.start);
        Ok(true)
    }

    /// Takes the LF at `at`; true where it ends the head.
    fn line_end(&mut self, at: usize, window: &[u8], limits: &HeadLimits) -> Result<bool, RejectReason> {
        // Length goes first: where a line is cut off for its length, nobody has seen yet how it ends.
        if self.lines == 0 && at + 1 - self.start > limits.line_bytes() {
            return Err(self.oversized_line(window));
        }
        if at.checked_sub(1).and_then(|before| window.get(before)) != Some(&b'\r') {
            return Err(RejectReason::BareLf);
        }
        if at == self.line + 1 {
            return Ok(true);
        }
        if self.lines == 0 {
            self.fields = at + 1;
        } else if self.lines > limits.headers {
            return Err(RejectReason::TooManyHeaders);
        }
        self.lines += 1;
        self.line = at + 1;
        Ok(false)
    }

    /// Which part made the request line too long, told from its beginning alone.
    fn oversized_line(&self, window: &[u8]) -> RejectReason {
        let mut beginning = window.iter().skip(self.start).take(METHOD_BYTES_MAX + 1);
        if beginning.any(|byte| *byte == b' ') {
            RejectReason::TargetTooLong
        } else {
            RejectReason::MethodTooLong
        }
    }
}
