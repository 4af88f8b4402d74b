//! What a disk does not take, and several disks side by side.

use super::super::*;
use super::rig::{Rig, bytes};
use crate::disk::DiskState;
use crate::disk::volume::faulty::{self, Faulty};

fn key(number: u64) -> String {
    format!("a|{number}")
}

/// A store on a disk that can be told to misbehave.
fn faulty_rig(memory: u64, disk: u64, min_free: u64) -> (Rig, Arc<Faulty>) {
    let mut planted = None;
    let rig = Rig::with(memory, &[disk], |options| {
        options.disks[0].min_free = min_free;
        planted = Some(faulty::plant(&options.disks[0].path));
    });
    rig.settle();
    (rig, planted.unwrap())
}

const LEN: usize = 150_000;

/// More than the queue takes while nothing is written; memory takes them all.
fn overfill(rig: &Rig, disk: &Faulty) -> u64 {
    disk.hold(true);
    for number in 0..80 {
        rig.put(&key(number), "x", &bytes(number, LEN)).unwrap();
        assert!(rig.disk().queue_bytes <= 9 * MIB, "{:?}", rig.disk());
    }
    let refused = rig.disk().counters.refused_busy;
    assert!(refused > 10, "{refused} of 80 are refused");
    disk.hold(false);
    refused
}

fn expect_all(rig: &Rig, count: u64) {
    for number in 0..count {
        let (_, body) = rig
            .read(&key(number), PLAIN)
            .unwrap_or_else(|| panic!("{number} is lost"));
        assert!(body == bytes(number, LEN), "{number} has wrong bytes");
    }
}

#[test]
fn what_a_full_queue_refuses_is_written_once_there_is_room() {
    let (mut rig, disk) = faulty_rig(24 * MIB, 128 * MIB, 0);
    let refused = overfill(&rig, &disk);
    rig.until("they stay in memory alone", |disk| {
        disk.objects == 80 && disk.queue_bytes == 0
    });
    assert!(rig.disk().counters.demoted >= refused, "{:?}", rig.disk());
    // They are like all others now: new heads and purges reach the disk.
    rig.wait(rig.store.purge_durably(key(79).as_bytes())).unwrap();
    rig.reopen();
    rig.settle();
    expect_all(&rig, 79);
    assert!(rig.get(&key(79), PLAIN).is_none());
}

#[test]
fn what_a_full_queue_refused_survives_a_stop_at_once() {
    let (mut rig, disk) = faulty_rig(24 * MIB, 128 * MIB, 0);
    overfill(&rig, &disk);
    rig.reopen();
    rig.settle();
    assert_eq!(rig.disk().objects, 80);
    expect_all(&rig, 80);
}

#[test]
fn without_memory_a_full_queue_stores_nothing_and_says_so() {
    let (rig, disk) = faulty_rig(0, 128 * MIB, 0);
    disk.hold(true);
    let refused = (0..80).filter(|&number| match rig.put(&key(number), "x", &bytes(number, LEN)) {
        Ok(_) => false,
        Err(why) => {
            assert_eq!(why, NotKept::DiskBusy);
            true
        }
    });
    let refused: Vec<_> = refused.collect();
    assert!(refused.len() > 10 && rig.disk().counters.refused_busy == refused.len() as u64);
    disk.hold(false);
    rig.settle();
    for number in 0..80 {
        let read = rig.read(&key(number), PLAIN);
        assert_eq!(read.is_none(), refused.contains(&number), "{number}");
    }
}

#[test]
fn min_free_is_left_to_others() {
    let (rig, disk) = faulty_rig(0, 64 * MIB, 1 << 30);
    let fill = |from: u64, to: u64| {
        for number in from..to {
            let _ = rig.put(&key(number), "x", &bytes(number, LEN));
            rig.settle();
        }
    };
    fill(0, 200);
    assert_eq!(rig.disk().objects, 200, "there is room enough");
    let before = rig.disk().used;
    // Others took 10 MiB of what is to stay free; what goes is free again.
    let look = || disk.set_free((1 << 30) - 10 * MIB + before.saturating_sub(rig.disk().used));
    look();
    rig.until("it keeps what others need", |now| {
        look();
        now.used <= before - 10 * MIB
    });
    // It has looked again since, and what it keeps fits.
    let changes = rig.disk().index_bytes;
    fill(200, 201);
    rig.until("it does not look again", |now| {
        look();
        now.index_bytes != changes
    });
    let kept = rig.disk().objects;
    assert!(kept > 80 && kept < 160, "{kept} of 200 are left: {:?}", rig.disk());
    disk.set_free(u64::MAX);
    rig.until("it does not grow again", |now| {
        fill(300, 350);
        now.used > before - 8 * MIB
    });
    assert_eq!(rig.disk().state, DiskState::Up);
}

