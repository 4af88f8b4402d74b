//! The reasons for not storing a response, one name each for header, log and counter.

/// Why a response may not be stored, or not be used if it were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Refusal {
    /// `no-store` in the response (RFC 9111 section 5.2.2.5).
    NoStore,
    /// `private` in the response (section 5.2.2.7).
    Private,
    /// `no-cache` in the response: it would have to be validated each time (section 5.2.2.4).
    NoCache,
    /// `no-store` in the request (section 5.2.1.5).
    RequestNoStore,
    /// The request carried Authorization and nothing in the response allows sharing (section 3.5).
    Authorization,
    /// It sets a cookie and the rule does not store such answers (section 7.3).
    SetCookie,
    /// Nothing gives it a lifetime.
    NoFreshness,
    /// Its lifetime is used up on arrival.
    Expired,
    /// A status that is never stored (1xx, 206, 304), one that `must-understand` demands to know, or a method other than GET.
    Status,
    /// `Vary: *` (section 4.1).
    VaryAny,
    /// A Vary that cannot be parsed, or names too many fields.
    VaryMalformed,
    /// Its framing was ambiguous.
    Framing,
}

impl Refusal {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::NoStore,
        Self::Private,
        Self::NoCache,
        Self::RequestNoStore,
        Self::Authorization,
        Self::SetCookie,
        Self::NoFreshness,
        Self::Expired,
        Self::Status,
        Self::VaryAny,
        Self::VaryMalformed,
        Self::Framing,
    ];

    /// The name that logs, counters and `detail` of Cache-Status use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::NoCache => "no-cache",
            Self::RequestNoStore => "request-no-store",
            Self::Authorization => "authorization",
            Self::SetCookie => "set-cookie",
            Self::NoFreshness => "no-freshness",
            Self::Expired => "expired",
            Self::Status => "status",
            Self::VaryAny => "vary-any",
            Self::VaryMalformed => "vary-malformed",
            Self::Framing => "framing",
        }
    }
}
