//! What is fixed at start: `[server]`, `[[listener]]`, `[admin]`.

use std::net::{Ipv4Addr, SocketAddr};

use larder_proxy::config::{AccessLog, Boot, Limits, LogFormat, Timeouts};

use super::{absolute, address, at_most, cache, collide, count_within, deadline, disk, size_within};
use crate::config::AdminSettings;
use crate::config::diagnostics::Report;
use crate::config::file::{self, File};
use crate::config::machine::Machine;
use crate::config::values::{At, AutoOr, ByteSize};

use super::DEADLINE_MAX;

const WORKERS_MAX: u64 = 1024;
const LISTENERS_MAX: usize = 64;
const CONNECTIONS_MAX: u64 = 10_000_000;

pub(super) fn boot(file: &File, admin: &AdminSettings, machine: Machine, report: &mut Report) -> Boot {
    let server = &file.server;
    let (cache_name, memory) = cache::memory(&file.cache, report);
    Boot {
        workers: auto_or(&server.workers, machine.cores as u64, WORKERS_MAX, "workers", report),
        listeners: listeners(file, admin, report),
        timeouts: timeouts(&server.timeouts, report),
        limits: limits(&server.limits, machine, report),
        access_log: server.access_log.as_ref().and_then(|log| access_log(log, report)),
        cache_name,
        memory,
        disks: disk::all(&file.cache.disk, &file.state_dir, report),
        drain: at_most(&server.drain, DEADLINE_MAX, "drain", report),
    }
}

pub(super) fn admin(admin: &file::Admin, report: &mut Report) -> SocketAddr {
    if let Some(dialects) = &admin.dialects {
        let help = "remove [admin.dialects]; /api/v1/stats and /metrics have the same figures";
        report.error(
            dialects.span(),
            "the dialects of other servers are not in this version",
            help,
        );
    }
    let fallback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listen = address::socket(&admin.listen, report).unwrap_or(fallback);
    if !listen.ip().is_loopback() {
        let help = "listen on 127.0.0.1, or keep others out with a firewall and put a TLS terminator in front";
        report.warning(
            admin.listen.span(),
            "the admin plane is open to other machines, without TLS",
            help,
        );
    }
    listen
}

fn listeners(file: &File, admin: &AdminSettings, report: &mut Report) -> Vec<SocketAddr> {
    if file.listener.is_empty() && !report.is_lost("listener") {
        let help = "add [[listener]] with address = \"127.0.0.1:8080\"";
        report.error(0..0, "there is no listener", help);
    }
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for listener in &file.listener {
        if let Some(tls) = &listener.tls {
            let help = "put a TLS terminator in front, or remove [listener.tls]";
            report.error(tls.span(), "TLS is not in this version", help);
        }
        let Some(text) = &listener.address else {
            if !report.is_lost("listener.address") {
                report.error(
                    listener.span(),
                    "the listener has no `address`",
                    "add address = \"127.0.0.1:8080\"",
                );
            }
            continue;
        };
        let Some(address) = address::socket(text, report) else {
            continue;
        };
        if collide(address, admin.listen) {
            let message = format!("`{address}` is also the address of the admin plane ({})", admin.listen);
            report.error(text.span(), message, "change the port of one of them");
        } else if let Some(other) = addresses.iter().find(|other| collide(**other, address)) {
            let message = format!("`{address}` is taken by another listener ({other})");
            report.error(text.span(), message, "remove one of them, or change its port");
        }
        addresses.push(address);
    }
    if let Some(one_too_many) = file.listener.get(LISTENERS_MAX) {
        report.error(
            one_too_many.span(),
            format!("there are more than {LISTENERS_MAX} listeners"),
            "",
        );
    }
    addresses
}

fn timeouts(timeouts: &file::Timeouts, report: &mut Report) -> Timeouts {
    Timeouts {
        header: deadline(&timeouts.header, "header", report),
        idle: deadline(&timeouts.idle, "idle", report),
        body: deadline(&timeouts.body, "body", report),
        write: deadline(&timeouts.write, "write", report),
    }
}

fn limits(limits: &file::Limits, machine: Machine, report: &mut Report) -> Limits {
    let head_bytes = size_within(
        &limits.head_bytes,
        ByteSize::kib(1),
        ByteSize::mib(1),
        "head_bytes",
        report,
    );
    let connections = auto_or(
        &limits.connections,
        machine.connections(),
        CONNECTIONS_MAX,
        "connections",
        report,
    );
    if limits.connections.is_given() && connections as u64 > machine.open_files.unwrap_or(u64::MAX) {
        let message = format!(
            "`connections` is above the limit on open files, {}",
            machine.open_files.unwrap_or(0)
        );
        report.warning(
            limits.connections.span(),
            message,
            "raise the limit (LimitNOFILE of systemd, ulimit -n)",
        );
    }
    if limits.body_bytes.0 == 0 {
        let help = "0 would refuse every request body: write a size such as \"16MiB\"";
        report.error(limits.body_bytes.span(), "`body_bytes` must be above 0", help);
    }
    let per_client = limits.connections_per_client.as_ref();
    Limits {
        head_bytes: usize::try_from(head_bytes).unwrap_or(usize::MAX),
        headers: count_within(
            (*limits.headers).into(),
            limits.headers.span(),
            (1, 1000),
            "headers",
            report,
        ),
        body_bytes: limits.body_bytes.0,
        body_rate: limits.body_rate.0,
        connections,
        connections_per_client: per_client.map(|count| {
            let range = (1, CONNECTIONS_MAX);
            count_within((**count).into(), count.span(), range, "connections_per_client", report)
        }),
    }
}

fn auto_or(value: &At<AutoOr>, auto: u64, most: u64, key: &str, report: &mut Report) -> usize {
    let count = match **value {
        AutoOr::Auto => auto.clamp(1, most),
        AutoOr::Count(count) => count,
    };
    count_within(count, value.span(), (1, most), key, report)
}

fn access_log(log: &At<file::AccessLog>, report: &mut Report) -> Option<AccessLog> {
    let Some(path) = &log.path else {
        if !report.is_lost("server.access_log.path") {
            let help = "add path = \"/var/log/larder/access.log\", or remove the table for no log";
            report.error(log.span(), "the access log has no `path`", help);
        }
        return None;
    };
    Some(AccessLog {
        path: absolute(path, "path", report),
        format: match log.format {
            file::LogFormat::Combined => LogFormat::Combined,
            file::LogFormat::Json => LogFormat::Json,
        },
    })
}
