//! Which request fields chose a response (RFC 9110 section 12.5.5), and what they say in a given request (RFC 9111 section 4.1).

mod normal;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use crate::syntax::{is_token, trim};
use crate::{Fields, Refusal};

/// More names than this make a response that hardly matches twice, and a key that costs more than it saves.
const NAMES_MAX: usize = 16;
/// No registered field name comes near; the length of a name fits seven bits.
const NAME_BYTES_MAX: usize = 127;

/// The fields named by Vary: lower case, sorted, each once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Vary {
    /// Joined with commas, which no name can hold.
    joined: Box<str>,
}

impl Vary {
    /// Reads every Vary line of a response. [`Refusal::VaryAny`] for a `*` anywhere, [`Refusal::VaryMalformed`] for something that
    /// is no field name, a name of more than 127 bytes, or more than 16 of them.
    pub fn parse(fields: &impl Fields) -> Result<Self, Refusal> {
        let mut names: SmallVec<[String; 4]> = SmallVec::new();
        let mut is_malformed = false;
        for member in fields.lines("vary").flat_map(|line| line.split(|&byte| byte == b',')) {
            let member = trim(member);
            match std::str::from_utf8(member) {
                Ok("") => {}
                Ok("*") => return Err(Refusal::VaryAny),
                Ok(name) if is_token(member) && name.len() <= NAME_BYTES_MAX => {
                    if names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                        continue;
                    }
                    if names.len() == NAMES_MAX {
                        return Err(Refusal::VaryMalformed);
                    }
                    names.push(name.to_ascii_lowercase());
                }
                _ => is_malformed = true,
            }
        }
        if is_malformed {
            return Err(Refusal::VaryMalformed);
        }
        names.sort_unstable();
        Ok(Self {
            joined: names.join(",").into_boxed_str(),
        })
    }

    /// Does the response depend on no request field?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    /// The names in order, lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.joined.split(',').filter(|name| !name.is_empty())
    }

    /// The names joined with commas: the canonical Vary, fit for [`parse`](Self::parse).
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.joined
    }

    /// Appends what the named fields say in a request, so that two requests match the same stored response exactly if they have the
    /// same key. Every part has its length before it, so no choice of values can imitate another. Values are normalised as far as
    /// the meaning of the field allows.
    pub fn variant_key(&self, request: &impl Fields, out: &mut Vec<u8>) {
        for name in self.names() {
            // A name has at most 127 bytes.
            out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            out.extend_from_slice(name.as_bytes());
            if request.lines(name).next().is_none() {
                out.push(ABSENT);
                continue;
            }
            out.push(PRESENT);
            let length_at = out.len();
            out.extend_from_slice(&[0; 4]);
            normal::write(name, request, out);
            let length = u32::try_from(out.len() - length_at - 4).unwrap_or(u32::MAX);
            if let Some(place) = out.get_mut(length_at..length_at + 4) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
    }
}

/// A field that is not there differs from one that is empty.
const ABSENT: u8 = 0;
const PRESENT: u8 = 1;
