//! A disk that fails, is full, vanishes or is not ours (B86, B87): requests go on, the tier says why, and comes back by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use larder_tests::corpus::serving;
use larder_tests::node::disks::{Disk, allocated, block, exchange, files_below};
use larder_tests::node::process::Process;
use larder_tests::{Answer, Corpus, DEADLINE, Load, Sizes, TestNode, paths, wait_until};
use serde_json::json;
use tempfile::TempDir;

/// Statistics and `/readyz` say that it is degraded, with a reason that holds this; requests are still taken.
fn wait_degraded(node: &TestNode, reason: &str) {
    let disk = node.wait_disk(0, "to be degraded", |disk| !disk.is_up());
    assert_eq!(disk.state(), "degraded", "{disk:#?}");
    let (status, tiers) = node.readiness();
    let text = tiers.to_string();
    // It may recover and fail again meanwhile; what it says of the reason is what counts.
    assert!(
        status == 200 && text.contains("degraded") && text.contains(reason),
        "{status} {tiers:#}"
    );
    assert!(disk.detail().contains(reason), "{disk:#?}");
}

/// It stores and serves again: objects that were never asked for become hits. Right after the trouble it may still lose some.
fn wait_working(node: &TestNode, corpus: &Corpus, group: &str) {
    let _ = node.wait_disk(0, "to be up", Disk::is_up);
    let load = Load::new(corpus, node.data);
    let tries = AtomicUsize::new(0);
    wait_until("new objects to be stored", || {
        let fresh = paths(&format!("{group}/{}", tries.fetch_add(1, Ordering::Relaxed)), 20);
        let before = node.disk(0).figure("written");
        let _ = load.ask(&fresh);
        node.wait_written();
        let disk = node.disk(0);
        disk.is_up() && disk.figure("written") >= before + 20 && load.ask(&fresh).iter().all(Answer::is_hit)
    });
    let (status, tiers) = node.readiness();
    assert!(status == 200 && !tiers.to_string().contains("degraded"), "{tiers:#}");
}

/// The index is younger than the disk's last trouble, and may be lost with the process: it is waited for until it was made again.
fn kill_and_start(node: &mut TestNode) {
    node.kill();
    node.start_again();
    let _ = node.wait_disk(0, "to be warm", Disk::is_warm);
}

/// Purges what was replaced; it is done, but the disk can't note it.
fn purge_in_vain(node: &TestNode, corpus: &Corpus, path: &str) {
    corpus.replace(path);
    let url = format!("http://a.test{path}");
    let (status, problem) = node.admin_post("/api/v1/purges", &json!({"match": {"url": url}}));
    assert_eq!((status, &problem["code"]), (503, &json!("not-durable")), "{problem:#}");
}

#[test]
fn b87_a_directory_that_is_removed_is_made_anew() {
    let (_origin, corpus, mut node) = serving(Sizes::Small, |node| node.disk("64MiB"));
    let objects = paths("before", 100);
    let load = Load::new(&corpus, node.data);
    let _ = load.ask(&objects);
    node.wait_written();
    let disk = node.disk_path(0);
    fs::rename(&disk, node.disk_path(7)).expect("the directory is moved");
    fs::remove_dir_all(node.disk_path(7)).expect("the directory is removed");
    let _ = load.ask(&objects);
    let told = node.process();
    told.wait_line("word of the trouble", DEADLINE, 0, |line| {
        line.contains("degraded").then_some(())
    });
    wait_working(&node, &corpus, "after");
    assert!(
        !files_below(&disk).is_empty(),
        "there is nothing below {}",
        disk.display()
    );
    let _ = load.ask(&objects);
}

#[test]
fn b87_a_directory_that_cannot_be_made_again_is_waited_for() {
    let (_origin, corpus, mut node) = serving(Sizes::Mixed, |node| node.memory("max_size = \"0\"").disk("64MiB"));
    let objects = paths("before", 100);
    let load = Load::new(&corpus, node.data);
    let _ = load.ask(&objects);
    let _ = block(&node.disk_path(0));
    wait_degraded(&node, "directory");
    // Old ones and new ones, as a cache that stores nothing.
    for group in ["before", "during"] {
        let _ = load.ask(&paths(group, 100));
    }
    purge_in_vain(&node, &corpus, "/before/3");
    let _ = load.ask(&objects);
    fs::remove_file(node.disk_path(0)).expect("the file is removed");
    wait_working(&node, &corpus, "after");
    node.wait_written();
    kill_and_start(&mut node);
    let again = Load::new(&corpus, node.data).ask(&paths("after/0", 20));
    assert!(again.iter().all(Answer::is_hit), "the new cache is not found again");
}

