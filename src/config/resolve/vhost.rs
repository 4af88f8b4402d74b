//! `[[vhost]]`.

use std::collections::HashMap;

use http::Method;
use larder_proxy::config::{HostPattern, PurgeMethod, Vhost};

use super::address::is_dns_name;
use super::rule;
use super::upstream::Upstreams;
use super::words::{Names, check_name, is_token};
use crate::config::diagnostics::Report;
use crate::config::file;
use crate::config::values::{At, shown};

/// Each has counters in every worker.
const VHOSTS_MAX: usize = 4096;

/// Which vhost has a host.
type Hosts = HashMap<HostPattern, String>;

pub(super) fn all(vhosts: &[At<file::Vhost>], upstreams: &Upstreams, report: &mut Report) -> Vec<Vhost> {
    if vhosts.is_empty() && !report.is_lost("vhost") {
        report.error(0..0, "there is no vhost", "add [[vhost]] with name, hosts and upstream");
    }
    let mut names = Names::default();
    let mut hosts = Hosts::new();
    let mut resolved = Vec::with_capacity(vhosts.len());
    for vhost in vhosts {
        if let Some(name) = &vhost.name {
            check_name(name, report);
            names.take(name, name.span(), "vhost", report);
        } else if !report.is_lost("vhost.name") {
            report.error(
                vhost.span(),
                "the vhost has no `name`",
                "add name = \"www\"; it is its row in the statistics",
            );
        }
        resolved.push(one(vhost, upstreams, &mut hosts, report));
    }
    if let Some(one_too_many) = vhosts.get(VHOSTS_MAX) {
        report.error(
            one_too_many.span(),
            format!("there are more than {VHOSTS_MAX} vhosts"),
            "",
        );
    }
    resolved
}

fn one(vhost: &At<file::Vhost>, upstreams: &Upstreams, hosts: &mut Hosts, report: &mut Report) -> Vhost {
    if let Some(root) = &vhost.root {
        let help = "remove `root`, and name an `upstream` that serves the files";
        report.error(root.span(), "serving a directory is not in this version", help);
    }
    let upstream = match &vhost.upstream {
        Some(name) => upstreams.find(name, report),
        None => {
            if vhost.root.is_none() && !report.is_lost("vhost.upstream") {
                let help = "add upstream = \"app\", the name of an [[upstream]]";
                report.error(vhost.span(), "the vhost has no `upstream`", help);
            }
            0
        }
    };
    Vhost {
        name: vhost.name.as_ref().map_or_else(String::new, |name| (**name).clone()),
        hosts: all_hosts(vhost, hosts, report),
        upstream,
        purge: vhost.purge.as_ref().and_then(|purge| purge_method(purge, report)),
        upgrade: upgrade(&vhost.upgrade, report),
        trusted_proxies: vhost.trusted_proxies.iter().map(|net| net.0).collect(),
        rules: rule::all(&vhost.rule, report),
    }
}

fn all_hosts(vhost: &At<file::Vhost>, taken: &mut Hosts, report: &mut Report) -> Vec<HostPattern> {
    if vhost.hosts.is_empty() && !*vhost.default && !report.is_lost("vhost.hosts") {
        let help = "add hosts = [\"www.example.test\"], or default = true to take the rest";
        report.error(
            vhost.span(),
            "the vhost has no hosts, so that no request reaches it",
            help,
        );
    }
    let mut patterns: Vec<(HostPattern, std::ops::Range<usize>)> = Vec::new();
    for host in &vhost.hosts {
        match host_pattern(host) {
            Ok(pattern) => patterns.push((pattern, host.span())),
            Err((message, help)) => report.error(host.span(), message, help),
        }
    }
    let has_any = patterns.iter().any(|(pattern, _)| *pattern == HostPattern::Any);
    if *vhost.default && !has_any {
        patterns.push((HostPattern::Any, vhost.default.span()));
    }
    let own_name = vhost.name.as_ref().map_or("", |name| name.as_str());
    for (pattern, span) in &patterns {
        if let Some(owner) = taken.insert(pattern.clone(), own_name.to_owned()) {
            let message = match pattern {
                HostPattern::Any => format!("the vhost `{}` takes the rest already", shown(&owner)),
                HostPattern::Exact(host) => format!("the host `{host}` is taken by the vhost `{}`", shown(&owner)),
                HostPattern::Suffix(host) => format!("the host `*{host}` is taken by the vhost `{}`", shown(&owner)),
            };
            report.error(
                span.clone(),
                message,
                "a host belongs to one vhost: remove it here or there",
            );
        }
    }
    patterns.into_iter().map(|(pattern, _)| pattern).collect()
}

