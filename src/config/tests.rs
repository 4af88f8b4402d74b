use std::fmt::Write;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

/// Cases of `wrong.txt`: a name, a file, and the findings in it.
const WRONG: &str = include_str!("tests/wrong.txt");

const SMALLEST: &str = r#"
state_dir = "/var/lib/larder"

[[listener]]
address = "127.0.0.1:8080"

[admin]
listen = "127.0.0.1:9090"

[cache.memory]
max_size = "256MiB"

[[cache.disk]]
path = "/var/lib/larder/cache"
max_size = "10GiB"

[[upstream]]
name = "app"
servers = [{ address = "127.0.0.1:9000" }]

[[vhost]]
name = "www"
hosts = ["www.example.test", "*.example.test"]
upstream = "app"
"#;

const MACHINE: Machine = Machine {
    cores: 4,
    open_files: Some(20_256),
};

fn judged(text: &str) -> Result<Resolved, Diagnostics> {
    parse_for(MACHINE, text, "larder.toml")
}

fn findings(text: &str) -> String {
    match judged(text) {
        Ok(resolved) => resolved.warnings.render(Style::Plain),
        Err(findings) => findings.render(Style::Plain),
    }
}

fn in_repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares with a file of the repository; with `LARDER_BLESS` set, writes it.
fn check_file(path: &str, actual: &str) {
    let path = in_repository(path);
    if std::env::var_os("LARDER_BLESS").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(
        expected == actual,
        "{} differs; LARDER_BLESS=1 writes it. Now it is:\n{actual}",
        path.display()
    );
}

#[test]
fn each_fault_is_named_with_its_place_and_its_cure() {
    let mut actual = String::new();
    for case in WRONG.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let text = rest.split_once("---\n").unwrap().0;
        let findings = findings(text);
        writeln!(actual, "=== {name}\n{text}---\n{findings}").unwrap();
    }
    check_file("src/config/tests/wrong.txt", &actual);
}

#[test]
fn faults_of_every_stage_come_together() {
    let text = r#"
statdir = "/x"
[server]
workers = "many"
[[listener]]
address = "127.0.0.1:99999"
[[upstream]]
name = "app"
servers = [{ address = "nowhere" }]
[[vhost]]
name = "www"
hosts = ["www.example.test"]
upstream = "ap"
[[vhost.rule]]
ttl = { 200 = "10" }
match = { path_regex = "[" }
"#;
    let found = judged(text).unwrap_err();
    let lines: Vec<_> = found.items().iter().map(|item| (item.line, item.column)).collect();
    assert_eq!(lines, [(2, 1), (4, 11), (6, 11), (9, 24), (13, 12), (15, 15), (16, 24)]);
}

#[test]
fn the_smallest_file_loads_without_a_warning() {
    let resolved = judged(SMALLEST).unwrap();
    assert_eq!(resolved.warnings.render(Style::Plain), "");
    assert_eq!(resolved.token_path(), PathBuf::from("/var/lib/larder/admin.token"));
    assert_eq!((resolved.boot.workers, resolved.boot.limits.connections), (4, 10_000));
    let memory = larder_storage::Config {
        max_size: 256 << 20,
        max_object: 1 << 20,
        variants: 64,
    };
    assert_eq!(resolved.boot.memory, memory);
    let disk = larder_storage::disk::DiskConfig {
        path: PathBuf::from("/var/lib/larder/cache"),
        max_size: 10 << 30,
        min_free: 0,
        inactive: Some(std::time::Duration::from_secs(7 * 86_400)),
    };
    assert_eq!(resolved.boot.disks, [disk]);
}

#[test]
fn the_example_loads_and_prints_as_itself() {
    let text = std::fs::read_to_string(in_repository("deploy/larder.example.toml")).unwrap();
    let resolved = judged(&text).unwrap();
    assert_eq!(resolved.warnings.render(Style::Plain), "");
    check_prints_as_itself(&resolved);
}

