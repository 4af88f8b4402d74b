//! Many threads at once: nothing wrong, nothing short, nothing old, nothing left over.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A small generator, so that a failure repeats as far as threads allow.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn pattern(seed: u64, len: usize) -> Bytes {
    (0..len as u64)
        .map(|i| (seed.wrapping_mul(131) ^ i ^ (i >> 8)).to_le_bytes()[0])
        .collect()
}

/// An origin's answers: the body of (key, language), its length the same every time.
#[derive(Debug)]
struct Origin {
    bodies: Vec<[Bytes; 2]>,
}

const LANGUAGES: [&str; 2] = ["de", "en"];

impl Origin {
    fn new(lengths: &[usize]) -> Self {
        let body = |(i, &len): (usize, &usize)| {
            let seed = i as u64 * 2;
            [pattern(seed, len), pattern(seed + 1, len + i)]
        };
        Self {
            bodies: lengths.iter().enumerate().map(body).collect(),
        }
    }

    /// Even keys vary on the language; for the others every answer is the first.
    fn body(&self, key: usize, language: usize) -> &Bytes {
        &self.bodies[key][if key.is_multiple_of(2) { language } else { 0 }]
    }
}

async fn lead_fill(leader: TestLeader, origin: Arc<Origin>, key: usize, language: usize, mut dice: Dice) {
    tokio::task::yield_now().await;
    let mut rest = origin.body(key, language).clone();
    if dice.roll(40) == 0 {
        return leader.fail(FillError::new("no head"));
    }
    let fields = [LANGUAGES[language]];
    let vary = key
        .is_multiple_of(2)
        .then(|| Request(&fields).vary(&Fields(vec![0])))
        .flatten();
    let offer = Offer {
        expected_len: (dice.roll(2) == 0).then_some(rest.len() as u64),
        keep: [Keep::Store, Keep::Store, Keep::Store, Keep::Share, Keep::Private][dice.roll(5) as usize],
        vary,
    };
    let mut filling = leader.head(Arc::new(Number(key as u64)), offer);
    while !rest.is_empty() {
        if dice.roll(300) == 0 {
            return filling.fail(FillError::new("cut off"));
        }
        let size = 1 + dice.roll(100_000) as usize;
        if filling.push(rest.split_to(size.min(rest.len()))).await.is_err() {
            return;
        }
        if dice.roll(3) == 0 {
            tokio::task::yield_now().await;
        }
    }
    let _ = finish(filling);
}

