//! `[[upstream]]`.

use std::collections::HashMap;
use std::net::SocketAddr;

use larder_proxy::config::{Upstream, UpstreamTimeouts, Vhost};

use super::words::{Names, check_name};
use super::{address, count_within, deadline};
use crate::config::diagnostics::Report;
use crate::config::file::{self, Balance};
use crate::config::suggest;
use crate::config::values::{At, shown};

const UPSTREAMS_MAX: usize = 1024;
const CONNECTIONS_MAX: u64 = 1_000_000;
const KEEPALIVE_MAX: u64 = 65_536;

/// Upstreams by name. Faulty ones keep their place, so that vhosts that name them are not blamed.
#[derive(Debug)]
pub(super) struct Upstreams {
    resolved: Vec<Upstream>,
    by_name: HashMap<String, usize>,
    spans: Vec<std::ops::Range<usize>>,
    is_complete: bool,
}

impl Upstreams {
    /// The index of an upstream that a vhost names.
    pub(super) fn find(&self, name: &At<String>, report: &mut Report) -> usize {
        let found = self.by_name.get(name.as_str());
        if found.is_none() && self.is_complete {
            let names = || self.by_name.keys().map(String::as_str);
            let help = match suggest::nearest(name, names()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if self.by_name.is_empty() => "add [[upstream]] with name and servers".to_owned(),
                None => {
                    let mut known: Vec<_> = names().take(10).collect();
                    known.sort_unstable();
                    format!("there are {}", known.join(", "))
                }
            };
            report.error(name.span(), format!("there is no upstream `{}`", shown(name)), help);
        }
        found.copied().unwrap_or(0)
    }

    /// What the data plane gets, with a word about those that no vhost uses.
    pub(super) fn into_resolved(self, vhosts: &[Vhost], report: &mut Report) -> Vec<Upstream> {
        // In a faulty file it is too early to tell.
        if report.has_errors() {
            return self.resolved;
        }
        for (index, (upstream, span)) in self.resolved.iter().zip(&self.spans).enumerate() {
            let is_used = vhosts.iter().any(|vhost| vhost.upstream == index);
            if !is_used {
                let message = format!("no vhost uses the upstream `{}`", shown(&upstream.name));
                report.warning(span.clone(), message, "");
            }
        }
        self.resolved
    }
}

pub(super) fn all(upstreams: &[At<file::Upstream>], listeners: &[SocketAddr], report: &mut Report) -> Upstreams {
    let mut names = Names::default();
    let mut all = Upstreams {
        resolved: Vec::with_capacity(upstreams.len()),
        by_name: HashMap::new(),
        spans: Vec::with_capacity(upstreams.len()),
        is_complete: !report.is_lost("upstream") && !report.is_lost("upstream.name"),
    };
    for upstream in upstreams {
        let name = upstream.name.as_ref();
        if let Some(name) = name {
            check_name(name, report);
            names.take(name, name.span(), "upstream", report);
        } else if !report.is_lost("upstream.name") {
            report.error(
                upstream.span(),
                "the upstream has no `name`",
                "add name = \"app\"; vhosts refer to it",
            );
        }
        let name = name.map_or_else(String::new, |name| (**name).clone());
        all.by_name.entry(name.clone()).or_insert(all.resolved.len());
        all.spans.push(upstream.span());
        all.resolved.push(one(upstream, name, listeners, report));
    }
    if let Some(one_too_many) = upstreams.get(UPSTREAMS_MAX) {
        report.error(
            one_too_many.span(),
            format!("there are more than {UPSTREAMS_MAX} upstreams"),
            "",
        );
    }
    all
}

