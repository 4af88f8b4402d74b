use super::*;

/// Takes so many bytes, then fails, until it is given more room.
struct Full {
    text: Vec<u8>,
    room: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room);
        if count == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= count;
        self.text.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_torn_write_counts_whole_lines_and_the_next_begins_on_a_new_one() {
    let batch = b"one\ntwo\nthree\n";
    for room in 0..batch.len() {
        let mut out = Full { text: Vec::new(), room };
        let mut is_torn = false;
        let torn = write_lines(&mut out, batch, &mut is_torn).expect_err("there is no room for all");
        let whole = batch[..room].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(torn.whole_lines, whole as u64, "room for {room}");
        assert_eq!(torn.source.kind(), io::ErrorKind::StorageFull);

        // Still full: nothing changes.
        let torn = write_lines(&mut out, b"lost\n", &mut is_torn).expect_err("there is still no room");
        assert_eq!(torn.whole_lines, 0);

        out.room = usize::MAX;
        write_lines(&mut out, b"later\n", &mut is_torn).expect("there is room again");
        let text = String::from_utf8(out.text).expect("text");
        let (rest, last) = text
            .trim_end()
            .rsplit_once('\n')
            .unwrap_or_else(|| ("", text.trim_end()));
        assert_eq!(last, "later", "room for {room}: {text:?}");
        let lines: Vec<_> = rest.lines().collect();
        assert_eq!(&lines[..whole], &["one", "two", "three"][..whole], "room for {room}");
        assert!(lines.len() <= whole + 1, "room for {room}: {text:?}");
    }
}

#[test]
fn both_names_of_standard_output_open_no_file() {
    for path in ["-", "/dev/stdout"] {
        let mut sink = Sink::open(Path::new(path)).expect("standard output is always there");
        assert!(matches!(sink.target, Target::StandardOutput));
        sink.reopen().expect("there is nothing to reopen");
    }
    assert!(Sink::open(Path::new("/nonexistent/access.log")).is_err());
}
