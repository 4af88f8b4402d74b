//! Every byte of very many answers, under eviction, collapsing and aborts, within the memory that was promised.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use bytes::Bytes;
use larder_tests::client::request;
use larder_tests::{Client, Origin, Reply, TestNode};

const OBJECTS: usize = 5_000;
const REQUESTS: usize = 100_000;
const CLIENTS: usize = 64;
const LARGEST: usize = 5_000_000;
const MEMORY_MIB: u64 = 64;

/// SplitMix64: well mixed, in five lines, the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).expect("it is below a usize")
    }

    /// 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// One long random string; each object is a piece of it that begins somewhere else, so any shift or mix-up shows at once.
struct Objects {
    text: Bytes,
}

impl Objects {
    fn new() -> Self {
        let mut random = Random(1);
        let mut text = Vec::with_capacity(LARGEST + (1 << 20));
        while text.len() < LARGEST + (1 << 20) {
            text.extend_from_slice(&random.next().to_le_bytes());
        }
        Self { text: text.into() }
    }

    /// The size is spread over the powers of ten from 0 to 5 MB, small ones more often, as on the web.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "0 to 5e6"
    )]
    fn body(&self, id: usize) -> Bytes {
        let mut random = Random(id as u64 + 100);
        let size = match id {
            0 => 0,
            1 => LARGEST,
            _ => (random.unit().powi(6) * (LARGEST as f64).ln()).exp() as usize,
        };
        // The first object's id decides where it begins: no two begin at one place.
        let start = random.below(1 << 18) * 4 + id % 4;
        self.text.slice(start..start + size)
    }

    fn origin(self: &Arc<Self>) -> Origin {
        let origin = Origin::start();
        let objects = Arc::clone(self);
        origin.forget_requests().on_each("*", move |request, _| {
            let id = id_of(&request.target);
            let reply = Reply::ok(objects.body(id))
                .cached("max-age=3600")
                .header("X-Id", &id.to_string());
            let reply = if id.is_multiple_of(3) { reply.chunked() } else { reply };
            reply.steps_for(&request.method)
        });
        origin
    }
}

fn id_of(target: &str) -> usize {
    target.trim_start_matches('/').parse().expect("targets are numbers")
}

/// What went wrong, the first few of it.
#[derive(Default)]
struct Wrong(parking_lot::Mutex<Vec<String>>);

impl Wrong {
    fn note(&self, what: String) {
        let mut list = self.0.lock();
        if list.len() < 20 {
            list.push(what);
        }
    }
}

/// Asks, and compares the body as it comes.
fn ask(client: &mut Client, objects: &Objects, id: usize, wrong: &Wrong) -> bool {
    let want = objects.body(id);
    let mut at = 0;
    let mut same = true;
    client.send(request("GET", "a.test", &format!("/{id}"), ""));
    let answer = client.read_streaming("GET", |piece| {
        same &= want.get(at..at + piece.len()) == Some(piece);
        at += piece.len();
    });
    match answer {
        Ok(r) if r.status == 200 && r.is_complete() && same && at == want.len() => {
            if r.header("x-id") != Some(id.to_string().as_str()) {
                wrong.note(format!("/{id}: the head of {:?}", r.header("x-id")));
            }
            r.is_hit()
        }
        Ok(r) => {
            wrong.note(format!(
                "/{id}: {} of {} bytes, same: {same}, {} {:?}",
                at,
                want.len(),
                r.status,
                r.end
            ));
            *client = Client::connect(client.peer());
            false
        }
        Err(e) => {
            wrong.note(format!("/{id}: {e:?} after {at} bytes"));
            *client = Client::connect(client.peer());
            false
        }
    }
}

/// Begins to read and goes away.
fn leave(node: SocketAddr, id: usize, random: &mut Random) {
    let mut client = Client::connect(node);
    client.send(request("GET", "a.test", &format!("/{id}"), ""));
    if random.below(2) == 0 {
        let _ = client.read_head("GET");
    }
    client.abort();
}

fn visit(node: SocketAddr, objects: &Objects, number: usize, left: &AtomicUsize, wrong: &Wrong) -> usize {
    let mut random = Random(number as u64 * 7919);
    let mut client = Client::connect(node);
    let mut hits = 0;
    while left.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok() {
        // A few objects are asked for most of the time, all of them now and then.
        let id = if random.below(4) == 0 {
            random.below(OBJECTS)
        } else {
            random.below(OBJECTS / 10)
        };
        if random.below(100) == 0 {
            leave(node, id, &mut random);
        } else {
            hits += usize::from(ask(&mut client, objects, id, wrong));
        }
    }
    hits
}

#[test]
fn no_byte_is_wrong_in_a_hundred_thousand_answers() {
    let objects = Arc::new(Objects::new());
    let origin = objects.origin();
    let node = TestNode::builder()
        .origin(&origin)
        .memory(&format!("max_size = \"{MEMORY_MIB}MiB\""))
        .start();
    let (left, wrong) = (AtomicUsize::new(REQUESTS), Wrong::default());
    let address = node.data;
    let hits: usize = thread::scope(|scope| {
        let (objects, left, wrong) = (&objects, &left, &wrong);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| scope.spawn(move || visit(address, objects, n, left, wrong)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client ends"))
            .sum()
    });
    let rss = node.rss_kib();
    let _ = writeln!(
        std::io::stderr(),
        "{REQUESTS} requests, {hits} hits, RSS {} MiB",
        rss >> 10
    );
    assert!(wrong.0.lock().is_empty(), "{:#?}", wrong.0.lock());
    assert!(hits > REQUESTS / 4, "only {hits} hits: this tests too little");
    assert!(rss <= (MEMORY_MIB + 96) << 10, "RSS {} MiB", rss >> 10);
    node.wait_figure("cache/fills_active", 0);
    assert!(node.figure("cache/memory_used") <= i64::try_from(MEMORY_MIB << 20).expect("small"));
    assert!(
        node.figure("cache/evicted") > 0,
        "nothing was evicted: this tests too little"
    );
}
