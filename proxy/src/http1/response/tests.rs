use std::time::{Duration, UNIX_EPOCH};

use super::super::{Reject, RejectReason};
use super::*;

#[test]
fn each_framing_and_each_connection_has_its_line_or_none() {
    let framing = |framing| {
        let mut out = Vec::new();
        write_framing(framing, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(framing(ResponseFraming::Length(3)), "Content-Length: 3\r\n");
    assert_eq!(framing(ResponseFraming::Chunked), "Transfer-Encoding: chunked\r\n");
    assert_eq!(framing(ResponseFraming::Bodiless), "");
    assert_eq!(framing(ResponseFraming::UntilClose), "");
    let connection = |connection| {
        let mut out = Vec::new();
        write_connection(connection, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(connection(Connection::Implied), "");
    assert_eq!(connection(Connection::KeepAlive), "Connection: keep-alive\r\n");
    assert_eq!(connection(Connection::Close), "Connection: close\r\n");
}

#[test]
fn a_reason_phrase_cannot_split_the_head() {
    let line = |reason: &[u8]| {
        let mut out = Vec::new();
        write_status_line(StatusCode::OK, Some(reason), &mut out);
        out
    };
    assert_eq!(line(b"Fine \xe9"), b"HTTP/1.1 200 Fine \xe9\r\n");
    assert_eq!(line(b"Fine\r\nX: y"), b"HTTP/1.1 200 OK\r\n");
}

#[test]
fn reject_pages_close_and_are_not_stored() {
    let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
    let reject = Reject::from(RejectReason::BareLf);
    let page = String::from_utf8(reject_page(reject, PageBody::Sent, now)).unwrap();
    assert_eq!(
        page,
        "HTTP/1.1 400 Bad Request\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain; charset=utf-8\r\n\
         X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nContent-Length: 25\r\nConnection: close\r\n\r\n\
         400 Bad Request: bare-lf\n"
    );
    let head = String::from_utf8(reject_page(reject, PageBody::Omitted, now)).unwrap();
    assert_eq!(head, page.strip_suffix("400 Bad Request: bare-lf\n").unwrap());
    for reason in RejectReason::ALL {
        let page = reject_page(reason.into(), PageBody::Sent, now);
        assert!(page.starts_with(format!("HTTP/1.1 {} ", reason.status()).as_bytes()));
    }
}

#[test]
fn error_pages_carry_further_fields_but_no_injected_ones() {
    let page = ErrorPage {
        status: StatusCode::METHOD_NOT_ALLOWED,
        detail: "",
        connection: Connection::Implied,
        body: PageBody::Sent,
        fields: &[("Allow", "GET, HEAD"), ("X", "a\r\nY: b")],
        now: UNIX_EPOCH.checked_sub(Duration::from_secs(5)).unwrap(),
    };
    let mut out = Vec::new();
    page.write(&mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("\r\nAllow: GET, HEAD\r\n") && !text.contains("Y: b") && !text.contains("Connection"));
    assert!(
        text.ends_with("\r\nContent-Length: 23\r\n\r\n405 Method Not Allowed\n"),
        "{text}"
    );
}
