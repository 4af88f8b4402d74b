//! The disk tier at work: what memory has no room for, what it hands up and keeps down, and what it says it holds.

use std::thread;

use larder_tests::client::request;
use larder_tests::corpus::serving;
use larder_tests::node::disks::{allocated, block};
use larder_tests::{Client, Corpus, Load, Origin, Reply, Sizes, Step, TestNode, paths, wait_until};

/// Bytes that repeat nowhere near.
fn bytes(name: &str, length: usize) -> Vec<u8> {
    Corpus::new(Sizes::Fixed(length)).body(name, 0)
}

#[test]
fn large_objects_live_on_disk() {
    let origin = Origin::start();
    let megabytes = |n: usize, more: usize| bytes("large", (n << 20) + more);
    // Above what memory takes, above what is a record of a segment, and of a length that nobody knows before.
    let replies = [
        ("/2", Reply::ok(megabytes(2, 5)), megabytes(2, 5)),
        ("/6", Reply::ok(megabytes(6, 0)), megabytes(6, 0)),
        ("/5-chunked", Reply::ok(megabytes(5, 1)).chunked(), megabytes(5, 1)),
        ("/1-chunked", Reply::ok(megabytes(0, 700)).chunked(), megabytes(0, 700)),
    ];
    for (path, reply, _) in &replies {
        let reply = reply.clone().cached("max-age=60").header("ETag", "\"e\"");
        origin.on(path, [reply]);
    }
    let mut node = TestNode::builder()
        .origin(&origin)
        .memory("max_size = \"32MiB\"")
        .disk("256MiB")
        .start();
    for run in 0..2 {
        for (path, _, body) in &replies {
            if run == 0 {
                let _ = node.get("a.test", path).expect(200, body);
                node.wait_written();
            }
            for _ in 0..2 {
                let hit = node.get("a.test", path).expect(200, body);
                assert!(hit.is_hit(), "{path} in run {run}: {:?}", hit.fields);
                assert_eq!(
                    hit.header("content-length"),
                    Some(body.len().to_string().as_str()),
                    "{path}"
                );
            }
            let head = node.fetch("HEAD", "a.test", path, "");
            assert!(head.is_hit() && head.body.is_empty(), "{path}: {head:?}");
            assert_eq!(
                head.header("content-length"),
                Some(body.len().to_string().as_str()),
                "{path}"
            );
            let same = node.fetch("GET", "a.test", path, "If-None-Match: \"e\"\r\n");
            assert_eq!((same.status, same.is_hit()), (304, true), "{path}: {same:?}");
            assert_eq!(origin.count(path), 1, "{path} in run {run}");
        }
        assert_eq!(node.stop().code(), Some(0));
        node.start_again();
    }
}

#[test]
fn a_large_hit_leaves_the_connection_at_a_message_boundary() {
    let origin = Origin::start();
    let body = bytes("large", 3 << 20);
    origin
        .on("/large", [Reply::ok(&body).cached("max-age=60")])
        .on("/small", [Reply::ok("small").cached("max-age=60")]);
    let node = TestNode::builder().origin(&origin).disk("64MiB").start();
    let _ = node.get("a.test", "/large").expect(200, &body);
    let _ = node.get("a.test", "/small").expect(200, "small");
    node.wait_written();
    let mut client = node.connect();
    let pipelined = ["/small", "/large", "/small", "/large", "/small"];
    client.send(pipelined.map(|path| request("GET", "a.test", path, "")).concat());
    for path in pipelined {
        let answer = client.read_response();
        assert!(answer.is_hit(), "{path}: {:?}", answer.fields);
        let _ = answer.expect(200, if path == "/large" { &body } else { b"small".as_slice() });
    }
}

#[test]
fn many_join_the_fill_of_a_large_object() {
    let origin = Origin::start();
    let body = bytes("joined", 20 << 20);
    origin.on(
        "/joined",
        [Reply::ok(&body).cached("max-age=60").gate_at(8 << 20, "rest")],
    );
    let node = TestNode::builder()
        .origin(&origin)
        .memory("max_size = \"32MiB\"")
        .disk("256MiB")
        .start();
    let mut slow = node.connect();
    slow.send(request("GET", "a.test", "/joined", ""));
    let _ = slow.read_head("GET").expect("the fill begins");
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| node.get("a.test", "/joined").expect(200, &body));
        }
        // The slow one reads nothing meanwhile.
        wait_until("all to have asked", || node.figure("total/in_flight") == 21);
        origin.open_gate("rest");
    });
    assert!(slow.read_bytes(body.len()) == body, "the slow one got other bytes");
    assert_eq!(origin.count("/joined"), 1);
    node.wait_written();
    let hit = node.get("a.test", "/joined").expect(200, &body);
    assert!(hit.is_hit(), "{:?}", hit.fields);
    assert_eq!(origin.count("/joined"), 1);
}

