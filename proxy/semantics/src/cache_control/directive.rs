//! One directive of a list of them: a name and what follows it (RFC 9111 section 5.2). It knows no directive's meaning.

use crate::Delta;
use crate::syntax::{Quotes, is_tchar, is_token, members, split_where};

/// Longer than any directive that we know (`stale-while-revalidate` has 22 characters), so a longer name is none of them.
const NAME_MAX: usize = 32;

#[derive(Debug)]
pub(super) struct Directive<'a> {
    name: [u8; NAME_MAX],
    name_len: usize,
    pub(super) argument: Argument<'a>,
}

/// What follows the name of a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument<'a> {
    Absent,
    Token(&'a [u8]),
    /// Between the quotes, with any backslashes still there.
    Quoted(&'a [u8]),
    /// Something that is neither, whole.
    Malformed(&'a [u8]),
}

impl Argument<'_> {
    pub(super) fn delta(self) -> Delta {
        match self {
            Self::Token(digits) | Self::Quoted(digits) => Delta::parse(digits),
            Self::Absent | Self::Malformed(_) => Delta::Invalid,
        }
    }
}

impl Directive<'_> {
    /// Lower case; empty if it is longer than any that we know.
    pub(super) fn name(&self) -> &[u8] {
        self.name.get(..self.name_len).unwrap_or_default()
    }
}

pub(super) fn directives(line: &[u8]) -> impl Iterator<Item = Directive<'_>> {
    members(line).filter(|member| !member.is_empty()).map(parse)
}

fn parse(member: &[u8]) -> Directive<'_> {
    let (word, rest) = split_where(member, |byte| !is_tchar(byte));
    let mut name = [0; NAME_MAX];
    let mut name_len = 0;
    if let Some(place) = name.get_mut(..word.len()) {
        place.copy_from_slice(word);
        place.make_ascii_lowercase();
        name_len = word.len();
    }
    Directive {
        name,
        name_len,
        argument: argument(rest),
    }
}

fn argument(rest: &[u8]) -> Argument<'_> {
    match rest {
        [] => Argument::Absent,
        [b'=', b'"', quoted @ ..] => match closed(quoted) {
            Some(inside) => Argument::Quoted(inside),
            None => Argument::Malformed(rest),
        },
        [b'=', token @ ..] if is_token(token) => Argument::Token(token),
        _ => Argument::Malformed(rest),
    }
}

/// What stands before the closing quote, if that is the last byte.
fn closed(quoted: &[u8]) -> Option<&[u8]> {
    let (&last, inside) = quoted.split_last()?;
    let mut quotes = Quotes::default();
    quotes.step(b'"');
    for &byte in inside {
        quotes.step(byte);
        if !quotes.inside() {
            return None;
        }
    }
    quotes.step(last);
    (!quotes.inside()).then_some(inside)
}
