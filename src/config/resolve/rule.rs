//! `[[vhost.rule]]`.

use larder_proxy::config::{Condition, KeyParts, Match, PathPattern, Rule};
use larder_semantics::{Heuristic, Overrides, Policy, SetCookie, StatusMatch};

use super::vhost::method;
use super::words::{Names, check_name, cookie_names, field_names, query_names};
use super::{TTL_MAX, at_most, patterns};
use crate::config::diagnostics::Report;
use crate::config::file::{self, Override};
use crate::config::values::{At, TtlTable, shown};

/// Each has counters in every worker.
const RULES_MAX: usize = 256;

pub(super) fn all(rules: &[At<file::Rule>], report: &mut Report) -> Vec<Rule> {
    let mut names = Names::default();
    let mut resolved: Vec<Rule> = Vec::with_capacity(rules.len());
    let mut catch_all: Option<String> = None;
    for (index, rule) in rules.iter().enumerate() {
        if let Some(name) = &rule.name {
            check_name(name, report);
        }
        let name = rule
            .name
            .as_ref()
            .map_or_else(|| format!("rule-{}", index + 1), |name| (**name).clone());
        let span = rule.name.as_ref().map_or_else(|| rule.span(), At::span);
        names.take(&name, span.clone(), "rule", report);
        if let Some(earlier) = &catch_all {
            let message = format!(
                "the rule `{}` is never reached, since `{}` takes all",
                shown(&name),
                shown(earlier)
            );
            report.warning(
                span,
                message,
                "the first rule that matches decides: put this one before it",
            );
        } else if rule.matches.is_empty() && !report.is_lost("vhost.rule.match") {
            catch_all = Some(name.clone());
        }
        resolved.push(one(rule, name, report));
    }
    if let Some(one_too_many) = rules.get(RULES_MAX) {
        report.error(
            one_too_many.span(),
            format!("the vhost has more than {RULES_MAX} rules"),
            "",
        );
    }
    resolved
}

fn one(rule: &file::Rule, name: String, report: &mut Report) -> Rule {
    refuse_what_is_missing(rule, report);
    Rule {
        name,
        matches: matches(&rule.matches, report),
        policy: policy(rule, report),
        key: KeyParts {
            ignore_query: patterns::query_globs(&rule.key.ignore_query, report),
            keep_query: rule
                .key
                .keep_query
                .as_deref()
                .map(|globs| patterns::query_globs(globs, report)),
            sort_query: rule.key.sort_query,
        },
        bypass: condition(&rule.bypass, report),
        no_store: condition(&rule.no_store, report),
        min_uses: min_uses(rule, report),
        honour_request_no_cache: rule.honour_no_cache,
    }
}

/// More than this and nothing is ever stored: counts are kept for some time only.
const MIN_USES_MAX: u32 = 1000;

fn min_uses(rule: &file::Rule, report: &mut Report) -> u32 {
    let Some(uses) = &rule.min_uses else { return 1 };
    if **uses == 0 {
        report.error(uses.span(), "`min_uses` is at least 1", "remove it: 1 is the default");
    } else if **uses > MIN_USES_MAX {
        report.error(uses.span(), format!("`min_uses` is more than {MIN_USES_MAX}"), "");
    }
    **uses
}

fn refuse_what_is_missing(rule: &file::Rule, report: &mut Report) {
    let stale = rule.stale.as_ref().map(At::span);
    let compress = rule.compress.as_ref().map(At::span);
    let tags = rule.tags.as_ref().map(At::span);
    let given = [
        (
            stale,
            "serving stale objects",
            "remove `stale`; expired objects are revalidated",
        ),
        (
            compress,
            "compression",
            "remove `compress`; what the origin compressed is stored so",
        ),
        (tags, "invalidation by tag", "remove `tags`; purge by URL"),
    ];
    for (span, what, help) in given {
        if let Some(span) = span {
            report.error(span, format!("{what} is not in this version"), help);
        }
    }
}

fn matches(matches: &file::Match, report: &mut Report) -> Match {
    let condition = Condition {
        query: query_names(&matches.query, report),
        cookie: cookie_names(&matches.cookie, report),
        header: field_names(&matches.header, report),
    };
    Match {
        path: path(matches, report),
        methods: matches.method.iter().filter_map(|word| method(word, report)).collect(),
        condition: (condition != Condition::default()).then_some(condition),
    }
}

