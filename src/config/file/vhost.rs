//! `[[vhost]]` and `[[vhost.rule]]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::values::{At, Cidr, TimeSpan, TtlTable};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Vhost {
    /// Its row in the statistics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<At<String>>,
    /// Host names; `*.example.test` takes every name below, `*` takes the rest.
    pub hosts: Vec<At<String>>,
    /// Take requests for hosts that no other vhost has, as `*` in `hosts` does.
    pub default: At<bool>,
    /// Name of an `[[upstream]]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<At<String>>,
    /// Not in this version: a directory to serve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<At<PathBuf>>,
    /// A method that purges its own URL on the data port. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<At<Purge>>,
    /// Protocols that may be upgraded to, such as `websocket`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upgrade: Vec<At<String>>,
    /// Networks whose `X-Forwarded-*` and `Forwarded` are passed on; from elsewhere they are overwritten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<Cidr>,
    /// The first that matches decides. Where none does, RFC 9111 alone decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<At<Rule>>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Purge {
    pub method: At<String>,
    /// Networks that may use it.
    pub allow: Vec<Cidr>,
}

impl Default for Purge {
    fn default() -> Self {
        Self {
            method: "PURGE".to_owned().into(),
            allow: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// Its row in the statistics. Absent: `rule-1` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<At<String>>,
    /// Requests that the rule is for. Absent: all.
    #[serde(rename = "match", skip_serializing_if = "Match::is_empty")]
    pub matches: Match,
    /// Lifetimes by status, used where the origin says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<At<TtlTable>>,
    /// Use `ttl` also where the origin says something else, except for what it forbids.
    pub ttl_force: At<bool>,
    /// What the origin forbids and `ttl_force` allows all the same.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    pub overrides: Option<At<Vec<Override>>>,
    /// Answers with `Set-Cookie` that could be stored otherwise.
    pub set_cookie: SetCookie,
    /// Guess a lifetime from `Last-Modified`. Absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heuristic: Option<At<Heuristic>>,
    /// Fields that go before `Cache-Control` (RFC 9213), in order.
    pub targeted: Vec<At<String>>,
    /// What of the URL makes an object.
    #[serde(skip_serializing_if = "Key::is_empty")]
    pub key: Key,
    /// Requests that skip the lookup; the answer is stored.
    #[serde(skip_serializing_if = "Condition::is_empty")]
    pub bypass: Condition,
    /// Requests whose answers are not stored.
    #[serde(skip_serializing_if = "Condition::is_empty")]
    pub no_store: Condition,
    /// Honour `Cache-Control: no-cache` of clients. It lets anyone load the origin.
    pub honour_no_cache: bool,
    /// Requests for a URL before its answer is stored; until then it is SCARCE. At most 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_uses: Option<At<u32>>,
    /// Not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<At<Stale>>,
    /// Not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<At<Vec<String>>>,
    /// Not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<At<Vec<String>>>,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            name: None,
            matches: Match::default(),
            ttl: None,
            ttl_force: At::default(),
            overrides: None,
            set_cookie: SetCookie::default(),
            heuristic: None,
            targeted: vec!["CDN-Cache-Control".to_owned().into()],
            key: Key::default(),
            bypass: Condition::default(),
            no_store: Condition::default(),
            honour_no_cache: false,
            min_uses: None,
            stale: None,
            compress: None,
            tags: None,
        }
    }
}

/// All that is given must hold.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// A glob on the path: `*` stays within a segment, `**` does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<At<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<At<String>>,
    /// Searched for anywhere in the path unless anchored with `^` and `$`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_regex: Option<At<String>>,
    /// One of these methods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub method: Vec<At<String>>,
    /// All of these header fields are present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub header: Vec<At<String>>,
    /// All of these cookies are present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cookie: Vec<At<String>>,
    /// All of these query parameters are present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<At<String>>,
}

impl Match {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Holds where any of the named things is present in the request.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<At<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cookie: Vec<At<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub header: Vec<At<String>>,
}

impl Condition {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Key {
    /// Globs of query parameters that are left out of the key and not forwarded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore_query: Vec<At<String>>,
    /// Globs of query parameters; where given, only these stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_query: Option<Vec<At<String>>>,
    /// Sort query parameters by name.
    pub sort_query: bool,
}

impl Key {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Override {
    NoStore,
    Private,
    SetCookie,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetCookie {
    /// Do not store the answer.
    #[default]
    NoStore,
    /// Store it without its cookies.
    Strip,
    /// Store it with its cookies, for everyone.
    Store,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Heuristic {
    /// Of the time between `Last-Modified` and `Date`; above 0, at most 1.
    pub fraction: At<f64>,
    /// No guess is longer.
    pub max: At<TimeSpan>,
}

impl Default for Heuristic {
    fn default() -> Self {
        Self {
            fraction: 0.1.into(),
            max: TimeSpan::secs(86_400).into(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Stale {
    pub while_revalidate: Option<TimeSpan>,
    pub if_error: Option<TimeSpan>,
    pub if_unreachable: Option<TimeSpan>,
}
