//! Random operations on real sled and real files, against a small reference that remembers what was stored last. Everything
//! fits, so whatever the reference has must be found, in either tier and after every way to end a process.
//!
//! The seed is printed; `LARDER_TEST_SEED` repeats it, and `LARDER_TEST_FULL=1` takes a million steps.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::super::*;
use super::rig::{FOR_EVER, Rig, Text, bytes};
use crate::disk::planted::{Bug, plant};

/// Keys without variants, and behind them keys with some.
const PLAIN_KEYS: u64 = 160;
const KEYS: u64 = 200;
const LANGUAGES: [&str; 4] = ["de", "en", "fr", "it"];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    text: String,
    seed: u64,
    len: usize,
}

/// By key and language; "" for keys without variants.
type Model = BTreeMap<(u64, &'static str), Version>;

struct Walk {
    rig: Rig,
    model: Model,
    state: u64,
    serial: u64,
    copies: u64,
    base: tempfile::TempDir,
}

#[derive(Debug, Clone, Copy)]
struct Form {
    steps: u64,
    reopens: u64,
}

pub(super) fn seed() -> u64 {
    let given = std::env::var("LARDER_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| getrandom::u64().unwrap())
}

impl Walk {
    fn new(seed: u64, bug: Option<Bug>) -> Self {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("0");
        if let Some(bug) = bug {
            for copy in 0..64 {
                plant(&base.path().join(copy.to_string()), bug);
            }
        }
        let rig = Rig::with(MIB, &[256 * MIB], |options| options.disks[0].path = path);
        Self {
            rig,
            model: Model::new(),
            state: seed | 1,
            serial: 0,
            copies: 0,
            base,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) % below
    }

    fn place(&mut self) -> (u64, &'static str) {
        let key = self.random(KEYS);
        let language = if key < PLAIN_KEYS {
            ""
        } else {
            LANGUAGES[self.random(LANGUAGES.len() as u64) as usize]
        };
        (key, language)
    }

    fn version(&mut self) -> Version {
        self.serial += 1;
        let len = match self.random(200) {
            0 => self.random(150_000),
            1..20 => self.random(40_000),
            20..40 => 0,
            _ => self.random(3_000),
        };
        Version {
            text: format!("v{}", self.serial),
            seed: self.serial,
            len: len as usize,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random(100) {
            0..40 => self.get(),
            40..70 => self.put(),
            70..80 => self.new_head(),
            80..86 => self.purge(),
            86..89 => self.remove(),
            89..93 => self.abort(),
            93..97 => self.purged_fill(),
            97..99 => self.settle_now(),
            _ => self.sometimes(),
        }
    }

    fn get(&mut self) -> Result<(), String> {
        let (key, language) = self.place();
        self.check(key, language)
    }

    fn check(&self, key: u64, language: &'static str) -> Result<(), String> {
        let fields = [language];
        let found = self.rig.read(&name(key), Request(&fields));
        let expected = self.model.get(&(key, language));
        let same = match (&found, expected) {
            (None, None) => true,
            (Some((text, body)), Some(version)) => *text == version.text && *body == bytes(version.seed, version.len),
            _ => false,
        };
        let shown = found.map(|(text, body)| (text, body.len()));
        same.then_some(())
            .ok_or_else(|| format!("{key} {language}: found {shown:?}, expected {expected:?}"))
    }

    fn put(&mut self) -> Result<(), String> {
        let (key, language) = self.place();
        let version = self.version();
        let fields = [language];
        let vary = (key >= PLAIN_KEYS).then(|| Request(&fields).vary(&Fields(vec![0])).unwrap());
        let body = bytes(version.seed, version.len);
        let stored = self.rig.put_as(&name(key), &version.text, &body, vary, FOR_EVER);
        stored.map_err(|why| format!("{key}: not stored: {why:?}"))?;
        self.model.insert((key, language), version);
        Ok(())
    }

    fn new_head(&mut self) -> Result<(), String> {
        let (key, language) = self.place();
        let fields = [language];
        let Some(object) = self.rig.get(&name(key), Request(&fields)) else {
            return self.check(key, language);
        };
        self.serial += 1;
        let text = format!("h{}", self.serial);
        let head = Text {
            text: text.clone(),
            keep_until_secs: FOR_EVER,
        };
        let replaced = self.rig.store.replace(name(key).as_bytes(), &object, Arc::new(head));
        replaced.map_err(|why| format!("{key} {language}: no new head: {why:?}"))?;
        let version = self.model.get_mut(&(key, language)).ok_or("a new head for nothing")?;
        version.text = text;
        Ok(())
    }

    fn purge(&mut self) -> Result<(), String> {
        let key = self.random(KEYS);
        if self.random(4) == 0 {
            self.rig
                .wait(self.rig.store.purge_durably(name(key).as_bytes()))
                .map_err(|why| why.to_string())?;
        } else {
            self.rig.store.purge(name(key).as_bytes());
        }
        self.model.retain(|(own, _), _| *own != key);
        Ok(())
    }

    fn remove(&mut self) -> Result<(), String> {
        let (key, language) = self.place();
        let fields = [language];
        if let Some(object) = self.rig.get(&name(key), Request(&fields)) {
            if !self.rig.store.remove_if_same(name(key).as_bytes(), &object) {
                return Err(format!("{key} {language}: not removed"));
            }
            self.model.remove(&(key, language));
        }
        self.check(key, language)
    }

    fn begin(&self, key: u64) -> (Leader<Text, Fields>, Reader<Text, Fields>) {
        match self
            .rig
            .store
            .begin(name(key).as_bytes(), Join::Never, None, |_: &Fields, _| {})
        {
            Begin::Lead(leader, reader) => (leader, reader),
            other => panic!("expected to lead, got {other:?}"),
        }
    }

    fn offer(&mut self) -> (Arc<Text>, Offer<Fields>) {
        let head = Text {
            text: "never to be seen".to_owned(),
            keep_until_secs: FOR_EVER,
        };
        let offer = Offer {
            expected_len: None,
            keep: Keep::Store,
            vary: None,
        };
        (Arc::new(head), offer)
    }

    /// A fill that breaks off changes nothing.
    fn abort(&mut self) -> Result<(), String> {
        let key = self.random(PLAIN_KEYS);
        let (leader, _reader) = self.begin(key);
        let (head, offer) = self.offer();
        let mut filling = leader.head(head, offer);
        let _ = self.rig.wait(filling.push(Bytes::from_static(b"a part")));
        drop(filling);
        self.check(key, "")
    }

    /// A fill whose key is purged meanwhile is not stored.
    fn purged_fill(&mut self) -> Result<(), String> {
        let key = self.random(PLAIN_KEYS);
        let (leader, _reader) = self.begin(key);
        let (head, offer) = self.offer();
        let mut filling = leader.head(head, offer);
        let _ = self.rig.wait(filling.push(Bytes::from_static(b"all of it")));
        self.rig.store.purge(name(key).as_bytes());
        self.model.remove(&(key, ""));
        let _ = self.rig.wait(filling.finish());
        self.check(key, "")
    }

    fn settle_now(&mut self) -> Result<(), String> {
        self.rig.settle();
        Ok(())
    }

    fn sometimes(&mut self) -> Result<(), String> {
        if self.random(200) == 0 {
            self.rig
                .wait(self.rig.store.clear_durably())
                .map_err(|why| why.to_string())?;
            self.model.clear();
        }
        Ok(())
    }

    /// Ends the process in some way, loses some index, and goes on.
    fn reopen(&mut self) -> Result<(), String> {
        self.rig.settle();
        self.check_accounts()?;
        let (kill, loss) = (self.random(2) == 0, self.random(6));
        let lose = |path: &Path| {
            if matches!(loss, 0 | 2) {
                let _ = fs::remove_file(path.join("snapshot"));
            }
            if matches!(loss, 1 | 2) {
                let _ = fs::remove_dir_all(path.join("index"));
            }
        };
        if kill {
            self.copies += 1;
            let copy = self.base.path().join((self.copies % 64).to_string());
            let _ = fs::remove_dir_all(&copy);
            copy_all(&self.rig.disk_path(), &copy);
            lose(&copy);
            self.rig.move_to(copy);
        } else {
            self.rig.reopen_after(lose);
        }
        self.rig.settle();
        self.check_accounts()
    }

    fn check_accounts(&self) -> Result<(), String> {
        let usage = self.rig.store.usage();
        let disk = &usage.disks[0];
        let owners: (u64, u64) = usage.owners.iter().fold((0, 0), |sum, owner| {
            (sum.0 + owner.disk_objects, sum.1 + owner.disk_bytes)
        });
        let expected = self.model.len() as u64;
        if (disk.objects, owners.0, owners.1) != (expected, expected, disk.live_bytes) {
            return Err(format!(
                "the accounts drift: {expected} objects, owners {owners:?}, {disk:?}"
            ));
        }
        let allocated = allocated(&self.rig.disk_path());
        let used = disk.used - disk.index_bytes;
        // Marker, lock and directories are reckoned with a round sum.
        (used == allocated + (64 << 10))
            .then_some(())
            .ok_or_else(|| format!("{used} bytes used, {allocated} allocated"))
    }

    fn run(&mut self, form: Form) -> Result<(), String> {
        for reopen in 0..form.reopens {
            for _ in 0..form.steps / form.reopens {
                self.step()?;
            }
            self.reopen()?;
            if reopen % 8 == 0 {
                for key in 0..KEYS {
                    for language in if key < PLAIN_KEYS { &[""][..] } else { &LANGUAGES } {
                        self.check(key, language)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn name(key: u64) -> String {
    format!("owner{}|{key}", key % 3)
}

pub(super) fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            // Sled renames its files as it likes.
            let _ = fs::copy(entry.path(), target);
        }
    }
}

/// Bytes of segments and body files, in whole pages.
fn allocated(path: &Path) -> u64 {
    let files = ["segments", "bodies"].map(|name| fs::read_dir(path.join(name)).unwrap());
    let lengths = files
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().metadata().unwrap().len());
    lengths.map(|len| len.next_multiple_of(4096)).sum()
}

#[test]
fn a_walk_agrees_with_the_reference() {
    let is_full = std::env::var_os("LARDER_TEST_FULL").is_some();
    let form = if is_full {
        Form {
            steps: 1_020_000,
            reopens: 1_020,
        }
    } else {
        Form {
            steps: 8_000,
            reopens: 16,
        }
    };
    let seed = seed();
    println!("LARDER_TEST_SEED={seed}");
    if let Err(why) = Walk::new(seed, None).run(form) {
        panic!("with LARDER_TEST_SEED={seed}: {why}");
    }
}

#[test]
fn the_walk_finds_planted_bugs() {
    let bugs = [
        Bug::WrongOffset,
        Bug::LostTombstone,
        Bug::StaleHead,
        Bug::DoubleCount,
        Bug::FenceIgnored,
    ];
    let form = Form {
        steps: 4_000,
        reopens: 16,
    };
    for (number, bug) in bugs.into_iter().enumerate() {
        let found = Walk::new(77 + number as u64, Some(bug)).run(form);
        assert!(found.is_err(), "{bug:?} is not found");
    }
}