fn host_pattern(text: &str) -> Result<HostPattern, (String, String)> {
    let host = text.to_ascii_lowercase();
    // The dot of the root may stand at the end of a name, but a star with a dot is no name.
    let host = host.strip_suffix('.').filter(|name| *name != "*").unwrap_or(&host);
    if host == "*" {
        return Ok(HostPattern::Any);
    }
    let name = host.strip_prefix("*.").unwrap_or(host);
    let is_address = name.starts_with('[') && name.ends_with(']') && name == host;
    let is_ip = is_address && name.trim_matches(['[', ']']).parse::<std::net::Ipv6Addr>().is_ok();
    if is_dns_name(name) || is_ip {
        return Ok(match host.strip_prefix('*') {
            Some(suffix) => HostPattern::Suffix(suffix.to_owned()),
            None => HostPattern::Exact(host.to_owned()),
        });
    }
    let message = format!("`{}` is not a host name", shown(text));
    let help = if let Some((_, rest)) = host.split_once("://") {
        format!(
            "write the name alone: \"{}\"",
            shown(rest.split('/').next().unwrap_or(rest))
        )
    } else if !host.is_ascii() {
        "write it in its ASCII form, which begins with xn--".to_owned()
    } else if host.contains('*') {
        "a star stands for the whole beginning, as in \"*.example.test\", or alone".to_owned()
    } else if let Some((name, _)) = host.split_once(':').filter(|(name, _)| is_dns_name(name)) {
        format!("hosts are named without a port: \"{name}\"")
    } else {
        "write a name such as \"www.example.test\", \"*.example.test\" or \"*\"".to_owned()
    };
    Err((message, help))
}

fn purge_method(purge: &At<file::Purge>, report: &mut Report) -> Option<PurgeMethod> {
    if purge.allow.is_empty() && !report.is_lost("vhost.purge.allow") {
        let help = "add allow = [\"127.0.0.1/32\"], or remove `purge`";
        report.error(
            purge.span(),
            "nobody may use the purge method, since `allow` is empty",
            help,
        );
    }
    let word = &purge.method;
    let has_a_meaning = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH",
    ];
    if has_a_meaning.contains(&word.to_ascii_uppercase().as_str()) {
        let message = format!("the method `{}` has a meaning of its own", shown(word));
        report.error(word.span(), message, "use \"PURGE\"");
        return None;
    }
    let method = method(word, report)?;
    Some(PurgeMethod {
        method,
        allow: purge.allow.iter().map(|net| net.0).collect(),
    })
}

/// Methods are tokens, and upper and lower case differ (RFC 9110 section 9.1).
pub(super) fn method(word: &At<String>, report: &mut Report) -> Option<Method> {
    let upper = word.to_ascii_uppercase();
    let parsed = Method::from_bytes(word.as_bytes())
        .ok()
        .filter(|_| upper == word.as_str());
    if parsed.is_none() {
        let help = if is_token(word) {
            format!("methods are written in capitals: \"{upper}\"")
        } else {
            "write a word such as \"GET\"".to_owned()
        };
        report.error(word.span(), format!("`{}` is not a method", shown(word)), help);
    }
    parsed
}

fn upgrade(protocols: &[At<String>], report: &mut Report) -> Vec<String> {
    for protocol in protocols {
        if !is_token(protocol) {
            let message = format!("`{}` is not the name of a protocol", shown(protocol));
            report.error(protocol.span(), message, "write upgrade = [\"websocket\"]");
        } else if protocol.eq_ignore_ascii_case("h2c") {
            // What follows would be HTTP that nobody here reads: a way around every rule.
            let help = "remove it; requests would pass unseen through the tunnel";
            report.error(protocol.span(), "h2c cannot be upgraded to", help);
        }
    }
    protocols.iter().map(|protocol| protocol.to_ascii_lowercase()).collect()
}
