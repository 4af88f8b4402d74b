//! Conditional requests that a stored response can answer (RFC 9110 section 13).

#[cfg(test)]
mod tests;

use crate::syntax::trim;
use crate::{Fields, date};

/// Does the client have the stored response already, so that 304 is the answer? For GET and HEAD, and a stored 200.
///
/// If-None-Match decides alone where it is there; If-Modified-Since counts only without it (RFC 9110 section 13.2.2). `now` settles
/// the century of a two-digit year.
#[must_use]
pub fn not_modified(request: &impl Fields, etag: Option<&[u8]>, last_modified: Option<&[u8]>, now: i64) -> bool {
    if request.lines("if-none-match").next().is_some() {
        return none_match_names(request, etag.map(trim));
    }
    // A field that allows one date and has several lines is ignored (section 13.1.3).
    let mut lines = request.lines("if-modified-since");
    let (Some(since), None) = (lines.next(), lines.next()) else {
        return false;
    };
    let parse = |value| date::parse(value, now);
    match (parse(since), last_modified.and_then(parse)) {
        (Some(since), Some(modified)) => modified <= since,
        _ => false,
    }
}

/// Does If-None-Match name the stored entity tag, or, as `*`, whatever is stored (section 13.1.2)?
fn none_match_names(request: &impl Fields, etag: Option<&[u8]>) -> bool {
    let mut lines = request.lines("if-none-match");
    if let (Some(only), None) = (lines.next(), lines.next())
        && trim(only) == b"*"
    {
        return true;
    }
    let Some(etag) = etag else { return false };
    request
        .lines("if-none-match")
        .flat_map(tags)
        .any(|tag| weakly_equal(tag, etag))
}

/// The same tag, weak or not (section 8.8.3.2).
fn weakly_equal(one: &[u8], two: &[u8]) -> bool {
    one.strip_prefix(b"W/").unwrap_or(one) == two.strip_prefix(b"W/").unwrap_or(two)
}

/// The members of a list of entity tags. Unlike in other lists, a backslash inside the quotes means nothing (section 8.8.3). What is
/// not a tag comes out as it is: some origins send tags without quotes, and their clients send them back.
fn tags(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    line.split(move |&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    })
    .map(trim)
    .filter(|tag| !tag.is_empty())
}
