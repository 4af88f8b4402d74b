//! Rows by name, outside of the configuration, and which of them are shown.
//!
//! Names come from the configuration alone, never from requests. Rows that the configuration no longer names are out of sight
//! but keep their counts, in case they come back; beyond a bound they are given up, and their counts stay in the total.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::cells::{Reading, Since, add_all};
use super::origins::{self, OriginCounters};
use super::snapshot::{OriginSnapshot, Requests, VhostSnapshot};
use super::vhosts::{self, RuleSlots, VhostCore};
use super::{Gauges, Scope, UNKNOWN};

/// So many rows of a kind may be kept that nobody uses: years of edits.
const UNUSED_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct Registry {
    workers: usize,
    started_ms: u64,
    vhosts: HashMap<String, VhostRow>,
    origins: HashMap<(String, String), OriginRow>,
    shown_vhosts: Vec<(String, Vec<String>)>,
    shown_origins: Vec<(String, String)>,
    /// The sum of the vhosts that were given up.
    gone: Reading<{ vhosts::COUNT }>,
}

#[derive(Debug)]
pub(super) struct VhostRow {
    pub(super) core: Arc<VhostCore>,
    is_shown: bool,
    since_ms: u64,
    reading: Reading<{ vhosts::COUNT }>,
    rules: HashMap<String, RuleRow>,
}

#[derive(Debug)]
struct RuleRow {
    slots: Arc<RuleSlots>,
    is_shown: bool,
    reading: Reading<{ vhosts::RULE_COUNT }>,
}

#[derive(Debug)]
struct OriginRow {
    counters: Arc<OriginCounters>,
    is_shown: bool,
    since_ms: u64,
    reading: Reading<{ origins::COUNT }>,
}

// === impl Registry ===

impl Registry {
    pub(super) fn new(workers: usize, started_ms: u64) -> Self {
        Self {
            workers,
            started_ms,
            vhosts: HashMap::new(),
            origins: HashMap::new(),
            shown_vhosts: Vec::new(),
            shown_origins: Vec::new(),
            gone: Reading::default(),
        }
    }

    pub(super) fn vhost(&mut self, name: &str) -> &mut VhostRow {
        let is_used = |row: &VhostRow| row.is_shown || Arc::strong_count(&row.core) > 1;
        if !self.vhosts.contains_key(name) {
            for mut row in take_unused(&mut self.vhosts, is_used) {
                row.read();
                self.gone.absorb(&row.reading);
            }
        }
        self.vhosts
            .entry(name.to_owned())
            .or_insert_with(|| VhostRow::new(self.workers, self.started_ms))
    }

    /// The counters of these rules of a vhost, in this order.
    pub(super) fn rules(&mut self, vhost: &str, names: &[String]) -> Vec<Arc<RuleSlots>> {
        let workers = self.workers;
        let row = self.vhost(vhost);
        names
            .iter()
            .map(|name| Arc::clone(&row.rule(name, workers).slots))
            .collect()
    }

    pub(super) fn origin(&mut self, upstream: &str, server: &str) -> &Arc<OriginCounters> {
        &self.origin_row((upstream.to_owned(), server.to_owned())).counters
    }

    fn origin_row(&mut self, key: (String, String)) -> &mut OriginRow {
        if !self.origins.contains_key(&key) {
            drop(take_unused(&mut self.origins, |row| {
                row.is_shown || Arc::strong_count(&row.counters) > 1
            }));
        }
        self.origins
            .entry(key)
            .or_insert_with(|| OriginRow::new(self.workers, self.started_ms))
    }

    /// Which rows are shown, in which order. `_unknown` is always the last of the vhosts.
    pub(super) fn configure(&mut self, vhosts: &[(String, Vec<String>)], origins: &[(String, String)]) {
        let workers = self.workers;
        self.vhosts.values_mut().for_each(VhostRow::hide);
        self.origins.values_mut().for_each(|row| row.is_shown = false);
        self.shown_vhosts.clear();
        self.shown_origins.clear();
        let unknown = (UNKNOWN.to_owned(), Vec::new());
        for (name, rules) in vhosts.iter().filter(|(name, _)| name != UNKNOWN).chain([&unknown]) {
            let row = self.vhost(name);
            if std::mem::replace(&mut row.is_shown, true) {
                continue;
            }
            let shown = rules
                .iter()
                .filter(|rule| !std::mem::replace(&mut row.rule(rule, workers).is_shown, true));
            let shown = shown.cloned().collect();
            self.shown_vhosts.push((name.clone(), shown));
        }
        for key in origins {
            if !std::mem::replace(&mut self.origin_row(key.clone()).is_shown, true) {
                self.shown_origins.push(key.clone());
            }
        }
    }

    /// Whether the scope names something that is shown.
    pub(super) fn knows(&self, scope: &Scope) -> bool {
        match scope {
            Scope::All | Scope::Cache => true,
            Scope::Vhost(name) => self.vhosts.get(name).is_some_and(|row| row.is_shown),
            Scope::Origin(name) => self.shown_origins.iter().any(|(upstream, _)| upstream == name),
        }
    }

    /// Reads every cell once.
    pub(super) fn read(&mut self) {
        self.vhosts.values_mut().for_each(VhostRow::read);
        self.origins
            .values_mut()
            .for_each(|row| row.reading.set(row.counters.read()));
    }

