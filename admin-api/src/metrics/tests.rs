use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::fixture::{BOUNDS_US, Pantry, plain, snapshot};
use crate::{Appliance, Stats};

type Sample = (BTreeMap<String, String>, f64);

fn rendered(totals: Snapshot) -> String {
    let pantry = Pantry::new(totals);
    let config = pantry.config_version();
    render(&Reading {
        totals: &pantry.totals,
        bounds_us: BOUNDS_US,
        config: &config,
        audit_errors: 0,
    })
}

/// A parser of the text format 0.0.4, as strict as the format's description: samples by name, families with their type.
fn parse(text: &str) -> (BTreeMap<String, Vec<Sample>>, BTreeMap<String, String>) {
    let (mut samples, mut types) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
    let mut family = String::new();
    assert!(text.ends_with('\n'));
    for line in text.strip_suffix('\n').unwrap().split('\n') {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
            family = name.to_owned();
        } else if !line.starts_with("# HELP ") {
            let end = line.find(['{', ' ']).unwrap();
            let (name, rest) = line.split_at(end);
            assert!(name.starts_with(&family), "{name} outside its family");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
                "{name}"
            );
            let (labels, value) = labels(rest);
            samples
                .entry(name.to_owned())
                .or_default()
                .push((labels, value.trim_start().parse().unwrap()));
        }
    }
    (samples, types)
}

fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    let Some(mut rest) = text.strip_prefix('{') else {
        return (labels, text);
    };
    loop {
        let (name, after) = rest.split_once("=\"").unwrap();
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next().unwrap().1 {
                    'n' => '\n',
                    same @ ('"' | '\\') => same,
                    other => panic!("unknown escape {other:?}"),
                }),
                (_, other) => value.push(other),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{name} twice");
        rest = &after[end + 1..];
        match rest.split_at(1) {
            (",", more) => rest = more,
            ("}", value) => return (labels, value),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #[test]
    fn b77_names_do_not_break_the_exports(names in proptest::array::uniform4(
        prop_oneof![any::<String>(), "[\"\\\\\n\r\u{1f}{},= \u{2028}x]{0,12}", Just("</script>".to_owned())]
    )) {
        let totals = snapshot(&names, 3);
        let text = rendered(totals.clone());
        let (samples, _) = parse(&text);
        let [vhost, rule, upstream, server] = &names;
        let label = |metric: &str, label: &str| samples[metric][0].0[label].clone();
        prop_assert_eq!(&label("larder_vhost_requests_total", "vhost"), vhost);
        prop_assert_eq!(&label("larder_vhost_hit_duration_seconds_bucket", "vhost"), vhost);
        prop_assert_eq!(&label("larder_rule_hits_total", "rule"), rule);
        prop_assert_eq!(&label("larder_origin_retries_total", "upstream"), upstream);
        prop_assert_eq!(&label("larder_origin_retries_total", "server"), server);

        let stats = Stats::new(&totals, BOUNDS_US);
        let json = serde_json::to_string(&stats).unwrap();
        prop_assert_eq!(serde_json::from_str::<Stats>(&json).unwrap(), stats);
    }
}

#[test]
fn names_and_types_follow_the_conventions() {
    let (samples, types) = parse(&rendered(plain()));
    for family in families::all() {
        let Family { name, kind, help, .. } = family;
        assert!(name.starts_with("larder_"), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
        assert!(
            !help.contains(['\\', '\n']) && help.ends_with('.'),
            "{name}: a help text is not escaped"
        );
        assert_eq!(types[*name], kind.word());
        let sample = if *kind == Kind::Histogram {
            format!("{name}_count")
        } else {
            (*name).to_owned()
        };
        assert!(samples.contains_key(&sample), "{name} has samples");
    }
    assert_eq!(types.len(), families::all().count());
}

#[test]
fn histograms_are_cumulative_and_in_seconds() {
    let (samples, _) = parse(&rendered(plain()));
    let buckets: Vec<_> = samples["larder_vhost_hit_duration_seconds_bucket"]
        .iter()
        .map(|(labels, value)| (labels["le"].as_str(), *value))
        .collect();
    assert_eq!(
        buckets,
        [("0.0001", 10.0), ("0.001", 10.0), ("2.5", 20.0), ("+Inf", 21.0)]
    );
    assert_eq!(samples["larder_vhost_hit_duration_seconds_sum"][0].1, 0.015);
    assert_eq!(samples["larder_vhost_hit_duration_seconds_count"][0].1, 21.0);
    assert_eq!(samples["larder_start_time_seconds"][0].1, 1_600_000_000.5);
    // An origin that was never asked has no counts at all yet.
    assert_eq!(
        samples["larder_origin_duration_seconds_bucket"].len(),
        BOUNDS_US.len() + 1
    );
}

#[test]
fn the_values_are_those_of_the_snapshot() {
    let (samples, _) = parse(&rendered(plain()));
    let find = |metric: &str, label: &str, value: &str| {
        samples[metric]
            .iter()
            .find(|(labels, _)| labels.get(label).is_some_and(|is| is == value))
            .unwrap()
            .1
    };
    assert_eq!(find("larder_vhost_cache_requests_total", "status", "hit"), 10.0);
    assert_eq!(samples["larder_vhost_cache_requests_total"].len(), 8);
    assert_eq!(find("larder_vhost_responses_total", "code", "5xx"), 10.0);
    assert_eq!(find("larder_vhost_responses_total", "code", "4xx"), 0.0);
    assert_eq!(find("larder_connection_timeouts_total", "kind", "idle"), 10.0);
    assert_eq!(find("larder_cache_objects", "cache", "main"), 5.0);
    assert_eq!(find("larder_config_info", "hash", "c0ffee"), 1.0);
    assert_eq!(
        samples["larder_config_last_reload_successful"],
        [(BTreeMap::new(), 0.0)]
    );
}

#[test]
fn the_description_is_the_committed_one() {
    let mut text = String::from(
        "# Metrics\n\n\
         `GET /metrics` on the admin listener, with the token, in the Prometheus text format 0.0.4. Counters count from the \
         start of the\nprocess; resetting the statistics does not touch them. Sizes are in bytes and times in seconds. \
         Labels are names from the\nconfiguration and fixed words, never what a client sent; `_unknown` is the vhost of \
         requests that no vhost answers for.\n\nThis file is made from the table in `admin-api/src/metrics/families.rs`: \
         `LARDER_BLESS=1 cargo test -p larder-admin-api`.\n\n\
         | name | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for Family {
        name,
        kind,
        labels,
        help,
        ..
    } in families::all()
    {
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(text, "| `{name}` | {} | {} | {help} |", kind.word(), labels.join(", ")).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    if std::env::var_os("LARDER_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap_or_default() == text,
        "LARDER_BLESS=1 cargo test -p larder-admin-api"
    );
}
