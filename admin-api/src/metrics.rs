//! The figures for Prometheus. One table gives each metric its name, labels, help and reading, and docs/metrics.md is
//! made from the same table. Names and labels are part of the contract.
//!
//! Labels are names from the configuration and fixed words only, never what a client sent, so the number of series is
//! bounded by the configuration.

mod families;
mod text;

use larder_proxy::traffic::snapshot::Snapshot;

use crate::appliance::ConfigInfo;
use text::Samples;

pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the metrics are read from.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    /// Since the start: a reset must not make a counter fall.
    pub(crate) totals: &'a Snapshot,
    pub(crate) bounds_us: &'a [u64],
    pub(crate) config: &'a ConfigInfo,
    pub(crate) audit_errors: u64,
}

/// One metric and how it is read.
struct Family {
    /// With its unit, and `_total` where it is a counter.
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&Reading<'_>, &mut Samples<'_>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// In the text format 0.0.4. A family without samples still has its head.
pub(crate) fn render(reading: &Reading<'_>) -> String {
    let mut text = String::with_capacity(16 << 10);
    for family in families::all() {
        text::head(&mut text, family);
        (family.read)(reading, &mut Samples::new(&mut text, family, reading.bounds_us));
    }
    text
}

#[cfg(test)]
mod tests;
