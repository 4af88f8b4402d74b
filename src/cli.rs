//! The command line. Each command is a module; this one knows their arguments and turns how they end into an exit status:
//! 0 for success, 1 for failure, 2 (from clap) for arguments that make no sense.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod access;
mod check;
pub mod client;
mod demo;
mod output;
mod purge;
mod run;
mod stats;
mod table;

use access::{Access, Environment};

/// An HTTP cache appliance: reverse proxy cache with an admin plane.
#[derive(Debug, Parser)]
#[command(name = "larder", version, arg_required_else_help = true, propagate_version = true)]
struct Arguments {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve as the configuration file says.
    Run {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Judge a configuration file: all that is wrong with it, each with its place.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Print the configuration in force, every default included.
        #[arg(long)]
        print: bool,
    },
    /// Try it: a cache with two sites in front of a built-in origin.
    Demo(demo::Demo),
    /// Remove objects from a running cache.
    Purge(purge::Purge),
    /// Show the counters of a running cache.
    Stats(stats::Stats),
    /// Print the JSON Schema of the configuration file.
    Schema,
    /// Print the OpenAPI document of the admin plane.
    Openapi,
}

/// Runs what the process was asked for.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let environment = Environment::read();
    match dispatch(arguments, &environment) {
        Ok(code) => code,
        Err(error) => {
            output::err(&failure_text(&error));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: Arguments, environment: &Environment) -> anyhow::Result<ExitCode> {
    let access = arguments.access;
    match arguments.command {
        Command::Run { config } => run::run(&config),
        Command::Check { config, print } => check::check(&config, print),
        Command::Demo(demo) => demo::demo(&demo),
        Command::Purge(purge) => purge::purge(&purge, &access, environment),
        Command::Stats(stats) => stats::stats(&stats, &access, environment),
        Command::Schema => {
            output::out(&crate::config::schema_text());
            Ok(ExitCode::SUCCESS)
        }
        Command::Openapi => {
            output::out(&crate::appliance::openapi()?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// For the commands that make calls: one thread, no workers.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// An error with its causes on one line, and what to do about it on the next.
fn failure_text(error: &anyhow::Error) -> String {
    let help = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<client::CallError>()?.help());
    let help = help.map_or_else(String::new, |help| format!("  help: {help}\n"));
    format!("error: {error:#}\n{help}")
}

#[cfg(test)]
mod tests;
