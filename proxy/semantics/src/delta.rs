//! Numbers of seconds as they stand in fields (RFC 9111 section 1.2.2).

/// What any larger number counts as: 2^31 seconds, 68 years. RFC 9111 section 1.2.2 names it; it fits every integer we store it in.
pub const DELTA_MAX: u64 = 1 << 31;

/// The argument of a directive that takes a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delta {
    /// The directive is not there.
    #[default]
    Absent,
    /// A number, at most [`DELTA_MAX`].
    Seconds(u64),
    /// The directive is there with an argument that is no number of seconds. Where it is a lifetime, the response counts as stale
    /// (RFC 9111 section 4.2.1): the sender wanted to say something, so no default may take its place.
    Invalid,
}

impl Delta {
    /// The number, if there is a valid one.
    #[must_use]
    pub const fn seconds(self) -> Option<u64> {
        match self {
            Self::Seconds(seconds) => Some(seconds),
            Self::Absent | Self::Invalid => None,
        }
    }

    /// Is the directive there, valid or not?
    #[must_use]
    pub const fn is_present(self) -> bool {
        !matches!(self, Self::Absent)
    }

    pub(crate) fn parse(digits: &[u8]) -> Self {
        saturating_digits(digits).map_or(Self::Invalid, Self::Seconds)
    }

    /// Of two values for one directive the one that allows less (RFC 9111 section 4.2.1 leaves a choice: this is the safe one).
    pub(crate) fn lower(self, other: Self) -> Self {
        self.merge(other, u64::min)
    }

    /// The same for a directive that asks for more the higher it is (`min-fresh`).
    pub(crate) fn higher(self, other: Self) -> Self {
        self.merge(other, u64::max)
    }

    fn merge(self, other: Self, stricter: fn(u64, u64) -> u64) -> Self {
        match (self, other) {
            (Self::Absent, any) | (any, Self::Absent) => any,
            (Self::Invalid, _) | (_, Self::Invalid) => Self::Invalid,
            (Self::Seconds(one), Self::Seconds(two)) => Self::Seconds(stricter(one, two)),
        }
    }
}

/// One or more digits and nothing else, at most [`DELTA_MAX`].
pub(crate) fn saturating_digits(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0_u64, |value, &byte| {
        byte.is_ascii_digit()
            .then(|| (value * 10 + u64::from(byte - b'0')).min(DELTA_MAX))
    })
}
