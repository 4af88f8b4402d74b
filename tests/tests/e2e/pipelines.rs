//! Pipelines of mixed methods and sizes: every answer in its place, every byte compared. What one answer gets wrong about its
//! end shows in the next.

use std::net::SocketAddr;
use std::thread;

use larder_tests::{Client, Origin, Reply, TestNode};

const CLIENTS: u64 = 6;
const PIPELINES: u64 = 12;
const REQUESTS: u64 = 20;
/// Around the sizes at which the ways of sending a body change.
const SIZES: [usize; 8] = [0, 1, 12, 3_000, 16_384, 16_385, 100_000, 1_200_000];

/// One request of a pipeline, and what must come back.
struct Asked {
    method: &'static str,
    body: Vec<u8>,
}

/// Multiplication by a large odd number spreads neighbouring seeds over all values.
fn mixed(seed: u64) -> u64 {
    (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24
}

fn body_of(target: &str) -> Vec<u8> {
    let size = target.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    target.bytes().cycle().take(size).collect()
}

fn origin() -> Origin {
    let origin = Origin::start();
    origin.forget_requests().on_each("*", |request, _| {
        let reply = if request.method == "POST" {
            Reply::ok(&request.body).header("Cache-Control", "no-store")
        } else {
            let directives = if request.target.starts_with("/kept") {
                "max-age=60"
            } else {
                "no-store"
            };
            Reply::ok(body_of(&request.target)).cached(directives)
        };
        let chunked = request.target.contains("chunked");
        let reply = if chunked { reply.chunked() } else { reply };
        reply.steps_for(&request.method)
    });
    origin
}

/// Appends a request to the pipeline.
fn ask(seed: u64, pipeline: &mut Vec<u8>) -> Asked {
    let size = SIZES[usize::try_from(mixed(seed) % 8).expect("it is below 8")];
    let kind =
        ["kept", "kept-chunked", "passed", "passed-chunked"][usize::try_from(mixed(seed + 7) % 4).expect("below 4")];
    let target = format!("/{kind}/{}-{size}", mixed(seed + 11) % 5);
    let head =
        |method: &str, lines: &str| format!("{method} {target} HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n").into_bytes();
    match mixed(seed + 13) % 8 {
        0 => {
            pipeline.extend(head("HEAD", ""));
            Asked {
                method: "HEAD",
                body: Vec::new(),
            }
        }
        1 => {
            let body: Vec<u8> = body_of(&target).into_iter().rev().take(40_000).collect();
            pipeline.extend(head("POST", &format!("Content-Length: {}\r\n", body.len())));
            pipeline.extend(&body);
            Asked { method: "POST", body }
        }
        2 => {
            let body: Vec<u8> = body_of(&target).into_iter().rev().take(40_000).collect();
            pipeline.extend(head("POST", "Transfer-Encoding: chunked\r\n"));
            for piece in body.chunks(7_001) {
                pipeline.extend(format!("{:x}\r\n", piece.len()).into_bytes());
                pipeline.extend(piece);
                pipeline.extend(b"\r\n");
            }
            pipeline.extend(b"0\r\nX-Sum: 1\r\n\r\n");
            Asked { method: "POST", body }
        }
        _ => {
            pipeline.extend(head("GET", ""));
            Asked {
                method: "GET",
                body: body_of(&target),
            }
        }
    }
}

fn run(address: SocketAddr, seed: u64) {
    let mut client = Client::connect(address);
    let mut bytes = Vec::new();
    let asked: Vec<_> = (0..REQUESTS).map(|n| ask(seed * 1_000 + n, &mut bytes)).collect();
    let mut writer = client.writer();
    let writing = thread::spawn(move || {
        use std::io::Write;
        for piece in bytes.chunks(33_333) {
            writer.write_all(piece).expect("the node takes the pipeline");
        }
    });
    for (n, asked) in asked.iter().enumerate() {
        let answer = client.read_response_to(asked.method);
        assert!(
            answer.is_complete() && answer.status == 200,
            "pipeline {seed}, answer {n}: {}",
            answer.status
        );
        assert!(answer.body == asked.body, "pipeline {seed}, answer {n}: a wrong body");
    }
    writing.join().expect("the pipeline is sent");
}

#[test]
fn mixed_pipelines_are_answered_in_order_and_byte_for_byte() {
    let origin = origin();
    let node = TestNode::before(&origin);
    let address = node.data;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| thread::spawn(move || (0..PIPELINES).for_each(|n| run(address, client * PIPELINES + n))))
        .collect();
    for client in clients {
        client.join().expect("a client ends well");
    }
    node.wait_figure("total/in_flight", 0);
    node.wait_figure("cache/fills_active", 0);
    assert!(origin.violations().is_empty(), "{:?}", origin.violations());
}
