//! Imports point one way: `larder -> admin-api -> proxy -> storage`, `proxy -> semantics`, `admin-api -> web-ui`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace is above")
        .to_owned()
}

/// What each crate of the workspace depends on when it is built for use, tests left aside.
fn dependencies() -> HashMap<String, HashSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let text = |value: &Value| value.as_str().expect("a name").to_owned();
    let used = |package: &Value| {
        let all = package["dependencies"].as_array().expect("dependencies").iter();
        all.filter(|d| d["kind"].is_null()).map(|d| text(&d["name"])).collect()
    };
    packages
        .iter()
        .map(|package| (text(&package["name"]), used(package)))
        .collect()
}

#[test]
fn crates_import_one_way() {
    let allowed: HashMap<&str, &[&str]> = HashMap::from([
        (
            "larder",
            &[
                "larder-admin-api",
                "larder-proxy",
                "larder-semantics",
                "larder-storage",
                "larder-web-ui",
            ][..],
        ),
        (
            "larder-admin-api",
            &["larder-proxy", "larder-storage", "larder-semantics", "larder-web-ui"],
        ),
        ("larder-proxy", &["larder-semantics", "larder-storage"]),
        ("larder-semantics", &[]),
        ("larder-storage", &[]),
        ("larder-web-ui", &[]),
        ("larder-tests", &[]),
    ]);
    let found = dependencies();
    for (name, uses) in &found {
        let allowed = allowed
            .get(name.as_str())
            .unwrap_or_else(|| panic!("{name} has no place in the layout"));
        for used in uses.iter().filter(|used| found.contains_key(*used)) {
            assert!(allowed.contains(&used.as_str()), "{name} must not import {used}");
        }
    }
}

#[test]
fn each_layer_stays_ignorant_of_what_is_not_its_own() {
    let forbidden: [(&str, &[&str]); 4] = [
        (
            "larder-semantics",
            &["tokio", "hyper", "hyper-util", "axum", "socket2", "rustix"],
        ),
        (
            "larder-storage",
            &["hyper", "hyper-util", "axum", "httparse", "socket2"],
        ),
        (
            "larder-proxy",
            &["axum", "utoipa", "utoipa-axum", "toml", "clap", "anyhow", "miette"],
        ),
        ("larder-admin-api", &["toml", "clap", "anyhow", "miette"]),
    ];
    let found = dependencies();
    for (name, wrong) in forbidden {
        for used in wrong {
            assert!(!found[name].contains(*used), "{name} must not depend on {used}");
        }
    }
}

fn sources(of: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![of.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
        {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|e| e == "rs") {
                found.push(entry);
            }
        }
    }
    found
}

#[test]
fn semantics_reads_no_clock() {
    for path in sources(&root().join("proxy/semantics/src")) {
        if path.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        for clock in ["SystemTime::now", "Instant::now"] {
            assert!(
                !text.contains(clock),
                "{} reads a clock: now is an argument",
                path.display()
            );
        }
    }
}