fn path(matches: &file::Match, report: &mut Report) -> Option<PathPattern> {
    let given = [&matches.path, &matches.path_prefix, &matches.path_regex];
    let second = given.into_iter().flatten().nth(1);
    if let Some(second) = second {
        let help = "keep one; where both must hold, write one `path_regex`";
        report.error(
            second.span(),
            "`path`, `path_prefix` and `path_regex` exclude each other",
            help,
        );
    }
    if let Some(glob) = &matches.path {
        patterns::check_path_glob(glob, report);
        return Some(PathPattern::Glob((**glob).clone()));
    }
    if let Some(prefix) = &matches.path_prefix {
        if !prefix.starts_with('/') {
            let message = format!("the prefix `{}` can match no path", shown(prefix));
            report.error(
                prefix.span(),
                message,
                format!("paths begin with a slash: write \"/{}\"", shown(prefix)),
            );
        }
        return Some(PathPattern::Prefix((**prefix).clone()));
    }
    let regex = matches.path_regex.as_ref()?;
    patterns::check_regex(regex, report);
    Some(PathPattern::Regex((**regex).clone()))
}

fn condition(condition: &file::Condition, report: &mut Report) -> Condition {
    Condition {
        query: query_names(&condition.query, report),
        cookie: cookie_names(&condition.cookie, report),
        header: field_names(&condition.header, report),
    }
}

fn policy(rule: &file::Rule, report: &mut Report) -> Policy {
    let has_ttl = rule.ttl.as_ref().is_some_and(|ttl| !ttl.0.is_empty());
    if *rule.ttl_force && !has_ttl && !report.is_lost("vhost.rule.ttl") {
        report.warning(
            rule.ttl_force.span(),
            "`ttl_force` does nothing without `ttl`",
            "add ttl = { 200 = \"10m\" }",
        );
    }
    let overrides = rule.overrides.as_ref();
    let named = |wanted| overrides.is_some_and(|overrides| overrides.contains(&wanted));
    if let Some(overrides) = overrides.filter(|overrides| !overrides.is_empty() && !*rule.ttl_force) {
        let help = "add ttl_force = true, or remove `override`";
        report.warning(overrides.span(), "`override` does nothing without `ttl_force`", help);
    }
    Policy {
        ttl: rule.ttl.as_ref().map_or_else(Vec::new, |table| ttl(table, report)),
        ttl_force: *rule.ttl_force,
        overrides: Overrides {
            no_store: named(Override::NoStore),
            private: named(Override::Private),
            set_cookie: named(Override::SetCookie),
        },
        set_cookie: match rule.set_cookie {
            file::SetCookie::NoStore => SetCookie::NoStore,
            file::SetCookie::Strip => SetCookie::Strip,
            file::SetCookie::Store => SetCookie::Store,
        },
        heuristic: rule
            .heuristic
            .as_ref()
            .map(|heuristic| judge_heuristic(heuristic, report)),
        targeted: field_names(&rule.targeted, report),
    }
}

/// A lifetime of 0 is no slip: it takes a status out of `any`.
fn ttl(table: &TtlTable, report: &mut Report) -> Vec<(StatusMatch, std::time::Duration)> {
    let mut entries = Vec::with_capacity(table.0.len());
    for (key, span) in &table.0 {
        let lifetime = at_most(span, TTL_MAX, "ttl", report);
        let status = match key.as_str() {
            "any" => Some(StatusMatch::Any),
            digits => digits
                .parse()
                .ok()
                .filter(|_| digits.len() == 3)
                .map(StatusMatch::Exactly),
        };
        match status {
            Some(StatusMatch::Exactly(code)) if !(200..600).contains(&code) => {
                let message = format!("answers with status {code} are never stored");
                report.error(key.span(), message, "write a status from 200 to 599, or any");
            }
            Some(status) => entries.push((status, lifetime)),
            None => {
                let message = format!("`{}` is not a status", shown(key));
                report.error(
                    key.span(),
                    message,
                    "write one status such as 200, or any; lists and 2xx are not known",
                );
            }
        }
    }
    entries
}

fn judge_heuristic(heuristic: &file::Heuristic, report: &mut Report) -> Heuristic {
    let fraction = *heuristic.fraction;
    if !(fraction > 0.0 && fraction <= 1.0) {
        let help = "0.1 is usual; remove `heuristic` for no guess";
        report.error(
            heuristic.fraction.span(),
            "`fraction` is not above 0 and at most 1",
            help,
        );
    }
    if heuristic.max.0.is_zero() {
        report.error(
            heuristic.max.span(),
            "`max` must be longer than 0",
            "remove `heuristic` for no guess",
        );
    }
    Heuristic {
        fraction,
        max: at_most(&heuristic.max, TTL_MAX, "max", report),
    }
}
