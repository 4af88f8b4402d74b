//! `larder stats`. Reads the answers leniently, so that it works with an appliance of another version.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::access::{Access, Environment};
use super::client::{CallError, Client};
use super::{output, table};

/// nginx's words in the order in which they are shown. MISS and HIT always are, others where there is something to show.
const STATUSES: [&str; 8] = [
    "MISS",
    "BYPASS",
    "EXPIRED",
    "STALE",
    "UPDATING",
    "REVALIDATED",
    "HIT",
    "SCARCE",
];

#[derive(Debug, Args)]
pub(super) struct Stats {
    /// Print the answer of the admin plane as it is.
    #[arg(long)]
    json: bool,
    /// Set all counters to zero, and show what they were.
    #[arg(long)]
    reset: bool,
    /// A configuration file, to find the admin plane and its token.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn stats(stats: &Stats, access: &Access, environment: &Environment) -> anyhow::Result<ExitCode> {
    let client = access.client(stats.config.as_deref(), environment)?;
    let answer = super::runtime()?.block_on(fetch(&client, stats.reset))?;
    if stats.json {
        output::out(&format!("{answer:#}\n"));
    } else {
        output::out(&report(&answer));
    }
    Ok(ExitCode::SUCCESS)
}

async fn fetch(client: &Client, reset: bool) -> Result<Value, CallError> {
    if reset {
        return client.reset_stats().await;
    }
    let mut answer = client.stats().await?;
    if answer.get("vhosts").is_none()
        && let Some(fields) = answer.as_object_mut()
    {
        let vhosts = client.vhosts().await?;
        let rows = vhosts.get("vhosts").cloned().unwrap_or(vhosts);
        fields.insert("vhosts".to_owned(), rows);
    }
    Ok(answer)
}

/// A row for each vhost and one for all, then the cache in one line.
fn report(answer: &Value) -> String {
    let mut rows: Vec<Row> = Vec::new();
    for vhost in answer.get("vhosts").and_then(Value::as_array).into_iter().flatten() {
        let name = vhost.get("name").and_then(Value::as_str).unwrap_or("?");
        rows.push(Row::read(name, vhost.get("requests").unwrap_or(&Value::Null)));
    }
    if let Some(total) = answer.get("total") {
        rows.push(Row::read("total", total));
    }
    let is_shown = |status: &str, index: usize| {
        matches!(status, "MISS" | "HIT") || rows.iter().any(|row| row.by_status.get(index) > Some(&0))
    };
    let shown: Vec<usize> = (0..STATUSES.len())
        .filter(|&index| STATUSES.get(index).is_some_and(|status| is_shown(status, index)))
        .collect();
    let heads = shown.iter().filter_map(|&index| STATUSES.get(index).copied());
    let head = ["VHOST", "REQUESTS", "HIT RATIO"]
        .into_iter()
        .chain(heads)
        .chain(["SENT", "RECEIVED"]);
    let mut cells: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
    cells.extend(rows.iter().map(|row| row.cells(&shown)));
    let cache = answer.get("cache").unwrap_or(&Value::Null);
    table::render(&cells) + &cache_line(cache) + &tiers(cache)
}

struct Row {
    name: String,
    requests: u64,
    /// In the order of [`STATUSES`].
    by_status: Vec<u64>,
    sent: u64,
    received: u64,
}

impl Row {
    fn read(name: &str, counters: &Value) -> Self {
        let cache = counters.get("cache").unwrap_or(&Value::Null);
        Self {
            name: name.to_owned(),
            requests: number(counters, "requests"),
            by_status: STATUSES.iter().map(|status| count_of(cache, status)).collect(),
            sent: number(counters, "bytes_sent"),
            received: number(counters, "bytes_received"),
        }
    }

    fn cells(&self, shown: &[usize]) -> Vec<String> {
        let counts = shown.iter().filter_map(|&index| self.by_status.get(index));
        let fixed = [self.name.clone(), self.requests.to_string(), self.hit_ratio()];
        let bytes = [table::bytes(self.sent), table::bytes(self.received)];
        fixed
            .into_iter()
            .chain(counts.map(u64::to_string))
            .chain(bytes)
            .collect()
    }

    /// HIT of all that have a status. What was served stale or revalidated is no hit, and stands in its own column.
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    fn hit_ratio(&self) -> String {
        let all: u64 = self.by_status.iter().sum();
        let hits = STATUSES.iter().position(|status| *status == "HIT");
        let hits = hits.and_then(|index| self.by_status.get(index)).copied().unwrap_or(0);
        if all == 0 {
            return "-".to_owned();
        }
        format!("{:.1}%", 100.0 * hits as f64 / all as f64)
    }
}

/// Counts by status come as pairs or as an object, each a number or an object with `requests`.
fn count_of(cache: &Value, status: &str) -> u64 {
    let found = match cache {
        Value::Array(pairs) => pairs
            .iter()
            .filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?)))
            .find(|(name, _)| name.eq_ignore_ascii_case(status))
            .map(|(_, count)| count),
        Value::Object(fields) => fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(status))
            .map(|(_, count)| count),
        _ => None,
    };
    let Some(count) = found else { return 0 };
    count.as_u64().unwrap_or_else(|| number(count, "requests"))
}

/// A row for memory and one for each disk; nothing where there are no disks.
fn tiers(cache: &Value) -> String {
    let disks: Vec<&Value> = cache
        .get("disks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    if disks.is_empty() {
        return String::new();
    }
    let head = ["TIER", "STATE", "OBJECTS", "USED", "MAX", "HITS", "WRITTEN", "EVICTED"];
    let bytes = |value: &Value, key| table::bytes(number(value, key));
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    cells.push(vec![
        "memory".to_owned(),
        "up".to_owned(),
        number(cache, "objects").to_string(),
        bytes(cache, "memory_used"),
        bytes(cache, "memory_max"),
        "-".to_owned(),
        number(cache, "inserted").to_string(),
        number(cache, "evicted").to_string(),
    ]);
    for disk in disks {
        let text = |key| disk.get(key).and_then(Value::as_str);
        let counters = disk.get("counters").unwrap_or(&Value::Null);
        cells.push(vec![
            text("path").unwrap_or("?").to_owned(),
            text("detail").or_else(|| text("state")).unwrap_or("?").to_owned(),
            number(disk, "objects").to_string(),
            bytes(disk, "used"),
            bytes(disk, "max"),
            number(counters, "hits").to_string(),
            number(counters, "written").to_string(),
            number(counters, "evicted").to_string(),
        ]);
    }
    format!("\n{}", table::render(&cells))
}

fn cache_line(cache: &Value) -> String {
    if cache.is_null() {
        return String::new();
    }
    let name = cache.get("name").and_then(Value::as_str).unwrap_or("main");
    let (used, max) = (
        table::bytes(number(cache, "memory_used")),
        table::bytes(number(cache, "memory_max")),
    );
    let objects = number(cache, "objects");
    let evicted = number(cache, "evicted");
    format!("\ncache {name}: {objects} objects, {used} of {max}, {evicted} evicted\n")
}

fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests;
