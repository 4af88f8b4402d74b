//! `larder purge`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::Value;

use super::access::{Access, Environment};
use super::{failure_text, output, table};

#[derive(Debug, Args)]
pub(super) struct Purge {
    /// Absolute URLs, such as http://www.example.test/a?b=1.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Print the answers, one JSON object a line.
    #[arg(long)]
    json: bool,
    /// A configuration file, to find the admin plane and its token.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Goes through all URLs, whatever becomes of each, and fails where one failed.
pub(super) fn purge(purge: &Purge, access: &Access, environment: &Environment) -> anyhow::Result<ExitCode> {
    let client = access.client(purge.config.as_deref(), environment)?;
    let runtime = super::runtime()?;
    let mut has_failed = false;
    for url in &purge.urls {
        match runtime.block_on(client.purge_url(url)) {
            Ok(answer) if purge.json => output::out(&format!("{answer}\n")),
            Ok(answer) => output::out(&format!("{}\n", summary(url, &answer))),
            Err(error) => {
                has_failed = true;
                let error = Err::<(), _>(error).with_context(|| format!("cannot purge {url}"));
                output::err(&error.err().map_or_else(String::new, |error| failure_text(&error)));
            }
        }
    }
    Ok(if has_failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn summary(url: &str, answer: &Value) -> String {
    let number = |key| answer.get(key).and_then(Value::as_u64);
    let matched = number("matched").unwrap_or(0);
    if matched == 0 {
        let hint = answer.get("hint").and_then(Value::as_str);
        let hint = hint.map_or_else(String::new, |hint| format!("\n  hint: {hint}"));
        return format!("{url}: nothing was stored{hint}");
    }
    let objects = if matched == 1 { "object" } else { "objects" };
    let bytes = table::bytes(number("bytes").unwrap_or(0));
    let vhosts = answer.get("vhosts").and_then(Value::as_object);
    let names: Vec<_> = vhosts
        .into_iter()
        .flatten()
        .filter(|(_, count)| count.as_u64() != Some(0))
        .map(|(name, _)| name.as_str())
        .collect();
    let of = if names.is_empty() {
        String::new()
    } else {
        format!(" of {}", names.join(", "))
    };
    format!("{url}: purged {matched} {objects}{of}, {bytes}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_summary_tells_what_went() {
        for (answer, expected) in [
            (
                json!({ "matched": 0, "bytes": 0, "vhosts": {} }),
                "u: nothing was stored",
            ),
            (
                json!({ "matched": 0, "hint": "Why." }),
                "u: nothing was stored\n  hint: Why.",
            ),
            (
                json!({ "matched": 1, "bytes": 512, "vhosts": { "static": 0, "www": 1 } }),
                "u: purged 1 object of www, 512 B",
            ),
            (
                json!({ "matched": 3, "bytes": 12_288, "vhosts": { "a": 1, "b": 2 } }),
                "u: purged 3 objects of a, b, 12.0 KiB",
            ),
            (json!({ "matched": 2 }), "u: purged 2 objects, 0 B"),
            (json!([]), "u: nothing was stored"),
        ] {
            assert_eq!(summary("u", &answer), expected);
        }
    }
}