#[test]
fn b87_one_that_comes_back_is_used_again() {
    let (_origin, corpus, mut node) = serving(Sizes::Small, |node| node.memory("max_size = \"0\"").disk("64MiB"));
    let objects = paths("before", 50);
    let load = Load::new(&corpus, node.data);
    let _ = load.ask(&objects);
    node.wait_written();
    // As if a file system were unmounted and mounted again.
    let away = block(&node.disk_path(0));
    wait_degraded(&node, "directory");
    for path in ["/before/3", "/before/4"] {
        purge_in_vain(&node, &corpus, path);
    }
    exchange(&away, &node.disk_path(0));
    wait_working(&node, &corpus, "after");
    // What it held is of use again, but for what was purged; also after a restart.
    let before = corpus.asked_in_all();
    let _ = load.ask(&objects);
    assert_eq!(corpus.asked_in_all(), before + 2);
    node.wait_written();
    kill_and_start(&mut node);
    let load = Load::new(&corpus, node.data);
    assert!(load.ask(&objects).iter().all(Answer::is_hit));
}

#[test]
fn b87_an_unwritable_path_is_no_reason_not_to_start() {
    let place = TempDir::new().expect("a temporary directory");
    let file = place.path().join("file");
    fs::write(&file, "in the way").expect("a file is written");
    let (_origin, corpus, node) = serving(Sizes::Small, |node| node.disk_at(&file.join("cache"), "64MiB"));
    wait_degraded(&node, "directory");
    let load = Load::new(&corpus, node.data);
    let objects = paths("early", 50);
    let _ = load.ask(&objects);
    assert!(
        load.ask(&objects).iter().all(Answer::is_hit),
        "memory does not work alone"
    );
    fs::remove_file(&file).expect("the file is removed");
    wait_working(&node, &corpus, "late");
}

/// A small file system of its own, as long as it is needed.
struct Mount(PathBuf);

impl Mount {
    /// `None` where that is not permitted.
    fn new(options: &str) -> Option<(TempDir, Self)> {
        let place = TempDir::new().expect("a temporary directory");
        let path = place.path().join("mount");
        fs::create_dir(&path).expect("a place to mount at");
        let done = run("mount", &["-t", "tmpfs", "-o", options, "tmpfs"], &path);
        if !done {
            eprintln!("skipped: no file system can be mounted here");
        }
        done.then(|| (place, Self(path)))
    }

    fn remount(&self, options: &str) {
        assert!(
            run("mount", &["-o", &format!("remount,{options}")], &self.0),
            "remount,{options}"
        );
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let status = Command::new(program).args(arguments).arg(path).output();
    status.is_ok_and(|output| output.status.success())
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Whatever still has files open there goes on with them.
        let _ = run("umount", &["--lazy"], &self.0);
    }
}

#[test]
fn b86_a_full_disk_fails_no_request() {
    let Some((_place, mount)) = Mount::new("size=24m") else {
        return;
    };
    let cache = mount.0.join("cache");
    // It believes to have more than there is.
    let (_origin, corpus, node) = serving(Sizes::Mixed, |node| {
        node.memory("max_size = \"2MiB\"").disk_at(&cache, "64MiB")
    });
    let load = Load::new(&corpus, node.data);
    let _ = load.ask(&paths("more", 1200));
    let used = node.disk(0).figure("used");
    assert!(
        allocated(&cache) <= 24 << 20 && used <= 25 << 20,
        "{used} bytes used of 24 MiB"
    );
    // Somebody else takes the rest.
    let filler = mount.0.join("filler");
    let taken = Command::new("dd")
        .args(["if=/dev/zero", "bs=64k"])
        .arg(format!("of={}", filler.display()))
        .output();
    assert!(
        taken.is_ok_and(|output| !output.status.success()),
        "the file system is not full"
    );
    let _ = load.ask(&paths("while-full", 600));
    let _ = load.ask(&paths("more", 300));
    fs::remove_file(&filler).expect("the filler is removed");
    wait_working(&node, &corpus, "after");
}

