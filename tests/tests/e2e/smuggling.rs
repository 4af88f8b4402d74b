//! Mutated requests through the node, judged by what reaches the origin: nothing, or exactly the messages that a strict
//! parser reads from the same bytes.

use larder_tests::message::{Reader, RequestHead, Strictness, parse_request};
use larder_tests::{Origin, ReadError, Reply, TestNode};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Enough to try every mutation in most places; a few seconds.
const CASES: u32 = 3_000;

/// A request behind the one under test, as an attacker would hide it.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";

/// What any proxy must have an answer to. Mutations start from these, and each is tried as it is.
const CORPUS: [&str; 16] = [
    "GET /p HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET /p?q=1 HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nCookie: a=b\r\n\r\n",
    "GET http://b.test/p HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "HEAD /p HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET /p HTTP/1.0\r\nHost: a.test\r\n\r\n",
    "GET /p HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello",
    "POST /p HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\nhello\r\n00\r\nX-T: 1\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\nhello",
    "PUT /p HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "GET /p HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "GET /p HTTP/1.1\r\nHost: a.test\r\nConnection: close, X\r\nX: y\r\n\r\n",
];

/// Pieces that confuse parsers, to be put anywhere.
const PIECES: [&[u8]; 40] = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\n\n",
    b" ",
    b"\t",
    b"\0",
    b"\x0b",
    b"\x0c",
    b"\x7f",
    b"\x80",
    b"\xff",
    b":",
    b";",
    b",",
    b"\"",
    b"0",
    b"5",
    b"-",
    b"+",
    b"0x",
    b"_",
    b"%00",
    b"%0d%0a",
    b"#",
    b"@",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"content-length:50\r\n",
    b"Content-Length : 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding:\tchunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b" Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding\r\n",
    b"Host: b.test\r\n",
    b"0\r\n\r\n",
    b"5\r\nhello\r\n",
    b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n",
];

#[derive(Debug, Clone)]
enum Mutation {
    Insert(prop::sample::Index, &'static [u8]),
    Delete(prop::sample::Index, usize),
    Replace(prop::sample::Index, u8),
    Repeat(prop::sample::Index, usize),
    Truncate(prop::sample::Index),
    UpperCase(prop::sample::Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), prop::sample::select(PIECES.to_vec())).prop_map(|(i, p)| Mutation::Insert(i, p)),
        2 => (at(), 1..4_usize).prop_map(|(i, n)| Mutation::Delete(i, n)),
        2 => (at(), any::<u8>()).prop_map(|(i, b)| Mutation::Replace(i, b)),
        1 => (at(), 1..40_usize).prop_map(|(i, n)| Mutation::Repeat(i, n)),
        1 => at().prop_map(Mutation::Truncate),
        1 => at().prop_map(Mutation::UpperCase),
    ]
}

fn mutate(mut bytes: Vec<u8>, mutations: &[Mutation]) -> Vec<u8> {
    for mutation in mutations {
        let len = bytes.len();
        if len == 0 {
            break;
        }
        match mutation {
            Mutation::Insert(at, piece) => {
                let at = at.index(len + 1);
                bytes.splice(at..at, piece.iter().copied());
            }
            Mutation::Delete(at, n) => {
                let at = at.index(len);
                bytes.drain(at..(at + n).min(len));
            }
            Mutation::Replace(at, byte) => bytes[at.index(len)] = *byte,
            Mutation::Repeat(at, n) => {
                let at = at.index(len);
                let piece = bytes[at..(at + n).min(len)].to_vec();
                bytes.splice(at..at, piece);
            }
            Mutation::Truncate(at) => bytes.truncate(at.index(len)),
            Mutation::UpperCase(at) => {
                let at = at.index(len);
                bytes[at] = bytes[at].to_ascii_uppercase();
            }
        }
    }
    bytes
}

/// What a message comes down to, whoever writes it down.
#[derive(Debug, PartialEq, Eq)]
struct Meaning {
    method: String,
    path: String,
    body: Vec<u8>,
}

