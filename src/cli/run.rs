//! `larder run`.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use super::output;
use crate::appliance::{self, Ready};
use crate::config;

pub(super) fn run(path: &Path) -> anyhow::Result<ExitCode> {
    let loaded = match config::load(path) {
        Ok(loaded) => loaded,
        Err(findings) => {
            output::err(&findings.render(output::style()));
            return Ok(ExitCode::FAILURE);
        }
    };
    output::err(&loaded.resolved.warnings.render(output::style()));
    raise_open_files();
    appliance::run(loaded, |ready| {
        output::out(&ready_line(ready));
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Without the raise there is less room than planned, which is no reason not to serve.
pub(super) fn raise_open_files() {
    if let Err(fault) = config::raise_open_files() {
        output::err(&format!("warning: cannot raise the limit on open files: {fault}\n"));
    }
}

/// The line that scripts wait for.
fn ready_line(ready: &Ready) -> String {
    let mut line = String::from("ready data=");
    for (index, address) in ready.data.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(line, "{comma}{address}");
    }
    let _ = writeln!(line, " admin={}", ready.admin);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_names_every_address() {
        let ready = Ready {
            data: vec!["127.0.0.1:8080".parse().unwrap(), "[::1]:8080".parse().unwrap()],
            admin: "127.0.0.1:9090".parse().unwrap(),
        };
        let line = "ready data=127.0.0.1:8080,[::1]:8080 admin=127.0.0.1:9090\n";
        assert_eq!(ready_line(&ready), line);
    }
}
