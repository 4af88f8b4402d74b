//! Selecting fields in a normal form: what means the same is the same (RFC 9111 section 4.1). It judges one field at a time.

use std::cmp::{Ordering, Reverse};

use smallvec::SmallVec;

use crate::Fields;
use crate::accept_encoding::AcceptEncoding;
use crate::syntax::{members, weighted};

/// Browsers send up to ten or so; a longer list is kept in the order it has.
const LANGUAGES_MAX: usize = 16;

/// Appends the normal form of the field `name` of a request that has it.
pub(super) fn write(name: &str, request: &impl Fields, out: &mut Vec<u8>) {
    match name {
        "accept-encoding" => out.extend(AcceptEncoding::parse(request).map(AcceptEncoding::to_byte)),
        "accept-language" => write_languages(request, out),
        _ => write_list(request.lines(name), out),
    }
}

/// Lines joined as members of one list, without whitespace around the commas that separate members.
fn write_list<'a>(lines: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for (line_at, line) in lines.enumerate() {
        for (member_at, member) in members(line).enumerate() {
            if line_at > 0 || member_at > 0 {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(member);
        }
    }
}

/// Languages by falling weight, equals by name: their order means nothing (RFC 9110 section 12.5.4). The first byte tells this form
/// from the other, for lists that are malformed or too long to sort.
fn write_languages(request: &impl Fields, out: &mut Vec<u8>) {
    let Some(languages) = sorted_languages(request) else {
        out.push(b'?');
        return write_unsorted(request, out);
    };
    out.push(b'=');
    for (at, (weight, language)) in languages.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend(language.iter().map(u8::to_ascii_lowercase));
        if *weight != 1000 {
            out.push(b';');
            out.extend_from_slice(itoa::Buffer::new().format(*weight).as_bytes());
        }
    }
}

type Languages<'a> = SmallVec<[(u16, &'a [u8]); LANGUAGES_MAX]>;

fn sorted_languages(request: &impl Fields) -> Option<Languages<'_>> {
    let mut languages = Languages::new();
    for member in request.lines("accept-language").flat_map(members) {
        let (language, weight) = weighted(member);
        if language.is_empty() && weight == Some(1000) {
            continue;
        }
        let is_range = !language.is_empty() && language.iter().all(|&byte| is_language_char(byte));
        if !is_range || languages.len() == LANGUAGES_MAX {
            return None;
        }
        languages.push((weight?, language));
    }
    languages.sort_unstable_by(|one, two| Reverse(one.0).cmp(&Reverse(two.0)).then_with(|| caseless(one.1, two.1)));
    Some(languages)
}

const fn is_language_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'*')
}

fn caseless(one: &[u8], two: &[u8]) -> Ordering {
    one.iter()
        .map(u8::to_ascii_lowercase)
        .cmp(two.iter().map(u8::to_ascii_lowercase))
}

/// Lower case and without whitespace, otherwise as it came.
fn write_unsorted(request: &impl Fields, out: &mut Vec<u8>) {
    for (at, line) in request.lines("accept-language").enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend(
            line.iter()
                .filter(|byte| !matches!(byte, b' ' | b'\t'))
                .map(u8::to_ascii_lowercase),
        );
    }
}
