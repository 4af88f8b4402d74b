//! What a node still has after it was stopped or killed: nearly everything, nothing wrong, and nothing that was purged.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use larder_tests::node::disks::{Disk, copy_directory, files_below};
use larder_tests::node::process::Process;
use larder_tests::node::{Builder, parse_ready};
use larder_tests::{Answer, Corpus, DEADLINE, Load, Origin, Random, Reply, Sizes, TestNode, full, paths, wait_until};
use rustix::process::Signal;

/// What was answered this long before a kill must have survived it.
const DURABLE_AFTER: Duration = Duration::from_secs(2);

/// An origin with a corpus, and a builder for nodes in front of it.
fn warm(sizes: Sizes) -> (Origin, Corpus, Builder) {
    let origin = Origin::start();
    let corpus = Corpus::new(sizes);
    corpus.serve_from(&origin);
    let builder = TestNode::builder().origin(&origin);
    (origin, corpus, builder)
}

/// Asks for each of these once; those for which the origin was asked.
fn missed(corpus: &Corpus, node: &TestNode, paths: &[String]) -> Vec<String> {
    let before: Vec<_> = paths.iter().map(|path| corpus.asked(path)).collect();
    let _ = Load::new(corpus, node.data).ask(paths);
    let pairs = paths.iter().zip(before);
    pairs
        .filter(|(path, before)| corpus.asked(path) != *before)
        .map(|(path, _)| path.clone())
        .collect()
}

/// A queue that is longer than this is about to be full: what comes then is not admitted, and no kill has lost it.
const QUEUE_LONG: u64 = 4 << 20;

/// Kills the node at a random moment under load and starts it again; what should be there.
fn kill_under_load(node: &mut TestNode, corpus: &Corpus, round: usize, random: &mut Random) -> Vec<Answer> {
    let (objects, spread_ms) = if full() { (10_000, 8000) } else { (1000, 400) };
    let moment = DURABLE_AFTER + Duration::from_millis(150) + Duration::from_millis(random.below(spread_ms) as u64);
    let hold = AtomicBool::new(false);
    let (answers, killed, refused) = thread::scope(|scope| {
        let load = Load::new(corpus, node.data).connections(2);
        let next = |n| {
            while hold.load(Ordering::Relaxed) {
                thread::park_timeout(Duration::from_millis(1));
            }
            Some(format!("/r{round}/{n}"))
        };
        let filling = scope.spawn(move || load.ask_until_gone(next));
        let start = Instant::now();
        let mut refused = 0;
        while start.elapsed() < moment {
            let disk = node.disk(0);
            hold.store(disk.figure("queue_bytes") > QUEUE_LONG, Ordering::Relaxed);
            refused = disk.figure("refused_busy");
            thread::park_timeout(Duration::from_millis(1));
        }
        let killed = Instant::now();
        node.kill();
        hold.store(false, Ordering::Relaxed);
        (filling.join().expect("the load ends with the node"), killed, refused)
    });
    eprintln!("round {round}: {} answers, {refused} not admitted", answers.len());
    let old = |answer: &Answer| killed.duration_since(answer.finished) >= DURABLE_AFTER;
    let mut durable: Vec<_> = answers.into_iter().filter(old).collect();
    // The youngest ones, who are most in danger.
    durable.drain(..durable.len().saturating_sub(objects));
    node.start_again();
    durable
}

#[test]
fn b89_a_kill_loses_only_what_is_newer_than_two_seconds() {
    let mut random = Random::seeded("b89");
    let (_origin, corpus, builder) = warm(if full() { Sizes::Mixed } else { Sizes::Small });
    let mut node = builder.memory("max_size = \"32MiB\"").disk("4GiB").start();
    let (mut wanted, mut lost, mut lost_first) = (0, 0, 0);
    for round in 0..if full() { 30 } else { 3 } {
        let durable = kill_under_load(&mut node, &corpus, round, &mut random);
        assert!(!durable.is_empty(), "round {round} came to nothing");
        let paths: Vec<_> = durable.into_iter().map(|answer| answer.path).collect();
        // The first request after the start, by itself.
        let first = paths.get(random.below(paths.len())).expect("it is below");
        lost_first += missed(&corpus, &node, std::slice::from_ref(first)).len();
        let missing = missed(&corpus, &node, &paths);
        eprintln!("round {round}: {} of {} lost", missing.len(), paths.len());
        wanted += paths.len();
        lost += missing.len();
    }
    let disk = node.disk(0);
    assert!(
        lost * 100 <= wanted && lost_first == 0,
        "{lost} of {wanted} lost, {lost_first} of the first ones; {disk:#?}"
    );
}

