//! The power goes: what was never synced may be there or not, page by page. What was is found again, nothing is ever wrong,
//! and what was purged stays away.

use std::fs;
use std::time::{Duration, Instant};

use super::super::*;
use super::rig::{FOR_EVER, Rig, bytes};
use super::walk::{copy_all, seed};
use crate::disk::volume::faulty;

const ROUNDS: u64 = 6;
const OBJECTS: u64 = 60;

fn len(number: u64) -> usize {
    [0, 12, 700, 4096, 20_000, 90_000][(number % 6) as usize]
}

fn put(rig: &Rig, number: u64) {
    let (key, text) = (format!("a|{number}"), number.to_string());
    rig.put_as(&key, &text, &bytes(number, len(number)), None, FOR_EVER)
        .unwrap();
}

/// Whether it is there; never with wrong bytes.
fn check(rig: &Rig, number: u64) -> bool {
    let Some((text, body)) = rig.read_if_whole(&format!("a|{number}"), PLAIN) else {
        return false;
    };
    assert!(
        text == number.to_string() && body == bytes(number, len(number)),
        "{number}: wrong bytes"
    );
    true
}

#[test]
fn b89_what_was_synced_outlives_a_power_cut() {
    let seed = seed();
    println!("LARDER_TEST_SEED={seed}");
    let mut state = seed | 1;
    let mut chance = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 33 & 1 == 0
    };
    let base = tempfile::tempdir().unwrap();
    let mut path = base.path().join("0");
    let mut disk = faulty::plant(&path);
    let own = path.clone();
    let mut rig = Rig::with(0, &[64 * MIB], move |options| options.disks[0].path = own);
    for round in 0..ROUNDS {
        rig.settle();
        let first = round * OBJECTS;
        (first..first + OBJECTS).for_each(|number| put(&rig, number));
        rig.settle();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !disk.is_synced() {
            assert!(Instant::now() < deadline, "nothing is synced");
            std::thread::yield_now();
        }
        // From here on nothing is sure.
        let purged = first + 1;
        rig.wait(rig.store.purge_durably(format!("a|{purged}").as_bytes()))
            .unwrap();
        (first + 10_000..first + 10_040).for_each(|number| put(&rig, number));
        rig.settle();
        path = base.path().join((round + 1).to_string());
        disk.lose_power(&path, &mut chance);
        if chance() {
            copy_all(&rig.disk_path().join("index"), &path.join("index"));
        }
        if chance() {
            let _ = fs::remove_file(path.join("snapshot"));
        }
        disk = faulty::plant(&path);
        rig.move_to(path.clone());
        rig.settle();
        for number in first..first + OBJECTS {
            assert_eq!(check(&rig, number), number != purged, "round {round}: {number}");
        }
        for number in first + 10_000..first + 10_040 {
            check(&rig, number);
        }
    }
}
