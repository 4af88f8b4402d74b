//! Judges the head of an answer after hyper has parsed it. hyper is a library and lenient where a proxy must not be: it
//! takes Transfer-Encoding with Content-Length, any coding as long as chunked is last, 304 to anything, and 101
//! unasked.

use http::header::{self, HeaderMap, HeaderValue};
use http::response::Parts;
use http::{Method, StatusCode, Version};
use smallvec::SmallVec;

use super::failure::FailureKind;
use super::response::Delimited;

/// What of the request decides how its answer is read.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    method: Method,
    conditional: bool,
    /// Protocols offered in Upgrade, lower case.
    protocols: SmallVec<[String; 1]>,
}

/// How the answer's body is delimited, once that is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Framing {
    pub(super) delimited: Delimited,
    /// The head allowed two readings: delivered by the safe one, and never to be stored.
    pub(super) ambiguous: bool,
    /// The connection may serve another request.
    pub(super) persistent: bool,
}

impl Asked {
    pub(super) fn of(method: &Method, headers: &HeaderMap) -> Self {
        Self {
            method: method.clone(),
            conditional: headers.contains_key(header::IF_NONE_MATCH) || headers.contains_key(header::IF_MODIFIED_SINCE),
            protocols: tokens(headers, &header::UPGRADE)
                .map(|token| token.to_ascii_lowercase())
                .collect(),
        }
    }
}

/// Leaves in the head at most one framing field, and that a true one.
pub(super) fn judge(asked: &Asked, head: &mut Parts) -> Result<Framing, FailureKind> {
    let status = head.status;
    if status == StatusCode::SWITCHING_PROTOCOLS || (asked.method == Method::CONNECT && status.is_success()) {
        return judge_switch(asked, head);
    }
    // RFC 9110 section 15.4.5: only a conditional request can be answered so; a cache would take it for a proof of
    // freshness.
    if status == StatusCode::NOT_MODIFIED && !asked.conditional {
        return Err(FailureKind::MalformedResponse);
    }
    let length = content_length(&head.headers)?;
    let chunked = transfer_encoding(head)?;
    // 205 is not among them: it promises no content, yet is framed like any other (RFC 9110 section 15.3.6).
    let bodiless = asked.method == Method::HEAD || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let ambiguous = (length.value.is_some() && chunked) || length.repeated;
    let delimited = match length.value {
        _ if bodiless => Delimited::Bodiless,
        _ if chunked => Delimited::Chunked,
        Some(length) => Delimited::Length(length),
        None => Delimited::Close,
    };
    head.headers.remove(header::TRANSFER_ENCODING);
    normalise_length(&mut head.headers, status, length, chunked);
    let persistent = head.version == Version::HTTP_11
        && !ambiguous
        && delimited != Delimited::Close
        && !tokens(&head.headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case("close"));
    Ok(Framing {
        delimited,
        ambiguous,
        persistent,
    })
}

/// A switch is good only to a protocol that was offered (RFC 9110 section 7.8).
fn judge_switch(asked: &Asked, head: &Parts) -> Result<Framing, FailureKind> {
    let mut chosen = tokens(&head.headers, &header::UPGRADE).peekable();
    let offered = chosen.peek().is_some()
        && chosen.all(|token| asked.protocols.iter().any(|offer| offer.eq_ignore_ascii_case(token)));
    if head.status != StatusCode::SWITCHING_PROTOCOLS || !offered || head.version != Version::HTTP_11 {
        return Err(FailureKind::UnexpectedSwitching);
    }
    Ok(Framing {
        delimited: Delimited::Bodiless,
        ambiguous: false,
        persistent: false,
    })
}

#[derive(Debug, Clone, Copy)]
struct Length {
    value: Option<u64>,
    /// Said more than once, always the same.
    repeated: bool,
}

/// RFC 9112 section 6.3: a length that is not one number ends the exchange; the same number repeated may be taken.
fn content_length(headers: &HeaderMap) -> Result<Length, FailureKind> {
    let mut length = Length {
        value: None,
        repeated: false,
    };
    for value in headers.get_all(header::CONTENT_LENGTH) {
        for number in value.as_bytes().split(|byte| *byte == b',') {
            let number = parse_length(number.trim_ascii()).ok_or(FailureKind::MalformedResponse)?;
            match length.value.replace(number) {
                Some(earlier) if earlier != number => return Err(FailureKind::MalformedResponse),
                Some(_) => length.repeated = true,
                None => {}
            }
        }
    }
    Ok(length)
}

/// Digits only: no sign, no space, no overflow.
fn parse_length(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether the body is chunked. Any other coding is one that we did not offer (no TE is sent), and in HTTP/1.0 none
/// exists.
fn transfer_encoding(head: &Parts) -> Result<bool, FailureKind> {
    let mut lines = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    let Some(line) = lines.next() else { return Ok(false) };
    let is_chunked = line.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if lines.next().is_some() || !is_chunked || head.version != Version::HTTP_11 {
        return Err(FailureKind::MalformedResponse);
    }
    Ok(true)
}

/// RFC 9110 section 8.6: no Content-Length in 204; in 304 it would speak of another message, and origins get it wrong.
/// RFC 9112 section 6.3: next to Transfer-Encoding it is removed.
fn normalise_length(headers: &mut HeaderMap, status: StatusCode, length: Length, chunked: bool) {
    let drop_it = chunked || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    match length.value {
        _ if drop_it => {
            headers.remove(header::CONTENT_LENGTH);
        }
        Some(value) if length.repeated => {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(value));
        }
        _ => {}
    }
}

fn tokens<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}
