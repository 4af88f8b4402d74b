//! Leaders and readers of one fill.

use super::*;

const KIB: usize = 1 << 10;

fn push(filling: &mut Filling<Number, Fields>, bytes: &[u8]) -> Option<Result<(), Abandoned>> {
    now(filling.push(Bytes::copy_from_slice(bytes)))
}

fn head(leader: TestLeader, offer: Offer<Fields>) -> Filling<Number, Fields> {
    leader.head(Arc::new(Number(1)), offer)
}

fn read_head(reader: &mut TestReader) -> Option<Result<Arc<Number>, ReaderEnd>> {
    now(reader.head(PLAIN.variant()))
}

#[test]
fn readers_stream_from_the_first_byte_whenever_they_join() {
    let store = store(64 * MIB);
    let (leader, mut own) = lead(&store, "a", Join::Any);
    let mut early = join(&store, "a");
    assert!(read_head(&mut own).is_none() && read_head(&mut early).is_none());
    let mut filling = head(leader, keep(Keep::Store, None));
    assert_eq!(read_head(&mut early).unwrap().unwrap().0, 1);
    push(&mut filling, b"one ").unwrap().unwrap();
    assert!(matches!(read_now(&mut early), (body, None) if body == b"one "));
    push(&mut filling, b"two ").unwrap().unwrap();
    let mut late = join_as(&store, "a", Join::Answered, PLAIN);
    assert!(matches!(read_now(&mut early), (body, None) if body == b"two "));
    push(&mut filling, b"three").unwrap().unwrap();
    let object = finish(filling).unwrap();
    assert!(matches!(read_now(&mut early), (body, Some(Ok(()))) if body == b"three"));
    for reader in [&mut own, &mut late] {
        read_head(reader).unwrap().unwrap();
        assert!(matches!(read_now(reader), (body, Some(Ok(()))) if body == b"one two three"));
    }
    assert!(!own.is_collapsed() && late.is_collapsed());
    assert_eq!(object.body.as_single().unwrap(), "one two three");
    let Begin::Found(again) = store.begin(b"a", Join::Any, None, PLAIN.variant()) else {
        panic!("it is stored");
    };
    assert!(Arc::ptr_eq(&again, &object));
    // Who has seen it and cannot use it asks the origin.
    assert!(matches!(
        store.begin(b"a", Join::Any, Some(&again), PLAIN.variant()),
        Begin::Lead(..)
    ));
}

#[test]
fn who_has_the_announced_length_finds_it_stored() {
    let store = store(64 * MIB);
    let (leader, mut own) = lead(&store, "a", Join::Any);
    let mut filling = head(leader, keep(Keep::Store, Some(8)));
    push(&mut filling, b"1234").unwrap().unwrap();
    assert!(found(&store, "a", PLAIN).is_none());
    push(&mut filling, b"5678").unwrap().unwrap();
    assert_eq!(found(&store, "a", PLAIN).unwrap().body.len(), 8);
    assert!(matches!(read_now(&mut own), (body, Some(Ok(()))) if body == b"12345678"));
    assert_eq!(push(&mut filling, b"9").unwrap(), Err(Abandoned));
    assert!(finish(filling).is_ok());
}

#[test]
fn a_body_of_another_length_than_announced_is_never_complete() {
    let store = store(64 * MIB);
    for keep_as in [Keep::Store, Keep::Share, Keep::Private] {
        let (leader, mut own) = lead(&store, "a", Join::Any);
        let mut filling = head(leader, keep(keep_as, Some(8)));
        push(&mut filling, b"1234").unwrap().unwrap();
        assert_eq!(finish(filling).unwrap_err(), NotKept::Failed);
        let (body, end) = read_now(&mut own);
        assert_eq!(body, b"1234");
        assert!(matches!(
            end,
            Some(Err(FillError::Length {
                expected: 8,
                received: 4
            }))
        ));

        let (leader, mut own) = lead(&store, "a", Join::Any);
        let mut filling = head(leader, keep(keep_as, Some(8)));
        assert_eq!(push(&mut filling, b"123456789").unwrap(), Err(Abandoned));
        assert!(matches!(read_now(&mut own), (_, Some(Err(FillError::Length { .. })))));
        assert_eq!(finish(filling).unwrap_err(), NotKept::Failed);
    }
    assert!(found(&store, "a", PLAIN).is_none());
    assert_eq!((store.usage().fills_active, store.usage().fill_bytes), (0, 0));
}

/// Where a leader may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    BeforeHead,
    AfterHead,
    InBody,
}

