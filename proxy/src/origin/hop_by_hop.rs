//! Which fields of a message do not cross: those of one connection (RFC 9110 section 7.6.1), and those that Connection names,
//! except what an origin or a client decides by.

use http::header::{self, HeaderMap, HeaderName};
use larder_semantics::Fields;
use larder_semantics::hop_by_hop::{is_removed, remove_hop_by_hop};

/// Meant for everyone on the way, beyond those that no message can do without. Unlisted, a client could strip what an origin
/// decides by.
const END_TO_END: [HeaderName; 11] = [
    header::CONTENT_LOCATION,
    header::FORWARDED,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::LOCATION,
    header::ORIGIN,
    header::RANGE,
    header::X_CONTENT_TYPE_OPTIONS,
];

/// Removes the fields of one connection and those that Connection names.
pub(super) fn remove(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers, &END_TO_END);
}

/// Whether [`remove`] would take the field `name` (lower case) out of this message.
pub(super) fn removes(message: &impl Fields, name: &str) -> bool {
    is_removed(message, name, &END_TO_END)
}
