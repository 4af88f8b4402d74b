//! The parts of response heads as bytes, and the small pages that a refused request gets. Framing and connection lines are
//! written here and only here, so that a head never carries two framings.

use std::io::Write;
use std::time::SystemTime;

use http::StatusCode;

use super::fields::is_value_byte;

/// How the body of the response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFraming {
    /// No body and no field that speaks of one: 1xx, 204, and 304 of unknown length.
    Bodiless,
    /// Content-Length; also without the body, in answers to HEAD and 304.
    Length(u64),
    /// Only to HTTP/1.1 clients.
    Chunked,
    /// The end of the connection ends it. Goes with [`Connection::Close`].
    UntilClose,
}

/// What the Connection field says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// Nothing: HTTP/1.1 goes on by itself.
    Implied,
    /// To an HTTP/1.0 client that asked for it.
    KeepAlive,
    Close,
}

/// Writes the status line. A `reason` that could break the line gives way to the standard phrase.
pub fn write_status_line(status: StatusCode, reason: Option<&[u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    let standard = status.canonical_reason().unwrap_or_default().as_bytes();
    let given = reason.filter(|reason| reason.iter().all(|byte| is_value_byte(*byte)));
    out.extend_from_slice(given.unwrap_or(standard));
    out.extend_from_slice(b"\r\n");
}

/// Writes one field line. The caller vouches for name and value.
pub fn write_field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

pub fn write_framing(framing: ResponseFraming, out: &mut Vec<u8>) {
    match framing {
        ResponseFraming::Length(length) => {
            write_field("Content-Length", itoa::Buffer::new().format(length).as_bytes(), out);
        }
        ResponseFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        ResponseFraming::Bodiless | ResponseFraming::UntilClose => {}
    }
}

pub fn write_connection(connection: Connection, out: &mut Vec<u8>) {
    out.extend_from_slice(match connection {
        Connection::Implied => b"",
        Connection::KeepAlive => b"Connection: keep-alive\r\n",
        Connection::Close => b"Connection: close\r\n",
    });
}

/// Whether the page itself is sent, or only its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageBody {
    Sent,
    /// In answer to HEAD.
    Omitted,
}

/// An answer of Larder's own, in plain text.
#[derive(Debug, Clone, Copy)]
pub struct ErrorPage<'a> {
    pub status: StatusCode,
    /// One line for whoever reads it; may be empty.
    pub detail: &'a str,
    pub connection: Connection,
    pub body: PageBody,
    /// Further fields, such as Allow or Retry-After.
    pub fields: &'a [(&'static str, &'a str)],
    pub now: SystemTime,
}

impl ErrorPage<'_> {
    /// Head and body, ready to send.
    pub fn write(&self, out: &mut Vec<u8>) {
        let text = self.text();
        write_status_line(self.status, None, out);
        // A clock before 1970 is no reason to panic, as httpdate would. Writing into a Vec cannot fail.
        let _ = write!(
            out,
            "Date: {}\r\n",
            httpdate::HttpDate::from(self.now.max(SystemTime::UNIX_EPOCH))
        );
        write_field("Content-Type", b"text/plain; charset=utf-8", out);
        write_field("X-Content-Type-Options", b"nosniff", out);
        write_field("Cache-Control", b"no-store", out);
        for (name, value) in self.fields {
            if value.bytes().all(is_value_byte) {
                write_field(name, value.as_bytes(), out);
            }
        }
        write_framing(ResponseFraming::Length(text.len() as u64), out);
        write_connection(self.connection, out);
        out.extend_from_slice(b"\r\n");
        if self.body == PageBody::Sent {
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn text(&self) -> String {
        let phrase = self.status.canonical_reason().unwrap_or("Error");
        let colon = if self.detail.is_empty() { "" } else { ": " };
        format!("{} {phrase}{colon}{}\n", self.status.as_str(), self.detail)
    }
}

/// The page for a refused request. It always closes the connection.
#[must_use]
pub fn reject_page(reject: super::Reject, body: PageBody, now: SystemTime) -> Vec<u8> {
    let status = StatusCode::from_u16(reject.status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut out = Vec::with_capacity(320);
    let detail = reject.reason.name();
    ErrorPage {
        status,
        detail,
        connection: Connection::Close,
        body,
        fields: &[],
        now,
    }
    .write(&mut out);
    out
}

#[cfg(test)]
mod tests;
