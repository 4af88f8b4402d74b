//! Fills into files of their own: readers of any pace, and every way in which one ends early.

use super::super::*;
use super::rig::{DiskStore, FOR_EVER, Rig, Text, bytes};
use crate::disk::DiskState;
use crate::disk::volume::faulty;

const KEY: &str = "a|large";
const LEN: usize = 7_000_001;
/// More than the largest record, so that it goes into a file from the beginning.
const PIECE: usize = 50_000;

type TextReader = Reader<Text, Fields>;
type TextFilling = Filling<Text, Fields>;

fn body() -> Vec<u8> {
    bytes(7, LEN)
}

fn start(rig: &Rig, expected_len: Option<u64>) -> (TextFilling, TextReader) {
    let Begin::Lead(leader, reader) = rig.store.begin(KEY.as_bytes(), Join::Any, None, PLAIN.variant()) else {
        panic!("expected to lead")
    };
    let head = Text {
        text: "large".to_owned(),
        keep_until_secs: FOR_EVER,
    };
    let offer = Offer {
        expected_len,
        keep: Keep::Store,
        vary: None,
    };
    (leader.head(Arc::new(head), offer), reader)
}

fn join(store: &DiskStore) -> TextReader {
    match store.begin(KEY.as_bytes(), Join::Any, None, PLAIN.variant()) {
        Begin::Join(reader) => reader,
        other => panic!("expected to join, got {other:?}"),
    }
}

async fn feed(filling: &mut TextFilling, bytes: &[u8]) {
    for piece in bytes.chunks(PIECE) {
        filling.push(Bytes::copy_from_slice(piece)).await.unwrap();
    }
}

async fn read_all(reader: &mut TextReader) -> Result<Vec<u8>, FillError> {
    let _ = reader.head(PLAIN.variant()).await;
    let mut all = Vec::new();
    while let Some(piece) = reader.next_chunk().await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}

fn files(rig: &Rig) -> usize {
    std::fs::read_dir(rig.disk_path().join("bodies")).unwrap().count()
}

#[test]
fn readers_of_any_pace_get_all_of_it() {
    for expected in [None, Some(LEN as u64)] {
        let mut rig = Rig::new(MIB, 64 * MIB);
        let body = body();
        let (mut filling, mut lazy) = start(&rig, expected);
        rig.wait(feed(&mut filling, &body[..5_000_000]));
        assert!(
            rig.store.usage().fill_bytes < 2 * MIB,
            "it is held in memory: {:?}",
            rig.store.usage()
        );
        let mut late = join(&rig.store);
        let rest = async {
            feed(&mut filling, &body[5_000_000..]).await;
            filling.finish().await
        };
        let (stored, late) = rig.wait(async { tokio::join!(rest, read_all(&mut late)) });
        assert!(stored.is_ok() && late.unwrap() == body, "the late one of {expected:?}");
        // It has not read a byte, and the fill is over.
        assert!(
            rig.wait(read_all(&mut lazy)).unwrap() == body,
            "the lazy one of {expected:?}"
        );
        assert!(rig.read(KEY, PLAIN).unwrap().1 == body);
        rig.settle();
        assert_eq!((files(&rig), rig.store.usage().fill_bytes), (1, 0));
        rig.reopen();
        assert!(rig.read(KEY, PLAIN).unwrap().1 == body);
    }
}

#[test]
fn one_that_breaks_off_leaves_nothing() {
    let rig = Rig::new(MIB, 64 * MIB);
    let body = body();
    let (mut filling, mut reader) = start(&rig, None);
    rig.wait(feed(&mut filling, &body[..5_000_000]));
    filling.fail(FillError::new("the origin went away"));
    assert!(matches!(rig.wait(read_all(&mut reader)), Err(FillError::Failed(_))));
    drop(reader);
    rig.until("its file stays", |_| files(&rig) == 0);
    assert!(rig.get(KEY, PLAIN).is_none());
    rig.until("its bytes stay", |disk| disk.objects == 0 && disk.queue_bytes == 0);
    assert_eq!(rig.store.usage().fill_bytes, 0);
}