#[test]
fn a_large_fill_that_breaks_is_not_stored() {
    let origin = Origin::start();
    let body = bytes("broken", 6 << 20);
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    origin.on(
        "/broken",
        [
            Reply::steps(vec![Step::send(&head), Step::send(&body[..5 << 20]), Step::Close]),
            Reply::ok(&body).cached("max-age=60"),
        ],
    );
    let node = TestNode::builder().origin(&origin).disk("64MiB").start();
    assert!(!node.get("a.test", "/broken").is_complete());
    wait_until("the body file to be gone", || {
        allocated(&node.disk_path(0).join("bodies")) == 0
    });
    let again = node.get("a.test", "/broken").expect(200, &body);
    assert_eq!((again.cache(), origin.count("/broken")), ("MISS", 2));
    node.wait_written();
    assert!(node.get("a.test", "/broken").expect(200, &body).is_hit());
}

/// What one more stream may cost in memory: nothing that grows with its length.
const PER_STREAM_KIB: u64 = 512;

#[test]
fn large_bodies_pass_in_constant_memory() {
    const LENGTH: usize = 128 << 20;
    const HALF_KIB: u64 = LENGTH as u64 >> 11;
    let origin = Origin::start();
    let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {LENGTH}\r\n\r\n");
    origin.on("/long", [Reply::steps(vec![Step::send(&head), Step::Fill(LENGTH)])]);
    let node = TestNode::builder()
        .origin(&origin)
        .memory("max_size = \"4MiB\"")
        .disk("1GiB")
        .start();
    let before = node.rss_kib();
    for want in ["MISS", "HIT"] {
        let (mut length, mut most) = (0, 0);
        let mut client = node.connect();
        client.send(request("GET", "a.test", "/long", ""));
        let answer = client
            .read_streaming("GET", |piece| {
                if length >> 23 != (length + piece.len()) >> 23 {
                    most = node.rss_kib().max(most);
                }
                length += piece.len();
            })
            .expect("an answer");
        assert!(answer.is_complete() && length == LENGTH, "{answer:?}");
        assert_eq!(answer.cache(), want);
        assert!(
            most < before + HALF_KIB,
            "{want}: {before} KiB before, {most} KiB at most"
        );
        node.wait_written();
    }
    // Who reads nothing holds nothing either, and leaves nothing behind.
    let (resident, files) = (node.rss_kib(), node.open_files());
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let mut client = node.connect();
            client.send(request("GET", "a.test", "/long", ""));
            assert!(client.read_head("GET").expect("a head").is_hit());
            client
        })
        .collect();
    let grown = node.rss_kib().saturating_sub(resident);
    assert!(grown < 20 * PER_STREAM_KIB, "{grown} KiB for 20 streams");
    clients.into_iter().for_each(Client::abort);
    node.wait_figure("total/in_flight", 0);
    wait_until("the files to be closed", || node.open_files() <= files);
    assert_eq!(origin.count("/long"), 1);
}

#[test]
fn variants_live_on_disk_without_memory() {
    let origin = Origin::start();
    origin.on_each("/v", |request, _| {
        let language = request.header("accept-language").unwrap_or_default();
        let length = if language == "de" { 3 << 20 } else { 300 };
        let reply = Reply::ok(bytes(language, length)).cached("max-age=60");
        reply.header("Vary", "Accept-Language").steps_for("GET")
    });
    let mut node = TestNode::builder()
        .origin(&origin)
        .memory("max_size = \"0\"")
        .disk("64MiB")
        .start();
    for (run, want) in [(0, "MISS"), (0, "HIT"), (1, "HIT")] {
        if run == 1 {
            assert_eq!(node.stop().code(), Some(0));
            node.start_again();
        }
        for (language, length) in [("en", 300), ("de", 3 << 20), ("fr", 300)] {
            let line = format!("Accept-Language: {language}\r\n");
            let answer = node
                .fetch("GET", "a.test", "/v", &line)
                .expect(200, bytes(language, length));
            assert_eq!(answer.cache(), want, "{language} in run {run}");
        }
        node.wait_written();
    }
    assert_eq!((origin.count("/v"), node.figure("cache/objects")), (3, 0));
}

