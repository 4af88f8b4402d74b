//! `larder check`.

use std::path::Path;
use std::process::ExitCode;

use super::output;
use crate::config;

pub(super) fn check(path: &Path, print: bool) -> anyhow::Result<ExitCode> {
    let loaded = match config::load(path) {
        Ok(loaded) => loaded,
        Err(findings) => {
            output::err(&findings.render(output::style()));
            return Ok(ExitCode::FAILURE);
        }
    };
    output::err(&loaded.resolved.warnings.render(output::style()));
    if print {
        output::out(&config::effective(&loaded.resolved)?);
    } else {
        output::out(&format!("{}: ok\n", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}
