//! What an operator's rule adds to the RFC's rules.

use std::time::Duration;

/// The part of a rule that decides on storing and freshness. The default adds nothing to RFC 9111, except that answers with
/// Set-Cookie are not stored.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// Lifetimes by status, used where the origin says nothing (`proxy_cache_valid`).
    pub ttl: Vec<(StatusMatch, Duration)>,
    /// Use `ttl` also where the origin says something else, except what `overrides` leaves standing.
    pub ttl_force: bool,
    pub overrides: Overrides,
    pub set_cookie: SetCookie,
    /// Freshness of 10 % of the age of Last-Modified and the like (RFC 9111 section 4.2.2). Off unless given.
    pub heuristic: Option<Heuristic>,
    /// Targeted fields in order of preference, lower case (RFC 9213).
    pub targeted: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusMatch {
    Exactly(u16),
    /// `any` of nginx.
    Any,
}

/// Prohibitions of the origin that `ttl_force` may break, each named by the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    pub no_store: bool,
    pub private: bool,
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

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heuristic {
    /// Of the time between Last-Modified and Date, 0 to 1.
    pub fraction: f64,
    pub max: Duration,
}
