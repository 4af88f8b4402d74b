//! The Prometheus text format 0.0.4: heads, samples, escapes. It knows no metric.

use std::fmt::{Display, Write};

use larder_proxy::traffic::snapshot::Histogram;

use super::Family;

/// The lines before a family's samples.
pub(super) fn head(text: &mut String, family: &Family) {
    let Family { name, kind, help, .. } = family;
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}");
    let _ = writeln!(text, "# TYPE {name} {}", kind.word());
}

/// Takes the samples of one family.
pub(super) struct Samples<'a> {
    text: &'a mut String,
    family: &'a Family,
    bounds_us: &'a [u64],
}

impl<'a> Samples<'a> {
    pub(super) const fn new(text: &'a mut String, family: &'a Family, bounds_us: &'a [u64]) -> Self {
        Self {
            text,
            family,
            bounds_us,
        }
    }

    /// `labels` are the values, in the order of the family's labels.
    pub(super) fn put(&mut self, labels: &[&str], value: u64) {
        self.line("", labels, None, value);
    }

    /// A Unix time in milliseconds, as seconds.
    pub(super) fn put_time(&mut self, labels: &[&str], time_ms: u64) {
        self.line("", labels, None, time_ms as f64 / 1e3);
    }

    /// Buckets are cumulative here, and their bounds are in seconds.
    pub(super) fn put_histogram(&mut self, labels: &[&str], histogram: &Histogram) {
        let mut below = 0;
        let counts = histogram.counts.iter().copied().chain(std::iter::repeat(0));
        for (bound_us, count) in self.bounds_us.iter().zip(counts) {
            below += count;
            self.line("_bucket", labels, Some(&(*bound_us as f64 / 1e6)), below);
        }
        let all: u64 = histogram.counts.iter().sum();
        self.line("_bucket", labels, Some(&"+Inf"), all);
        self.line("_sum", labels, None, histogram.sum_us as f64 / 1e6);
        self.line("_count", labels, None, all);
    }

    fn line(&mut self, suffix: &str, labels: &[&str], bound: Option<&dyn Display>, value: impl Display) {
        debug_assert_eq!(
            labels.len(),
            self.family.labels.len(),
            "every label of {} has a value",
            self.family.name
        );
        self.text.push_str(self.family.name);
        self.text.push_str(suffix);
        let mut separator = '{';
        for (name, value) in self.family.labels.iter().zip(labels) {
            self.text.push(separator);
            separator = ',';
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(self.text, value);
            self.text.push('"');
        }
        if let Some(bound) = bound {
            let _ = write!(self.text, "{separator}le=\"{bound}\"");
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// The three escapes that the format has. All else stands for itself, as UTF-8.
fn escape(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}