#[test]
fn b86_a_file_system_that_is_full_from_the_start() {
    let Some((_place, mount)) = Mount::new("size=1m") else {
        return;
    };
    let cache = mount.0.join("cache");
    fs::write(mount.0.join("filler"), vec![1; (1 << 20) - 8192]).expect("the filler is written");
    let (_origin, corpus, node) = serving(Sizes::Mixed, |node| node.disk_at(&cache, "64MiB"));
    let load = Load::new(&corpus, node.data);
    let _ = load.ask(&paths("full", 300));
    fs::remove_file(mount.0.join("filler")).expect("the filler is removed");
    mount.remount("size=32m");
    wait_working(&node, &corpus, "after");
}

#[test]
fn b87_a_read_only_file_system_is_waited_for() {
    let Some((_place, mount)) = Mount::new("size=32m") else {
        return;
    };
    let cache = mount.0.join("cache");
    mount.remount("ro");
    let (_origin, corpus, mut node) = serving(Sizes::Small, |node| node.disk_at(&cache, "64MiB"));
    wait_degraded(&node, "");
    let _ = Load::new(&corpus, node.data).ask(&paths("read-only", 50));
    mount.remount("rw");
    wait_working(&node, &corpus, "writable");
    node.wait_written();
    assert_eq!(node.stop().code(), Some(0));
    // With a cache on it.
    mount.remount("ro");
    node.start_again();
    let load = Load::new(&corpus, node.data);
    let _ = load.ask(&paths("writable/0", 20));
    let _ = load.ask(&paths("read-only", 50));
    mount.remount("rw");
    wait_working(&node, &corpus, "again");
}

/// Starts a node that must refuse to; what it says.
fn refused(node: &TestNode) -> String {
    let path = node.config_path();
    let mut process = Process::start([Path::new("run"), Path::new("--config"), &path]);
    let status = process.wait(DEADLINE);
    let said = process.output();
    assert!(!status.success(), "it ran: {said}");
    said
}

#[test]
fn two_processes_do_not_share_a_cache_directory() {
    let place = TempDir::new().expect("a temporary directory");
    let cache = place.path().join("cache");
    let (_origin, corpus, first) = serving(Sizes::Small, |node| node.disk_at(&cache, "64MiB"));
    let objects = paths("first", 50);
    let _ = Load::new(&corpus, first.data).ask(&objects);
    let mut second = TestNode::builder().upstream("app", first.data).disk("64MiB").start();
    assert_eq!(second.stop().code(), Some(0));
    let (own, theirs) = (second.disk_path(0), cache.display().to_string());
    let text = second.config_text().replace(&own.display().to_string(), &theirs);
    second.rewrite_config(&text);
    let said = refused(&second);
    assert!(said.contains(&theirs) && said.contains("another process"), "{said}");
    assert!(Load::new(&corpus, first.data).ask(&objects).iter().all(Answer::is_hit));
    first.wait_written();
    assert!(first.disk(0).is_up());
}

#[test]
fn a_directory_with_other_files_is_left_alone() {
    let place = TempDir::new().expect("a temporary directory");
    let cache = place.path().join("photos");
    let mut node = TestNode::builder()
        .disk_at(&cache, "64MiB")
        .upstream("app", ([127, 0, 0, 1], 9).into())
        .start();
    assert_eq!(node.stop().code(), Some(0));
    fs::remove_dir_all(&cache).expect("the cache is removed");
    fs::create_dir(&cache).expect("the directory is made");
    fs::write(cache.join("family.jpg"), "dear").expect("a photo");
    let said = refused(&node);
    assert!(
        said.contains(&cache.display().to_string()) && said.contains("not a cache"),
        "{said}"
    );
    assert_eq!(files_below(&cache), [cache.join("family.jpg")]);
    assert_eq!(fs::read(cache.join("family.jpg")).expect("it is there"), b"dear");
}
