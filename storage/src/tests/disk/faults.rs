//! A disk that fails: requests go on, the tier says why it is degraded, and comes back by itself; nothing wrong is ever found.

use super::super::*;
use super::rig::{FOR_EVER, Rig, bytes};
use crate::disk::DiskState;
use crate::disk::volume::faulty;

fn key(number: u64) -> String {
    format!("a|{number}")
}

fn body(number: u64) -> Vec<u8> {
    bytes(number, [40, 5_000, 70_000, 1_200_000][(number % 4) as usize])
}

/// Stores, reads and purges what it can, and checks whatever it gets.
fn use_it(rig: &Rig, round: u64) {
    for number in 0..8 {
        let number = round * 8 + number;
        if rig.put(&key(number), "x", &body(number)).is_ok() {
            check(rig, number);
        }
    }
    let purged = round * 8 + 3;
    let noted = rig.wait(rig.store.purge_durably(key(purged).as_bytes()));
    assert!(rig.read_if_whole(&key(purged), PLAIN).is_none(), "{noted:?}");
}

fn check(rig: &Rig, number: u64) {
    if let Some((_, found)) = rig.read_if_whole(&key(number), PLAIN) {
        assert!(found == body(number), "{number}: wrong bytes");
    }
}

#[test]
fn b87_any_operation_may_fail() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("disk");
    let disk = faulty::plant(&path);
    let own = path.clone();
    let rig = Rig::with(0, &[32 * MIB], move |options| options.disks[0].path = own);
    rig.settle();
    for nth in 0..14 {
        disk.fail(nth, 2);
        use_it(&rig, nth as u64);
        // Failures that have not come yet come now, or never.
        disk.fail(i64::MAX, 0);
        rig.until("it does not come back", |disk| {
            disk.state == DiskState::Up && disk.queue_bytes == 0
        });
        for number in 0..8 {
            check(&rig, nth as u64 * 8 + number);
        }
        let number = 10_000 + nth as u64 * 8;
        rig.put(&key(number), "x", &body(number)).unwrap();
        assert!(rig.read_if_whole(&key(number), PLAIN).is_some());
    }
    assert!(disk.has_failed());
}

#[test]
fn what_is_purged_while_the_disk_fails_stays_away() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("disk");
    let disk = faulty::plant(&path);
    let own = path.clone();
    let mut rig = Rig::with(0, &[32 * MIB], move |options| options.disks[0].path = own);
    rig.put(&key(1), "x", &body(1)).unwrap();
    rig.settle();
    disk.fail(0, i64::MAX);
    let noted = rig.wait(rig.store.purge_durably(key(1).as_bytes()));
    assert!(noted.is_err(), "a purge that is not on disk is told so");
    assert!(rig.read_if_whole(&key(1), PLAIN).is_none());
    assert!(matches!(rig.disk().state, DiskState::Degraded(_)));
    assert!(rig.put(&key(2), "x", &body(2)).is_err());
    disk.fail(i64::MAX, 0);
    rig.until("it does not come back", |disk| disk.state == DiskState::Up);
    rig.settle();
    rig.reopen_after(|path| {
        let _ = std::fs::remove_file(path.join("snapshot"));
        let _ = std::fs::remove_dir_all(path.join("index"));
    });
    rig.settle();
    assert!(rig.read_if_whole(&key(1), PLAIN).is_none());
}

#[test]
fn what_nobody_asks_for_goes_after_its_time() {
    let mut rig = Rig::with(0, &[32 * MIB], |options| {
        options.disks[0].inactive = Some(Duration::from_secs(3600));
        options.clock = super::rig::other_clock;
    });
    let now = super::rig::other_clock() / 1000;
    rig.put_as("a|short", "s", b"s", None, now + 60).unwrap();
    rig.put_as("a|long", "l", b"l", None, FOR_EVER).unwrap();
    rig.put_as("a|asked", "a", b"a", None, FOR_EVER).unwrap();
    rig.settle();
    super::rig::OTHER_MS.fetch_add(120_000, std::sync::atomic::Ordering::Relaxed);
    rig.until("what is expired stays", |disk| disk.counters.expired == 1);
    super::rig::OTHER_MS.fetch_add(3_000_000, std::sync::atomic::Ordering::Relaxed);
    assert!(rig.read("a|asked", PLAIN).is_some());
    super::rig::OTHER_MS.fetch_add(1_000_000, std::sync::atomic::Ordering::Relaxed);
    rig.until("what is inactive stays", |disk| disk.counters.inactive == 1);
    assert!(rig.read("a|asked", PLAIN).is_some() && rig.read("a|long", PLAIN).is_none());
    rig.reopen();
    rig.settle();
    assert_eq!(rig.disk().objects, 1);
}
