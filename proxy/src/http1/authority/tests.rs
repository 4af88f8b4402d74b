use super::*;

fn normalised(text: &str, default_port: u16) -> Option<String> {
    let authority = Authority::parse(text.as_bytes()).ok()?;
    let mut out = Vec::new();
    authority.write_normalised(default_port, &mut out);
    let out = String::from_utf8(out).unwrap();
    // The short way tells the same, or nothing.
    assert!(
        authority.normal(default_port).is_none_or(|normal| normal == out),
        "{text:?}"
    );
    let mut host = Vec::new();
    authority.write_host(&mut host);
    assert!(
        authority.normal_host().is_none_or(|normal| normal.as_bytes() == host),
        "{text:?}"
    );
    assert_eq!(authority.as_sent(), text);
    Some(out)
}

#[test]
fn valid_authorities_have_one_form() {
    let cases = [
        ("a.test", "a.test"),
        ("A.Test", "a.test"),
        ("a.test.", "a.test"),
        ("a.test.:80", "a.test"),
        ("a.test:80", "a.test"),
        ("a.test:0080", "a.test"),
        ("a.test:", "a.test"),
        ("a.test:443", "a.test:443"),
        ("a.test:00443", "a.test:443"),
        ("a.test:65535", "a.test:65535"),
        ("under_score-x.test", "under_score-x.test"),
        ("xn--bcher-kva.test", "xn--bcher-kva.test"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("[::1]", "[::1]"),
        ("[::1]:80", "[::1]"),
        ("[2001:DB8::0:1]:81", "[2001:db8::1]:81"),
        ("[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]"),
    ];
    for (text, right) in cases {
        assert_eq!(normalised(text, 80).as_deref(), Some(right), "{text:?}");
        assert_eq!(normalised(right, 80).as_deref(), Some(right), "normal forms stay");
    }
    assert_eq!(normalised("a.test:443", 443).as_deref(), Some("a.test"));
    assert_eq!(normalised("a.test:80", 443).as_deref(), Some("a.test:80"));
}

#[test]
fn normal_forms_are_told_without_copying() {
    let normal = |text: &'static str| Authority::parse(text.as_bytes()).unwrap().normal(80);
    for text in ["a.test", "a.test:8080", "127.0.0.1"] {
        assert_eq!(normal(text), Some(text));
    }
    for text in [
        "A.test",
        "a.test.",
        "a.test.:8080",
        "a.test:",
        "a.test:80",
        "a.test:08080",
        "[::1]",
    ] {
        assert_eq!(normal(text), None, "{text:?}");
    }
}

#[test]
fn invalid_authorities_are_refused() {
    let long = "a".repeat(256);
    let cases = [
        "",
        ".",
        "..",
        ".a",
        "a..b",
        "a..",
        ":",
        ":80",
        "a:b",
        "a:-1",
        "a:+1",
        "a:0",
        "a:65536",
        "a:99999",
        "a:000080",
        "a:80:80",
        "u@a",
        "u:p@a",
        "a b",
        " a",
        "a ",
        "a\t",
        "a\0",
        "a/b",
        "a?b",
        "a#b",
        "a\\b",
        "a,b",
        "a%41",
        "a;b",
        "*",
        "a*",
        "é.test",
        "[",
        "]",
        "[]",
        "[::1",
        "::1",
        "[::1]x",
        "[::1]:x",
        "[::1%25lo]",
        "[v1.x]",
        "[1.2.3.4]",
        "[::1]]",
        "[[::1]]",
        "x[::1]",
        "[::g]",
        "a'b",
        "\"a\"",
        "<a>",
        long.as_str(),
    ];
    for text in cases {
        assert_eq!(normalised(text, 80), None, "{text:?}");
    }
    assert!(Authority::parse(b"a\xff").is_err());
    assert!(Authority::parse(&long.as_bytes()[1..]).is_ok());
}
