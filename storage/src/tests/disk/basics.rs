//! What every user expects: what was stored is found, across the tiers and a restart.

use std::fs;
use std::path::Path;

use super::super::*;
use super::rig::{FOR_EVER, Rig, bytes};
use crate::disk::DiskState;

const SIZES: [usize; 9] = [0, 1, 12, 4096, 32_768, 65_537, 200_000, 1_100_000, 3_000_000];

fn key(len: usize) -> String {
    format!("a|{len}")
}

fn fill_all(rig: &Rig) {
    for len in SIZES {
        rig.put(&key(len), &len.to_string(), &bytes(len as u64, len)).unwrap();
    }
}

fn expect_all(rig: &Rig) {
    for len in SIZES {
        let (text, body) = rig.read(&key(len), PLAIN).unwrap_or_else(|| panic!("{len} is lost"));
        assert_eq!((text, body.len()), (len.to_string(), len));
        assert!(body == bytes(len as u64, len), "{len} has wrong bytes");
    }
}

#[test]
fn objects_of_any_size_are_found_on_disk_and_after_a_restart() {
    for memory in [0, 64 * MIB] {
        let mut rig = Rig::new(memory, 256 * MIB);
        fill_all(&rig);
        expect_all(&rig);
        rig.settle();
        expect_all(&rig);
        for round in 0..3 {
            rig.reopen();
            expect_all(&rig);
            rig.settle();
            assert_eq!(rig.disk().objects, SIZES.len() as u64, "round {round}");
            expect_all(&rig);
        }
        assert_eq!(rig.disk().state, DiskState::Up);
    }
}

/// Lengths at which the last block, its checksum and what fills the record up meet the end of a block.
#[test]
fn bodies_about_as_long_as_their_blocks_are_found_whole() {
    let rig = Rig::new(0, 256 * MIB);
    let block = 32 << 10;
    let lengths: Vec<usize> = (1..=4)
        .flat_map(|count| count * block - 9..=count * block + 9)
        .collect();
    for &len in &lengths {
        rig.put(&key(len), &len.to_string(), &bytes(len as u64, len)).unwrap();
    }
    rig.settle();
    for len in lengths {
        let (_, body) = rig.read(&key(len), PLAIN).unwrap_or_else(|| panic!("{len} is lost"));
        assert!(body == bytes(len as u64, len), "{len} has wrong bytes");
    }
    assert_eq!(rig.disk().counters.corrupt, 0);
}

#[test]
fn an_index_that_is_lost_is_made_anew() {
    let mut rig = Rig::new(0, 256 * MIB);
    fill_all(&rig);
    rig.settle();
    let losses: [fn(&Path); 3] = [
        |path| fs::remove_file(path.join("snapshot")).unwrap(),
        |path| fs::remove_dir_all(path.join("index")).unwrap(),
        |path| {
            fs::remove_file(path.join("snapshot")).unwrap();
            fs::remove_dir_all(path.join("index")).unwrap();
        },
    ];
    for loss in losses {
        rig.reopen_after(loss);
        rig.settle();
        expect_all(&rig);
        assert_eq!(rig.disk().objects, SIZES.len() as u64);
    }
}

