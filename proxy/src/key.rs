//! The cache key: scheme, normalised authority, path and query, and the vhost's name. It is compared whole wherever it is
//! used; a hash only finds the place.

/// Separates the URL from the vhost's name: no URL and no name holds it.
const SEPARATOR: u8 = 0;

/// Writes the canonical key into `out`: the absolute URL, so that one prefix is one part of a site, then the vhost.
pub fn write(scheme: &str, authority: &[u8], target: &[u8], vhost: &str, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(scheme.as_bytes());
    out.extend_from_slice(b"://");
    out.extend_from_slice(authority);
    out.extend_from_slice(target);
    out.push(SEPARATOR);
    out.extend_from_slice(vhost.as_bytes());
}

/// The name of the vhost in a key.
#[must_use]
pub fn vhost(key: &[u8]) -> &[u8] {
    key.splitn(2, |&b| b == SEPARATOR).nth(1).unwrap_or_default()
}

/// The URL of a key, for people to read.
#[must_use]
pub fn url(key: &[u8]) -> String {
    String::from_utf8_lossy(key.split(|&b| b == SEPARATOR).next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b30_scheme_authority_target_and_vhost_all_count() {
        let parts = [
            ("http", "a.test", "/x", "one"),
            ("https", "a.test", "/x", "one"),
            ("http", "b.test", "/x", "one"),
            ("http", "a.test:8080", "/x", "one"),
            ("http", "a.test", "/x?", "one"),
            ("http", "a.test", "/x", "two"),
        ];
        let keys: std::collections::HashSet<_> = parts
            .iter()
            .map(|(scheme, authority, target, vhost)| {
                let mut key = Vec::new();
                write(scheme, authority.as_bytes(), target.as_bytes(), vhost, &mut key);
                key
            })
            .collect();
        assert_eq!(keys.len(), parts.len());
        let mut key = Vec::new();
        write("http", b"a.test", b"/x?y=1", "one", &mut key);
        assert_eq!(url(&key), "http://a.test/x?y=1");
    }
}