#[tokio::test]
async fn a_lost_leader_frees_everybody_at_once() {
    let store = store(64 * MIB);
    for stage in [Stage::BeforeHead, Stage::AfterHead, Stage::InBody] {
        for keep_as in [Keep::Store, Keep::Share] {
            let (leader, own) = lead(&store, "a", Join::Any);
            let readers = [own, join(&store, "a"), join(&store, "a")];
            // The first of all tasks to run is the leader, and each reader waits before the leader is lost.
            let tasks = readers.map(|mut reader| {
                tokio::spawn(async move {
                    reader.head(PLAIN.variant()).await?;
                    let mut all = Vec::new();
                    while let Some(bytes) = reader.next_chunk().await {
                        all.extend_from_slice(&bytes.map_err(ReaderEnd::Failed)?);
                    }
                    Ok::<_, ReaderEnd>(all)
                })
            });
            tokio::task::yield_now().await;
            match stage {
                Stage::BeforeHead => drop(leader),
                Stage::AfterHead => drop(head(leader, keep(keep_as, None))),
                Stage::InBody => {
                    let mut filling = head(leader, keep(keep_as, Some(1000)));
                    push(&mut filling, b"one").unwrap().unwrap();
                    tokio::task::yield_now().await;
                    drop(filling);
                }
            }
            for task in tasks {
                let end = soon(task).await.unwrap();
                assert!(
                    matches!(end, Err(ReaderEnd::Failed(FillError::Lost))),
                    "{stage:?}: {end:?}"
                );
            }
            let usage = store.usage();
            assert_eq!(
                (usage.fills_active, usage.fill_bytes, usage.objects),
                (0, 0, 0),
                "{stage:?}"
            );
            // The key is free.
            drop(lead(&store, "a", Join::Any));
        }
    }
}

#[test]
fn a_reason_reaches_every_reader() {
    let store = store(64 * MIB);
    let (leader, mut own) = lead(&store, "a", Join::Any);
    let mut other = join(&store, "a");
    leader.fail(FillError::new("no route"));
    for reader in [&mut own, &mut other] {
        let Err(ReaderEnd::Failed(FillError::Failed(reason))) = read_head(reader).unwrap() else {
            panic!("it failed");
        };
        assert_eq!(reason.to_string(), "no route");
    }
    let (leader, mut own) = lead(&store, "a", Join::Any);
    let mut other = join(&store, "a");
    leader.retry(FillError::new("no route"));
    assert!(matches!(read_head(&mut own), Some(Err(ReaderEnd::Failed(_)))));
    assert!(matches!(read_head(&mut other), Some(Err(ReaderEnd::Retry))));
}

#[test]
fn a_private_answer_is_for_its_own_client_only() {
    let store = store(64 * MIB);
    let (leader, mut own) = lead(&store, "a", Join::Any);
    let mut waiting = join(&store, "a");
    assert!(read_head(&mut waiting).is_none());
    let mut filling = head(leader, keep(Keep::Private, None));
    assert!(matches!(read_head(&mut waiting), Some(Err(ReaderEnd::Retry))));
    assert!(matches!(now(waiting.next_chunk()), Some(Some(Err(_)))));
    // Nobody joins it from now on.
    drop(lead(&store, "a", Join::Any));
    read_head(&mut own).unwrap().unwrap();
    // Waiters that were sent away hold nothing back.
    for _ in 0..20 {
        push(&mut filling, &[0; 100 * KIB]).unwrap().unwrap();
        assert_eq!(read_now(&mut own).0.len(), 100 * KIB);
    }
    assert_eq!(finish(filling).unwrap_err(), NotKept::Declined);
    assert!(matches!(read_now(&mut own), (_, Some(Ok(())))));
}

