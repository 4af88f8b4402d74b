use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use super::*;

/// Answers one request with these bytes, and hands back what it read up to the end of the request.
fn serve_once(answer: &'static [u8]) -> (Endpoint, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !is_whole(&request) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the request broke off");
            request.extend(&buffer[..count]);
        }
        stream.write_all(answer).unwrap();
        String::from_utf8(request).unwrap()
    });
    (endpoint, thread)
}

/// A head, and a body that is a JSON object or nothing.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    text.split_once("\r\n\r\n")
        .is_some_and(|(head, body)| !head.starts_with("POST") || body.ends_with("}"))
}

fn said(error: CallError) -> String {
    crate::cli::failure_text(&error.into())
}

#[tokio::test]
async fn a_purge_is_posted_with_the_token() {
    let (endpoint, server) = serve_once(b"HTTP/1.1 202 Accepted\r\nContent-Length: 13\r\n\r\n{\"matched\":1}");
    let client = Client::new(endpoint, Some("secret")).unwrap();
    let answer = client.purge_url("http://a.test/?\"").await.unwrap();
    assert_eq!(answer, serde_json::json!({ "matched": 1 }));
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /api/v1/purges HTTP/1.1\r\n"), "{request}");
    for part in [
        "authorization: Bearer secret\r\n",
        "content-type: application/json\r\n",
        r#"{"match":{"url":"http://a.test/?\""}}"#,
    ] {
        assert!(request.contains(part), "{request}");
    }
    assert!(!format!("{client:?}").contains("secret"));
}

#[tokio::test]
async fn each_failure_says_what_to_do() {
    for (answer, message, help) in [
        (
            &b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 71\r\n\r\n{\"title\":\"no token\",\"status\":401,\"detail\":\"send one\",\"code\":\"no_token\"}"[..],
            "error: no token: send one (status 401, no_token)\n",
            "the token is in admin.token in state_dir",
        ),
        (
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 16\r\n\r\n{\"status\": 403 }",
            "error: refused (status 403)\n",
            "its role does not allow this",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "is not that of an admin plane (status 200 OK)",
            "this may be the port of the data plane",
        ),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP", "this may be the port of the data plane"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", "broke off", ""),
    ] {
        let (endpoint, server) = serve_once(answer);
        let error = Client::new(endpoint, None).unwrap().stats().await.unwrap_err();
        let text = said(error);
        assert!(text.contains(message) && text.contains(help), "{text}");
        server.join().unwrap();
    }
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let client = Client::new(format!("http://{free}/").parse().unwrap(), None).unwrap();
    let text = said(client.reset_stats().await.unwrap_err());
    let expected =
        format!("error: cannot connect to the admin plane at {free}: Connection refused (os error 111)\n  help: is");
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn endpoints() {
    for (text, expected) in [
        ("http://127.0.0.1:9090", Some("127.0.0.1:9090")),
        ("http://cache.example.test/", Some("cache.example.test:80")),
        ("http://[::1]:9090", Some("[::1]:9090")),
        ("https://127.0.0.1:9090", None),
        ("127.0.0.1:9090", None),
        ("http://127.0.0.1:99999", None),
        ("http://user@127.0.0.1", None),
        ("http://127.0.0.1/api", None),
        ("http://", None),
        ("", None),
    ] {
        let endpoint: Result<Endpoint, _> = text.parse();
        assert_eq!(
            endpoint.map(|endpoint| endpoint.to_string()).ok().as_deref(),
            expected,
            "{text}"
        );
    }
    assert!(Client::new("http://a".parse().unwrap(), Some("a\nb")).is_err());
}
