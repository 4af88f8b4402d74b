//! Put, purge, load, promotion, demotion and reclaim from several threads over both tiers: nothing older than the last purge
//! that was answered is found, and every body is the one that its head speaks of.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::*;
use super::rig::{DiskStore, FOR_EVER, Found, Rig, Text, bytes};

const KEYS: usize = 6;
/// Lookups that find something between two purges.
const USES: u64 = 8;

/// Keys whose content is a version, which only ever goes up.
struct Versions {
    store: DiskStore,
    /// What the origin has of each.
    current: [AtomicU64; KEYS],
    /// What the last purge that was answered has left behind it.
    floor: [AtomicU64; KEYS],
    is_over: AtomicBool,
    found: AtomicU64,
    found_on_disk: AtomicU64,
}

/// The body of a version: some fit memory, some do not.
fn body(key: usize, version: u64) -> Vec<u8> {
    let len = [30_000, 60_000, 100_000, 60_000, 200_000, 1000][key];
    bytes(version * KEYS as u64 + key as u64, len)
}

fn name(key: usize) -> Vec<u8> {
    format!("a|{key}").into_bytes()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

async fn whole(object: &Found) -> Option<Vec<u8>> {
    match object.body.place() {
        Place::Memory(chunks) => Some(chunks.concat()),
        Place::Disk(body) => {
            let mut reader = body.reader();
            let mut all = Vec::new();
            while let Some(piece) = reader.next_chunk().await.ok()? {
                all.extend_from_slice(&piece);
            }
            Some(all)
        }
    }
}

/// Ends the others with whoever ends first, by a failure too.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Versions {
    fn purge_all_along(&self, rounds: u64) {
        let _over = Over(&self.is_over);
        let runtime = runtime();
        for round in 0..rounds {
            let key = usize::try_from(round).unwrap() % KEYS;
            let version = self.current[key].fetch_add(1, Ordering::SeqCst) + 1;
            if round % 100 == 99 {
                let now = self.current.each_ref().map(|current| current.load(Ordering::SeqCst));
                runtime.block_on(soon(self.store.clear_durably())).unwrap();
                for (floor, now) in self.floor.iter().zip(now) {
                    floor.fetch_max(now, Ordering::SeqCst);
                }
            } else {
                if round % 10 == 0 {
                    runtime.block_on(soon(self.store.purge_durably(&name(key)))).unwrap();
                } else {
                    self.store.purge(&name(key));
                }
                self.floor[key].fetch_max(version, Ordering::SeqCst);
            }
            self.wait_for_uses();
        }
    }

    /// So that there is something to purge.
    fn wait_for_uses(&self) {
        let before = self.found.load(Ordering::Relaxed);
        while self.found.load(Ordering::Relaxed) < before + USES && !self.is_over.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }

    async fn check(&self, key: usize, floor: u64, object: &Found) {
        let version: u64 = object.head.text.parse().unwrap();
        assert!(version >= floor, "{version} of {key} came back after {floor}");
        self.found.fetch_add(1, Ordering::Relaxed);
        if object.tier() == Tier::Disk {
            self.found_on_disk.fetch_add(1, Ordering::Relaxed);
        }
        // One whose segment is gone breaks off; what comes is right.
        if let Some(found) = whole(object).await {
            assert!(found == body(key, version), "wrong bytes of {version} of {key}");
        }
    }

    async fn look_up(&self, key: usize) {
        let floor = self.floor[key].load(Ordering::SeqCst);
        if let Lookup::Found(object) = self.store.get(&name(key), PLAIN.variant()) {
            return self.check(key, floor, &object).await;
        }
        let floor = self.floor[key].load(Ordering::SeqCst);
        if let Lookup::Found(object) = soon(self.store.load(&name(key), PLAIN.variant())).await {
            self.check(key, floor, &object).await;
        }
    }

    async fn store_one(&self, key: usize) {
        let floor = self.floor[key].load(Ordering::SeqCst);
        match self.store.begin(&name(key), Join::Never, None, PLAIN.variant()) {
            Begin::Lead(mut leader, reader) => {
                leader.set_unattended();
                drop(reader);
                let version = self.current[key].load(Ordering::SeqCst);
                let head = Text {
                    text: version.to_string(),
                    keep_until_secs: FOR_EVER,
                };
                let mut filling = leader.head(Arc::new(head), keep(Keep::Store, None));
                for piece in body(key, version).chunks(64 << 10) {
                    if soon(filling.push(Bytes::copy_from_slice(piece))).await.is_err() {
                        return;
                    }
                }
                let _ = soon(filling.finish()).await;
            }
            Begin::Found(object) => self.check(key, floor, &object).await,
            Begin::Join(_) => unreachable!("it does not want to join"),
        }
    }

    fn ask_all_along(&self, seed: u64) {
        let _over = Over(&self.is_over);
        let runtime = runtime();
        let mut state = seed;
        while !self.is_over.load(Ordering::SeqCst) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = usize::try_from(state >> 33).unwrap() % KEYS;
            runtime.block_on(async {
                if state >> 60 < 3 {
                    self.store_one(key).await;
                } else {
                    self.look_up(key).await;
                }
            });
        }
    }
}

#[test]
fn b68_nothing_older_than_the_last_purge_is_found_in_either_tier() {
    let mut rig = Rig::with(0, &[4 * MIB], |options| {
        // Four of the keys fit, and not all of them at once.
        options.memory = Config {
            max_size: 128 << 10,
            max_object: 64 << 10,
            variants: 16,
        };
    });
    let versions = Versions {
        store: rig.store.clone(),
        current: Default::default(),
        floor: Default::default(),
        is_over: AtomicBool::new(false),
        found: AtomicU64::new(0),
        found_on_disk: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        for seed in [11, 22, 33] {
            let versions = &versions;
            scope.spawn(move || versions.ask_all_along(seed));
        }
        versions.purge_all_along(500);
    });
    let counters = rig.disk().counters;
    let found = versions.found.load(Ordering::Relaxed);
    let on_disk = versions.found_on_disk.load(Ordering::Relaxed);
    assert!(on_disk > 0 && found > on_disk, "{found} found, {on_disk} on disk");
    assert!(counters.promoted > 0 && counters.purged > 0, "{counters:?}");
    let floor = versions.floor.each_ref().map(|floor| floor.load(Ordering::SeqCst));
    drop(versions);
    // What is purged while it is written leaves no file behind.
    let files = |rig: &Rig| std::fs::read_dir(rig.disk_path().join("bodies")).unwrap().count();
    rig.until("files of nobody stay", |_| files(&rig) <= KEYS);
    // Not after a restart either.
    rig.reopen();
    rig.settle();
    for (key, floor) in floor.into_iter().enumerate() {
        if let Some((version, found)) = rig.read(&format!("a|{key}"), PLAIN) {
            let version: u64 = version.parse().unwrap();
            assert!(version >= floor && found == body(key, version), "{version} of {key}");
        }
    }
    assert!(rig.disk().used <= 4 * MIB);
}
