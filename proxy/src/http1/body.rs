//! Request bodies: which bytes of the connection are body, where it ends, and that it stays within its limit.

use std::ops::Range;

use http::HeaderMap;

use super::chunked;
use super::head::Framing;
use super::reject::{Reject, RejectReason};

/// What one call of `decode` found in its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These bytes of the input are body; all up to the end of the range is consumed.
    Data(Range<usize>),
    /// All that was given is consumed, and more is needed. The number is that of the input's bytes.
    More(usize),
    /// The body is over, after so many bytes. What follows is the next request.
    End(usize),
}

impl Step {
    /// How many bytes of the input are done with.
    #[must_use]
    pub fn consumed(&self) -> usize {
        match self {
            Self::Data(range) => range.end,
            Self::More(consumed) | Self::End(consumed) => *consumed,
        }
    }
}

/// Decodes one body. After a reject or [`Step::End`] it must not be fed further.
#[derive(Debug)]
pub enum Decoder {
    None,
    /// So many bytes are still to come.
    Length(u64),
    Chunked(chunked::Decoder),
}

impl Decoder {
    /// A length beyond `body_bytes_max` is refused before a byte of it is read.
    pub fn new(framing: Framing, body_bytes_max: u64) -> Result<Self, Reject> {
        match framing {
            Framing::None => Ok(Self::None),
            Framing::Length(length) if length > body_bytes_max => Err(RejectReason::BodyTooLarge.into()),
            Framing::Length(length) => Ok(Self::Length(length)),
            Framing::Chunked => Ok(Self::Chunked(chunked::Decoder::new(body_bytes_max))),
        }
    }

    /// Takes as much of `input` as gives one stretch of body. Call it again with the rest until it says More or End.
    pub fn decode(&mut self, input: &[u8]) -> Result<Step, Reject> {
        match self {
            Self::None | Self::Length(0) => Ok(Step::End(0)),
            Self::Length(_) if input.is_empty() => Ok(Step::More(0)),
            Self::Length(left) => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= take as u64;
                Ok(Step::Data(0..take))
            }
            Self::Chunked(decoder) => decoder.decode(input),
        }
    }

    /// Whether there is nothing left to read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::None => true,
            Self::Length(left) => *left == 0,
            Self::Chunked(decoder) => decoder.is_done(),
        }
    }

    /// The trailers that came after a chunked body, without those that no trailer may be.
    #[must_use]
    pub fn trailers(&self) -> Option<&HeaderMap> {
        match self {
            Self::Chunked(decoder) => decoder.trailers(),
            Self::None | Self::Length(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