#[test]
fn one_that_is_purged_on_its_way_is_delivered_and_not_stored() {
    let rig = Rig::new(MIB, 64 * MIB);
    let body = body();
    let (mut filling, mut reader) = start(&rig, None);
    rig.wait(feed(&mut filling, &body[..5_000_000]));
    rig.wait(rig.store.purge_durably(KEY.as_bytes())).unwrap();
    let rest = async {
        feed(&mut filling, &body[5_000_000..]).await;
        filling.finish().await
    };
    let (stored, read) = rig.wait(async { tokio::join!(rest, read_all(&mut reader)) });
    assert_eq!(stored.unwrap_err(), NotKept::Doomed);
    assert!(read.unwrap() == body);
    drop(reader);
    rig.until("its file stays", |_| files(&rig) == 0);
    assert!(rig.get(KEY, PLAIN).is_none());
}

#[test]
fn b86_a_disk_that_fills_up_on_the_way_costs_no_reader_a_byte() {
    let mut planted = None;
    let rig = Rig::with(MIB, &[64 * MIB], |options| {
        planted = Some(faulty::plant(&options.disks[0].path));
    });
    let disk = planted.unwrap();
    rig.settle();
    let body = body();
    let (mut filling, mut lagging) = start(&rig, None);
    let mut prompt = join(&rig.store);
    rig.wait(feed(&mut filling, &body[..5_000_000]));
    disk.set_room(1_000_000);
    let rest = async {
        feed(&mut filling, &body[5_000_000..]).await;
        filling.finish().await
    };
    let readers = async { tokio::join!(read_all(&mut prompt), read_all(&mut lagging)) };
    let (stored, (prompt, lagging)) = rig.wait(async { tokio::join!(rest, readers) });
    assert!(stored.is_err(), "it cannot be stored");
    assert!(prompt.unwrap() == body && lagging.unwrap() == body);
    rig.until("it is not degraded", |disk| {
        matches!(disk.state, DiskState::Degraded(_))
    });
    disk.set_room(u64::MAX);
    rig.until("it does not come back", |disk| disk.state == DiskState::Up);
    rig.until("its file stays", |_| files(&rig) == 0);
    rig.put(KEY, "again", &body).unwrap();
    assert!(rig.read(KEY, PLAIN).unwrap().1 == body);
}

#[test]
fn files_make_room_for_files_and_stay_within_bounds() {
    let rig = Rig::new(MIB, 64 * MIB);
    for number in 0..12 {
        rig.put(&format!("a|{number}"), "x", &bytes(number, 9_000_000)).unwrap();
        assert!(rig.disk().used <= 64 * MIB, "{:?}", rig.disk());
    }
    rig.settle();
    rig.until("files of nobody stay", |disk| files(&rig) as u64 == disk.objects);
    let kept: Vec<_> = (0..12)
        .filter(|number| {
            let read = rig.read(&format!("a|{number}"), PLAIN);
            read.inspect(|(_, body)| assert!(*body == bytes(*number, 9_000_000)))
                .is_some()
        })
        .collect();
    assert!(kept.len() >= 4 && kept.ends_with(&[10, 11]), "{kept:?} of 12 are kept");
}

#[test]
fn a_push_that_nobody_waits_for_loses_the_fill_and_leaves_no_file() {
    let rig = Rig::new(MIB, 64 * MIB);
    let body = body();
    for pieces in [1, 20, 60] {
        let (mut filling, mut reader) = start(&rig, None);
        rig.wait(feed(&mut filling, &body[..pieces * PIECE]));
        // Some of them wait for the file to be made, or to be written.
        let waited = body[pieces * PIECE..]
            .chunks(PIECE)
            .any(|piece| now(filling.push(Bytes::copy_from_slice(piece))).is_none());
        assert!(waited, "none of them waits");
        assert_eq!(rig.wait(filling.finish()).unwrap_err(), NotKept::Failed);
        assert!(rig.wait(read_all(&mut reader)).is_err());
        drop(reader);
        rig.until("its file stays", |_| files(&rig) == 0);
        assert!(rig.get(KEY, PLAIN).is_none());
    }
    assert_eq!(rig.store.usage().fill_bytes, 0);
}
