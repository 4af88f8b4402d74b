//! A store on disks in a temporary directory, its clock, and what tests ask of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::super::*;
use crate::disk::{BodyError, DiskConfig, DiskUsage};

/// How long a test waits for what happens on other threads.
const PATIENCE: Duration = Duration::from_secs(20);

/// Unix time in milliseconds, for all tests. It does not move.
const NOW_MS: u64 = 1_800_000_000_000;

pub(super) fn clock() -> u64 {
    NOW_MS
}

/// Another clock, for the one test that moves it.
pub(super) static OTHER_MS: AtomicU64 = AtomicU64::new(1_800_000_000_000);

pub(super) fn other_clock() -> u64 {
    OTHER_MS.load(Ordering::Relaxed)
}

/// A key is `owner|rest`.
pub(super) fn owner_of(key: &[u8]) -> &[u8] {
    key.split(|&byte| byte == b'|').next().unwrap_or_default()
}

/// A head that says what it is and how long it is of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) keep_until_secs: u64,
}

impl Head for Text {
    fn weight(&self) -> usize {
        size_of::<Self>() + self.text.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.keep_until_secs.to_le_bytes());
        out.extend_from_slice(self.text.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (keep, text) = bytes.split_first_chunk::<8>()?;
        Some(Self {
            text: String::from_utf8(text.to_vec()).ok()?,
            keep_until_secs: u64::from_le_bytes(*keep),
        })
    }

    fn keep_until_secs(&self) -> u64 {
        self.keep_until_secs
    }
}

pub(super) type DiskStore = Store<Text, Fields>;
pub(super) type Found = Arc<Object<Text>>;

/// A store that can be closed and opened again.
pub(super) struct Rig {
    _directory: TempDir,
    pub(super) options: Options,
    pub(super) store: DiskStore,
    runtime: tokio::runtime::Runtime,
}

pub(super) const FOR_EVER: u64 = u64::MAX;

impl Rig {
    /// `memory`: bytes of the memory tier. One disk of this size.
    pub(super) fn new(memory: u64, disk: u64) -> Self {
        Self::with(memory, &[disk], |_| {})
    }

    pub(super) fn with(memory: u64, disks: &[u64], change: impl FnOnce(&mut Options)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let disks = disks.iter().enumerate().map(|(number, &max_size)| DiskConfig {
            path: directory.path().join(format!("disk{number}")),
            max_size,
            min_free: 0,
            inactive: None,
        });
        let mut options = Options {
            memory: Config::with_max_size(memory),
            disks: disks.collect(),
            clock,
            owner_of,
        };
        change(&mut options);
        let store = Store::open(&options).unwrap();
        Self {
            _directory: directory,
            options,
            store,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    pub(super) fn disk_path(&self) -> PathBuf {
        self.options.disks[0].path.clone()
    }

    /// Stops the store, lets `between` do something to its files, and opens it again.
    pub(super) fn reopen_after(&mut self, between: impl FnOnce(&Path)) {
        self.store.stop();
        between(&self.disk_path());
        let path = self.options.disks.clone();
        self.options.disks = Vec::new();
        // The old one must be gone before its directory can be locked again.
        self.store = Store::open(&self.options).unwrap();
        self.options.disks = path;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Store::open(&self.options) {
                Ok(store) => {
                    self.store = store;
                    return;
                }
                Err(fault) => assert!(Instant::now() < deadline, "{fault}"),
            }
        }
    }

    /// Leaves the store as it is and goes on with what lies in another directory.
    pub(super) fn move_to(&mut self, path: PathBuf) {
        self.options.disks[0].path = path;
        self.store = Store::open(&self.options).unwrap();
    }

    pub(super) fn reopen(&mut self) {
        self.reopen_after(|_| {});
    }

    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime
            .block_on(async { tokio::time::timeout(PATIENCE, future).await.expect("it took too long") })
    }

    /// Stores an object in one go.
    pub(super) fn put(&self, key: &str, text: &str, body: &[u8]) -> Result<Found, NotKept> {
        self.put_as(key, text, body, None, FOR_EVER)
    }

    pub(super) fn put_as(
        &self,
        key: &str,
        text: &str,
        body: &[u8],
        vary: Option<(Fields, Vec<u8>)>,
        keep_until_secs: u64,
    ) -> Result<Found, NotKept> {
        let begun = self.store.begin(key.as_bytes(), Join::Never, None, |_: &Fields, _| {});
        let Begin::Lead(leader, mut reader) = begun else {
            panic!("expected to lead")
        };
        let offer = Offer {
            expected_len: None,
            keep: Keep::Store,
            vary,
        };
        let head = Text {
            text: text.to_owned(),
            keep_until_secs,
        };
        let mut filling = leader.head(Arc::new(head), offer);
        self.wait(async {
            for piece in body.chunks(100_000) {
                filling.push(Bytes::copy_from_slice(piece)).await.unwrap();
                while let Some(Some(piece)) = now(reader.next_chunk()) {
                    piece.unwrap();
                }
            }
            filling.finish().await
        })
    }

    /// What a request gets: from memory, else from disk.
    pub(super) fn get(&self, key: &str, request: Request<'_>) -> Option<Found> {
        match self.store.get(key.as_bytes(), request.variant()) {
            Lookup::Found(object) => return Some(object),
            Lookup::NoVariant | Lookup::Nothing => {}
        }
        match self.wait(self.store.load(key.as_bytes(), request.variant())) {
            Lookup::Found(object) => Some(object),
            Lookup::NoVariant | Lookup::Nothing => None,
        }
    }

    /// Text and body of what a request gets.
    pub(super) fn read(&self, key: &str, request: Request<'_>) -> Option<(String, Vec<u8>)> {
        let object = self.get(key, request)?;
        Some((object.head.text.clone(), self.body(&object)))
    }

    /// The same, if it can be read to its end.
    pub(super) fn read_if_whole(&self, key: &str, request: Request<'_>) -> Option<(String, Vec<u8>)> {
        let object = self.get(key, request)?;
        Some((object.head.text.clone(), self.try_body(&object).ok()?))
    }

    pub(super) fn body(&self, object: &Object<Text>) -> Vec<u8> {
        self.try_body(object).unwrap()
    }

    fn try_body(&self, object: &Object<Text>) -> Result<Vec<u8>, BodyError> {
        let mut reader = match object.body.place() {
            Place::Memory(chunks) => return Ok(chunks.concat()),
            Place::Disk(body) => body.reader(),
        };
        self.wait(async {
            let mut all = Vec::new();
            while let Some(piece) = reader.next_chunk().await? {
                all.extend_from_slice(&piece);
            }
            Ok(all)
        })
    }

    pub(super) fn disk(&self) -> DiskUsage {
        self.store.usage().disks[0].clone()
    }

    /// Waits until the disk is as asked.
    pub(super) fn until(&self, what: &str, mut is_so: impl FnMut(&DiskUsage) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(&self.disk()) {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.disk());
            std::thread::yield_now();
        }
    }

    /// Waits until everything is written and the index complete.
    pub(super) fn settle(&self) {
        self.until("it does not settle", |disk| {
            disk.queue_bytes == 0 && disk.warming.is_none()
        });
    }
}

/// Bytes that say where they belong.
pub(super) fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}
