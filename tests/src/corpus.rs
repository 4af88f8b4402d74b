//! Objects without number whose size and bytes follow from their path, so that every byte of every answer can be judged and
//! nothing has to be kept. The origin that serves them counts what is asked of it.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::client::Response;
use crate::node::{Builder, TestNode};
use crate::origin::{Origin, Step};

/// How large objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// From 12 bytes to 400 KiB, mostly small, and one in a thousand above 4 MiB: 40 KiB in the mean.
    Mixed,
    /// From 12 bytes to 40 KiB.
    Small,
    /// All of one size.
    Fixed(usize),
}

/// A family of objects. Copies share their counts.
#[derive(Debug, Clone)]
pub struct Corpus {
    sizes: Sizes,
    cache_control: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Requests that reached the origin, by path.
    asked: HashMap<String, usize>,
    /// By path; 0 where a path is missing.
    versions: HashMap<String, u32>,
}

/// The name of the field that says which version of an object an answer is.
const VERSION: &str = "X-Version";

/// The name of the field that says which object an answer is.
const NAME: &str = "X-Name";

impl Corpus {
    /// Objects that may be stored for an hour.
    #[must_use]
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            cache_control: "max-age=3600".to_owned(),
            shared: Arc::default(),
        }
    }

    /// Another `Cache-Control` than an hour's.
    #[must_use]
    pub fn cached(mut self, value: &str) -> Self {
        value.clone_into(&mut self.cache_control);
        self
    }

    /// Makes `origin` serve them, all paths without a script of their own.
    pub fn serve_from(&self, origin: &Origin) {
        let corpus = self.clone();
        origin
            .forget_requests()
            .on_each("*", move |request, _| corpus.answer(&request.method, &request.target));
    }

    fn answer(&self, method: &str, path: &str) -> Vec<Step> {
        let version = {
            let mut shared = self.shared.lock();
            *shared.asked.entry(path.to_owned()).or_default() += 1;
            shared.versions.get(path).copied().unwrap_or_default()
        };
        let body = self.body(path, version);
        let chunked = self.is_chunked(path);
        let framing = if chunked {
            "Transfer-Encoding: chunked".to_owned()
        } else {
            format!("Content-Length: {}", body.len())
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nDate: {}\r\nCache-Control: {}\r\nETag: \"{version}\"\r\n{VERSION}: {version}\r\n{NAME}: {path}\r\n{framing}\r\n\r\n",
            crate::origin::http_date(std::time::SystemTime::now()),
            self.cache_control,
        );
        let mut steps = vec![Step::send(head)];
        if method == "HEAD" {
            return steps;
        }
        let body = Bytes::from(body);
        if chunked {
            steps.extend(body.chunks(CHUNK).map(Step::chunk));
            steps.push(Step::last_chunk());
        } else {
            steps.push(Step::Send(body));
        }
        steps
    }

    /// Bytes of an object, whatever its version.
    #[must_use]
    pub fn size(&self, path: &str) -> usize {
        let hash = mix(hash(path));
        let within = |from: usize, to: usize| from + usize::try_from(hash >> 20).unwrap_or(0) % (to - from);
        match (self.sizes, hash % 1000) {
            (Sizes::Fixed(size), _) => size,
            (Sizes::Mixed, 0) => within(4 << 20, 6 << 20) + 1,
            (Sizes::Mixed, 1..=100) => within(64 << 10, 400 << 10),
            (_, 0..=400) => within(4 << 10, 40 << 10),
            _ => within(12, 4 << 10),
        }
    }

    /// One in sixteen has no length.
    fn is_chunked(&self, path: &str) -> bool {
        !matches!(self.sizes, Sizes::Fixed(_)) && mix(hash(path) ^ 1).is_multiple_of(16)
    }

    /// The bytes of a version of an object.
    #[must_use]
    pub fn body(&self, path: &str, version: u32) -> Vec<u8> {
        let size = self.size(path);
        let seed = hash(path) ^ mix(u64::from(version));
        let mut bytes = Vec::with_capacity(size + 8);
        let mut word = 0_u64;
        while bytes.len() < size {
            bytes.extend_from_slice(&mix(seed ^ word.rotate_left(17)).to_le_bytes());
            word += 1;
        }
        bytes.truncate(size);
        bytes
    }

    /// The version that the origin has.
    #[must_use]
    pub fn version(&self, path: &str) -> u32 {
        self.shared.lock().versions.get(path).copied().unwrap_or_default()
    }

    /// Gives the origin another version of an object.
    pub fn replace(&self, path: &str) {
        *self.shared.lock().versions.entry(path.to_owned()).or_default() += 1;
    }

    /// How often the origin was asked for an object.
    #[must_use]
    pub fn asked(&self, path: &str) -> usize {
        self.shared.lock().asked.get(path).copied().unwrap_or_default()
    }

    /// How often the origin was asked for anything.
    #[must_use]
    pub fn asked_in_all(&self) -> usize {
        self.shared.lock().asked.values().sum()
    }

    /// Judges a whole answer: it is this object, every byte of it, and of no version before `oldest`.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn judge(&self, path: &str, oldest: u32, response: &Response) -> Result<(), String> {
        let said = format!("{} {:?} {:?}", response.status, response.end, response.fields);
        if response.status != 200 || !response.is_complete() {
            return Err(format!("{path}: no whole answer: {said}"));
        }
        if response.header(NAME) != Some(path) {
            return Err(format!("{path}: the head of another object: {said}"));
        }
        let version = response.header(VERSION).and_then(|version| version.parse().ok());
        let Some(version) = version.filter(|&version| version >= oldest) else {
            return Err(format!("{path}: not version {oldest}: {said}"));
        };
        let wanted = self.body(path, version);
        if response.body == wanted {
            return Ok(());
        }
        let differs = response.body.iter().zip(&wanted).position(|(a, b)| a != b);
        Err(format!(
            "{path}: wrong bytes from {differs:?} on, {} of {}: {said}",
            response.body.len(),
            wanted.len()
        ))
    }
}

