//! Cache directives meant for one class of caches, such as CDN-Cache-Control (RFC 9213).
//!
//! The field is a dictionary of structured fields (RFC 9651). If it is empty, does not parse, or gives a known directive a value of
//! the wrong type, it is as if it were not there.

use sfv::{BareItem, Dictionary, Item, ListEntry, Parser};

use crate::cache_control::{ResponseDirectives, Restriction};
use crate::{DELTA_MAX, Delta, Fields};

/// The directives of the first usable field of `names` (RFC 9213 section 2.2), which then replace Cache-Control and Expires wholly.
pub(crate) fn first_usable(fields: &impl Fields, names: &[String]) -> Option<ResponseDirectives> {
    names.iter().find_map(|name| parse(fields, name))
}

fn parse(fields: &impl Fields, name: &str) -> Option<ResponseDirectives> {
    let mut value = Vec::new();
    for line in fields.lines(name) {
        if !value.is_empty() {
            value.extend_from_slice(b", ");
        }
        value.extend_from_slice(line);
    }
    let members: Dictionary = Parser::new(&value).parse().ok()?;
    if members.is_empty() {
        return None;
    }
    let mut directives = ResponseDirectives::default();
    for (key, entry) in &members {
        match key.as_str() {
            "no-store" => directives.no_store = forbids(entry),
            "private" => directives.private = restriction(entry),
            "no-cache" => directives.no_cache = restriction(entry),
            "must-revalidate" => directives.must_revalidate = forbids(entry),
            "proxy-revalidate" => directives.proxy_revalidate = forbids(entry),
            "no-transform" => directives.no_transform = forbids(entry),
            "public" => directives.public = permits(entry),
            "must-understand" => directives.must_understand = permits(entry),
            "max-age" => directives.max_age = delta(entry)?,
            "s-maxage" => directives.s_maxage = delta(entry)?,
            "stale-while-revalidate" => directives.stale_while_revalidate = delta(entry)?,
            "stale-if-error" => directives.stale_if_error = delta(entry)?,
            _ => {}
        }
    }
    Some(directives)
}

const fn bare(entry: &ListEntry) -> Option<&BareItem> {
    match entry {
        ListEntry::Item(Item { bare_item, .. }) => Some(bare_item),
        ListEntry::InnerList(_) => None,
    }
}

/// A directive that forbids counts unless it is false.
fn forbids(entry: &ListEntry) -> bool {
    !matches!(bare(entry), Some(BareItem::Boolean(false)))
}

/// A directive that permits counts only if it is true.
fn permits(entry: &ListEntry) -> bool {
    matches!(bare(entry), Some(BareItem::Boolean(true)))
}

fn restriction(entry: &ListEntry) -> Restriction {
    match bare(entry) {
        Some(BareItem::Boolean(false)) => Restriction::Absent,
        Some(BareItem::String(names)) => {
            let mut restriction = Restriction::Absent;
            restriction.add_names(names.as_str().as_bytes());
            restriction
        }
        _ => Restriction::Whole,
    }
}

/// None where the type is wrong.
fn delta(entry: &ListEntry) -> Option<Delta> {
    match bare(entry)? {
        BareItem::Integer(seconds) => {
            let seconds = u64::try_from(i64::from(*seconds));
            Some(seconds.map_or(Delta::Invalid, |seconds| Delta::Seconds(seconds.min(DELTA_MAX))))
        }
        _ => None,
    }
}