#[test]
fn waiters_of_another_variant_go_on_their_own() {
    let store = store(64 * MIB);
    let (de, en) = (Request(&["de"]), Request(&["en"]));
    let begin = store.begin(b"a", Join::Any, None, de.variant());
    let Begin::Lead(leader, mut own) = begin else {
        panic!("nobody else fills it");
    };
    let mut same = join_as(&store, "a", Join::Any, de);
    let mut other = join_as(&store, "a", Join::Any, en);
    let offer = Offer {
        expected_len: None,
        keep: Keep::Store,
        vary: de.vary(&Fields(vec![0])),
    };
    let mut filling = head(leader, offer);
    now(own.head(de.variant())).unwrap().unwrap();
    now(same.head(de.variant())).unwrap().unwrap();
    assert!(matches!(now(other.head(en.variant())), Some(Err(ReaderEnd::Retry))));
    // Its place may be taken by another reader, which it must not disturb.
    let mut late = join_as(&store, "a", Join::Any, de);
    assert!(matches!(now(other.head(en.variant())), Some(Err(ReaderEnd::Retry))));
    assert!(matches!(now(other.next_chunk()), Some(Some(Err(_)))));
    drop(other);
    assert!(matches!(
        store.begin(b"a", Join::Answered, None, en.variant()),
        Begin::Lead(..)
    ));
    push(&mut filling, b"body").unwrap().unwrap();
    finish(filling).unwrap();
    now(late.head(de.variant())).unwrap().unwrap();
    for reader in [&mut own, &mut same, &mut late] {
        assert!(matches!(read_now(reader), (body, Some(Ok(()))) if body == b"body"));
    }
}

#[test]
fn only_one_fill_at_a_time_keeps_others_waiting() {
    let store = store(64 * MIB);
    let (_alone, _) = lead(&store, "a", Join::Never);
    let (first, _own) = lead(&store, "a", Join::Any);
    let (second, _own) = lead(&store, "a", Join::Answered);
    let mut waiting = join(&store, "a");
    // The second one is joined once its head is known.
    let _second = head(second, keep(Keep::Store, None));
    assert!(read_head(&mut waiting).is_none());
    let mut joined = join_as(&store, "a", Join::Answered, PLAIN);
    read_head(&mut joined).unwrap().unwrap();
    let _first = head(first, keep(Keep::Store, None));
    read_head(&mut waiting).unwrap().unwrap();
    assert_eq!(store.usage().fills_active, 3);
}

#[test]
fn a_fill_alone_is_stored_but_never_joined() {
    let store = store(64 * MIB);
    let (first, _first_own) = lead(&store, "a", Join::Never);
    let (second, _second_own) = lead(&store, "a", Join::Never);
    let mut second = head(second, keep(Keep::Store, None));
    push(&mut second, b"second").unwrap().unwrap();
    drop(lead(&store, "a", Join::Any));
    assert!(finish(second).is_ok());
    // What began earlier does not replace what began later.
    let mut first = head(first, keep(Keep::Store, None));
    push(&mut first, b"first").unwrap().unwrap();
    assert_eq!(finish(first).unwrap_err(), NotKept::Replaced);
    assert_eq!(found(&store, "a", PLAIN).unwrap().body.as_single().unwrap(), "second");
}

#[test]
fn b68_a_purge_dooms_what_began_before() {
    let store = store(64 * MIB);
    let (leader, mut own) = lead(&store, "a", Join::Any);
    let mut filling = head(leader, keep(Keep::Store, Some(6)));
    push(&mut filling, b"old").unwrap().unwrap();
    store.purge(b"a");
    // Nobody joins it, and what begins now is stored.
    fill(&store, "a", 2, None, b"new").unwrap();
    push(&mut filling, b"old").unwrap().unwrap();
    assert_eq!(filling.not_kept(), Some(NotKept::Doomed));
    assert_eq!(finish(filling).unwrap_err(), NotKept::Doomed);
    assert!(matches!(read_now(&mut own), (body, Some(Ok(()))) if body == b"oldold"));
    assert_eq!(found(&store, "a", PLAIN).unwrap().head.0, 2);
    assert_eq!((store.usage().fill_bytes, store.usage().fills_active), (0, 0));
}

#[test]
fn a_slow_reader_does_not_hold_up_what_is_stored() {
    let store = store(64 * MIB);
    let (leader, mut slow) = lead(&store, "a", Join::Any);
    read_head(&mut slow);
    let mut filling = head(leader, keep(Keep::Store, None));
    for _ in 0..15 {
        push(&mut filling, &[3; 64 * KIB]).expect("it does not wait").unwrap();
    }
    assert_eq!(store.usage().fill_bytes, 15 * 64 * KIB as u64 + 8);
    finish(filling).unwrap();
    assert_eq!(store.usage().fill_bytes, 0);
    // Even when the object is gone, whoever has begun to read reads on.
    store.purge(b"a");
    assert!(matches!(read_now(&mut slow), (body, Some(Ok(()))) if body == vec![3; 15 * 64 * KIB]));
}

