//! The two formats.
//!
//! `combined` is nginx's format of that name, with the cache status, the vhost and the request time (seconds, with
//! microseconds) behind it:
//!
//! ```text
//! 192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "GET /a HTTP/1.1" 200 2326 "http://r.test/" "agent/1" "HIT" "www" 0.000042
//! ```
//!
//! Bytes are those of head and body. What is missing is `-`.
//!
//! `json` is one object a line, each with the same members in the same order; what is missing is `null`.

use std::io::Write;
use std::net::IpAddr;

use jiff::tz::TimeZone;

use super::Entry;
use super::escape::{append_hex_escaped, append_json_escaped};
use super::stamp::Stamp;
use crate::config::LogFormat;
use crate::http1::Version;
use crate::outcome::{CacheStatus, Forward, NotStored, Stored, tier_name};

/// A format with the time that it last wrote.
#[derive(Debug)]
pub(super) enum Format {
    Combined(Stamp),
    Json(Stamp),
}

impl Format {
    /// `combined` has local time, as every tool expects it; `json` has UTC.
    pub(super) fn new(format: LogFormat) -> Self {
        match format {
            LogFormat::Combined => Self::combined(TimeZone::system()),
            LogFormat::Json => Self::Json(Stamp::new(TimeZone::UTC, "%Y-%m-%dT%H:%M:%S")),
        }
    }

    pub(super) const fn combined(zone: TimeZone) -> Self {
        Self::Combined(Stamp::new(zone, "%d/%b/%Y:%H:%M:%S %z"))
    }

    /// Appends one line with its end.
    pub(super) fn append(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Combined(stamp) => append_combined(entry, stamp, out),
            Self::Json(stamp) => append_json(entry, stamp, out),
        }
    }
}

// === combined ===

fn append_combined(entry: &Entry<'_>, stamp: &mut Stamp, out: &mut Vec<u8>) {
    append_address(entry.client, out);
    out.extend_from_slice(b" - - [");
    stamp.append(entry.unix_ms / 1000, out);
    out.extend_from_slice(b"] \"");
    append_hex_escaped(out, entry.method);
    out.push(b' ');
    append_hex_escaped(out, entry.target);
    out.push(b' ');
    out.extend_from_slice(protocol(entry.version).as_bytes());
    out.extend_from_slice(b"\" ");
    append_number(entry.status, out);
    out.push(b' ');
    append_number(entry.bytes_sent, out);
    out.push(b' ');
    append_quoted(entry.referer.unwrap_or(b"-"), out);
    out.push(b' ');
    append_quoted(entry.user_agent.unwrap_or(b"-"), out);
    out.push(b' ');
    append_quoted(entry.outcome.cache.map_or("-", CacheStatus::word).as_bytes(), out);
    out.push(b' ');
    append_quoted(entry.vhost.as_bytes(), out);
    out.push(b' ');
    append_number(entry.duration_us / 1_000_000, out);
    out.push(b'.');
    append_padded(entry.duration_us % 1_000_000, 100_000, out);
    out.push(b'\n');
}

fn append_quoted(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    append_hex_escaped(out, bytes);
    out.push(b'"');
}

// === json ===

fn append_json(entry: &Entry<'_>, stamp: &mut Stamp, out: &mut Vec<u8>) {
    let outcome = entry.outcome;
    let not_stored = match outcome.stored {
        Some(Stored::No(why)) => Some(NotStored::name(why)),
        Some(Stored::Yes) | None => None,
    };
    out.extend_from_slice(b"{\"time\":\"");
    stamp.append(entry.unix_ms / 1000, out);
    out.push(b'.');
    append_padded(entry.unix_ms % 1000, 100, out);
    out.extend_from_slice(b"Z\",\"client\":\"");
    append_address(entry.client, out);
    out.extend_from_slice(b"\",\"vhost\":");
    append_string(entry.vhost.as_bytes(), out);
    out.extend_from_slice(b",\"rule\":");
    append_string_or_null((!entry.rule.is_empty()).then_some(entry.rule.as_bytes()), out);
    out.extend_from_slice(b",\"method\":");
    append_string(entry.method, out);
    out.extend_from_slice(b",\"host\":");
    append_string(entry.host, out);
    out.extend_from_slice(b",\"target\":");
    append_string(entry.target, out);
    out.extend_from_slice(b",\"protocol\":");
    append_string(protocol(entry.version).as_bytes(), out);
    out.extend_from_slice(b",\"status\":");
    append_number(entry.status, out);
    out.extend_from_slice(b",\"bytes_sent\":");
    append_number(entry.bytes_sent, out);
    out.extend_from_slice(b",\"bytes_received\":");
    append_number(entry.bytes_received, out);
    out.extend_from_slice(b",\"duration_us\":");
    append_number(entry.duration_us, out);
    out.extend_from_slice(b",\"cache\":");
    append_string_or_null(outcome.cache.map(|status| status.word().as_bytes()), out);
    out.extend_from_slice(b",\"tier\":");
    append_string_or_null(outcome.tier.map(|tier| tier_name(tier).as_bytes()), out);
    out.extend_from_slice(b",\"forward\":");
    append_string_or_null(outcome.forward.map(|why| Forward::name(why).as_bytes()), out);
    out.extend_from_slice(b",\"not_stored\":");
    append_string_or_null(not_stored.map(str::as_bytes), out);
    out.extend_from_slice(b",\"origin_us\":");
    match entry.origin_us {
        Some(us) => append_number(us, out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"referer\":");
    append_string_or_null(entry.referer, out);
    out.extend_from_slice(b",\"user_agent\":");
    append_string_or_null(entry.user_agent, out);
    out.extend_from_slice(b"}\n");
}

fn append_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    append_json_escaped(out, bytes);
    out.push(b'"');
}

fn append_string_or_null(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    match bytes {
        Some(bytes) => append_string(bytes, out),
        None => out.extend_from_slice(b"null"),
    }
}

// === both ===

const fn protocol(version: Version) -> &'static str {
    match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

/// An IPv4 client of an IPv6 socket shows as what it is.
fn append_address(address: IpAddr, out: &mut Vec<u8>) {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, rest @ ..] = address.octets();
            append_number(a, out);
            for octet in rest {
                out.push(b'.');
                append_number(octet, out);
            }
        }
        // Writing into a Vec does not fail.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
}

fn append_number(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// With leading zeros; `unit` is the value of the first digit.
fn append_padded(number: u64, unit: u64, out: &mut Vec<u8>) {
    let mut unit = unit;
    while unit > 1 && number < unit {
        out.push(b'0');
        unit /= 10;
    }
    append_number(number, out);
}
