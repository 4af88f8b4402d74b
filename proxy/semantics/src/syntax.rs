//! The pieces of grammar that field values share (RFC 9110 section 5.6): tokens, optional whitespace, lists. It knows no field.

/// Is this a character of a token (RFC 9110 section 5.6.2)?
pub(crate) const fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

const fn is_ows(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Without the spaces and tabs at both ends.
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_ows(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_ows(*last)
    {
        bytes = rest;
    }
    bytes
}

/// The bytes before and after the first `at` that `found` accepts; that byte belongs to the second half.
pub(crate) fn split_where(bytes: &[u8], found: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let at = bytes.iter().position(|&byte| found(byte)).unwrap_or(bytes.len());
    bytes.split_at_checked(at).unwrap_or((bytes, &[]))
}

/// The members of one line of a list, trimmed, empty ones included. A comma inside a quoted string does not split; an unclosed
/// quote reaches to the end of the line, since nobody can say where it should have ended.
pub(crate) fn members(line: &[u8]) -> Members<'_> {
    Members { rest: Some(line) }
}

#[derive(Debug)]
pub(crate) struct Members<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let mut quotes = Quotes::default();
        for (at, &byte) in rest.iter().enumerate() {
            if byte == b',' && !quotes.inside() {
                let (member, tail) = rest.split_at_checked(at)?;
                self.rest = tail.get(1..);
                return Some(trim(member));
            }
            quotes.step(byte);
        }
        self.rest = None;
        Some(trim(rest))
    }
}

/// Where a scan stands with respect to quoted strings (RFC 9110 section 5.6.4).
#[derive(Debug, Default)]
pub(crate) struct Quotes {
    quoted: bool,
    escaped: bool,
}

impl Quotes {
    pub(crate) const fn inside(&self) -> bool {
        self.quoted
    }

    pub(crate) fn step(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'"' {
            self.quoted = !self.quoted;
        } else if byte == b'\\' {
            self.escaped = self.quoted;
        }
    }
}

/// A weight such as `0.5` in thousandths (RFC 9110 section 12.4.2), or None if it is not one.
pub(crate) fn qvalue(bytes: &[u8]) -> Option<u16> {
    let (whole, fraction) = match bytes {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let mut value = match whole {
        b'0' => 0,
        b'1' => 1,
        _ => return None,
    };
    for place in 0..3 {
        let digit = fraction.get(place).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u16::from(digit - b'0');
    }
    (value <= 1000).then_some(value)
}

/// `name [; q=weight]` as name and weight in thousandths; the weight is None where what follows the name is not a weight.
pub(crate) fn weighted(member: &[u8]) -> (&[u8], Option<u16>) {
    let (name, rest) = split_where(member, |byte| byte == b';');
    let weight = match trim(rest) {
        [] => Some(1000),
        [_, parameter @ ..] => match trim(parameter) {
            [b'q' | b'Q', b'=', value @ ..] => qvalue(value),
            _ => None,
        },
    };
    (trim(name), weight)
}
