use proptest::prelude::*;

use super::super::tests::cases;
use super::*;

const MAX: u64 = 1 << 20;

/// Body, trailers as lines, and how much was consumed; `None` where it did not end.
type Decoded = Option<(Vec<u8>, Vec<String>, usize)>;

fn decode_in_pieces(bytes: &[u8], pieces: &[usize]) -> Result<Decoded, RejectReason> {
    let mut decoder = Decoder::new(MAX);
    let (mut body, mut at, mut have) = (Vec::new(), 0, 0);
    let mut sizes = pieces.iter().cycle();
    loop {
        let input = &bytes[at..have];
        let step = decoder.decode(input).map_err(|reject| reject.reason)?;
        at += step.consumed();
        match step {
            Step::Data(range) => body.extend_from_slice(&input[range]),
            Step::End(_) => {
                assert!(decoder.is_done());
                let lines = decoder.trailers().into_iter().flatten();
                let lines = lines
                    .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                    .collect();
                return Ok(Some((body, lines, at)));
            }
            Step::More(_) => {
                assert_eq!(at, have, "all that was given is consumed");
                if have == bytes.len() {
                    return Ok(None);
                }
                have = (have + sizes.next().unwrap()).min(bytes.len());
            }
        }
    }
}

fn decode(bytes: &[u8]) -> Result<Decoded, RejectReason> {
    decode_in_pieces(bytes, &[bytes.len().max(1)])
}