#[test]
fn the_example_shows_every_key_of_this_version() {
    let text = std::fs::read_to_string(in_repository("deploy/larder.example.toml")).unwrap();
    let missing: Vec<String> = keys(&schema())
        .into_iter()
        .filter(|key| !text.contains(&format!("{key} = ")) && !text.contains(&format!("[{key}]")))
        .filter(|key| !text.contains(&format!("[server.{key}]")) && !text.contains(&format!(".{key}]]")))
        .filter(|key| !text.contains(&format!("[upstream.{key}]")) && !text.contains(&format!("[cache.{key}]")))
        .collect();
    // What is not in this version.
    let absent = [
        "backup",
        "cert",
        "certificates",
        "compress",
        "control_by_get",
        "dialects",
        "fail_timeout",
    ];
    let absent = absent
        .into_iter()
        .chain(["health", "if_error", "if_unreachable", "interval", "max_fails"]);
    let absent = absent.chain(["root", "stale", "tags", "tls", "vts", "weight", "while_revalidate"]);
    assert_eq!(missing, absent.collect::<Vec<_>>());
}

/// All names of properties in a schema, sorted.
fn keys(schema: &serde_json::Value) -> Vec<String> {
    let mut found = std::collections::BTreeSet::new();
    let mut left = vec![schema];
    while let Some(node) = left.pop() {
        match node {
            serde_json::Value::Object(fields) => {
                let properties = fields.get("properties").and_then(serde_json::Value::as_object);
                found.extend(properties.into_iter().flat_map(|properties| properties.keys().cloned()));
                left.extend(fields.values());
            }
            serde_json::Value::Array(elements) => left.extend(elements),
            _ => {}
        }
    }
    found.into_iter().collect()
}

fn check_prints_as_itself(resolved: &Resolved) {
    let printed = effective(resolved).unwrap();
    let again = judged(&printed).unwrap_or_else(|found| panic!("{found}\n{printed}"));
    assert_eq!(
        (&again.boot, &again.live),
        (&resolved.boot, &resolved.live),
        "{printed}"
    );
    assert_eq!((again.admin, &again.state_dir), (resolved.admin, &resolved.state_dir));
}

#[test]
fn defaults_are_printed_and_read_back() {
    check_prints_as_itself(&judged(SMALLEST).unwrap());
    let off = SMALLEST.replace("256MiB", "0");
    check_prints_as_itself(&judged(&off).unwrap());
}

#[test]
fn the_published_schema_is_that_of_the_code() {
    check_file("deploy/larder.schema.json", &schema_text());
}

#[test]
fn the_schema_has_no_null_and_names_what_is_required() {
    let schema = schema();
    assert!(!schema_text().contains("null"));
    for (pointer, key) in [
        ("", "vhost"),
        ("/$defs/Listener", "address"),
        ("/$defs/Vhost", "upstream"),
    ] {
        let table = schema.pointer(pointer).unwrap();
        assert!(table["required"].as_array().unwrap().contains(&key.into()), "{pointer}");
        assert!(table["properties"].get(key).is_some(), "{pointer}");
    }
}

#[test]
fn the_largest_object_follows_the_tier_unless_it_is_given() {
    for (memory, expected) in [
        ("max_size = \"6400KiB\"", 100 << 10),
        ("max_size = \"4GiB\"", 1 << 20),
        ("max_size = \"4GiB\"\nmax_object = \"8MiB\"", 8 << 20),
        ("max_size = \"0\"", 0),
    ] {
        let resolved = judged(&SMALLEST.replace("max_size = \"256MiB\"", memory)).unwrap();
        assert_eq!(resolved.boot.memory.max_object, expected, "{memory}");
    }
}

#[test]
fn connections_follow_the_limit_on_open_files() {
    for (open_files, expected) in [
        (Some(1024), 384),
        (Some(10), 64),
        (Some(1 << 30), 65_536),
        (None, 65_536),
    ] {
        let machine = Machine { cores: 1, open_files };
        let resolved = parse_for(machine, SMALLEST, "").unwrap();
        assert_eq!(resolved.boot.limits.connections, expected);
    }
}

