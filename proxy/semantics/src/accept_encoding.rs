//! Which content codings a client takes (RFC 9110 section 12.5.3), as one of a few values.
//!
//! The value tells apart every set of acceptable codings of the four that we know, so a stored response that was negotiated for one
//! client is acceptable to every client with the same value, provided that its coding is one of the four. Requests to origins should
//! therefore carry [`AcceptEncoding::write`] in place of what the client sent, or what is served be checked with [`accepts`].

#[cfg(test)]
mod tests;

use crate::Fields;
use crate::syntax::{is_token, trim, weighted};

/// A content coding that we know, best compression first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Coding {
    /// `br`
    Brotli,
    /// `zstd`
    Zstd,
    /// `gzip`, also called `x-gzip` (RFC 9110 section 8.4.1.3)
    Gzip,
    /// None at all
    Identity,
}

impl Coding {
    /// All of them, best compression first.
    pub const ALL: [Self; 4] = [Self::Brotli, Self::Zstd, Self::Gzip, Self::Identity];

    /// Its name in Content-Encoding.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        }
    }

    /// The coding of a name, in any case.
    #[must_use]
    pub fn from_token(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        Self::ALL
            .into_iter()
            .find(|coding| name.eq_ignore_ascii_case(coding.token().as_bytes()))
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What a request with Accept-Encoding accepts of the codings that we know, and which of them it likes best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AcceptEncoding {
    acceptable: u8,
    preferred: Option<Coding>,
}

impl AcceptEncoding {
    /// None without the field, which means that anything goes; an empty one means identity only. What is malformed accepts nothing.
    #[must_use]
    pub fn parse(request: &impl Fields) -> Option<Self> {
        let mut weights = [None; Coding::ALL.len()];
        let mut any = None;
        let mut is_present = false;
        for line in request.lines("accept-encoding") {
            is_present = true;
            for (name, weight) in line.split(|&byte| byte == b',').map(|member| weighted(trim(member))) {
                if name == b"*" {
                    any = lower(any, weight);
                } else if let Some(coding) = Coding::from_token(name)
                    && let Some(known) = weights.get_mut(coding as usize)
                {
                    *known = lower(*known, weight.or_else(|| unreadable_weight(coding)));
                }
            }
        }
        is_present.then(|| Self::from_weights(weights, any))
    }

    fn from_weights(weights: [Option<u16>; Coding::ALL.len()], any: Option<u16>) -> Self {
        let mut parsed = Self {
            acceptable: 0,
            preferred: None,
        };
        let mut best = 0;
        for (coding, weight) in Coding::ALL.into_iter().zip(weights) {
            let implied = (coding == Coding::Identity).then_some(IMPLIED_IDENTITY);
            let weight = weight.or(any).or(implied).unwrap_or(0);
            if weight > 0 {
                parsed.acceptable |= coding.bit();
            }
            if weight > best {
                best = weight;
                parsed.preferred = Some(coding);
            }
        }
        parsed
    }

    /// Does it accept this coding?
    #[must_use]
    pub const fn accepts(self, coding: Coding) -> bool {
        self.acceptable & coding.bit() != 0
    }

    /// The acceptable coding with the highest weight; among equals the one that compresses best.
    #[must_use]
    pub const fn preferred(self) -> Option<Coding> {
        self.preferred
    }

    /// The value as one byte: of 256 only 33 occur.
    pub(crate) const fn to_byte(self) -> u8 {
        let preferred = match self.preferred {
            Some(coding) => coding as u8 + 1,
            None => 0,
        };
        self.acceptable | preferred << 4
    }

    /// Appends the shortest field value that means the same to an origin.
    pub fn write(self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut list = |member: &[&str]| {
            if out.len() > start {
                out.extend_from_slice(b", ");
            }
            member.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        };
        if let Some(coding) = self.preferred {
            list(&[coding.token()]);
        }
        for coding in Coding::ALL {
            if coding == Coding::Identity || !self.accepts(coding) || self.preferred == Some(coding) {
                continue;
            }
            // Equal weights would prefer the better one.
            let is_worse = self.preferred.is_some_and(|preferred| preferred < coding);
            list(&[coding.token(), if is_worse { "" } else { ";q=0.5" }]);
        }
        if !self.accepts(Coding::Identity) {
            list(&["identity;q=0"]);
        }
    }
}

/// Identity is acceptable unless excluded, and then liked least: as the lowest weight that is not 0.
const IMPLIED_IDENTITY: u16 = 1;

/// A coding whose weight cannot be read is not sent; identity stays what it is without being named, for something must be sent.
const fn unreadable_weight(coding: Coding) -> Option<u16> {
    match coding {
        Coding::Identity => None,
        _ => Some(0),
    }
}

/// Of two weights for one coding the lower, so that a coding excluded once stays excluded.
fn lower(one: Option<u16>, two: Option<u16>) -> Option<u16> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

/// May a response with this Content-Encoding (empty: none) be sent to the client? This knows every coding, also those that
/// [`AcceptEncoding`] leaves out.
#[must_use]
pub fn accepts(request: &impl Fields, content_encoding: &[u8]) -> bool {
    if request.lines("accept-encoding").next().is_none() {
        return true;
    }
    let mut applied = content_encoding
        .split(|&byte| byte == b',')
        .map(trim)
        .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
        .peekable();
    if applied.peek().is_none() {
        return accepts_one(request, b"identity");
    }
    applied.all(|coding| is_token(coding) && accepts_one(request, coding))
}

fn accepts_one(request: &impl Fields, coding: &[u8]) -> bool {
    let known = Coding::from_token(coding);
    let mut named = None;
    let mut any = None;
    let members = request
        .lines("accept-encoding")
        .flat_map(|line| line.split(|&byte| byte == b','));
    for (name, weight) in members.map(|member| weighted(trim(member))) {
        if name == b"*" {
            any = lower(any, weight);
        } else if name.eq_ignore_ascii_case(coding) || (known.is_some() && Coding::from_token(name) == known) {
            named = lower(named, weight.or_else(|| known.map_or(Some(0), unreadable_weight)));
        }
    }
    let implied = if known == Some(Coding::Identity) {
        IMPLIED_IDENTITY
    } else {
        0
    };
    named.or(any).unwrap_or(implied) > 0
}
