use super::*;

#[test]
fn length_counts_down_and_leaves_the_rest() {
    let mut decoder = Decoder::new(Framing::Length(7), 7).unwrap();
    assert_eq!(decoder.decode(b""), Ok(Step::More(0)));
    assert_eq!(decoder.decode(b"hello"), Ok(Step::Data(0..5)));
    assert!(!decoder.is_done());
    assert_eq!(decoder.decode(b"!!GET /"), Ok(Step::Data(0..2)));
    assert!(decoder.is_done());
    assert_eq!(decoder.decode(b"GET /"), Ok(Step::End(0)));
    assert!(decoder.trailers().is_none());
}

#[test]
fn no_body_ends_at_once() {
    for framing in [Framing::None, Framing::Length(0)] {
        let mut decoder = Decoder::new(framing, 0).unwrap();
        assert!(decoder.is_done());
        assert_eq!(decoder.decode(b"GET /"), Ok(Step::End(0)));
    }
}

#[test]
fn bodies_beyond_the_limit_are_refused() {
    let too_large = RejectReason::BodyTooLarge;
    assert_eq!(Decoder::new(Framing::Length(11), 10).unwrap_err(), too_large.into());
    assert!(Decoder::new(Framing::Length(u64::MAX), u64::MAX).is_ok());
    let mut decoder = Decoder::new(Framing::Chunked, 10).unwrap();
    assert_eq!(decoder.decode(b"b\r\n"), Err(too_large.into()));
    let mut decoder = Decoder::new(Framing::Chunked, 10).unwrap();
    let first = b"5\r\nhello\r\n";
    assert_eq!(decoder.decode(first), Ok(Step::Data(3..8)));
    assert_eq!(decoder.decode(b"\r\n6\r\n"), Err(too_large.into()));
}