#[tokio::test]
async fn what_is_not_stored_waits_for_the_slowest_reader() {
    let store = store(64 * MIB);
    let (leader, mut slow) = lead(&store, "a", Join::Any);
    let mut fast = join(&store, "a");
    let mut filling = head(leader, keep(Keep::Share, None));
    read_head(&mut fast).unwrap().unwrap();
    for _ in 0..4 {
        push(&mut filling, &[1; 64 * KIB]).expect("there is room").unwrap();
    }
    assert_eq!(read_now(&mut fast).0.len(), 256 * KIB);
    assert_eq!(push(&mut filling, &[1; 64 * KIB]), None);

    // Some progress of the slow one lets one more in; the front is gone then and nobody can join.
    let pushing = tokio::spawn(async move {
        filling.push(Bytes::from(vec![1; 64 * KIB])).await.unwrap();
        filling
    });
    tokio::task::yield_now().await;
    assert!(!pushing.is_finished());
    assert_eq!(slow.next_chunk().await.unwrap().unwrap().len(), 64 * KIB);
    let mut filling = soon(pushing).await.unwrap();
    drop(lead(&store, "a", Join::Any));

    // So does its leaving.
    assert_eq!(push(&mut filling, &[1; 64 * KIB]), None);
    let pushing = tokio::spawn(async move {
        filling.push(Bytes::from(vec![1; 64 * KIB])).await.unwrap();
        finish(filling).unwrap_err()
    });
    tokio::task::yield_now().await;
    drop(slow);
    assert_eq!(soon(pushing).await.unwrap(), NotKept::Declined);
    assert!(matches!(read_now(&mut fast), (body, Some(Ok(()))) if body.len() == 128 * KIB));
    assert_eq!((store.usage().fills_active, store.usage().fill_bytes), (0, 0));
}

#[test]
fn a_body_that_outgrows_the_largest_object_is_passed_on() {
    let store = store(64 * MIB);
    let (leader, mut own) = lead(&store, "a", Join::Any);
    let mut filling = head(leader, keep(Keep::Store, None));
    let mut sent = 0;
    while push(&mut filling, &[1; 64 * KIB]).is_some_and(|pushed| pushed.is_ok()) {
        sent += 64 * KIB;
        assert!(sent <= 2 * KIB * KIB, "no bound is kept");
    }
    assert_eq!(filling.not_kept(), Some(NotKept::TooLarge));
    // What was kept is accounted for until it is read.
    assert!(store.usage().fill_bytes > 0);
    assert_eq!(read_now(&mut own).0.len(), sent);
    assert_eq!(store.usage().fill_bytes, 0);
    push(&mut filling, b"end").unwrap().unwrap();
    assert_eq!(finish(filling).unwrap_err(), NotKept::TooLarge);
    assert!(matches!(read_now(&mut own), (body, Some(Ok(()))) if body == b"end"));
    assert_eq!(own.not_kept(), Some(NotKept::TooLarge));
    assert_eq!(store.usage().objects, 0);
}

#[test]
fn fill_memory_is_bounded() {
    let store = store(64 * MIB);
    let mut fills = Vec::new();
    for i in 0..40 {
        let (leader, reader) = lead(&store, &i.to_string(), Join::Any);
        fills.push((head(leader, keep(Keep::Store, Some(MIB - 8))), reader));
        assert!(store.usage().fill_bytes <= 16 * MIB);
    }
    let refused = fills
        .iter()
        .filter(|(filling, _)| filling.not_kept() == Some(NotKept::FillMemory));
    assert_eq!(refused.count(), 24);
    // Without a length it is taken as it grows.
    let (leader, mut own) = lead(&store, "grows", Join::Any);
    fills.truncate(15);
    let mut filling = head(leader, keep(Keep::Store, None));
    push(&mut filling, &[1; 512 * KIB]).unwrap().unwrap();
    let (other, _other_own) = lead(&store, "other", Join::Any);
    let other = head(other, keep(Keep::Store, Some(500 * KIB as u64)));
    assert_eq!((filling.not_kept(), other.not_kept()), (None, None));
    push(&mut filling, &[1; 200 * KIB]).unwrap().unwrap();
    assert_eq!(filling.not_kept(), Some(NotKept::FillMemory));
    assert_eq!(read_now(&mut own).0.len(), 712 * KIB);
    assert_eq!(finish(filling).unwrap_err(), NotKept::FillMemory);
    drop((fills, other, own));
    assert_eq!((store.usage().fills_active, store.usage().fill_bytes), (0, 0));
}

