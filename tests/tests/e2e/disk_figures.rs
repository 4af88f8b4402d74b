//! What the disk tier says of itself: bytes and objects that are really there, the same in every place where they are shown.

use larder_tests::corpus::serving;
use larder_tests::node::disks::{Disk, allocated};
use larder_tests::node::process::run_with;
use larder_tests::wait::wait_for;
use larder_tests::{Corpus, DEADLINE, Load, Origin, Sizes, TestNode, full, paths};

/// What is counted in other units than what `stat` counts: directories, the marker, the lock.
const ROUNDING: u64 = 128 << 10;

#[test]
fn used_is_what_is_allocated() {
    let (_origin, corpus, node) = serving(Sizes::Mixed, |node| {
        node.vhost("a", &["a.test"]).vhost("b", &["b.test"]).disk("256MiB")
    });
    let mut paths = paths("counted", 300);
    let large = (0..)
        .map(|n| format!("/large/{n}"))
        .filter(|path| corpus.size(path) > 4 << 20);
    paths.extend(large.take(3));
    let _ = Load::new(&corpus, node.data).ask(&paths);
    let _ = Load::new(&corpus, node.data).host("b.test").ask(&paths[..100]);
    node.wait_written();
    let path = node.disk_path(0);
    // The index is measured once a second.
    let disk = node.wait_disk(0, "to use what is allocated", |disk| {
        disk.figure("used").abs_diff(allocated(&path)) <= ROUNDING
    });
    assert!(disk.figure("used") <= disk.figure("max"), "{disk:#?}");
    assert!(disk.figure("live_bytes") < disk.figure("used"), "{disk:#?}");
    let stats = node.stats();
    let each = ["a", "b"].map(|name| {
        let cache = &stats["cache"]["vhosts"][name];
        let figure = |what: &str| {
            cache[what]
                .as_u64()
                .unwrap_or_else(|| panic!("no {what} of {name} in {stats:#}"))
        };
        (figure("disk_objects"), figure("disk_bytes"))
    });
    assert_eq!(each.map(|(objects, _)| objects), [303, 100]);
    assert_eq!(
        each.iter().map(|(_, bytes)| bytes).sum::<u64>(),
        disk.figure("live_bytes"),
        "{each:?}"
    );
    let bodies: usize = paths.iter().map(|path| corpus.size(path)).sum();
    assert!(each[0].1 >= bodies as u64, "{each:?}: bodies of {bodies} bytes alone");
}

/// The sum of a family's samples that have all of these in their labels.
fn metric(text: &str, family: &str, labels: &[&str]) -> u64 {
    let samples = text.lines().filter(|line| line.starts_with(&format!("{family}{{")));
    let values = samples
        .filter(|line| labels.iter().all(|label| line.contains(label)))
        .map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    values.map(|value| value.expect("a sample has a value")).sum()
}

#[test]
fn every_face_shows_the_same_of_a_disk() {
    let (_origin, corpus, node) = serving(Sizes::Small, |node| node.disk("64MiB"));
    let _ = Load::new(&corpus, node.data).ask(&paths("shown", 50));
    node.wait_written();
    let disk = node.disk(0);
    let text = node.admin_call("GET", "/metrics", None).text();
    assert_eq!(metric(&text, "larder_disk_objects", &[]), 50, "{text}");
    assert_eq!(metric(&text, "larder_disk_live_bytes", &[]), disk.figure("live_bytes"));
    assert_eq!(metric(&text, "larder_disk_max_bytes", &[]), 64 << 20);
    assert_eq!(metric(&text, "larder_disk_up", &[]), 1);
    let of_vhost = ["vhost=\"www\"", "tier=\"disk\""];
    assert_eq!(metric(&text, "larder_vhost_cache_objects", &of_vhost), 50);
    assert_eq!(
        metric(&text, "larder_vhost_cache_bytes", &of_vhost),
        disk.figure("live_bytes")
    );
    let admin = format!("http://{}", node.admin);
    let (code, told) = run_with(&["stats", "--admin", &admin], Some(&node.token()), DEADLINE);
    let path = node.disk_path(0).display().to_string();
    let line = told.lines().find(|line| line.contains(&path));
    let line = line.unwrap_or_else(|| panic!("no {path} in {told}"));
    assert!(code == Some(0) && line.contains("up") && line.contains("50"), "{told}");
}

#[test]
fn a_purge_is_seen_in_the_gauges() {
    let (_origin, corpus, node) = serving(Sizes::Small, |node| node.disk("64MiB"));
    let paths = paths("purged", 20);
    let _ = Load::new(&corpus, node.data).ask(&paths);
    node.wait_written();
    for path in &paths {
        let _ = node.purge(&format!("http://a.test{path}"));
    }
    let disk = node.wait_disk(0, "to be empty", |disk| disk.figure("objects") == 0);
    assert_eq!(
        (disk.figure("live_bytes"), node.figure("cache/objects")),
        (0, 0),
        "{disk:#?}"
    );
}

#[test]
fn what_nobody_asks_for_goes() {
    if !full() {
        // The time of a use is known to sixteen seconds.
        return;
    }
    let (_origin, corpus, node) = serving(Sizes::Small, |node| {
        node.memory("max_size = \"0\"")
            .disk("64MiB")
            .disk_lines("inactive = \"1s\"")
    });
    let paths = paths("idle", 50);
    let _ = Load::new(&corpus, node.data).ask(&paths);
    let gone = |disk: &Disk| disk.figure("objects") == 0 && disk.figure("inactive") == 50;
    wait_for("the objects to go", 3 * DEADLINE, || gone(&node.disk(0)).then_some(()));
    assert_eq!(node.disk(0).figure("live_bytes"), 0);
    assert_eq!(node.get("a.test", &paths[0]).cache(), "MISS");
}

#[test]
fn what_is_expired_goes() {
    if !full() {
        // It is kept for a minute after its end.
        return;
    }
    let origin = Origin::start();
    let corpus = Corpus::new(Sizes::Small).cached("max-age=1");
    corpus.serve_from(&origin);
    let node = TestNode::builder()
        .origin(&origin)
        .memory("max_size = \"0\"")
        .disk("64MiB")
        .start();
    let _ = Load::new(&corpus, node.data).ask(&paths("short", 50));
    let gone = |disk: &Disk| disk.figure("objects") == 0 && disk.figure("expired") == 50;
    wait_for("the objects to go", 12 * DEADLINE, || gone(&node.disk(0)).then_some(()));
}