#[test]
fn b89_a_body_that_was_not_finished_leaves_nothing() {
    let origin = Origin::start();
    let body = vec![b'x'; 12 << 20];
    origin.on(
        "/large",
        [
            Reply::ok(&body).cached("max-age=60").gate_at(8 << 20, "never"),
            Reply::ok(&body).cached("max-age=60"),
        ],
    );
    let mut node = TestNode::builder().origin(&origin).disk("64MiB").start();
    let mut client = node.connect();
    client.send("GET /large HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let _ = client.read_head("GET").expect("a head comes before the body");
    let _ = client.read_bytes(6 << 20);
    let bodies = node.disk_path(0).join("bodies");
    wait_until("the body to be written", || {
        files_below(&bodies)
            .iter()
            .any(|path| fs::metadata(path).is_ok_and(|facts| facts.len() > 1 << 20))
    });
    node.kill();
    node.start_again();
    wait_until("what was left over to be removed", || files_below(&bodies).is_empty());
    let _ = node.get("a.test", "/large").expect(200, &body);
    assert_eq!(origin.count("/large"), 2);
    node.wait_written();
    let hit = node.get("a.test", "/large").expect(200, &body);
    assert!(hit.is_hit(), "{:?}", hit.fields);
}

#[test]
fn a_stop_and_a_start_keep_everything() {
    let (_origin, corpus, builder) = warm(Sizes::Mixed);
    let mut node = builder.memory("max_size = \"64MiB\"").disk("1GiB").start();
    let paths = paths("kept", 400);
    assert_eq!(missed(&corpus, &node, &paths).len(), paths.len());
    // Twice what matters: those are hot.
    let _ = Load::new(&corpus, node.data).ask(&paths);
    assert_eq!(node.stop().code(), Some(0));
    node.start_again();
    let first = node.get("a.test", &paths[7]);
    assert!(first.is_hit(), "the first request: {:?}", first.fields);
    assert_eq!(missed(&corpus, &node, &paths), Vec::<String>::new());
    assert_eq!(corpus.asked_in_all(), paths.len());
    let disk = node.wait_disk(0, "to be warm", Disk::is_warm);
    assert_eq!(disk.figure("objects"), paths.len() as u64);
}

#[test]
fn memory_is_refilled_after_a_start() {
    let (_origin, corpus, builder) = warm(Sizes::Small);
    let mut node = builder.memory("max_size = \"64MiB\"").disk("1GiB").start();
    let paths = paths("hot", 200);
    for _ in 0..3 {
        let _ = Load::new(&corpus, node.data).ask(&paths);
    }
    assert_eq!(node.stop().code(), Some(0));
    node.start_again();
    node.wait_figure("cache/objects", 200);
    let from_disk = || node.disk(0).figure("hits");
    let before = from_disk();
    assert_eq!(missed(&corpus, &node, &paths), Vec::<String>::new());
    assert_eq!(
        from_disk(),
        before,
        "they are asked of the disk though they are in memory"
    );
}

/// The first configuration of the README that has a virtual host, with other ports and directories.
fn smallest_configuration(directory: &Path, origin: &Origin) -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = fs::read_to_string(readme).expect("there is a README");
    let blocks = readme.split("```toml\n").skip(1);
    let mut blocks = blocks.filter_map(|rest| Some(rest.split_once("```")?.0));
    let block = blocks
        .find(|block| block.contains("[[vhost]]\n"))
        .expect("it has a configuration");
    let directory = directory.to_str().expect("a plain path");
    block
        .replace("/var/lib/larder", directory)
        .replace("127.0.0.1:8080", "127.0.0.1:0")
        .replace("127.0.0.1:9090", "127.0.0.1:0")
        .replace("127.0.0.1:9000", &origin.address().to_string())
}

#[test]
fn the_smallest_configuration_stays_warm() {
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("page").cached("max-age=60")]);
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let text = smallest_configuration(directory.path(), &origin);
    assert!(text.contains("[[cache.disk]]"), "no disk in {text}");
    let path = directory.path().join("larder.toml");
    fs::write(&path, text).expect("the configuration is written");
    for run in 0..2 {
        let mut process = Process::start([Path::new("run"), Path::new("--config"), &path]);
        let (data, _) = process.wait_line("`ready` line", DEADLINE, 0, parse_ready);
        let answer = larder_tests::client::get(data[0], "www.example.test", "/p").expect(200, "page");
        assert_eq!(answer.is_hit(), run == 1, "run {run}: {:?}", answer.fields);
        process.signal(Signal::TERM);
        assert_eq!(process.wait(DEADLINE).code(), Some(0));
    }
    assert_eq!(origin.count("/p"), 1);
}

