//! Query rules: which parameters stay, in which order. What is left out of the key is left out of the forwarded query too, so
//! that nothing an origin can see is unkeyed.

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::config::KeyParts;

/// Compiled from [`KeyParts`].
#[derive(Debug, Clone, Default)]
pub struct QueryRules {
    ignore: GlobSet,
    keep: Option<GlobSet>,
    sort: bool,
    active: bool,
}

impl QueryRules {
    /// # Errors
    /// A glob that does not compile.
    pub fn compile(parts: &KeyParts) -> Result<Self, globset::Error> {
        Ok(Self {
            ignore: glob_set(&parts.ignore_query)?,
            keep: parts.keep_query.as_deref().map(glob_set).transpose()?,
            sort: parts.sort_query,
            active: !parts.ignore_query.is_empty() || parts.keep_query.is_some() || parts.sort_query,
        })
    }

    /// Whether there is anything to do.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.active
    }

    /// The query that is left, or `None` where no parameter is. Only `&` separates parameters; those of one name keep their
    /// order; names are compared as they stand after normalisation.
    #[must_use]
    pub fn apply(&self, query: &[u8]) -> Option<Vec<u8>> {
        let mut kept: Vec<&[u8]> = query
            .split(|&b| b == b'&')
            .filter(|parameter| self.stays(name_of(parameter)))
            .collect();
        if self.sort {
            kept.sort_by_key(|parameter| name_of(parameter));
        }
        (!kept.is_empty()).then(|| kept.join(&b'&'))
    }

    fn stays(&self, name: &[u8]) -> bool {
        let name = String::from_utf8_lossy(name);
        !self.ignore.is_match(&*name) && self.keep.as_ref().is_none_or(|keep| keep.is_match(&*name))
    }
}

fn glob_set(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        builder.add(Glob::new(pattern)?);
    }
    builder.build()
}

/// The part of a parameter before its first equals sign.
#[must_use]
pub fn name_of(parameter: &[u8]) -> &[u8] {
    parameter.split(|&b| b == b'=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: &KeyParts, query: &str, expected: Option<&str>) {
        let rules = QueryRules::compile(rules).unwrap();
        let got = rules.apply(query.as_bytes()).map(|q| String::from_utf8(q).unwrap());
        assert_eq!(got.as_deref(), expected, "{query}");
    }

    #[test]
    fn b34_only_ampersand_splits_and_duplicates_keep_their_order() {
        let ignore = KeyParts {
            ignore_query: vec!["utm_*".into(), "fbclid".into()],
            ..KeyParts::default()
        };
        check(&ignore, "a=1&utm_source=x", Some("a=1"));
        check(&ignore, "utm_source=x", None);
        check(&ignore, "a=1;utm_source=x", Some("a=1;utm_source=x"));
        check(&ignore, "a=1&a=2&fbclid", Some("a=1&a=2"));
        check(&ignore, "", Some(""));
        let sort = KeyParts {
            sort_query: true,
            ..KeyParts::default()
        };
        check(&sort, "b=2&a=1&b=1", Some("a=1&b=2&b=1"));
        let keep = KeyParts {
            keep_query: Some(vec!["page".into()]),
            ..KeyParts::default()
        };
        check(&keep, "page=2&x=1", Some("page=2"));
    }
}
