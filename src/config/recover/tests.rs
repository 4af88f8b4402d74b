use super::*;

#[test]
fn serdes_words_become_ours() {
    for (words, message, help) in [
        (
            "unknown field `ttll`, expected one of `ttl`, `match`",
            "unknown key `ttll`",
            "did you mean `ttl`?",
        ),
        (
            "unknown field `x`, expected `a` or `b`",
            "unknown key `x`",
            "the keys here are a, b",
        ),
        (
            "unknown field `a, expected b`, expected `c`",
            "unknown key `a, expected b`",
            "the keys here are c",
        ),
        (
            "unknown variant `jsn`, expected `json`",
            "`jsn` is not a value of this key",
            "did you mean \"json\"?",
        ),
        (
            "unknown variant `xml`, expected `json`",
            "`xml` is not a value of this key",
            "write one of \"json\"",
        ),
        (
            "invalid type: map, expected a sequence",
            "expected a list, found a table",
            "tables that repeat are written [[name]], or in a list: [{ key = value }]",
        ),
        (
            "invalid type: string \"x\", expected a sequence",
            "expected a list, found string \"x\"",
            "write [\"x\"]",
        ),
        (
            "invalid value: integer `-1`, expected u32",
            "expected a whole number of 0 or more, found integer `-1`",
            "",
        ),
        ("first\nsecond", "first", "second"),
        ("", "", ""),
    ] {
        let explained = explain(words);
        assert_eq!(
            (explained.message.as_str(), explained.help.as_str()),
            (message, help),
            "{words}"
        );
    }
}

#[test]
fn what_is_left_of_a_faulty_file_is_read() {
    let mut report = Report::default();
    let text =
        "state_dir = 7\n[cache]\nname = \"x\"\n[[vhost]]\nname = \"a\"\nhosts = [\"h\", 3, \"i\"]\nupstrem = \"u\"\n";
    let file = read(text, &mut report).unwrap();
    assert_eq!(file.state_dir, File::default().state_dir);
    assert_eq!(*file.cache.name, "x");
    let hosts: Vec<_> = file.vhost[0].hosts.iter().map(|host| host.as_str()).collect();
    assert_eq!(hosts, ["h", "i"]);
    for (key, is_lost) in [
        ("state_dir", true),
        ("vhost.hosts", true),
        ("vhost.upstrem", true),
        ("vhost.upstream", true),
        ("vhost.name", false),
    ] {
        assert_eq!(report.is_lost(key), is_lost, "{key}");
    }
}