#[test]
fn a_purge_holds_after_a_restart_whatever_index_is_lost() {
    let request = |language| Request(language);
    for loss in 0..4 {
        let mut rig = Rig::new(8 * MIB, 64 * MIB);
        rig.put("a|1", "one", b"1").unwrap();
        rig.put("a|2", "two", b"2").unwrap();
        for language in ["de", "en"] {
            let fields = [language];
            let vary = Request(&fields).vary(&Fields(vec![0]));
            rig.put_as("a|v", language, language.as_bytes(), vary, FOR_EVER)
                .unwrap();
        }
        rig.settle();
        assert_eq!(rig.disk().objects, 4);
        rig.reopen();
        rig.settle();
        assert_eq!(rig.read("a|v", request(&["de"])).unwrap().0, "de");
        assert_eq!(rig.read("a|v", request(&["en"])).unwrap().0, "en");
        assert!(rig.read("a|v", request(&["fr"])).is_none());
        assert_eq!(rig.wait(rig.store.purge_durably(b"a|1")).unwrap().variants, 1);
        let purged = rig.wait(rig.store.purge_durably(b"a|v")).unwrap();
        assert_eq!(purged.variants, if loss == 9 { 0 } else { 2 });
        rig.reopen_after(|path| {
            if loss & 1 != 0 {
                fs::remove_file(path.join("snapshot")).unwrap();
            }
            if loss & 2 != 0 {
                fs::remove_dir_all(path.join("index")).unwrap();
            }
        });
        rig.settle();
        assert!(rig.get("a|1", PLAIN).is_none(), "{loss} {:?}", rig.disk());
        assert!(rig.get("a|v", request(&["de"])).is_none(), "{loss} v {:?}", rig.disk());
        assert_eq!(rig.read("a|2", PLAIN).unwrap().0, "two");
        assert_eq!(rig.disk().objects, 1, "{loss}");
        assert!(rig.store.fence() >= purged.fence);
        rig.wait(rig.store.clear_durably()).unwrap();
        rig.reopen();
        rig.settle();
        assert!(rig.get("a|2", PLAIN).is_none());
        assert_eq!(rig.disk().objects, 0);
    }
}

#[test]
fn more_than_fits_makes_room_and_stays_within_bounds() {
    let rig = Rig::new(0, 16 * MIB);
    for number in 0..400_u64 {
        while rig.put(&format!("a|{number}"), "x", &bytes(number, 100_000)).is_err() {
            std::thread::yield_now();
        }
        assert!(rig.disk().used <= 16 * MIB, "{:?}", rig.disk());
    }
    rig.settle();
    let disk = rig.disk();
    assert!(disk.objects > 100 && disk.counters.evicted > 200, "{disk:?}");
    let found = (0..400_u64).filter(|number| {
        let read = rig.read(&format!("a|{number}"), PLAIN);
        read.inspect(|(_, body)| assert!(*body == bytes(*number, 100_000)))
            .is_some()
    });
    assert_eq!(found.count() as u64, disk.objects);
}

#[test]
fn the_second_use_brings_an_object_up() {
    let mut rig = Rig::new(64 * MIB, 64 * MIB);
    rig.put("a|small", "s", &bytes(1, 1000)).unwrap();
    rig.put("a|large", "l", &bytes(2, 500_000)).unwrap();
    rig.settle();
    rig.reopen_after(|_| {});
    rig.until("memory is not refilled", |_| rig.store.usage().objects == 2);
    assert_eq!(rig.get("a|small", PLAIN).unwrap().tier(), Tier::Memory);
    // Without a refill it takes two uses.
    rig.store.stop();
    let rig = Rig::new(0, 64 * MIB);
    rig.put("a|small", "s", &bytes(1, 1000)).unwrap();
    rig.settle();
    assert_eq!(rig.get("a|small", PLAIN).unwrap().tier(), Tier::Disk);
}

#[test]
fn bodies_too_large_for_a_record_go_into_files() {
    let mut rig = Rig::new(2 * MIB, 256 * MIB);
    let sizes = [4_300_000, 9_000_000, 20_000_001];
    for len in sizes {
        rig.put(&key(len), &len.to_string(), &bytes(len as u64, len)).unwrap();
    }
    for _ in 0..2 {
        for len in sizes {
            let (text, body) = rig.read(&key(len), PLAIN).unwrap_or_else(|| panic!("{len} is lost"));
            assert!(text == len.to_string() && body == bytes(len as u64, len), "{len}");
        }
        rig.settle();
        assert_eq!(rig.disk().objects, sizes.len() as u64);
        rig.reopen();
    }
    let files = |rig: &Rig| fs::read_dir(rig.disk_path().join("bodies")).unwrap().count();
    rig.settle();
    assert_eq!(files(&rig), 3);
    assert_eq!(
        rig.wait(rig.store.purge_durably(key(9_000_000).as_bytes()))
            .unwrap()
            .variants,
        1
    );
    rig.until("the file goes", |_| files(&rig) == 2);
    assert_eq!(rig.store.usage().fill_bytes, 0);
}
