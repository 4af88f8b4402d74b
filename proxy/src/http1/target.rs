//! The request target in its four forms (RFC 9112 section 3.2). Which form is allowed depends on the method.

use super::authority::Authority;
use super::reject::RejectReason;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Holds no control byte, no space and no `#`; bytes from 0x80 on are as they came.
#[derive(Debug, Clone, Copy)]
pub enum Target<'b> {
    /// Path and query; begins with `/`.
    Origin(&'b [u8]),
    /// Its authority counts, not that of Host (RFC 9112 section 3.2.2).
    Absolute {
        scheme: Scheme,
        authority: Authority<'b>,
        /// Empty, or begins with `/` or `?`.
        path_and_query: &'b [u8],
    },
    /// CONNECT only; has a port.
    Authority(Authority<'b>),
    /// OPTIONS only.
    Asterisk,
}

impl<'b> Target<'b> {
    /// `bytes` has been seen to hold no control byte and no space.
    pub(super) fn parse(method: &str, bytes: &'b [u8]) -> Result<Self, RejectReason> {
        match bytes {
            _ if method == "CONNECT" => match Authority::parse(bytes) {
                Ok(authority) if authority.port().is_some() => Ok(Self::Authority(authority)),
                _ => Err(RejectReason::BadTarget),
            },
            [b'/', ..] => Ok(Self::Origin(bytes)),
            b"*" if method == "OPTIONS" => Ok(Self::Asterisk),
            _ => Self::parse_absolute(bytes),
        }
    }

    fn parse_absolute(bytes: &'b [u8]) -> Result<Self, RejectReason> {
        let colon = bytes
            .iter()
            .position(|byte| *byte == b':')
            .ok_or(RejectReason::BadTarget)?;
        let (scheme, rest) = bytes.split_at(colon);
        let scheme = if scheme.eq_ignore_ascii_case(b"http") {
            Scheme::Http
        } else if scheme.eq_ignore_ascii_case(b"https") {
            Scheme::Https
        } else {
            return Err(RejectReason::BadTarget);
        };
        let rest = rest.strip_prefix(b"://").ok_or(RejectReason::BadTarget)?;
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b'/' | b'?'))
            .unwrap_or(rest.len());
        let (authority, path_and_query) = rest.split_at(end);
        let authority = Authority::parse(authority).map_err(|_| RejectReason::BadTarget)?;
        Ok(Self::Absolute {
            scheme,
            authority,
            path_and_query,
        })
    }

    /// The authority that the target itself names.
    #[must_use]
    pub fn authority(&self) -> Option<Authority<'b>> {
        match self {
            Self::Absolute { authority, .. } | Self::Authority(authority) => Some(*authority),
            Self::Origin(_) | Self::Asterisk => None,
        }
    }

    /// Path and query; empty for CONNECT and `*`. It begins with `/` unless an absolute form left the path out.
    #[must_use]
    pub fn path_and_query(&self) -> &'b [u8] {
        match self {
            Self::Origin(path_and_query) | Self::Absolute { path_and_query, .. } => path_and_query,
            Self::Authority(_) | Self::Asterisk => b"",
        }
    }
}
