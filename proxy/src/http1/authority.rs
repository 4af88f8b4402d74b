//! Host and port of a request: read strictly, written in one form, so that one site has one key.
//!
//! Policy: names are letters, digits, `-`, `_` and dots in lower case; a single trailing dot is dropped (`a.test.` and `a.test` are
//! the same site); an empty port is no port. Userinfo, percent-encoding and sub-delims, which RFC 3986 would allow, are refused.

use std::io::Write;
use std::net::Ipv6Addr;

/// A domain name has at most 255 octets (RFC 1035 section 2.3.4).
const HOST_BYTES_MAX: usize = 255;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a host with an optional port")]
pub struct BadAuthority;

/// A valid `host [":" port]`.
#[derive(Debug, Clone, Copy)]
pub struct Authority<'b> {
    text: &'b str,
    host: Host<'b>,
    port: Option<u16>,
}

#[derive(Debug, Clone, Copy)]
enum Host<'b> {
    /// Without the trailing dot.
    Name {
        name: &'b str,
        case: Case,
    },
    V6(Ipv6Addr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Mixed,
}

impl<'b> Authority<'b> {
    pub fn parse(text: &'b [u8]) -> Result<Self, BadAuthority> {
        let text = std::str::from_utf8(text).map_err(|_| BadAuthority)?;
        let (host, port) = if let Some(literal) = text.strip_prefix('[') {
            let (address, after) = literal.split_once(']').ok_or(BadAuthority)?;
            let port = match after.strip_prefix(':') {
                Some(port) => parse_port(port)?,
                None if after.is_empty() => None,
                None => return Err(BadAuthority),
            };
            // std takes neither zone identifiers nor IPvFuture, which is as we want it.
            (Host::V6(address.parse().map_err(|_| BadAuthority)?), port)
        } else {
            match text.split_once(':') {
                Some((name, port)) => (parse_name(name)?, parse_port(port)?),
                None => (parse_name(text)?, None),
            }
        };
        Ok(Self { text, host, port })
    }

    /// The port as given; `None` where there is none.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// As it was sent.
    #[must_use]
    pub fn as_sent(&self) -> &'b str {
        self.text
    }

    /// The host without port where it is in its normal form already; the other way is [`Self::write_host`].
    #[must_use]
    pub fn normal_host(&self) -> Option<&'b str> {
        match self.host {
            Host::Name {
                name,
                case: Case::Lower,
            } => Some(name),
            _ => None,
        }
    }

    /// The whole where it is in its normal form already; the other way is [`Self::write_normalised`].
    #[must_use]
    pub fn normal(&self, scheme_default_port: u16) -> Option<&'b str> {
        let name = self.normal_host()?;
        let port_text = match self.text.strip_prefix(name)? {
            "" => return Some(self.text),
            rest => rest.strip_prefix(':')?,
        };
        let port_is_normal = self.port? != scheme_default_port && !port_text.starts_with('0');
        port_is_normal.then_some(self.text)
    }

    /// Lower case, without trailing dot, IPv6 in the form of RFC 5952 within brackets.
    pub fn write_host(&self, out: &mut Vec<u8>) {
        match self.host {
            Host::Name { name, .. } => out.extend(name.bytes().map(|byte| byte.to_ascii_lowercase())),
            Host::V6(address) => {
                // Writing into a Vec cannot fail.
                let _ = write!(out, "[{address}]");
            }
        }
    }

    /// `host[:port]`, the port only where it is not the scheme's default.
    pub fn write_normalised(&self, scheme_default_port: u16, out: &mut Vec<u8>) {
        self.write_host(out);
        if let Some(port) = self.port.filter(|port| *port != scheme_default_port) {
            out.push(b':');
            out.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
        }
    }
}

fn parse_name(text: &str) -> Result<Host<'_>, BadAuthority> {
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() || name.len() > HOST_BYTES_MAX {
        return Err(BadAuthority);
    }
    let mut case = Case::Lower;
    let mut after_dot = true;
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => {}
            b'A'..=b'Z' => case = Case::Mixed,
            b'.' if !after_dot => {}
            _ => return Err(BadAuthority),
        }
        after_dot = byte == b'.';
    }
    if after_dot {
        Err(BadAuthority)
    } else {
        Ok(Host::Name { name, case })
    }
}

/// An empty port means none (RFC 3986 section 3.2.3); 0 is nowhere to connect to.
fn parse_port(text: &str) -> Result<Option<u16>, BadAuthority> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > 5 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BadAuthority);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(BadAuthority),
        Ok(port) => Ok(Some(port)),
    }
}

#[cfg(test)]
mod tests;