    /// What was read last becomes what is subtracted.
    pub(super) fn rebase(&mut self, scope: &Scope, now_ms: u64) {
        for (name, row) in &mut self.vhosts {
            if *scope == Scope::All || matches!(scope, Scope::Vhost(only) if only == name) {
                row.rebase(now_ms);
            }
        }
        for ((upstream, _), row) in &mut self.origins {
            if *scope == Scope::All || matches!(scope, Scope::Origin(only) if only == upstream) {
                row.reading.rebase();
                row.since_ms = now_ms;
            }
        }
        if *scope == Scope::All {
            self.gone.rebase();
        }
    }

    /// Of all vhosts, also those that are not shown any more: what was served stays served.
    pub(super) fn show_total(&self, since: Since) -> Requests {
        let mut counts = self.gone.counts(since);
        let mut in_flight = 0;
        for row in self.vhosts.values() {
            add_all(&mut counts, &row.reading.counts(since));
            in_flight += row.core.in_flight();
        }
        vhosts::show(&counts, in_flight)
    }

    pub(super) fn show_vhosts(&self, since: Since) -> Vec<VhostSnapshot> {
        let row = |(name, rules): &(String, Vec<String>)| {
            let row = self.vhosts.get(name)?;
            let rule = |name: &String| Some(vhosts::show_rule(name, &row.rules.get(name)?.reading.counts(since)));
            Some(VhostSnapshot {
                name: name.clone(),
                since_ms: self.since_ms(since, row.since_ms),
                requests: vhosts::show(&row.reading.counts(since), row.core.in_flight()),
                rules: rules.iter().filter_map(rule).collect(),
            })
        };
        self.shown_vhosts.iter().filter_map(row).collect()
    }

    pub(super) fn show_origins(&self, since: Since, gauges: &Gauges) -> Vec<OriginSnapshot> {
        let row = |key: &(String, String)| {
            let row = self.origins.get(key)?;
            let (upstream, server) = key;
            let now = gauges
                .upstreams
                .iter()
                .find(|(name, _)| name == upstream)
                .map(|(_, now)| *now);
            let since_ms = self.since_ms(since, row.since_ms);
            Some(origins::show(
                upstream,
                server,
                since_ms,
                &row.reading.counts(since),
                now.unwrap_or_default(),
            ))
        };
        self.shown_origins.iter().filter_map(row).collect()
    }

    /// Rows of vhosts, of rules of that vhost, and of origins, whether shown or not.
    #[cfg(test)]
    pub(super) fn sizes(&self, vhost: &str) -> (usize, usize, usize) {
        (
            self.vhosts.len(),
            self.vhosts.get(vhost).map_or(0, |row| row.rules.len()),
            self.origins.len(),
        )
    }

    const fn since_ms(&self, since: Since, reset_ms: u64) -> u64 {
        match since {
            Since::Reset => reset_ms,
            Since::Start => self.started_ms,
        }
    }
}

/// Takes out the rows that nobody uses, where there are too many of them. To look only now and then keeps this cheap.
fn take_unused<K: Eq + Hash, V>(rows: &mut HashMap<K, V>, is_used: impl Fn(&V) -> bool) -> Vec<V> {
    let is_time = rows.len() >= UNUSED_MAX && rows.len().is_multiple_of(UNUSED_MAX / 4);
    if !is_time || rows.values().filter(|row| !is_used(row)).count() < UNUSED_MAX {
        return Vec::new();
    }
    rows.extract_if(|_, row| !is_used(row)).map(|(_, row)| row).collect()
}

// === impl VhostRow ===

impl VhostRow {
    fn new(workers: usize, since_ms: u64) -> Self {
        Self {
            core: Arc::new(VhostCore::new(workers)),
            is_shown: false,
            since_ms,
            reading: Reading::default(),
            rules: HashMap::new(),
        }
    }

    fn rule(&mut self, name: &str, workers: usize) -> &mut RuleRow {
        if !self.rules.contains_key(name) {
            drop(take_unused(&mut self.rules, |row| {
                row.is_shown || Arc::strong_count(&row.slots) > 1
            }));
        }
        self.rules.entry(name.to_owned()).or_insert_with(|| RuleRow {
            slots: Arc::new(RuleSlots::new(workers)),
            is_shown: false,
            reading: Reading::default(),
        })
    }

    fn hide(&mut self) {
        self.is_shown = false;
        self.rules.values_mut().for_each(|rule| rule.is_shown = false);
    }

    fn read(&mut self) {
        self.reading.set(self.core.read());
        self.rules
            .values_mut()
            .for_each(|rule| rule.reading.set(rule.slots.read()));
    }

    fn rebase(&mut self, now_ms: u64) {
        self.since_ms = now_ms;
        self.reading.rebase();
        self.rules.values_mut().for_each(|rule| rule.reading.rebase());
    }
}

// === impl OriginRow ===

impl OriginRow {
    fn new(workers: usize, since_ms: u64) -> Self {
        Self {
            counters: Arc::new(OriginCounters::new(workers)),
            is_shown: false,
            since_ms,
            reading: Reading::default(),
        }
    }
}
