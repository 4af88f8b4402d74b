use std::time::{Duration, UNIX_EPOCH};

use http::HeaderValue;

use super::super::{Reject, RejectReason};
use super::*;

fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(*name, HeaderValue::from_static(value));
    }
    map
}

fn head(
    status: u16,
    lines: &[(&'static str, &'static str)],
    framing: ResponseFraming,
    connection: Connection,
) -> String {
    let mut out = Vec::new();
    write_head(
        StatusCode::from_u16(status).unwrap(),
        None,
        &fields(lines),
        framing,
        connection,
        &mut out,
    );
    String::from_utf8(out).unwrap()
}

#[test]
fn heads_have_one_framing_whatever_the_map_says() {
    use Connection::{Close, Implied, KeepAlive};
    use ResponseFraming::{Bodiless, Chunked, Length, UntilClose};
    let lines = [
        ("x-a", "1"),
        ("content-length", "9"),
        ("transfer-encoding", "gzip"),
        ("connection", "x"),
        ("upgrade", "y"),
    ];
    let cases = [
        (
            200,
            Length(3),
            Implied,
            "HTTP/1.1 200 OK\r\nx-a: 1\r\nContent-Length: 3\r\n\r\n",
        ),
        (
            200,
            Chunked,
            KeepAlive,
            "HTTP/1.1 200 OK\r\nx-a: 1\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n",
        ),
        (
            200,
            UntilClose,
            Close,
            "HTTP/1.1 200 OK\r\nx-a: 1\r\nConnection: close\r\n\r\n",
        ),
        (
            304,
            Length(7),
            Implied,
            "HTTP/1.1 304 Not Modified\r\nx-a: 1\r\nContent-Length: 7\r\n\r\n",
        ),
        (304, Bodiless, Implied, "HTTP/1.1 304 Not Modified\r\nx-a: 1\r\n\r\n"),
        (204, Length(0), Implied, "HTTP/1.1 204 No Content\r\nx-a: 1\r\n\r\n"),
        (103, Chunked, Implied, "HTTP/1.1 103 Early Hints\r\nx-a: 1\r\n\r\n"),
        (
            299,
            Length(0),
            Implied,
            "HTTP/1.1 299 \r\nx-a: 1\r\nContent-Length: 0\r\n\r\n",
        ),
    ];
    for (status, framing, connection, right) in cases {
        assert_eq!(head(status, &lines, framing, connection), right);
    }
}

#[test]
fn a_switch_of_protocols_keeps_upgrade() {
    let right = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";
    assert_eq!(
        head(
            101,
            &[("upgrade", "websocket")],
            ResponseFraming::Bodiless,
            Connection::Upgrade
        ),
        right
    );
}

#[test]
fn several_lines_of_a_field_stay_apart() {
    let lines = [("set-cookie", "a=1"), ("set-cookie", "b=2")];
    let right = "HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(
        head(200, &lines, ResponseFraming::Length(0), Connection::Implied),
        right
    );
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
