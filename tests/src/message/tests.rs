use super::*;

fn requests(bytes: &[u8], strictness: Strictness) -> Result<Vec<(String, Vec<u8>)>, Broken> {
    let mut reader = Reader::new(bytes);
    let mut found = Vec::new();
    while let Some(head) = reader.head(strictness)? {
        let head = parse_request(&head, strictness)?;
        let mut body = Vec::new();
        reader.body(head.framing, strictness, |piece| body.extend_from_slice(piece))?;
        found.push((head.target, body));
    }
    Ok(found)
}

#[test]
fn well_formed_requests_are_read_in_order() {
    let bytes = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiPUT /c HTTP/1.1\r\n\
        Host: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: 1\r\n\r\n";
    let found = requests(bytes, Strictness::Exact).unwrap();
    let want = [("/a", &b""[..]), ("/b", b"hi"), ("/c", b"abc")];
    assert_eq!(found, want.map(|(t, b)| (t.to_owned(), b.to_vec())));
}

#[test]
fn what_is_not_exactly_one_message_is_refused() {
    let with = |lines: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let bad = [
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET / HTTP/1.0\r\nHost: a\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        with("Host: b\r\n"),
        with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
        with("Content-Length: 1\r\nContent-Length: 1\r\n"),
        with("Content-Length: +1\r\n"),
        with("Transfer-Encoding: xchunked\r\n"),
        with("Transfer-Encoding: chunked, identity\r\n"),
        with("X : 1\r\n"),
        with(": 1\r\n"),
        with(" folded\r\n"),
        with("X: a\rb\r\n"),
        with("X: a\nb\r\n"),
        with("X: a\0b\r\n"),
        with("colonless\r\n"),
        with("Transfer-Encoding: chunked\r\n") + "0x1\r\na\r\n0\r\n\r\n",
        with("Transfer-Encoding: chunked\r\n") + "1;x\r\na\r\n0\r\n\r\n",
        with("Transfer-Encoding: chunked\r\n") + "1\r\nab\r\n0\r\n\r\n",
        with("Transfer-Encoding: chunked\r\n") + "0\r\nContent-Length: 1\r\n\r\n",
        with("Transfer-Encoding: chunked\r\n") + "11111111111111111\r\n",
        with("Content-Length: 5\r\n") + "abc",
        "GET / HT".to_owned(),
    ];
    for bytes in bad {
        assert!(
            requests(bytes.as_bytes(), Strictness::Exact).is_err(),
            "{bytes:?} was read"
        );
    }
}

#[test]
fn what_a_server_may_accept_is_read_when_asked() {
    let bytes = b"\r\nPOST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1 ;x=y\r\na\r\n0\r\n\r\nGET /old HTTP/1.0\r\n\r\n";
    let found = requests(bytes, Strictness::AsRead).unwrap();
    assert_eq!(
        found,
        [("/".to_owned(), b"a".to_vec()), ("/old".to_owned(), Vec::new())]
    );
}
