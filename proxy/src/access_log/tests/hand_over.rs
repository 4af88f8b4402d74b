//! Every line is in a file or counted as dropped.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::config::LogFormat;
use queue::{Attempt, StillWriting, Work};

const DEADLINE: Duration = Duration::from_secs(20);

fn open(path: &Path) -> AccessLog {
    AccessLog::open(&config::AccessLog {
        path: path.to_owned(),
        format: LogFormat::Json,
    })
    .expect("the log opens")
}

/// The targets in a file of JSON lines.
fn targets(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("the log is there");
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    let target = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("a whole line");
        value["target"].as_str().expect("a target").to_owned()
    };
    text.lines().map(target).collect()
}

fn write(log: &mut WorkerLog, target: &str) {
    log.line(&Entry {
        target: target.as_bytes(),
        ..entry()
    });
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        thread::yield_now();
    }
}

#[test]
fn lines_of_all_workers_are_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("access.log");
    let log = open(&path);
    thread::scope(|scope| {
        for worker in 0..4 {
            let mut handle = log.handle();
            scope.spawn(move || (0..2000).for_each(|n| write(&mut handle, &format!("/{worker}/{n}"))));
        }
    });
    log.close();
    let targets = targets(&path);
    assert_eq!(
        (targets.len(), targets.iter().collect::<HashSet<_>>().len()),
        (8000, 8000)
    );
    assert_eq!((log.dropped(), log.trouble()), (0, None));
    // Lines of one worker keep their order.
    let of_first: Vec<_> = targets.iter().filter(|target| target.starts_with("/0/")).collect();
    assert!(
        of_first
            .iter()
            .enumerate()
            .all(|(n, target)| **target == format!("/0/{n}"))
    );
}

#[test]
fn a_flush_brings_few_lines_to_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("access.log");
    let log = open(&path);
    let mut worker = log.handle();
    write(&mut worker, "/a");
    worker.flush();
    worker.flush();
    wait_until("the line", || fs::read(&path).is_ok_and(|text| text.ends_with(b"\n")));
    assert_eq!(targets(&path), ["/a"]);
}

#[test]
fn rotation_loses_no_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("access.log");
    let log = open(&path);
    let rotated = |n: usize| directory.path().join(format!("access.log.{n}"));
    let rotations = 5;
    thread::scope(|scope| {
        let mut worker = log.handle();
        let writing = scope.spawn(move || {
            for n in 0..20_000 {
                write(&mut worker, &format!("/{n}"));
                if n % 50 == 0 {
                    worker.flush();
                }
            }
        });
        for n in 0..rotations {
            fs::rename(&path, rotated(n)).expect("the log is there");
            log.reopen();
            wait_until("the new file", || path.exists());
        }
        writing.join().expect("the worker");
    });
    log.close();
    let mut all: Vec<_> = (0..rotations).flat_map(|n| targets(&rotated(n))).collect();
    all.extend(targets(&path));
    assert_eq!(log.dropped(), 0);
    let expected: Vec<_> = (0..20_000).map(|n| format!("/{n}")).collect();
    assert!(all == expected, "{} lines, in order and without doubles", all.len());
}

#[test]
fn a_failed_reopen_keeps_the_old_file_and_is_told_until_it_succeeds() {
    let directory = tempfile::tempdir().expect("a directory");
    let inner = directory.path().join("logs");
    fs::create_dir(&inner).expect("a directory");
    let log = open(&inner.join("access.log"));
    let mut worker = log.handle();
    write(&mut worker, "/before");
    let moved = directory.path().join("moved");
    fs::rename(&inner, &moved).expect("it can be moved");
    log.reopen();
    wait_until("the trouble", || log.trouble().is_some());
    assert!(log.trouble().is_some_and(|text| text.contains("opened anew")));
    worker.flush();
    wait_until("the line in the old file", || {
        targets(&moved.join("access.log")) == ["/before"]
    });
    // The success of a write says nothing about the next rotation.
    assert!(log.trouble().is_some());

    fs::create_dir(&inner).expect("a directory");
    log.reopen();
    wait_until("the end of the trouble", || log.trouble().is_none());
    write(&mut worker, "/after");
    drop(worker);
    log.close();
    assert_eq!(targets(&inner.join("access.log")), ["/after"]);
    assert_eq!(log.dropped(), 0);
}

#[test]
fn a_full_disk_costs_lines_that_are_counted() {
    let Ok(log) = AccessLog::open(&config::AccessLog {
        path: "/dev/full".into(),
        format: LogFormat::Combined,
    }) else {
        return;
    };
    let mut worker = log.handle();
    (0..3).for_each(|_| write(&mut worker, "/"));
    worker.flush();
    wait_until("the trouble", || log.trouble().is_some());
    write(&mut worker, "/");
    drop(worker);
    log.close();
    assert_eq!(log.dropped(), 4);
}

#[test]
fn what_finds_no_room_is_dropped_and_counted() {
    let cases = [
        Bounds {
            batches: 3,
            bytes: usize::MAX,
        },
        Bounds {
            batches: usize::MAX,
            bytes: 3 * BATCH_BYTES,
        },
        Bounds { batches: 0, bytes: 0 },
    ];
    for bounds in cases {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("access.log");
        let queue = Arc::new(Queue::new(bounds));
        let total = 5000;
        // Nobody takes anything meanwhile.
        let mut worker = WorkerLog::new(Arc::clone(&queue), LogFormat::Json);
        (0..total).for_each(|n| write(&mut worker, &format!("/{n}")));
        drop(worker);
        assert!(queue.dropped() > 0, "{bounds:?}");

        let deadline = Instant::now();
        thread::scope(|scope| {
            let sink = Sink::open(&path).expect("the log opens");
            scope.spawn(|| writer::run(&queue, sink));
            queue.close(deadline + DEADLINE).expect("it ends");
        });
        let written = targets(&path);
        assert_eq!(written.len() as u64 + queue.dropped(), total, "{bounds:?}");
        assert_eq!(written.is_empty(), bounds.batches == 0);
    }
}

#[test]
fn lines_after_the_close_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("access.log");
    let log = open(&path);
    let mut worker = log.handle();
    write(&mut worker, "/in");
    worker.flush();
    log.close();
    log.close();
    log.reopen();
    write(&mut worker, "/late");
    drop(worker);
    assert_eq!((targets(&path), log.dropped()), (vec!["/in".to_owned()], 1));
}

#[test]
fn a_writer_that_hangs_does_not_hold_up_the_close() {
    let queue = Queue::new(Bounds::DEFAULT);
    queue.push(b"a\nb\n".to_vec(), 2);
    queue.push(b"c\n".to_vec(), 1);
    // The writer took the first batch and never returned.
    assert!(matches!(queue.next(), Work::Write(batch) if batch.lines == 2));
    assert_eq!(queue.close(Instant::now()), Err(StillWriting { lines: 1 }));
    assert_eq!(queue.dropped(), 1);
    assert_eq!(queue.next(), Work::End);
}

#[test]
fn a_trouble_is_news_once() {
    let queue = Queue::new(Bounds::DEFAULT);
    let full = || Some("full".to_owned());
    assert!(!queue.note(Attempt::Write, None));
    assert!(queue.note(Attempt::Write, full()));
    assert!(!queue.note(Attempt::Write, full()));
    assert!(!queue.note(Attempt::Reopen, None));
    assert_eq!(queue.trouble(), full());
    assert!(queue.note(Attempt::Write, None));
    assert_eq!(queue.trouble(), None);
}