const VALID: [(&[u8], &[u8]); 8] = [
    (b"0\r\n\r\n", b""),
    (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
    (b"1\r\na\r\n2\r\nbc\r\n000\r\n\r\n", b"abc"),
    (b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
    (b"0000000000000002\r\n\r\n\r\n0000000000000000\r\n\r\n", b"\r\n"),
    (b"3;a=b;c=\"d e\"\r\nabc\r\n0;last\r\n\r\n", b"abc"),
    (b"0\r\nX-Sum: 1\r\n\r\n", b""),
    (b"2\r\nok\r\n0\r\nX-Sum:  1\t\r\nx-empty:\r\n\r\n", b"ok"),
];

#[test]
fn valid_bodies_decode_split_anywhere() {
    for (bytes, right) in VALID {
        let with_more = [bytes, b"GET / HTTP/1.1\r\n"].concat();
        let whole = decode(&with_more).unwrap().unwrap();
        assert_eq!(
            (&whole.0[..], whole.2),
            (right, bytes.len()),
            "{}",
            bytes.escape_ascii()
        );
        for at in 1..with_more.len() {
            assert_eq!(
                decode_in_pieces(&with_more, &[at, with_more.len()]).unwrap().as_ref(),
                Some(&whole)
            );
        }
        assert_eq!(decode_in_pieces(&with_more, &[1]).unwrap(), Some(whole));
        for at in 0..bytes.len() {
            assert_eq!(decode(&bytes[..at]), Ok(None), "{}", bytes[..at].escape_ascii());
        }
    }
}

#[test]
fn b99_lenient_chunk_syntax_is_refused() {
    use RejectReason as R;
    let cases: [(&[u8], RejectReason); 40] = [
        (b"1these-bytes\r\n", R::BadChunk),
        (b"-0x0\r\n\r\n", R::BadChunk),
        (b"0x5\r\nhello\r\n", R::BadChunk),
        (b"+5\r\nhello\r\n", R::BadChunk),
        (b"-1\r\n", R::BadChunk),
        (b" 5\r\nhello\r\n", R::BadChunk),
        (b"5 \r\nhello\r\n", R::BadChunk),
        (b"5\t\r\nhello\r\n", R::BadChunk),
        (b"5 ;a\r\nhello\r\n", R::BadChunk),
        (b"\r\n5\r\nhello\r\n", R::BadChunk),
        (b"\r\n", R::BadChunk),
        (b";a\r\n", R::BadChunk),
        (b"g\r\n", R::BadChunk),
        (b"5_0\r\n", R::BadChunk),
        (b"5\nhello\r\n", R::BadChunk),
        (b"5\rhello\r\n", R::BadChunk),
        (b"5\r\r\nhello\r\n", R::BadChunk),
        (b"5\0\r\nhello\r\n", R::BadChunk),
        (b"5;\r\nhello\r\n", R::BadChunk),
        (b"5; a\r\nhello\r\n", R::BadChunk),
        (b"5;a\nhello\r\n", R::BadChunk),
        (b"5;a\rb\r\nhello\r\n", R::BadChunk),
        (b"5;a=\"\n\"\r\nhello\r\n", R::BadChunk),
        (b"5;a\0\r\nhello\r\n", R::BadChunk),
        (b"5\r\nhello0\r\n\r\n", R::BadChunk),
        (b"5\r\nhello\n0\r\n\r\n", R::BadChunk),
        (b"5\r\nhello\r0\r\n\r\n", R::BadChunk),
        (b"5\r\nhello!\r\n0\r\n\r\n", R::BadChunk),
        (b"5\r\nhell\r\n0\r\n\r\n", R::BadChunk),
        (b"5\r\nhello\r\n\r\n", R::BadChunk),
        (b"10000000000000000\r\n", R::BadChunk),
        (b"00000000000000005\r\nhello\r\n", R::BadChunk),
        (b"ffffffffffffffff\r\n", R::BodyTooLarge),
        (b"0\n\n", R::BadChunk),
        (b"0\r\n\n", R::BareLf),
        (b"0\r\n\rX", R::BareCr),
        (b"0\r\nX: y\n\r\n", R::BareLf),
        (b"0\r\nX : y\r\n\r\n", R::SpaceBeforeColon),
        (b"0\r\nX: y\r\n z\r\n\r\n", R::ObsFold),
        (b"0\r\nX: a\rY: b\r\n\r\n", R::BareCr),
    ];
    for (bytes, reason) in cases {
        assert_eq!(decode(bytes), Err(reason), "{}", bytes.escape_ascii());
        assert_eq!(
            decode_in_pieces(bytes, &[1]),
            Err(reason),
            "{} byte by byte",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn b99_extensions_are_limited() {
    let chunk = |extension: usize| format!("1;{}\r\na\r\n", "x".repeat(extension));
    let last = "0\r\n\r\n";
    assert!(decode((chunk(256) + last).as_bytes()).unwrap().is_some());
    assert!(decode((chunk(256).repeat(64) + last).as_bytes()).unwrap().is_some());
    let too_large = Err(RejectReason::ChunkExtensionsTooLarge);
    assert_eq!(decode((chunk(257) + last).as_bytes()), too_large);
    assert_eq!(decode((chunk(256).repeat(64) + &chunk(1) + last).as_bytes()), too_large);
    assert_eq!(decode(format!("1;{}", "x".repeat(1 << 20)).as_bytes()), too_large);
}

#[test]
fn b99_a_body_of_tiny_chunks_is_read() {
    let bytes = ["1\r\na\r\n".repeat(1 << 17).as_bytes(), b"0\r\n\r\n"].concat();
    let (body, _, consumed) = decode_in_pieces(&bytes, &[16 * 1024]).unwrap().unwrap();
    assert_eq!((body.len(), consumed), (1 << 17, bytes.len()));
}

#[test]
fn a_refused_body_stays_refused() {
    let mut decoder = Decoder::new(MAX);
    assert!(decoder.decode(b"x").is_err());
    assert_eq!(decoder.decode(b"5\r\n"), Err(RejectReason::BadChunk.into()));
    assert!(!decoder.is_done());
}

#[test]
fn b63_trailers_are_limited_and_filtered() {
    let trailers = |lines: &str| decode(format!("0\r\n{lines}\r\n").as_bytes()).map(|decoded| decoded.unwrap().1);
    assert_eq!(
        trailers("X-Sum: 1\r\nServer-Timing: a\r\n").unwrap(),
        ["x-sum: 1", "server-timing: a"]
    );
    let forbidden = "Content-Length: 5\r\nSet-Cookie: a\r\nHost: b\r\nTransfer-Encoding: chunked\r\nAuthorization: c\r\n\
                     Proxy-Authorization: d\r\nX-Forwarded-For: e\r\nCache-Control: f\r\nKEEP-ALIVE: g\r\n";
    assert_eq!(trailers(&format!("{forbidden}X: y\r\n")).unwrap(), ["x: y"]);
    assert_eq!(trailers(&"X: y\r\n".repeat(32)).unwrap().len(), 32);
    assert_eq!(trailers(&"X: y\r\n".repeat(33)), Err(RejectReason::TrailersTooLarge));
    assert_eq!(
        trailers(&format!("X: {}\r\n", "y".repeat(1 << 20))),
        Err(RejectReason::TrailersTooLarge)
    );
    assert_eq!(trailers("X\u{e9}: y\r\n"), Err(RejectReason::BadName));
    assert_eq!(trailers(": y\r\n"), Err(RejectReason::EmptyName));
}

#[test]
fn chunk_heads_are_plain_hexadecimal() {
    for len in [1_usize, 9, 10, 15, 16, 255, 256, 4096, 65_535, 1 << 20, usize::MAX] {
        let mut out = Vec::new();
        write_chunk_head(len, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{len:x}\r\n"));
    }
}

fn spiced(bytes: &[u8], edits: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, byte) in edits {
        let len = bytes.len();
        if at % 2 == 0 {
            bytes[at / 2 % len] = *byte
        } else {
            bytes.insert(at / 2 % (len + 1), *byte)
        }
    }
    bytes
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn what_is_encoded_decodes(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        pieces in prop::collection::vec(1..30_usize, 1..5),
    ) {
        let mut bytes = Vec::new();
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            write_chunk_head(chunk.len(), &mut bytes);
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(CRLF);
        }
        bytes.extend_from_slice(LAST_CHUNK);
        let end = bytes.len();
        bytes.extend_from_slice(b"next");
        let decoded = decode_in_pieces(&bytes, &pieces).unwrap().unwrap();
        prop_assert_eq!(decoded, (chunks.concat(), Vec::new(), end));
    }

    #[test]
    fn mutated_bodies_decode_the_same_in_pieces(
        valid in prop::sample::select(&VALID[..]),
        edits in prop::collection::vec((any::<usize>(), prop::sample::select(&b"\r\n\0 ;:05afX\""[..])), 0..4),
        pieces in prop::collection::vec(1..6_usize, 1..4),
    ) {
        let bytes = spiced(valid.0, &edits);
        let whole = decode(&bytes);
        prop_assert_eq!(decode_in_pieces(&bytes, &pieces), whole.clone());
        // Accepted by one who doesn't accept more than the grammar: sizes and line ends where they must be.
        if let Ok(Some((body, _, end))) = whole {
            prop_assert_eq!(naive(&bytes[..end]), Some(body));
        }
    }
}

/// All chunks of a complete body, read with slices instead of states.
fn naive(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let line = std::str::from_utf8(&bytes[..line_end]).ok()?;
        let size = usize::from_str_radix(line.split(';').next()?, 16).ok()?;
        bytes = &bytes[line_end + 2..];
        if size == 0 {
            return (bytes == b"\r\n" || bytes.ends_with(b"\r\n\r\n")).then_some(body);
        }
        body.extend_from_slice(bytes.get(..size)?);
        bytes = bytes.get(size..)?.strip_prefix(b"\r\n")?;
    }
}
