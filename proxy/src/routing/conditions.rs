//! "Any of these is present": the conditions of `bypass`, `no_store` and `match`.

use larder_semantics::Fields;

use crate::config::Condition;
use crate::query::name_of;

/// Compiled from [`Condition`]. Empty: never holds.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    query: Vec<Box<[u8]>>,
    cookie: Vec<Box<[u8]>>,
    header: Vec<String>,
}

impl Conditions {
    #[must_use]
    pub fn compile(condition: &Condition) -> Self {
        let bytes = |names: &[String]| names.iter().map(|name| name.as_bytes().into()).collect();
        Self {
            query: bytes(&condition.query),
            cookie: bytes(&condition.cookie),
            header: condition.header.clone(),
        }
    }

    /// Whether any of the named parameters, cookies or fields is present, whatever its value.
    pub fn holds(&self, query: Option<&[u8]>, fields: &impl Fields) -> bool {
        self.query.iter().any(|name| has_parameter(query, name))
            || self.cookie.iter().any(|name| has_cookie(fields, name))
            || self.header.iter().any(|name| has_field(fields, name))
    }

    /// Whether all of them are present.
    pub fn all_hold(&self, query: Option<&[u8]>, fields: &impl Fields) -> bool {
        self.query.iter().all(|name| has_parameter(query, name))
            && self.cookie.iter().all(|name| has_cookie(fields, name))
            && self.header.iter().all(|name| has_field(fields, name))
    }
}

fn has_parameter(query: Option<&[u8]>, name: &[u8]) -> bool {
    query.is_some_and(|query| query.split(|&b| b == b'&').any(|parameter| name_of(parameter) == name))
}

fn has_cookie(fields: &impl Fields, name: &[u8]) -> bool {
    fields
        .lines("cookie")
        .flat_map(|line| line.split(|&b| b == b';'))
        .any(|pair| name_of(pair).trim_ascii() == name)
}

fn has_field(fields: &impl Fields, name: &str) -> bool {
    fields.lines(name).next().is_some()
}