/// The messages that a strict server reads from a connection, until the first that is none.
fn strict_reading(bytes: &[u8]) -> Vec<Meaning> {
    let mut reader = Reader::new(bytes);
    let mut found = Vec::new();
    while let Ok(Some(head)) = reader.head(Strictness::AsRead) {
        let Ok(RequestHead {
            method,
            target,
            framing,
            ..
        }) = parse_request(&head, Strictness::AsRead)
        else {
            break;
        };
        let mut body = Vec::new();
        if reader
            .body(framing, Strictness::AsRead, |piece| body.extend_from_slice(piece))
            .is_err()
        {
            break;
        }
        found.push(Meaning {
            method,
            path: path_of(&target),
            body,
        });
    }
    found
}

/// The path as it would be forwarded: without scheme, authority and query.
fn path_of(target: &str) -> String {
    let rest = target
        .split_once("://")
        .map_or(target, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    rest.split('?').next().unwrap_or_default().to_owned()
}

/// Sends the bytes, reads until the node closes, and compares what came out behind it.
fn check(node: &TestNode, origin: &Origin, bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut client = node.connect();
    let _ = client.try_send(bytes);
    client.half_close();
    let mut answers = 0;
    loop {
        // How a HEAD's answer is read depends on the method; what matters here is that the node ends.
        match client.try_read_response("HEAD") {
            Ok(_) => answers += 1,
            Err(ReadError::TimedOut) => return Err(TestCaseError::fail("the node neither answers nor closes")),
            Err(_) => break,
        }
        let _ = client.read_to_end();
    }
    // What the node answers by itself does not reach the origin.
    let strict: Vec<_> = strict_reading(bytes)
        .into_iter()
        .filter(|m| m.path != "*" && m.method != "TRACE")
        .collect();
    let violations = origin.violations();
    // A message that is broken off within its body may have begun to go on; the origin sees that it never ended.
    let broken_off = |violation: &String| violation.contains("the stream ended");
    prop_assert!(violations.iter().all(broken_off), "{:?}", violations);
    let log = origin.log();
    let seen: Vec<_> = log
        .into_iter()
        .filter(|r| r.complete)
        .map(|r| Meaning {
            path: path_of(&r.target),
            method: r.method,
            body: r.body,
        })
        .collect();
    let prefix = seen.len() <= strict.len() && seen.iter().zip(&strict).all(|(a, b)| same(a, b));
    prop_assert!(
        prefix,
        "{} answers; the origin saw {:#?}, a strict reading is {:#?}",
        answers,
        seen,
        strict
    );
    origin.clear_log();
    Ok(())
}

/// Paths may be normalised on the way; which message it is, and its body, may not change.
fn same(seen: &Meaning, strict: &Meaning) -> bool {
    let smuggled = |m: &Meaning| m.path.starts_with("/smuggled");
    seen.method == strict.method && seen.body == strict.body && smuggled(seen) == smuggled(strict)
}

fn house() -> (Origin, TestNode) {
    let origin = Origin::start();
    origin.on("*", [Reply::ok("x").cached("no-store")]);
    let node = TestNode::builder()
        .origin(&origin)
        .timeouts("header = \"2s\"\nbody = \"2s\"\nidle = \"2s\"")
        .start();
    (origin, node)
}

#[test]
fn the_corpus_passes_or_is_refused_as_a_whole() {
    let (origin, node) = house();
    for request in CORPUS {
        for behind in ["", SMUGGLED] {
            let bytes = [request, behind].concat();
            if let Err(e) = check(&node, &origin, bytes.as_bytes()) {
                panic!("{bytes:?}: {e}");
            }
        }
    }
}

#[test]
fn mutated_requests_reach_the_origin_as_read_or_not_at_all() {
    let (origin, node) = house();
    // The same cases on every run: a failure can be repeated, a pass means the same each time.
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 500,
        ..Config::default()
    };
    let requests = (
        prop::sample::select(CORPUS.to_vec()),
        prop::collection::vec(mutation(), 1..5),
    );
    let result = TestRunner::new_with_rng(config, rng).run(&requests, |(request, mutations)| {
        let bytes = mutate([request, SMUGGLED].concat().into_bytes(), &mutations);
        origin.clear_log();
        check(&node, &origin, &bytes)
    });
    if let Err(e) = result {
        panic!("{e}");
    }
}
