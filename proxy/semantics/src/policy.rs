//! What an operator's rule adds to the RFC's rules.

use std::time::Duration;

use crate::DELTA_MAX;

/// The part of a rule that decides on storing and freshness. The default adds nothing to RFC 9111, except that answers with
/// Set-Cookie are not stored.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// Lifetimes by status, used where the origin says nothing (`proxy_cache_valid`).
    pub ttl: Vec<(StatusMatch, Duration)>,
    /// Use `ttl` also where the origin says something else, except what `overrides` leaves standing.
    pub ttl_force: bool,
    /// Which prohibitions `ttl_force` breaks.
    pub overrides: Overrides,
    /// What becomes of answers that set cookies.
    pub set_cookie: SetCookie,
    /// Freshness of 10 % of the age of Last-Modified and the like (RFC 9111 section 4.2.2). Off unless given.
    pub heuristic: Option<Heuristic>,
    /// Targeted fields in order of preference, lower case (RFC 9213).
    pub targeted: Vec<String>,
}

impl Policy {
    /// The lifetime in seconds that the rule gives to a status. A number beats `any`, in whatever order they stand; part of a second
    /// counts as a whole one, so that a short lifetime is not none.
    #[must_use]
    pub fn ttl_secs(&self, status: u16) -> Option<u64> {
        let of = |wanted| {
            self.ttl
                .iter()
                .find(|(status, _)| *status == wanted)
                .map(|(_, ttl)| *ttl)
        };
        let ttl = of(StatusMatch::Exactly(status)).or_else(|| of(StatusMatch::Any))?;
        let begun = u64::from(ttl.subsec_nanos() > 0);
        Some(ttl.as_secs().saturating_add(begun).min(DELTA_MAX))
    }
}

/// The statuses that a lifetime is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusMatch {
    /// One status.
    Exactly(u16),
    /// `any` of nginx.
    Any,
}

/// Prohibitions of the origin that `ttl_force` may break, each named by the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    /// `no-store`, and `no-cache` with it, since that forbids less.
    pub no_store: bool,
    /// `private`
    pub private: bool,
    /// Set-Cookie: the answer is stored without it.
    pub set_cookie: bool,
}

/// What to do with an answer that sets cookies and could be stored otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetCookie {
    /// Do not store it.
    #[default]
    NoStore,
    /// Store it without the Set-Cookie lines; only the client that caused the fill sees them.
    Strip,
    /// Store it whole.
    Store,
}

/// Freshness guessed from Last-Modified (RFC 9111 section 4.2.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heuristic {
    /// Of the time between Last-Modified and Date, 0 to 1.
    pub fraction: f64,
    /// No guess is longer.
    pub max: Duration,
}
