use clap::CommandFactory;

use super::*;

fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(line.split_whitespace())
}

#[test]
fn the_definition_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn commands_take_their_arguments() {
    for line in [
        "larder run --config a.toml",
        "larder check --config a.toml --print",
        "larder demo",
        "larder demo --data-port 0 --admin-port 9091",
        "larder purge http://a.test/ http://b.test/ --json",
        "larder --admin http://127.0.0.1:1 stats",
        "larder stats --admin http://127.0.0.1:1 --token t --reset --json",
        "larder stats --token-file t --config a.toml",
        "larder schema",
        "larder openapi",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for (line, part) in [
        ("larder run", "--config <FILE>"),
        ("larder check", "--config <FILE>"),
        ("larder purge", "<URL>..."),
        ("larder demo --data-port 99999", "99999"),
        ("larder stats --token a --token-file b", "cannot be used with"),
        ("larder serve", "unrecognized subcommand"),
    ] {
        let said = parse(line).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains(part), "{line}: {said}");
    }
}
