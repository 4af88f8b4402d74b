//! Request heads: from bytes to a [`RequestHead`] that holds exactly one framing and one host, or a [`Reject`].

use larder_semantics::Fields;
use memchr::memchr;

use super::authority::Authority;
use super::fields::{self, FieldSlots, is_tchar, trim_ows};
use super::reject::{Reject, RejectReason};
use super::scan::{Extent, HeadLimits, HeadScan, METHOD_BYTES_MAX};
use super::target::Target;

/// HTTP/1.2 to 1.9, which don't exist, count as 1.1 (RFC 9110 section 2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    Http10,
    Http11,
}

impl From<Version> for http::Version {
    fn from(version: Version) -> Self {
        match version {
            Version::Http10 => Self::HTTP_10,
            Version::Http11 => Self::HTTP_11,
        }
    }
}

/// How long the body of a request is (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    None,
    /// As Content-Length says, 0 included.
    Length(u64),
    Chunked,
}

/// One request head. Field lines keep their order and case; values are trimmed.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'b, 'h> {
    pub method: &'b str,
    pub target: Target<'b>,
    pub version: Version,
    pub headers: &'h [httparse::Header<'b>],
    /// The target's authority where it has one, else that of Host. Only HTTP/1.0 can lack it.
    pub host: Option<Authority<'b>>,
    pub framing: Framing,
    /// Whether the client wants to use the connection further.
    pub persistent: bool,
    /// The client waits for 100 (Continue) before it sends the body.
    pub expect_continue: bool,
    /// What Upgrade offers, where Connection nominates it; never in HTTP/1.0 (RFC 9110 section 7.8).
    pub upgrade: Option<&'b [u8]>,
}

impl Fields for RequestHead<'_, '_> {
    fn lines<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.headers
            .iter()
            .filter(move |line| is_called(line, name))
            .map(|line| line.value)
    }
}

/// Lengths first: most lines are told apart by them.
fn is_called(line: &httparse::Header<'_>, name: &str) -> bool {
    line.name.len() == name.len() && line.name.eq_ignore_ascii_case(name)
}

/// Reads the head at the beginning of `buf`; `None` where it is not complete yet. The number is that of the bytes it takes up.
pub fn parse<'b, 'h>(
    buf: &'b [u8],
    slots: &'h mut FieldSlots<'b>,
    limits: &HeadLimits,
) -> Result<Option<(RequestHead<'b, 'h>, usize)>, Reject> {
    match HeadScan::default().advance(buf, limits)? {
        Some(extent) => Ok(Some((parse_scanned(buf, extent, slots, limits)?, extent.end))),
        None => Ok(None),
    }
}

/// Reads a head whose extent a [`HeadScan`] over the same bytes has found.
pub fn parse_scanned<'b, 'h>(
    buf: &'b [u8],
    extent: Extent,
    slots: &'h mut FieldSlots<'b>,
    limits: &HeadLimits,
) -> Result<RequestHead<'b, 'h>, Reject> {
    let line = buf.get(extent.start..extent.fields).unwrap_or_default();
    let section = buf.get(extent.fields..extent.end).unwrap_or_default();
    let line = line.strip_suffix(b"\r\n").ok_or(RejectReason::BadRequestLine)?;
    let (method, target, version) = match request_line(line, limits) {
        Ok(parts) => parts,
        Err(reason) => return Err(fields::control_fault(line).unwrap_or(reason).into()),
    };
    fields::parse(section, extent.lines, slots)?;
    let headers = slots.as_slice();
    let noted = Noted::read(headers)?;
    let host = noted.authority(&target, version)?;
    Ok(RequestHead {
        method,
        target,
        version,
        headers,
        host,
        framing: noted.framing(version)?,
        persistent: !noted.close && (version == Version::Http11 || noted.keep_alive),
        expect_continue: noted.expect_continue && version == Version::Http11,
        upgrade: noted
            .upgrade
            .filter(|_| noted.upgrade_nominated && version == Version::Http11),
    })
}

/// `method SP target SP version`, with exactly these two spaces (RFC 9112 section 3).
fn request_line<'b>(line: &'b [u8], limits: &HeadLimits) -> Result<(&'b str, Target<'b>, Version), RejectReason> {
    let (method, rest) = split_at_space(line).ok_or(RejectReason::BadRequestLine)?;
    if method.len() > METHOD_BYTES_MAX {
        return Err(RejectReason::MethodTooLong);
    }
    if method.is_empty() || !method.iter().all(|byte| is_tchar(*byte)) {
        return Err(RejectReason::BadMethod);
    }
    let method = std::str::from_utf8(method).map_err(|_| RejectReason::BadMethod)?;
    let (target, version) = split_at_space(rest).ok_or(RejectReason::BadRequestLine)?;
    if target.len() > limits.target_bytes {
        return Err(RejectReason::TargetTooLong);
    }
    if target.is_empty() {
        return Err(RejectReason::BadRequestLine);
    }
    // A fragment is never sent (RFC 9112 section 3.2); `fold`, not `any`, so that the loop is vectorised.
    if target.iter().fold(false, |bad, byte| {
        bad | (*byte <= b' ') | (*byte == 0x7f) | (*byte == b'#')
    }) {
        return Err(RejectReason::BadTarget);
    }
    let version = parse_version(version)?;
    Ok((method, Target::parse(method, target)?, version))
}

