//! Cache-Control of responses and requests as data (RFC 9111 section 5.2). It does not judge: see [`judge`](crate::judge).
//!
//! What is malformed is read towards caution. A directive that forbids counts even with a senseless argument; one that permits
//! counts only in its proper form; a number that is none makes the response stale. No whitespace is allowed around `=`
//! (`max-age =60` and `max-age= 60` are invalid), and a number in double quotes is accepted, as section 5.2 recommends. After
//! something malformed, as in `public; no-store`, the words that forbid storing are looked for in the rest.

mod directive;
#[cfg(test)]
mod tests;

use directive::{Argument, directives};

use crate::syntax::{is_tchar, is_token, members};
use crate::{DELTA_MAX, Delta, Fields};

/// A directive that can be limited to some fields: `private` and `no-cache`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Restriction {
    /// The directive is not there.
    #[default]
    Absent,
    /// It names fields, lower case (`private="set-cookie"`).
    Named(Vec<String>),
    /// It stands for the whole response.
    Whole,
}

impl Restriction {
    /// Is the directive there, in either form?
    #[must_use]
    pub const fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// Adds what a list of field names in an argument says. A list with anything but field names stands for the whole response.
    pub(crate) fn add_names(&mut self, list: &[u8]) {
        for name in members(list) {
            match (&mut *self, std::str::from_utf8(name)) {
                (Self::Whole, _) => return,
                (Self::Named(names), Ok(text)) if is_token(name) => names.push(text.to_ascii_lowercase()),
                (Self::Absent, Ok(text)) if is_token(name) => *self = Self::Named(vec![text.to_ascii_lowercase()]),
                _ => *self = Self::Whole,
            }
        }
    }

    fn add(&mut self, argument: Argument<'_>) {
        match argument {
            Argument::Token(list) | Argument::Quoted(list) => self.add_names(list),
            Argument::Absent | Argument::Malformed(_) => *self = Self::Whole,
        }
    }
}

/// What a response says in Cache-Control, or in a targeted field in its place (RFC 9111 section 5.2.2, RFC 9213, RFC 5861).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponseDirectives {
    /// `no-store`
    pub no_store: bool,
    /// `private`
    pub private: Restriction,
    /// `no-cache`
    pub no_cache: Restriction,
    /// `public`
    pub public: bool,
    /// `must-revalidate`
    pub must_revalidate: bool,
    /// `proxy-revalidate`
    pub proxy_revalidate: bool,
    /// `must-understand`
    pub must_understand: bool,
    /// `no-transform`
    pub no_transform: bool,
    /// `max-age`
    pub max_age: Delta,
    /// `s-maxage`
    pub s_maxage: Delta,
    /// `stale-while-revalidate` (RFC 5861 section 3)
    pub stale_while_revalidate: Delta,
    /// `stale-if-error` (RFC 5861 section 4)
    pub stale_if_error: Delta,
}

impl ResponseDirectives {
    /// Reads every Cache-Control line of a response.
    #[must_use]
    pub fn parse(fields: &impl Fields) -> Self {
        let mut parsed = Self::default();
        for line in fields.lines("cache-control") {
            for directive in directives(line) {
                parsed.apply(directive.name(), directive.argument);
            }
        }
        parsed
    }

    fn apply(&mut self, name: &[u8], argument: Argument<'_>) {
        match name {
            b"no-store" => self.no_store = true,
            b"private" => self.private.add(argument),
            b"no-cache" => self.no_cache.add(argument),
            b"public" => self.public |= argument == Argument::Absent,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"must-understand" => self.must_understand |= argument == Argument::Absent,
            b"no-transform" => self.no_transform = true,
            b"max-age" => self.max_age = self.max_age.lower(argument.delta()),
            b"s-maxage" => self.s_maxage = self.s_maxage.lower(argument.delta()),
            b"stale-while-revalidate" => {
                self.stale_while_revalidate = self.stale_while_revalidate.lower(argument.delta());
            }
            b"stale-if-error" => self.stale_if_error = self.stale_if_error.lower(argument.delta()),
            _ => {}
        }
        if let Argument::Malformed(rest) = argument {
            self.apply_prohibitions(rest);
        }
    }

    /// `public; no-store` is one malformed directive to the grammar and a prohibition to whoever wrote it.
    fn apply_prohibitions(&mut self, malformed: &[u8]) {
        for word in malformed.split(|&byte| !is_tchar(byte)) {
            if word.eq_ignore_ascii_case(b"no-store") {
                self.no_store = true;
            } else if word.eq_ignore_ascii_case(b"private") {
                self.private = Restriction::Whole;
            } else if word.eq_ignore_ascii_case(b"no-cache") {
                self.no_cache = Restriction::Whole;
            }
        }
    }
}

/// What a request says in Cache-Control or Pragma (RFC 9111 sections 5.2.1 and 5.4). Whether a client is obeyed is the rule's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestDirectives {
    /// `no-cache`, or `Pragma: no-cache` where there is no Cache-Control
    pub no_cache: bool,
    /// `no-store`
    pub no_store: bool,
    /// `only-if-cached`
    pub only_if_cached: bool,
    /// `max-age`
    pub max_age: Delta,
    /// `min-fresh`
    pub min_fresh: Delta,
    /// `max-stale`; without an argument, which means any staleness, [`DELTA_MAX`] seconds
    pub max_stale: Delta,
}

impl RequestDirectives {
    /// Reads every Cache-Control line of a request, or its Pragma where there is none. It allocates nothing.
    #[must_use]
    pub fn parse(fields: &impl Fields) -> Self {
        let mut parsed = Self::default();
        let mut controlled = false;
        for line in fields.lines("cache-control") {
            controlled = true;
            for directive in directives(line) {
                parsed.apply(directive.name(), directive.argument);
            }
        }
        if !controlled {
            parsed.no_cache = fields
                .lines("pragma")
                .flat_map(directives)
                .any(|directive| directive.name() == b"no-cache");
        }
        parsed
    }

    fn apply(&mut self, name: &[u8], argument: Argument<'_>) {
        match name {
            b"no-cache" => self.no_cache = true,
            b"no-store" => self.no_store = true,
            b"only-if-cached" => self.only_if_cached = true,
            b"max-age" => self.max_age = self.max_age.lower(argument.delta()),
            b"min-fresh" => self.min_fresh = self.min_fresh.higher(argument.delta()),
            b"max-stale" => {
                let staleness = if argument == Argument::Absent {
                    Delta::Seconds(DELTA_MAX)
                } else {
                    argument.delta()
                };
                self.max_stale = self.max_stale.lower(staleness);
            }
            _ => {}
        }
    }
}