#[test]
fn b59_what_nobody_waits_for_is_finished_if_it_is_worth_it() {
    let large = Config {
        max_object: 16 * MIB,
        ..Config::with_max_size(256 * MIB)
    };
    let whole = vec![5; 8 << 20];
    // Announced or not, how much came before the last reader left, and whether it goes on.
    let cases = [
        (true, 1 << 20, false),
        (true, 4 << 20, true),
        (true, (7 << 20) + 1, true),
        (false, 1 << 20, false),
        (false, 7 << 20, false),
    ];
    for (announced, came, goes_on) in cases {
        for others in [false, true] {
            let store = Store::new(large);
            let (leader, own) = lead(&store, "a", Join::Any);
            let mut other = others.then(|| join(&store, "a"));
            let mut filling = head(leader, keep(Keep::Store, announced.then_some(8 << 20)));
            push(&mut filling, &whole[..came]).unwrap().unwrap();
            drop(own);
            let case = format!("{announced} {came} {others}");
            assert_eq!(now(filling.abandoned()).is_none(), goes_on || others, "{case}");
            let pushed = push(&mut filling, &whole[came..]).unwrap();
            assert_eq!(pushed.is_ok(), goes_on || others, "{case}");
            if goes_on || others {
                assert!(finish(filling).is_ok(), "{case}");
                assert!(
                    found(&store, "a", PLAIN).is_some_and(|object| object.body.chunks().unwrap().concat() == whole)
                );
            } else {
                // The key is free before the leader notices.
                assert!(matches!(
                    store.begin(b"a", Join::Any, None, PLAIN.variant()),
                    Begin::Lead(..)
                ));
                assert!(finish(filling).is_err(), "{case}");
                assert!(found(&store, "a", PLAIN).is_none(), "{case}");
            }
            if let Some(reader) = &mut other {
                assert!(
                    matches!(read_now(reader), (body, Some(Ok(()))) if body == whole),
                    "{case}"
                );
            }
            drop(other);
            assert_eq!((store.usage().fills_active, store.usage().fill_bytes), (0, 0), "{case}");
        }
    }
}

#[tokio::test]
async fn a_leader_that_waits_for_the_origin_hears_that_nobody_waits_for_it() {
    let store = store(64 * MIB);
    // A fill for one client alone goes with it; another one may still serve those who come.
    for (join, ends) in [(Join::Never, true), (Join::Any, false)] {
        let (leader, own) = lead(&store, "a", join);
        let waiting = tokio::spawn(async move {
            leader.abandoned().await;
            leader
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(own);
        if ends {
            soon(waiting).await.unwrap();
        } else {
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            waiting.abort();
            assert!(soon(waiting).await.is_err());
        }
    }
    assert_eq!(store.usage().fills_active, 0);
}

#[test]
fn a_background_refresh_needs_no_reader() {
    let store = store(64 * MIB);
    let (mut leader, own) = lead(&store, "a", Join::Any);
    leader.set_unattended();
    drop(own);
    let mut filling = head(leader, keep(Keep::Store, None));
    push(&mut filling, b"body").unwrap().unwrap();
    assert!(finish(filling).is_ok());
    // One that can't be stored is of no use.
    let (mut leader, own) = lead(&store, "b", Join::Any);
    leader.set_unattended();
    drop(own);
    let mut filling = head(leader, keep(Keep::Share, None));
    assert_eq!(push(&mut filling, b"body"), Some(Err(Abandoned)));
}

#[test]
fn a_validated_object_answers_all_who_wait() {
    let store = store(64 * MIB);
    let (de, en) = (Request(&["de"]), Request(&["en"]));
    let rule = Fields(vec![0]);
    let body = vec![9; 600 * KIB];
    let old = fill(&store, "a", 1, de.vary(&rule), &body).unwrap();
    let Begin::Lead(leader, mut own) = store.begin(b"a", Join::Any, Some(&old), de.variant()) else {
        panic!("nobody else fills it");
    };
    let Begin::Join(mut same) = store.begin(b"a", Join::Any, Some(&old), de.variant()) else {
        panic!("somebody fills it");
    };
    let mut other = join_as(&store, "a", Join::Any, en);
    let new = store.replace(b"a", &old, Arc::new(Number(2))).unwrap();
    leader.answer(&new, de.vary(&rule));
    for reader in [&mut own, &mut same] {
        assert_eq!(now(reader.head(de.variant())).unwrap().unwrap().0, 2);
        assert_eq!(reader.expected_len(), Some(body.len() as u64));
        assert!(matches!(read_now(reader), (read, Some(Ok(()))) if read == body));
    }
    assert!(matches!(now(other.head(en.variant())), Some(Err(ReaderEnd::Retry))));
    assert_eq!((store.usage().fills_active, store.usage().objects), (0, 1));
}