#[test]
fn a_disk_alone_is_a_cache() {
    let (_origin, corpus, node) = serving(Sizes::Mixed, |node| node.memory("max_size = \"0\"").disk("256MiB"));
    let paths = paths("alone", 300);
    let load = Load::new(&corpus, node.data);
    let _ = load.ask(&paths);
    assert!(load.ask(&paths).iter().all(larder_tests::Answer::is_hit));
    assert_eq!(corpus.asked_in_all(), paths.len());
    let (disk, memory) = (node.disk(0), node.figure("cache/objects"));
    assert_eq!((disk.figure("objects"), memory), (paths.len() as u64, 0), "{disk:#?}");
    assert!(disk.figure("hits") >= paths.len() as u64, "{disk:#?}");
}

#[test]
fn a_second_use_brings_an_object_up() {
    let sizes = Sizes::Fixed(40_000);
    let (_origin, corpus, node) = serving(sizes, |node| node.memory("max_size = \"4MiB\"").disk("256MiB"));
    let paths = paths("up", 300);
    let load = Load::new(&corpus, node.data);
    let _ = load.ask(&paths);
    node.wait_written();
    let before = node.disk(0);
    assert_eq!(before.figure("objects"), 300, "{before:#?}");
    let old = paths.get(..20).expect("there are more");
    for _ in 0..3 {
        assert!(load.ask(old).iter().all(larder_tests::Answer::is_hit));
    }
    let after = node.disk(0);
    assert!(after.figure("promoted") > before.figure("promoted"), "{after:#?}");
    // Now they are asked of memory.
    let hits = after.figure("hits");
    assert!(load.ask(old).iter().all(larder_tests::Answer::is_hit));
    let now = node.disk(0).figure("hits");
    assert!(now - hits <= 4, "{} of 20 are still asked of the disk", now - hits);
}

#[test]
fn b95_a_scan_leaves_the_hot_set_in_memory() {
    let sizes = Sizes::Fixed(16_000);
    let (_origin, corpus, node) = serving(sizes, |node| node.memory("max_size = \"8MiB\"").disk("512MiB"));
    // Three quarters of memory, and ten times all of it.
    let (hot, scan) = (paths("hot", 390), paths("scan", 5300));
    let load = Load::new(&corpus, node.data);
    for _ in 0..4 {
        let _ = load.ask(&hot);
    }
    let from_memory = || {
        let before = node.disk(0).figure("hits");
        let hits = load.ask(&hot).iter().filter(|answer| answer.is_hit()).count() as u64;
        (hits, hits - (node.disk(0).figure("hits") - before).min(hits))
    };
    let (_, before) = from_memory();
    let _ = load.ask(&scan);
    let (hits, after) = from_memory();
    assert_eq!(hits, hot.len() as u64, "the disk lost some");
    assert!(
        after * 10 >= before * 9,
        "{before} hits from memory before the scan, {after} after it"
    );
    assert!(
        before * 10 >= hot.len() as u64 * 9,
        "{before} of {} were in memory",
        hot.len()
    );
}

#[test]
fn objects_are_spread_over_the_disks() {
    let (_origin, corpus, node) = serving(Sizes::Small, |node| {
        node.memory("max_size = \"0\"").disk("64MiB").disk("64MiB")
    });
    let paths = paths("spread", 200);
    let load = Load::new(&corpus, node.data);
    let _ = load.ask(&paths);
    node.wait_written();
    let objects = || {
        node.disks()
            .iter()
            .map(|disk| disk.figure("objects"))
            .collect::<Vec<_>>()
    };
    let each = objects();
    assert!(
        each.iter().all(|&n| n >= 60) && each.iter().sum::<u64>() == 200,
        "{each:?}"
    );
    // One of them fails: the other goes on.
    let _ = block(&node.disk_path(0));
    let _ = node.wait_disk(0, "to be degraded", |disk| !disk.is_up());
    let hits = load.ask(&paths).iter().filter(|answer| answer.is_hit()).count() as u64;
    assert!(hits >= each[1], "{hits} hits, though {} are on the other disk", each[1]);
    assert!(node.disk(1).is_up());
    let more = (0..50).map(|n| format!("/more/{n}")).collect::<Vec<_>>();
    let _ = load.ask(&more);
    assert!(
        load.ask(&more).iter().any(larder_tests::Answer::is_hit),
        "nothing is stored any more"
    );
}