/// What else is lost in the crash, below the disk's path. What is left of the index has to be read before all is known.
const LOST: [&[&str]; 4] = [&[], &["index"], &["snapshot"], &["index", "snapshot"]];

fn lose(disk: &Path, names: &[&str]) {
    for name in names {
        let path = disk.join(name);
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        // The snapshot is written now and then only.
        assert!(removed.is_ok() || !path.exists(), "{removed:?}");
    }
}

#[test]
fn what_was_purged_stays_away_after_a_kill() {
    for (n, lost) in LOST.iter().enumerate() {
        let (_origin, corpus, builder) = warm(Sizes::Small);
        let mut node = builder.disk("64MiB").start();
        let (all, purged) = (paths("p", 30), paths("p", 15));
        let _ = missed(&corpus, &node, &all);
        if n % 2 == 0 {
            // The snapshot of the index, and sled as it is at a clean stop, know the objects.
            assert_eq!(node.stop().code(), Some(0));
            node.start_again();
        }
        node.wait_written();
        for path in &purged {
            corpus.replace(path);
            let _ = node.purge(&format!("http://a.test{path}"));
        }
        node.kill();
        lose(&node.disk_path(0), lost);
        node.start_again();
        let _ = node.wait_disk(0, "to be warm", Disk::is_warm);
        assert_eq!(missed(&corpus, &node, &all), purged, "lost: {lost:?}");
        assert_eq!(missed(&corpus, &node, &all), Vec::<String>::new());
    }
}

#[test]
fn variants_that_were_purged_stay_away_after_a_kill() {
    for lost in LOST {
        let origin = Origin::start();
        origin.on_each("/v", |request, n| {
            let language = request.header("accept-language").unwrap_or_default();
            let reply = Reply::ok(format!("{language} {n}")).cached("max-age=60");
            reply.header("Vary", "Accept-Language").steps_for("GET")
        });
        let purging = "purge = { method = \"PURGE\", allow = [\"127.0.0.1/32\"] }";
        let mut node = TestNode::builder()
            .origin(&origin)
            .vhost("www", &["*"])
            .vhost_lines(purging)
            .disk("64MiB")
            .start();
        let ask = |node: &TestNode, language: &str| {
            let answer = node.fetch("GET", "a.test", "/v", &format!("Accept-Language: {language}\r\n"));
            assert!(answer.text().starts_with(language), "{language}: {}", answer.text());
            answer.cache().to_owned()
        };
        let languages = ["en", "de", "fr"];
        for want in ["MISS", "HIT"] {
            assert_eq!(languages.map(|language| ask(&node, language)), [want; 3]);
        }
        node.wait_written();
        let purged = node.fetch("PURGE", "a.test", "/v", "");
        assert_eq!(purged.status, 200, "{}", purged.text());
        node.kill();
        lose(&node.disk_path(0), lost);
        node.start_again();
        for want in ["MISS", "HIT"] {
            assert_eq!(
                languages.map(|language| ask(&node, language)),
                [want; 3],
                "lost: {lost:?}"
            );
        }
    }
}

#[test]
fn variants_are_found_after_a_kill() {
    let origin = Origin::start();
    origin.on_each("/v", |request, _| {
        let language = request.header("accept-language").unwrap_or_default();
        let reply = Reply::ok(language).cached("max-age=60");
        reply.header("Vary", "Accept-Language").steps_for("GET")
    });
    let mut node = TestNode::builder().origin(&origin).disk("64MiB").start();
    let base = tempfile::TempDir::new().expect("a temporary directory");
    let languages: Vec<_> = (0..20).map(|n| format!("l{n}")).collect();
    let ask = |node: &TestNode| {
        for language in &languages {
            let line = format!("Accept-Language: {language}\r\n");
            let _ = node.fetch("GET", "a.test", "/v", &line).expect(200, language);
        }
    };
    ask(&node);
    node.wait_written();
    node.kill();
    copy_directory(&node.disk_path(0), &base.path().join("disk"));
    for lost in LOST {
        fs::remove_dir_all(node.disk_path(0)).expect("the disk is there");
        copy_directory(&base.path().join("disk"), &node.disk_path(0));
        lose(&node.disk_path(0), lost);
        node.start_again();
        let _ = node.wait_disk(0, "to be warm", Disk::is_warm);
        ask(&node);
        assert_eq!(origin.count("/v"), languages.len(), "lost: {lost:?}");
        node.kill();
    }
}
