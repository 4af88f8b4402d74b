use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn bytes(from: u64, len: usize) -> Bytes {
    (0..len as u64)
        .map(|i| (from + i).to_le_bytes()[0] ^ ((from + i) >> 8).to_le_bytes()[0])
        .collect()
}

fn read_all(buffer: &Buffer, mut pos: u64) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(part) = buffer.at(pos) {
        assert!(!part.is_empty());
        pos += part.len() as u64;
        all.extend_from_slice(&part);
    }
    all
}

/// Mostly small, sometimes larger than a chunk.
fn piece_sizes() -> impl Strategy<Value = Vec<usize>> {
    vec(
        prop_oneof![6 => 1..40usize, 3 => 1..40_000usize, 1 => 1..(2 * CHUNK_BYTES)],
        0..40,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn copies_come_out_as_they_went_in(sizes in piece_sizes(), from in 0..1000u64) {
        let mut buffer = Buffer::default();
        for &size in &sizes {
            buffer.push_copy(bytes(buffer.len(), size));
        }
        prop_assert_eq!(read_all(&buffer, 0), b"");
        buffer.publish();
        let total = sizes.iter().sum::<usize>();
        let expected = bytes(0, total);
        prop_assert_eq!(read_all(&buffer, from), &expected[usize::try_from(from).unwrap().min(total)..]);

        let body = buffer.to_body();
        prop_assert_eq!(body.len(), total as u64);
        prop_assert_eq!(body.chunks().unwrap().concat(), &expected[..]);
        let (last, full) = body.chunks().unwrap().split_last().map_or((0, &[][..]), |(last, full)| (last.len(), full));
        prop_assert!(full.iter().all(|chunk| chunk.len() == CHUNK_BYTES) && last <= CHUNK_BYTES);

        buffer.share(&body);
        prop_assert_eq!(read_all(&buffer, from), &expected[usize::try_from(from).unwrap().min(total)..]);
    }

    #[test]
    fn only_what_was_published_is_seen(sizes in piece_sizes(), shown in 0..40usize) {
        let mut buffer = Buffer::default();
        let mut visible = 0;
        for (i, &size) in sizes.iter().enumerate() {
            buffer.push_copy(bytes(buffer.len(), size));
            if i < shown {
                buffer.publish();
                visible = buffer.len();
            }
        }
        prop_assert_eq!(read_all(&buffer, 0).len() as u64, visible);
    }

    #[test]
    fn what_is_passed_on_can_be_dropped_behind_the_reader(sizes in piece_sizes()) {
        let mut buffer = Buffer::default();
        let mut pos = 0;
        for &size in &sizes {
            buffer.push_through(bytes(buffer.len(), size));
            buffer.publish();
            if let Some(part) = buffer.at(pos) {
                prop_assert_eq!(&part, &bytes(pos, part.len()));
                pos += part.len() as u64;
            }
            buffer.trim(pos);
            prop_assert!(buffer.base() <= pos);
        }
        prop_assert_eq!(read_all(&buffer, pos).len() as u64, buffer.len() - pos);
    }
}

#[test]
fn byte_by_byte_costs_few_pieces() {
    for push in [Buffer::push_copy, Buffer::push_through] {
        let mut buffer = Buffer::default();
        for i in 0..CHUNK_BYTES as u64 + 1000 {
            push(&mut buffer, bytes(i, 1));
            assert!(buffer.pieces.len() < 80, "{} pieces", buffer.pieces.len());
        }
        buffer.publish();
        assert_eq!(read_all(&buffer, 0), bytes(0, CHUNK_BYTES + 1000));
    }
}

#[test]
fn a_part_of_a_large_buffer_does_not_pin_it() {
    let network = bytes(0, 64 << 10);
    let small = network.slice(100..200);
    for push in [Buffer::push_copy, Buffer::push_through] {
        let mut buffer = Buffer::default();
        push(&mut buffer, small.clone());
        buffer.publish();
        assert_ne!(buffer.at(0).unwrap().as_ptr(), small.as_ptr());
    }
}