fn split_at_space(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, rest) = line.split_at_checked(memchr(b' ', line)?)?;
    Some((before, rest.strip_prefix(b" ")?))
}

fn parse_version(bytes: &[u8]) -> Result<Version, RejectReason> {
    match bytes {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9'] => Ok(Version::Http11),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(RejectReason::UnsupportedVersion),
        // Another space: the target had one in it, or there was one too many.
        _ if bytes.contains(&b' ') => Err(RejectReason::BadRequestLine),
        _ => Err(RejectReason::BadVersion),
    }
}

/// What the fields say of the message itself, found in one pass.
#[derive(Default)]
struct Noted<'b> {
    host: Option<&'b [u8]>,
    length: Option<&'b [u8]>,
    coding: Option<&'b [u8]>,
    upgrade: Option<&'b [u8]>,
    upgrade_nominated: bool,
    close: bool,
    keep_alive: bool,
    expect_continue: bool,
}

impl<'b> Noted<'b> {
    fn read(headers: &[httparse::Header<'b>]) -> Result<Self, RejectReason> {
        let mut noted = Self::default();
        for line in headers {
            match line.name.len() {
                4 if is_called(line, "host") => once(&mut noted.host, line, RejectReason::DuplicateHost)?,
                6 if is_called(line, "expect") => {
                    // The only expectation there is (RFC 9110 section 10.1.1).
                    if !line.value.eq_ignore_ascii_case(b"100-continue") {
                        return Err(RejectReason::UnknownExpectation);
                    }
                    noted.expect_continue = true;
                }
                // Two lines would be one list, which no slice can show; a recipient may ignore Upgrade, so the first is all.
                7 if is_called(line, "upgrade") => noted.upgrade = noted.upgrade.or(Some(line.value)),
                10 if is_called(line, "connection") => noted.connection(line.value),
                14 if is_called(line, "content-length") => {
                    once(&mut noted.length, line, RejectReason::DuplicateContentLength)?;
                }
                17 if is_called(line, "transfer-encoding") => {
                    once(&mut noted.coding, line, RejectReason::BadTransferEncoding)?;
                }
                _ => {}
            }
        }
        Ok(noted)
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(trim_ows) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade_nominated |= option.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// RFC 9112 section 3.2: Host must be there and valid even where the target overrides it.
    fn authority(&self, target: &Target<'b>, version: Version) -> Result<Option<Authority<'b>>, RejectReason> {
        let host = match self.host {
            Some(value) => Some(Authority::parse(value).map_err(|_| RejectReason::BadHost)?),
            None if version == Version::Http10 => None,
            None => return Err(RejectReason::MissingHost),
        };
        Ok(target.authority().or(host))
    }

    fn framing(&self, version: Version) -> Result<Framing, RejectReason> {
        match (self.coding, self.length) {
            (None, None) => Ok(Framing::None),
            (None, Some(value)) => parse_length(value).map(Framing::Length),
            (Some(_), _) if version == Version::Http10 => Err(RejectReason::TransferEncodingInHttp10),
            (Some(_), Some(_)) => Err(RejectReason::LengthAndChunked),
            (Some(value), None) if value.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
            (Some(value), None) => Err(coding_fault(value)),
        }
    }
}

fn once<'b>(slot: &mut Option<&'b [u8]>, line: &httparse::Header<'b>, twice: RejectReason) -> Result<(), RejectReason> {
    match slot.replace(line.value) {
        None => Ok(()),
        Some(_) => Err(twice),
    }
}

/// Digits only: no sign, no list of equal values, though RFC 9112 section 6.3 would let the latter pass.
fn parse_length(value: &[u8]) -> Result<u64, RejectReason> {
    if value.is_empty() {
        return Err(RejectReason::BadContentLength);
    }
    value
        .iter()
        .try_fold(0_u64, |length, byte| match byte {
            b'0'..=b'9' => length.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
            _ => None,
        })
        .ok_or(RejectReason::BadContentLength)
}

/// A coding that is not known, properly below chunked, is 501; anything else leaves the length in doubt: 400 (RFC 9112 section 6.3).
#[cold]
fn coding_fault(value: &[u8]) -> RejectReason {
    let mut codings = value.rsplit(|byte| *byte == b',').map(trim_ows);
    let is_last = codings
        .next()
        .is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
    let is_other = |coding: &[u8]| {
        !coding.is_empty() && coding.iter().all(|byte| is_tchar(*byte)) && !coding.eq_ignore_ascii_case(b"chunked")
    };
    if is_last && codings.all(is_other) {
        RejectReason::UnsupportedTransferEncoding
    } else {
        RejectReason::BadTransferEncoding
    }
}

#[cfg(test)]
mod tests;
