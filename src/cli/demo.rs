use std::process::ExitCode;
#[derive(Debug, clap::Args)]
pub(super) struct Ports {}
pub(super) fn demo(_: &Ports) -> anyhow::Result<ExitCode> { Ok(ExitCode::FAILURE) }
