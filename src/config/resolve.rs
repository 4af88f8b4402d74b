//! From [`File`] to [`Resolved`]: every value is checked and every name followed. All faults are reported, and what comes out
//! of a faulty file is thrown away by the caller.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use larder_proxy::config::Live;

use super::diagnostics::Report;
use super::file::File;
use super::machine::Machine;
use super::values::{At, ByteSize, TimeSpan};
use super::{AdminSettings, Settings};

mod address;
mod cache;
mod disk;
mod patterns;
mod rule;
mod server;
mod upstream;
mod vhost;
mod words;

const DAY: u64 = 86_400;
/// Longer is a slip of the pen, and a lifetime beyond this is forever anyway.
const TTL_MAX: TimeSpan = TimeSpan::secs(10 * 365 * DAY);
/// A connection that may hang for longer is one that is never given up.
const DEADLINE_MAX: TimeSpan = TimeSpan::secs(DAY);

pub(super) fn resolve(file: &File, machine: Machine, report: &mut Report) -> Settings {
    let admin = AdminSettings {
        listen: server::admin(&file.admin, report),
    };
    let boot = server::boot(file, &admin, machine, report);
    let upstreams = upstream::all(&file.upstream, &boot.listeners, report);
    let vhosts = vhost::all(&file.vhost, &upstreams, report);
    let upstreams = upstreams.into_resolved(&vhosts, report);
    Settings {
        boot,
        live: Live { upstreams, vhosts },
        admin,
        state_dir: absolute(&file.state_dir, "state_dir", report),
    }
}

fn absolute(path: &At<PathBuf>, key: &str, report: &mut Report) -> PathBuf {
    if !path.is_absolute() {
        let help = "what it is relative to would depend on how the program is started: write a path that begins with /";
        report.error(path.span(), format!("`{key}` is not an absolute path"), help);
    }
    (**path).clone()
}

/// A deadline: longer than nothing, and at most a day.
fn deadline(span: &At<TimeSpan>, key: &str, report: &mut Report) -> Duration {
    if span.0.is_zero() {
        let help = "a deadline of 0 would end everything at once";
        report.error(span.span(), format!("`{key}` must be longer than 0"), help);
    }
    at_most(span, DEADLINE_MAX, key, report)
}

fn at_most(span: &At<TimeSpan>, max: TimeSpan, key: &str, report: &mut Report) -> Duration {
    if **span > max {
        report.error(span.span(), format!("`{key}` is longer than {}", readable(max)), "");
    }
    span.0
}

fn readable(span: TimeSpan) -> String {
    if span == TTL_MAX {
        return "10 years".to_owned();
    }
    span.to_string()
}

fn size_within(size: &At<ByteSize>, least: ByteSize, most: ByteSize, key: &str, report: &mut Report) -> u64 {
    if !(least..=most).contains(&**size) {
        report.error(size.span(), format!("`{key}` is not between {least} and {most}"), "");
    }
    size.0
}

/// A whole number in a range. The result always fits.
fn count_within(count: u64, span: std::ops::Range<usize>, range: (u64, u64), key: &str, report: &mut Report) -> usize {
    let (least, most) = range;
    if !(least..=most).contains(&count) {
        report.error(span, format!("`{key}` is not between {least} and {most}"), "");
    }
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Two sockets that cannot both be bound.
fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let is_same_ip = a.ip() == b.ip();
    let is_covered = a.is_ipv4() == b.is_ipv4() && (a.ip().is_unspecified() || b.ip().is_unspecified());
    a.port() == b.port() && a.port() != 0 && (is_same_ip || is_covered)
}
