use super::*;
use crate::client::{Client, get, request};

#[test]
fn replies_come_in_sequence_and_the_last_repeats() {
    let origin = Origin::start();
    origin.on("/p", [Reply::ok("1"), Reply::status(503, "2")]);
    origin.on("/p?exact", [Reply::ok("exact")]);
    let mut client = Client::connect(origin.address());
    for (status, body) in [(200, "1"), (503, "2"), (503, "2")] {
        let _ = client.get("a", "/p?any").expect(status, body);
    }
    let _ = client.get("a", "/p?exact").expect(200, "exact");
    let _ = client.get("a", "/other").expect(404, "no script");
    assert_eq!(
        (origin.count("/p"), origin.count("/p?exact"), origin.count("/p?any")),
        (4, 1, 3)
    );
    assert_eq!(origin.connections(), Connections { total: 1, open: 1 });
    assert_eq!(origin.log()[0].head, b"GET /p?any HTTP/1.1\r\nHost: a\r\n\r\n");
    drop(client);
    origin.wait_open_at_most(0);
}

#[test]
fn gates_hold_and_concurrency_is_seen() {
    let origin = Origin::start();
    origin.on("/g", [Reply::ok("x".repeat(10)).gate_at(4, "g")]);
    let address = origin.address();
    let clients: Vec<_> = (0..5).map(|_| thread::spawn(move || get(address, "a", "/g"))).collect();
    origin.wait_count("/g", 5);
    assert_eq!(origin.peak("/g"), 5);
    origin.open_gate("g");
    for client in clients {
        let _ = client.join().expect("a client ends").expect(200, "xxxxxxxxxx");
    }
}

#[test]
fn request_bodies_are_logged_before_a_reply_is_made_or_within_it() {
    let origin = Origin::start();
    origin.on_each("/echo", |request, n| {
        Reply::ok(format!("{n}:{}", request.body.len())).steps_for("POST")
    });
    origin.on(
        "/late",
        [Reply::steps(vec![
            Step::send("HTTP/1.1 100 Continue\r\n\r\n"),
            Step::ReadBody,
            Step::send("HTTP/1.1 204 No Content\r\n\r\n"),
        ])],
    );
    let mut client = Client::connect(origin.address());
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: t\r\n\r\n");
    let _ = client.read_response().expect(200, "1:3");
    client.send(request("PUT", "a", "/late", "Content-Length: 2\r\n"));
    origin.wait_count("/late", 1);
    assert!(!origin.last("/late").complete);
    let response = client.send("hi").read_response().expect(204, "");
    assert_eq!(response.interim[0].status, 100);
    let (echo, late) = (origin.last("/echo"), origin.last("/late"));
    assert_eq!((echo.body.as_slice(), echo.trailers.get("x")), (&b"abc"[..], Some("t")));
    assert_eq!((late.body.as_slice(), late.complete), (&b"hi"[..], true));
}

#[test]
fn what_is_no_message_is_a_violation_and_ends_the_connection() {
    let origin = Origin::start();
    for bytes in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let mut client = Client::connect(origin.address());
        assert!(client.send(bytes).is_closed());
    }
    let mut client = Client::connect(origin.address());
    client.send("GET / HT").half_close();
    assert!(client.is_closed());
    assert_eq!(origin.violations().len(), 3);
    assert!(origin.log().is_empty());
}

#[test]
fn old_answers_carry_their_age_and_date() {
    let origin = Origin::start();
    origin.on("/old", [Reply::ok("").age(70).date_ago(100).cached("max-age=60")]);
    let response = get(origin.address(), "a", "/old");
    let date = httpdate::parse_http_date(response.header("date").unwrap()).unwrap();
    let ago = std::time::SystemTime::now().duration_since(date).unwrap().as_secs();
    assert!((100..103).contains(&ago), "{ago}");
    assert_eq!(
        (response.age(), response.header("cache-control")),
        (Some(70), Some("max-age=60"))
    );
}
