//! Damage of every kind at every place: a small store, each of its files cut off at every 512 bytes and with each byte of its
//! headers flipped. It always opens, and what it serves is right, or is not there.
//!
//! A sample is taken, another one in each run (the seed is printed, `LARDER_TEST_SEED` repeats it); `LARDER_TEST_FULL=1` takes all.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::*;
use super::rig::{FOR_EVER, Rig, bytes};

/// Damages that are tried in a short run.
const SAMPLE: usize = 60;

const STEP: usize = 512;

/// Bytes of a file's start, and of each record's, that are flipped one by one.
const HEADER: usize = 96;

#[derive(Debug, Clone)]
enum Damage {
    CutOff(PathBuf, usize),
    Flipped(PathBuf, usize),
}

const KEYS: [(&str, usize); 7] = [
    ("a|empty", 0),
    ("a|tiny", 12),
    ("a|small", 3000),
    ("a|two-blocks", 40_000),
    ("a|long", 120_000),
    ("b|record", 400_000),
    ("b|file", 700_000),
];

fn build() -> Rig {
    // A record is at most a quarter of a segment of one megabyte.
    let mut rig = Rig::new(0, 16 * MIB);
    for (key, len) in KEYS {
        rig.put(key, "old", &bytes(1, len)).unwrap();
        rig.put(key, key, &bytes(len as u64, len)).unwrap();
    }
    for language in ["de", "en"] {
        let fields = [language];
        let vary = Request(&fields).vary(&Fields(vec![0]));
        rig.put_as("a|v", language, language.as_bytes(), vary, FOR_EVER)
            .unwrap();
    }
    rig.put("a|purged", "purged", b"never again").unwrap();
    rig.wait(rig.store.purge_durably(b"a|purged")).unwrap();
    rig.settle();
    rig.reopen();
    rig.settle();
    rig.store.stop();
    rig
}

/// Everything below a directory, with its bytes.
fn files(of: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![of.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_some_and(|name| name != "lock") {
                found.push((path.strip_prefix(of).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn damages(files: &[(PathBuf, Vec<u8>)]) -> Vec<Damage> {
    let mut all = Vec::new();
    for (path, content) in files {
        all.extend(
            (0..content.len())
                .step_by(STEP)
                .map(|at| Damage::CutOff(path.clone(), at)),
        );
        let starts = memchr_all(content);
        let headers = std::iter::once(0).chain(starts).flat_map(|start| start..start + HEADER);
        all.extend(
            headers
                .filter(|at| *at < content.len())
                .map(|at| Damage::Flipped(path.clone(), at)),
        );
    }
    all
}

/// Where records begin.
fn memchr_all(content: &[u8]) -> Vec<usize> {
    content
        .windows(4)
        .enumerate()
        .filter(|(_, four)| *four == b"LRec")
        .map(|(at, _)| at)
        .collect()
}

fn write(files: &[(PathBuf, Vec<u8>)], to: &Path, damage: &Damage) {
    let _ = fs::remove_dir_all(to);
    for (path, content) in files {
        let target = to.join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let content = match damage {
            Damage::CutOff(hit, at) if hit == path => content[..*at].to_vec(),
            Damage::Flipped(hit, at) if hit == path => {
                let mut content = content.clone();
                content[*at] ^= 0xff;
                content
            }
            _ => content.clone(),
        };
        fs::write(target, content).unwrap();
    }
}

fn check(rig: &Rig, damage: &Damage) {
    rig.settle();
    for (key, len) in KEYS {
        if let Some((text, body)) = rig.read_if_whole(key, PLAIN) {
            assert!(
                text == key && body == bytes(len as u64, len),
                "{damage:?}: {key} is {text}, {} bytes",
                body.len()
            );
        }
    }
    for language in ["de", "en"] {
        if let Some((text, body)) = rig.read_if_whole("a|v", Request(&[language])) {
            assert!(
                text == language && body == language.as_bytes(),
                "{damage:?}: {text} for {language}"
            );
        }
    }
    assert!(
        rig.read_if_whole("a|purged", PLAIN).is_none(),
        "{damage:?}: what was purged is back"
    );
    // It goes on.
    rig.put("a|new", "new", b"new").unwrap();
    assert_eq!(rig.read("a|new", PLAIN).unwrap().1, b"new");
}

#[test]
fn b88_every_damage_is_a_miss_or_harmless() {
    let built = build();
    let files = files(&built.disk_path());
    let mut all = damages(&files);
    if std::env::var_os("LARDER_TEST_FULL").is_none() {
        let seed = super::walk::seed();
        println!("LARDER_TEST_SEED={seed}");
        let mut state = seed | 1;
        let chosen = (0..SAMPLE).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            all[(state >> 33) as usize % all.len()].clone()
        });
        all = chosen.collect();
    }
    let base = tempfile::tempdir().unwrap();
    let mut rig = Rig::with(0, &[16 * MIB], |options| {
        options.disks[0].path = base.path().join("first")
    });
    for (number, damage) in all.iter().enumerate() {
        let path = base.path().join((number % 8).to_string());
        write(&files, &path, damage);
        rig.move_to(path);
        check(&rig, damage);
    }
}