#[test]
fn what_a_reload_cannot_change_is_listed() {
    let before = judged(SMALLEST).unwrap();
    for (from, to, expected) in [
        ("8080", "8081", vec!["listener"]),
        ("9090", "9091", vec!["admin.listen"]),
        ("256MiB", "1GiB", vec!["cache.memory"]),
        (
            "state_dir = \"/var/lib/larder\"",
            "state_dir = \"/srv\"\nserver.workers = 3",
            vec!["server.workers", "state_dir"],
        ),
        ("*.example.test", "*.example.org", vec![]),
        ("9000", "9001", vec![]),
    ] {
        let after = judged(&SMALLEST.replace(from, to)).unwrap();
        assert_eq!(before.needs_restart(&after), expected, "{to}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("larder.toml");
    let said = |path: &Path| {
        load(path)
            .unwrap_err()
            .to_string()
            .replace(&path.display().to_string(), "FILE")
    };
    let help = "\n  help: `larder run` and `larder check` take the file as --config FILE";
    let missing = format!("FILE: error: cannot read the file: No such file or directory (os error 2){help}");
    assert_eq!(said(&path), missing);
    std::fs::write(&path, b"a = 1\nb = \"\xff\"\n").unwrap();
    assert_eq!(
        said(&path),
        "FILE: error: the file is not UTF-8 (line 2)\n  help: save it as UTF-8"
    );
    std::fs::write(&path, vec![b'\n'; (4 << 20) + 1]).unwrap();
    assert_eq!(said(&path), "FILE: error: the file is larger than 4 MiB");
    std::fs::write(&path, SMALLEST).unwrap();
    let loaded = load(&path).unwrap();
    assert_eq!(
        (loaded.text.as_str(), loaded.path.as_deref()),
        (SMALLEST, Some(path.as_path()))
    );
}

#[test]
fn a_drawing_shows_the_line() {
    let drawn = judged("state_dir = \"x\"\n").unwrap_err().render(Style::Drawn);
    for part in [
        "larder.toml:1:13",
        "state_dir = \"x\"",
        "───",
        "help: what it is relative to",
    ] {
        assert!(drawn.contains(part), "{drawn}");
    }
}

#[test]
fn findings_are_plain_data_for_programs() {
    let found = judged("state_dir = \"x\"\n").unwrap_err();
    let json = serde_json::to_value(found.items().last().unwrap()).unwrap();
    let expected = serde_json::json!({
        "severity": "error",
        "path": "larder.toml",
        "line": 1,
        "column": 13,
        "message": "`state_dir` is not an absolute path",
        "help": "what it is relative to would depend on how the program is started: write a path that begins with /",
    });
    assert_eq!(json, expected);
}

#[test]
fn a_flood_of_faults_is_bounded() {
    let keys = (0..500).fold(String::new(), |mut text, n| {
        writeln!(text, "unknown_{n} = 1").unwrap();
        text
    });
    assert_eq!(judged(&keys).unwrap_err().items().len(), 100);
    let quotes = "a = \"\n".repeat(500);
    assert!(judged(&quotes).unwrap_err().items().len() <= 5);
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for text in [
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
        format!("[[{}a]]", "a.".repeat(100_000)),
        format!("a = {}", "[".repeat(100_000)),
        format!("vhost = {}", "{ a = ".repeat(100_000)),
    ] {
        assert!(judged(&text).is_err());
    }
}

proptest! {
    #[test]
    fn any_text_is_judged(text in any::<String>()) {
        let _ = judged(&text).map_err(|found| found.render(Style::Drawn));
    }

    /// Files that are nearly right get further than noise.
    #[test]
    fn any_change_of_a_good_file_is_judged(changes in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, change()), 1..4)) {
        let mut text: Vec<char> = SMALLEST.chars().collect();
        for (at, removed, inserted) in changes {
            let start = at.index(text.len());
            let end = (start + removed).min(text.len() - 1).max(start);
            text.splice(start..end, inserted.chars());
        }
        let text: String = text.into_iter().collect();
        match judged(&text) {
            Ok(resolved) => check_prints_as_itself(&resolved),
            Err(found) => prop_assert!(!found.render(Style::Drawn).is_empty()),
        }
    }
}

fn change() -> impl Strategy<Value = String> {
    let words = [
        "[[vhost]]\n",
        "[server]\n",
        "\"",
        "[",
        "]",
        "{",
        "}",
        "=",
        ".",
        "\n",
        "*",
        "-1",
        "0",
        "[[vhost.rule]]\nttl = { 200 = \"1m\" }\n",
        "é",
    ];
    prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
        Just(String::new())
    ]
}
