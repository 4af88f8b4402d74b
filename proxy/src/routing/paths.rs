//! Which rules a path could match. Patterns that fix the whole first segment of a path are found through it; the others are
//! tried in order.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use globset::GlobBuilder;

use crate::config::PathPattern;

type PatternError = Box<dyn std::error::Error + Send + Sync>;

/// Bytes that a compiled regular expression may take: 1 MiB, the default of the library made explicit.
const REGEX_SIZE_MAX: usize = 1 << 20;

#[derive(Debug)]
enum Matcher {
    Any,
    Exact(Box<[u8]>),
    Prefix(Box<[u8]>),
    Regex(regex::bytes::Regex),
}

impl Matcher {
    fn compile(pattern: Option<&PathPattern>) -> Result<Self, PatternError> {
        Ok(match pattern {
            None => Self::Any,
            Some(PathPattern::Prefix(prefix)) => Self::Prefix(prefix.as_bytes().into()),
            Some(PathPattern::Regex(source)) => Self::Regex(regex(source)?),
            Some(PathPattern::Glob(glob)) => match glob.strip_suffix("**") {
                Some("" | "/") => Self::Any,
                Some(prefix) if is_literal(prefix) => Self::Prefix(prefix.as_bytes().into()),
                _ if is_literal(glob) => Self::Exact(glob.as_bytes().into()),
                _ => Self::Regex(regex(GlobBuilder::new(glob).literal_separator(true).build()?.regex())?),
            },
        })
    }

    fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => **exact == *path,
            Self::Prefix(prefix) => path.starts_with(prefix),
            Self::Regex(regex) => regex.is_match(path),
        }
    }

    /// The first segment, where every path that matches has this one.
    fn first_segment(&self) -> Option<&[u8]> {
        match self {
            Self::Exact(path) => Some(first_segment(path)),
            Self::Prefix(path) => {
                let whole = path.strip_prefix(b"/").is_some_and(|rest| rest.contains(&b'/'));
                whole.then(|| first_segment(path))
            }
            Self::Any | Self::Regex(_) => None,
        }
    }
}

fn regex(source: &str) -> Result<regex::bytes::Regex, PatternError> {
    Ok(regex::bytes::RegexBuilder::new(source)
        .size_limit(REGEX_SIZE_MAX)
        .build()?)
}

fn is_literal(glob: &str) -> bool {
    !glob.contains(['*', '?', '[', '{', '\\'])
}

fn first_segment(path: &[u8]) -> &[u8] {
    path.split(|&b| b == b'/').nth(1).unwrap_or_default()
}

/// The path patterns of one vhost's rules, in their order.
#[derive(Debug)]
pub(super) struct PathIndex {
    matchers: Vec<Matcher>,
    /// Rules to try for a path with this first segment, ascending, the general ones among them.
    by_segment: HashMap<Box<[u8]>, Vec<usize>, RandomState>,
    /// Rules to try for any other path, ascending.
    general: Vec<usize>,
}

impl PathIndex {
    /// # Errors
    /// The place of the first pattern that does not compile, and why.
    pub(super) fn compile(patterns: &[Option<&PathPattern>]) -> Result<Self, (usize, PatternError)> {
        let matchers: Vec<Matcher> = patterns
            .iter()
            .enumerate()
            .map(|(at, pattern)| Matcher::compile(*pattern).map_err(|source| (at, source)))
            .collect::<Result<_, _>>()?;
        let mut by_segment: HashMap<Box<[u8]>, Vec<usize>, RandomState> = HashMap::default();
        for segment in matchers.iter().filter_map(Matcher::first_segment) {
            by_segment.entry(segment.into()).or_default();
        }
        for (segment, rules) in &mut by_segment {
            let fits = |m: &Matcher| m.first_segment().is_none_or(|s| *s == **segment);
            rules.extend(matchers.iter().enumerate().filter(|(_, m)| fits(m)).map(|(at, _)| at));
        }
        let general = matchers
            .iter()
            .enumerate()
            .filter(|(_, m)| m.first_segment().is_none())
            .map(|(at, _)| at)
            .collect();
        Ok(Self {
            matchers,
            by_segment,
            general,
        })
    }

    /// The rules whose pattern matches, in their order.
    pub(super) fn candidates<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let rules = if self.by_segment.is_empty() {
            &self.general
        } else {
            self.by_segment.get(first_segment(path)).unwrap_or(&self.general)
        };
        rules
            .iter()
            .copied()
            .filter(move |&at| self.matchers.get(at).is_some_and(|m| m.matches(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(pattern: &str) -> PathPattern {
        PathPattern::Glob(pattern.to_owned())
    }

    #[test]
    fn first_matches_come_in_the_order_of_the_rules() {
        let patterns = [
            glob("/assets/*.css"),
            glob("/assets/**"),
            PathPattern::Regex(r"\.js$".to_owned()),
            PathPattern::Prefix("/as".to_owned()),
            glob("/exact"),
            glob("/**"),
        ];
        let index = PathIndex::compile(&patterns.iter().map(Some).collect::<Vec<_>>()).unwrap();
        let table: [(&str, &[usize]); 7] = [
            ("/assets/a.css", &[0, 1, 3, 5]),
            ("/assets/b/a.css", &[1, 3, 5]),
            ("/assets/x.js", &[1, 2, 3, 5]),
            ("/x.js", &[2, 5]),
            ("/exact", &[4, 5]),
            ("/exact/", &[5]),
            ("/asterisk", &[3, 5]),
        ];
        for (path, expected) in table {
            assert_eq!(
                index.candidates(path.as_bytes()).collect::<Vec<_>>(),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn a_broken_pattern_names_its_rule() {
        let patterns = [glob("/**"), PathPattern::Regex("(".to_owned())];
        let error = PathIndex::compile(&patterns.iter().map(Some).collect::<Vec<_>>()).unwrap_err();
        assert_eq!(error.0, 1);
    }
}
