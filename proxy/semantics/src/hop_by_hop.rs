//! Fields that are for the next hop only and are neither stored nor forwarded (RFC 9110 section 7.6.1, RFC 9111 section 3.1).

#[cfg(test)]
mod tests;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use smallvec::SmallVec;

use crate::Fields;
use crate::syntax::trim;

/// Always for one hop. The `proxy-` ones are too: they concern the connection to this proxy, so neither an origin nor another
/// client has any use for them (RFC 9110 section 11.7, RFC 9111 section 3.1).
const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Fields that naming them in Connection does not remove. RFC 9110 section 7.6.1 forbids senders to name fields meant for all
/// recipients; these decide who may see a message, how it is framed or how it is read, so a message without them would be another
/// one: an answer without `private` or Set-Cookie could be shared, a request without Cookie or Authorization would be answered,
/// and stored, as an anonymous one.
const NEVER_NOMINATED: [HeaderName; 19] = [
    header::AGE,
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::DATE,
    header::ETAG,
    header::EXPIRES,
    header::HOST,
    header::LAST_MODIFIED,
    header::PRAGMA,
    header::SET_COOKIE,
    header::VARY,
    header::VIA,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("cdn-cache-control"),
];

/// Is this field always for one hop? In any case.
#[must_use]
pub fn is_hop_by_hop(name: &str) -> bool {
    HOP_BY_HOP.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Would [`remove_hop_by_hop`] remove the field `name` (lower case) of this message?
#[must_use]
pub fn is_removed(fields: &impl Fields, name: &str, protected: &[HeaderName]) -> bool {
    is_hop_by_hop(name) || is_nominated(fields, name) && may_be_nominated(name, protected)
}

fn is_nominated(fields: &impl Fields, name: &str) -> bool {
    fields
        .lines("connection")
        .flat_map(|line| line.split(|&byte| byte == b','))
        .any(|nominated| trim(nominated).eq_ignore_ascii_case(name.as_bytes()))
}

fn may_be_nominated(name: &str, protected: &[HeaderName]) -> bool {
    !NEVER_NOMINATED.iter().chain(protected).any(|known| known == name)
}

/// Removes the fields for one hop and those that Connection names, except the `protected` ones and those that no sender may name.
/// Fields that this proxy adds should be added afterwards.
pub fn remove_hop_by_hop(fields: &mut HeaderMap, protected: &[HeaderName]) {
    // Copies share the bytes. Nearly every message has one line or none.
    let nominations: SmallVec<[HeaderValue; 2]> = fields.get_all(header::CONNECTION).iter().cloned().collect();
    for name in nominations
        .iter()
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
    {
        let Ok(name) = HeaderName::from_bytes(trim(name)) else {
            continue;
        };
        if may_be_nominated(name.as_str(), protected) {
            fields.remove(name);
        }
    }
    for name in HOP_BY_HOP {
        fields.remove(name);
    }
}