/// Reads to the end, an error or a change of mind; what was read must be right, and complete at the end.
async fn read(
    mut reader: TestReader,
    request: Request<'_>,
    expected: &Bytes,
    dice: &mut Dice,
) -> Result<(), ReaderEnd> {
    soon(reader.head(request.variant())).await?;
    let patience = if dice.roll(10) == 0 { dice.roll(5) } else { u64::MAX };
    let mut pos = 0;
    for _ in 0..patience {
        match soon(reader.next_chunk()).await {
            Some(Ok(bytes)) => {
                assert_eq!(bytes, expected[pos..pos + bytes.len()], "wrong bytes");
                pos += bytes.len();
            }
            Some(Err(error)) => return Err(ReaderEnd::Failed(error)),
            None => {
                assert_eq!(pos, expected.len(), "a short body");
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn client(store: TestStore, origin: Arc<Origin>, mut dice: Dice, rounds: usize) {
    for _ in 0..rounds {
        let key = dice.roll(origin.bodies.len() as u64) as usize;
        let language = dice.roll(2) as usize;
        let fields = [LANGUAGES[language]];
        let request = Request(&fields);
        let expected = origin.body(key, language);
        let name = [key.to_le_bytes()[0]];
        if dice.roll(60) == 0 {
            store.purge(&name);
        }
        let mut how = if dice.roll(20) == 0 { Join::Never } else { Join::Any };
        let object = match store.get(&name, request.variant()) {
            Lookup::Found(object) => Some(object),
            Lookup::NoVariant | Lookup::Nothing => loop {
                match store.begin(&name, how, None, request.variant()) {
                    Begin::Found(object) => break Some(object),
                    Begin::Lead(leader, reader) => {
                        let filling = lead_fill(leader, Arc::clone(&origin), key, language, dice.clone());
                        tokio::spawn(filling);
                        let _ = read(reader, request, expected, &mut dice).await;
                        break None;
                    }
                    Begin::Join(reader) => match read(reader, request, expected, &mut dice).await {
                        Err(ReaderEnd::Retry) => how = Join::Answered,
                        _ => break None,
                    },
                }
            },
        };
        if let Some(object) = object {
            assert_eq!(object.body.chunks().unwrap().concat(), *expected, "a wrong object");
        }
    }
}

async fn run(config: Config, lengths: &[usize], rounds: usize) -> Usage {
    let store = Store::new(config);
    let origin = Arc::new(Origin::new(lengths));
    let clients: Vec<_> = (1..=24)
        .map(|i| {
            tokio::spawn(client(
                store.clone(),
                Arc::clone(&origin),
                Dice(0x9e37_79b9 * i),
                rounds,
            ))
        })
        .collect();
    for client in clients {
        soon(client).await.expect("a client saw something wrong");
    }
    soon(async {
        while store.usage().fills_active > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let usage = store.usage();
    assert!(usage.used <= usage.max && usage.fill_bytes == 0, "{usage:?}");
    store.clear();
    let cleared = store.usage();
    assert_eq!((cleared.used, cleared.objects, cleared.variants), (0, 0, 0));
    usage
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b60_readers_never_see_wrong_or_short_bodies() {
    let lengths = [0, 1, 1000, 20_000, 70_000, 262_144, 300_000, 900_000];
    let usage = run(Config::with_max_size(64 * MIB), &lengths, 150).await;
    assert!(usage.inserted > 0, "{usage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b92_a_full_tier_never_shortens_a_body() {
    let config = Config {
        max_size: 2 * MIB,
        max_object: MIB + 1000,
        variants: 64,
    };
    let usage = run(config, &[1 << 20; 6], 40).await;
    assert!(usage.evicted > 0, "{usage:?}");
    // With the default bound nothing of that size is stored at all.
    let usage = run(Config::with_max_size(2 * MIB), &[1 << 20; 6], 10).await;
    assert_eq!((usage.inserted, usage.used), (0, 0), "{usage:?}");
}

/// One key whose content is a version, which only ever goes up.
struct Versions {
    store: TestStore,
    /// What the origin has.
    current: AtomicU64,
    /// What the last completed purge has left behind it.
    floor: AtomicU64,
}

impl Versions {
    const LAST: u64 = 3000;

    fn purge_all_along(&self) {
        for version in 2..=Self::LAST {
            self.current.store(version, Ordering::SeqCst);
            if version % 100 == 0 {
                self.store.clear();
            } else {
                self.store.purge(b"a");
            }
            self.floor.store(version, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }

    fn ask_all_along(&self, mut dice: Dice) {
        while self.current.load(Ordering::SeqCst) < Self::LAST {
            let fields = [LANGUAGES[dice.roll(2) as usize]];
            let request = Request(&fields);
            let floor = self.floor.load(Ordering::SeqCst);
            if let Lookup::Found(object) = self.store.get(b"a", request.variant()) {
                assert!(object.head.0 >= floor, "{} came back after {floor}", object.head.0);
            }
            let floor = self.floor.load(Ordering::SeqCst);
            let join = [Join::Any, Join::Never][dice.roll(2) as usize];
            match self.store.begin(b"a", join, None, request.variant()) {
                Begin::Lead(leader, _reader) => {
                    let vary = (dice.roll(2) == 0).then(|| request.vary(&Fields(vec![0]))).flatten();
                    self.fill(leader, vary);
                }
                Begin::Join(mut reader) => {
                    if let Some(Ok(head)) = now(reader.head(request.variant())) {
                        assert!(head.0 >= floor, "{} was joined after {floor}", head.0);
                    }
                }
                Begin::Found(object) => assert!(object.head.0 >= floor, "{} came back after {floor}", object.head.0),
            }
        }
    }

    fn fill(&self, leader: TestLeader, vary: Option<(Fields, Vec<u8>)>) {
        let head = self.current.load(Ordering::SeqCst);
        let offer = Offer {
            expected_len: None,
            keep: Keep::Store,
            vary,
        };
        let mut filling = leader.head(Arc::new(Number(head)), offer);
        let _ = now(filling.push(Bytes::from_static(b"body")));
        let _ = finish(filling);
    }
}

#[test]
fn b68_nothing_older_than_the_last_purge_is_found() {
    let versions = Versions {
        store: store(64 * MIB),
        current: AtomicU64::new(1),
        floor: AtomicU64::new(1),
    };
    std::thread::scope(|scope| {
        let asking = [11, 22, 33].map(|seed| {
            let versions = &versions;
            scope.spawn(move || versions.ask_all_along(Dice(seed)))
        });
        versions.purge_all_along();
        for thread in asking {
            thread.join().expect("old content came back");
        }
    });
    versions.store.clear();
    let usage = versions.store.usage();
    let left = (
        usage.used,
        usage.objects,
        usage.variants,
        usage.fills_active,
        usage.fill_bytes,
    );
    assert_eq!(left, (0, 0, 0, 0, 0));
}