/// Objects of each disk.
fn spread(rig: &Rig) -> Vec<u64> {
    rig.store.usage().disks.iter().map(|disk| disk.objects).collect()
}

fn settle_all(rig: &Rig) {
    rig.until("a disk does not settle", |_| {
        let disks = rig.store.usage().disks;
        disks.iter().all(|disk| disk.queue_bytes == 0 && disk.warming.is_none())
    });
}

#[test]
fn several_disks_share_the_keys_and_each_keeps_its_own() {
    let mut rig = Rig::with(0, &[64 * MIB; 3], |_| {});
    for number in 0..300 {
        rig.put(&key(number), "x", &bytes(number, 500)).unwrap();
    }
    settle_all(&rig);
    let all = spread(&rig);
    assert!(
        all.iter().sum::<u64>() == 300 && all.iter().all(|&own| own > 60),
        "{all:?}"
    );
    let found = |rig: &Rig| {
        let is_found = |number: &u64| {
            rig.read(&key(*number), PLAIN)
                .is_some_and(|(_, body)| body == bytes(*number, 500))
        };
        (0..300).filter(is_found).count() as u64
    };
    rig.reopen();
    settle_all(&rig);
    assert_eq!((spread(&rig), found(&rig)), (all.clone(), 300));
    // Without one of them, only what it has is missing; its keys go to the others.
    let missing = rig.options.disks.remove(1);
    rig.reopen();
    settle_all(&rig);
    assert_eq!(found(&rig), 300 - all[1]);
    // In another order, and with the missing one again.
    rig.options.disks.push(missing);
    rig.options.disks.reverse();
    rig.reopen();
    settle_all(&rig);
    assert_eq!(found(&rig), 300);
}

#[test]
fn one_disk_in_trouble_is_no_trouble_for_another() {
    let mut planted = None;
    let rig = Rig::with(0, &[64 * MIB; 2], |options| {
        planted = Some(faulty::plant(&options.disks[0].path));
    });
    settle_all(&rig);
    planted.unwrap().fail(0, i64::MAX);
    let mut number = 1000;
    rig.until("it is not noticed", |disk| {
        number += 1;
        let _ = rig.put(&key(number), "x", b"x");
        disk.state != DiskState::Up
    });
    settle_all(&rig);
    let before = spread(&rig)[1];
    let stored = (0..100).filter(|&number| match rig.put(&key(number), "x", b"x") {
        Ok(_) => true,
        Err(why) => {
            assert_eq!(why, NotKept::DiskUnavailable);
            false
        }
    });
    let stored = stored.count() as u64;
    rig.until("the other one does not write", |_| spread(&rig)[1] == before + stored);
    assert!(stored > 20 && stored < 80, "{stored} of 100");
    assert_eq!(rig.store.usage().disks[1].state, DiskState::Up);
}

#[test]
fn a_clock_that_is_set_back_or_ahead_drops_nothing_early() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NOW_MS: AtomicU64 = AtomicU64::new(1_800_000_000_000);
    let year_ms = 365 * 24 * 3_600_000;
    let mut rig = Rig::with(8 * MIB, &[64 * MIB], |options| {
        options.disks[0].inactive = Some(Duration::from_secs(3600));
        options.clock = || NOW_MS.load(Ordering::Relaxed);
    });
    let keep_until = NOW_MS.load(Ordering::Relaxed) / 1000 + 600;
    for number in 0..20 {
        rig.put_as(&key(number), "x", &bytes(number, 100), None, keep_until)
            .unwrap();
    }
    rig.settle();
    NOW_MS.fetch_sub(year_ms, Ordering::Relaxed);
    for round in 0..2 {
        for number in 0..20 {
            assert!(rig.read(&key(number), PLAIN).is_some(), "{number} in round {round}");
        }
        rig.put(&key(100 + round), "x", b"new").unwrap();
        rig.reopen();
        rig.settle();
    }
    assert_eq!(rig.disk().objects, 22);
    // Right again, and past the time of the first ones.
    NOW_MS.fetch_add(year_ms + 700_000, Ordering::Relaxed);
    rig.until("what is expired stays", |disk| disk.objects == 2);
}