/// A node in front of an origin that serves a corpus; the origin is to live as long.
#[must_use]
pub fn serving(sizes: Sizes, build: impl FnOnce(Builder) -> Builder) -> (Origin, Corpus, TestNode) {
    let origin = Origin::start();
    let corpus = Corpus::new(sizes);
    corpus.serve_from(&origin);
    let node = build(TestNode::builder().origin(&origin)).start();
    (origin, corpus, node)
}

/// What the origin sends as one chunk.
const CHUNK: usize = 64 << 10;

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The finisher of splitmix64: each bit of the input changes half of the output.
#[must_use]
pub const fn mix(number: u64) -> u64 {
    let a = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    c ^ (c >> 31)
}

/// Numbers that look random and follow from a seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From `LARDER_TEST_SEED`, or else from the clock. Prints the seed, so that a failure can be repeated.
    ///
    /// # Panics
    /// Where the variable is no number.
    #[must_use]
    pub fn seeded(test: &str) -> Self {
        let given = std::env::var("LARDER_TEST_SEED").ok();
        let seed = given.map_or_else(
            || {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                now.map_or(1, |now| u64::from(now.subsec_nanos()) ^ now.as_secs())
            },
            |text| text.parse().expect("LARDER_TEST_SEED is a number"),
        );
        eprintln!("{test}: LARDER_TEST_SEED={seed}");
        Self(seed)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// Below `end`, which is not 0.
    ///
    /// # Panics
    /// Never: what is below a `usize` is one.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("it is below a usize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::get;

    #[test]
    fn bodies_are_their_own() {
        let corpus = Corpus::new(Sizes::Small);
        assert_eq!(corpus.body("/a", 0), corpus.body("/a", 0));
        assert_ne!(corpus.body("/a", 0), corpus.body("/a", 1));
        assert_ne!(corpus.body("/a", 0), corpus.body("/b", 0));
        let words = corpus.body("/c/7", 0);
        assert_ne!(words.get(..8), words.get(8..16), "its words repeat");
    }

    #[test]
    fn mixed_sizes_are_what_they_are_said_to_be() {
        let corpus = Corpus::new(Sizes::Mixed);
        let sizes: Vec<_> = (0..20_000).map(|n| corpus.size(&format!("/m/{n}"))).collect();
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((25_000..55_000).contains(&mean), "{mean}");
        assert!(sizes.iter().any(|&size| size > 4 << 20) && sizes.iter().all(|&size| size >= 12));
    }

    #[test]
    fn answers_are_judged() {
        let origin = Origin::start();
        let corpus = Corpus::new(Sizes::Small);
        corpus.serve_from(&origin);
        let first = get(origin.address(), "a.test", "/a");
        assert_eq!(corpus.judge("/a", 0, &first), Ok(()));
        assert!(corpus.judge("/b", 0, &first).is_err(), "another object");
        assert!(corpus.judge("/a", 1, &first).is_err(), "an old version");
        let mut torn = first;
        *torn.body.last_mut().expect("it has a body") ^= 1;
        assert!(corpus.judge("/a", 0, &torn).is_err(), "a wrong byte");
        corpus.replace("/a");
        assert_eq!(corpus.judge("/a", 1, &get(origin.address(), "a.test", "/a")), Ok(()));
        assert_eq!((corpus.asked("/a"), corpus.asked("/b")), (2, 0));
    }
}