fn one(upstream: &file::Upstream, name: String, listeners: &[SocketAddr], report: &mut Report) -> Upstream {
    refuse_what_is_missing(upstream, report);
    let (keepalive, connections, queue) = (&upstream.keepalive, &upstream.connections, &upstream.queue);
    Upstream {
        name,
        address: server(upstream, listeners, report),
        keepalive: count_within(
            (**keepalive).into(),
            keepalive.span(),
            (0, KEEPALIVE_MAX),
            "keepalive",
            report,
        ),
        connections: count_within(
            (**connections).into(),
            connections.span(),
            (1, CONNECTIONS_MAX),
            "connections",
            report,
        ),
        queue: count_within((**queue).into(), queue.span(), (0, CONNECTIONS_MAX), "queue", report),
        timeouts: timeouts(&upstream.timeouts, report),
    }
}

fn refuse_what_is_missing(upstream: &file::Upstream, report: &mut Report) {
    if *upstream.balance != Balance::RoundRobin {
        let help = "remove `balance`: with one server there is nothing to balance";
        report.error(upstream.balance.span(), "balancing is not in this version", help);
    }
    if let Some(health) = &upstream.health {
        let help = "remove [upstream.health]; a failed origin is answered with 502 or 504";
        report.error(health.span(), "active health checks are not in this version", help);
    }
    for server in upstream.servers.iter() {
        let weight = server.weight.as_ref().filter(|weight| ***weight != 1).map(At::span);
        let backup = server.backup.as_ref().filter(|backup| ***backup).map(At::span);
        let max_fails = server.max_fails.as_ref().map(At::span);
        let fail_timeout = server.fail_timeout.as_ref().map(At::span);
        let given = [
            ("weight", weight),
            ("backup", backup),
            ("max_fails", max_fails),
            ("fail_timeout", fail_timeout),
        ];
        for (key, span) in given {
            if let Some(span) = span {
                let help = format!("remove `{key}`: an upstream has one server, always in use");
                report.error(span, format!("`{key}` is not in this version"), help);
            }
        }
    }
}

/// The address of the one server.
fn server(upstream: &file::Upstream, listeners: &[SocketAddr], report: &mut Report) -> String {
    let servers = &upstream.servers;
    if let Some(second) = servers.get(1) {
        let help = "keep one, or name a balancer in front of them (HAProxy, nginx) as the one server";
        report.error(second.span(), "more than one server is not in this version", help);
    }
    let Some(first) = servers.first() else {
        if !report.is_lost("upstream.servers") {
            let span = upstream.name.as_ref().map_or_else(|| servers.span(), At::span);
            report.error(
                span,
                "the upstream has no server",
                "add servers = [{ address = \"127.0.0.1:9000\" }]",
            );
        }
        return String::new();
    };
    let Some(text) = &first.address else {
        if !report.is_lost("upstream.servers.address") {
            report.error(
                first.span(),
                "the server has no `address`",
                "add address = \"127.0.0.1:9000\"",
            );
        }
        return String::new();
    };
    let Some(address) = address::origin(text, report) else {
        return String::new();
    };
    let own = listeners.iter().find(|listener| leads_to(&address, **listener));
    if let Some(own) = own {
        let message = format!("`{address}` is the appliance itself (listener {own}): requests would go in circles");
        report.error(text.span(), message, "write the address of the origin");
    }
    address
}

/// Whether a connection to the address surely ends at the listener.
fn leads_to(address: &str, listener: SocketAddr) -> bool {
    let address = address.replace("localhost", "127.0.0.1");
    address.parse::<SocketAddr>().is_ok_and(|address| {
        let is_local = address.ip().is_loopback() && listener.ip().is_unspecified();
        address.port() == listener.port() && (address.ip() == listener.ip() || is_local)
    })
}

fn timeouts(timeouts: &file::UpstreamTimeouts, report: &mut Report) -> UpstreamTimeouts {
    UpstreamTimeouts {
        connect: deadline(&timeouts.connect, "connect", report),
        first_byte: deadline(&timeouts.first_byte, "first_byte", report),
        between_bytes: deadline(&timeouts.between_bytes, "between_bytes", report),
        total: timeouts.total.as_ref().map(|total| deadline(total, "total", report)),
    }
}
