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
        let (host, after) = match text.strip_prefix('[') {
            Some(literal) => parse_v6(literal)?,
            None => parse_name(text)?,
        };
        let port = match after.as_bytes() {
            [] => None,
            [b':', digits @ ..] => parse_port(digits)?,
            _ => return Err(BadAuthority),
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

/// The literal after its `[`, and what follows it. std takes neither zone identifiers nor IPvFuture, which is as we want it.
fn parse_v6(literal: &str) -> Result<(Host<'_>, &str), BadAuthority> {
    let (address, after) = literal.split_once(']').ok_or(BadAuthority)?;
    Ok((Host::V6(address.parse().map_err(|_| BadAuthority)?), after))
}

/// The name up to a colon, and what follows it.
fn parse_name(text: &str) -> Result<(Host<'_>, &str), BadAuthority> {
    let mut case = Case::Lower;
    let mut after_dot = true;
    let mut len = 0;
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => after_dot = false,
            b'A'..=b'Z' => {
                case = Case::Mixed;
                after_dot = false;
            }
            b'.' if !after_dot => after_dot = true,
            b':' => break,
            _ => return Err(BadAuthority),
        }
        len += 1;
    }
    let (name, after) = text.split_at_checked(len).ok_or(BadAuthority)?;
    // A dot at the end is the root's, an empty name has nothing before it.
    let name = if after_dot {
        name.strip_suffix('.').ok_or(BadAuthority)?
    } else {
        name
    };
    if name.len() > HOST_BYTES_MAX {
        Err(BadAuthority)
    } else {
        Ok((Host::Name { name, case }, after))
    }
}

/// An empty port means none (RFC 3986 section 3.2.3); 0 is nowhere to connect to.
fn parse_port(digits: &[u8]) -> Result<Option<u16>, BadAuthority> {
    if digits.is_empty() {
        return Ok(None);
    }
    if digits.len() > 5 {
        return Err(BadAuthority);
    }
    let mut port = 0_u32;
    for digit in digits {
        match digit {
            b'0'..=b'9' => port = port * 10 + u32::from(digit - b'0'),
            _ => return Err(BadAuthority),
        }
    }
    match u16::try_from(port) {
        Ok(0) | Err(_) => Err(BadAuthority),
        Ok(port) => Ok(Some(port)),
    }
}

#[cfg(test)]
mod tests;
