//! `larder demo`.

use std::fs::DirBuilder;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::{output, run};
use crate::appliance;
use crate::config::{self, Loaded};
use crate::demo::{Kept, Origin, Places, demo_config, instructions};
use crate::state_dir::StateDir;

const DATA_PORT: u16 = 8080;
const ADMIN_PORT: u16 = 9090;
const NAME_ATTEMPTS: usize = 16;

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Port of the cache [default: 8080, or a free one].
    #[arg(long, value_name = "PORT")]
    data_port: Option<u16>,
    /// Port of the admin plane [default: 9090, or a free one].
    #[arg(long, value_name = "PORT")]
    admin_port: Option<u16>,
    /// Where what is stored is kept from one demo to the next [default: larder-demo below the user's cache directory].
    #[arg(long, value_name = "DIR", conflicts_with = "fresh")]
    directory: Option<PathBuf>,
    /// Begin with nothing stored, and leave nothing behind.
    #[arg(long)]
    fresh: bool,
}

pub(super) fn demo(arguments: &Demo) -> anyhow::Result<ExitCode> {
    let origin = Origin::start().context("cannot start the demo origin")?;
    // The access log of one run is of no use to the next.
    let own = Directory::create().context("cannot make a directory for the demo")?;
    let (state, kept) = match arguments.keep()? {
        Some((state, path)) => (state, Some(path)),
        None => (StateDir::take(&own.path)?, None),
    };
    let state_dir = kept.as_deref().unwrap_or(&own.path);
    let data = address(arguments.data_port, DATA_PORT);
    let admin = address(arguments.admin_port, ADMIN_PORT);
    let access_log = &own.path.join("access.log");
    let text = demo_config(origin.address(), data, admin, Places { state_dir, access_log });
    let resolved = config::parse(&text, "the demo configuration")?;
    let token_path = resolved.token_path();
    let path = None;
    run::raise_open_files();
    appliance::run_in(state, Loaded { resolved, text, path }, |ready| {
        let data = ready.data.first().copied().unwrap_or(data);
        output::out(&instructions(
            &program(),
            origin.address(),
            data,
            ready.admin,
            &token_path,
            kept.as_deref().map_or(Kept::No, Kept::Here),
        ));
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Demo {
    /// Where what is stored stays, if it does. The usual place gives way where another demo has it.
    fn keep(&self) -> anyhow::Result<Option<(StateDir, PathBuf)>> {
        if self.fresh {
            return Ok(None);
        }
        if let Some(path) = &self.directory {
            return Ok(Some((StateDir::take(path)?, path.clone())));
        }
        let Some(path) = usual_directory() else { return Ok(None) };
        match StateDir::take(&path) {
            Ok(state) => Ok(Some((state, path))),
            Err(why) => {
                output::err(&format!("note: {why}: this demo begins empty\n"));
                Ok(None)
            }
        }
    }
}

/// As other programs choose it (XDG Base Directory Specification).
fn usual_directory() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Some(caches?.join("larder-demo"))
}

/// This binary, as it can be called from here.
fn program() -> PathBuf {
    let Ok(path) = std::env::current_exe() else {
        return PathBuf::from("larder");
    };
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here)
        .map_or_else(|_| path.clone(), Path::to_path_buf)
}

/// The port that was asked for, come what may. Otherwise the usual one where it is free, or any: that someone takes it between
/// the look and the use is reported when it is used.
fn address(wanted: Option<u16>, usual: u16) -> SocketAddr {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if let Some(port) = wanted {
        return at(port);
    }
    let is_free = TcpListener::bind(at(usual)).is_ok();
    at(if is_free { usual } else { 0 })
}

/// A directory that only this user can read, and that goes with the demo.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
}

impl Directory {
    fn create() -> std::io::Result<Self> {
        let parent = std::env::temp_dir();
        let mut last = None;
        for _ in 0..NAME_ATTEMPTS {
            // A name that nobody can take beforehand.
            let path = parent.join(format!("larder-demo-{:016x}", getrandom::u64()?));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(fault) => last = Some(fault),
            }
        }
        Err(last.unwrap_or_else(|| std::io::ErrorKind::AlreadyExists.into()))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(fault) = remove(&self.path) {
            output::err(&format!("warning: cannot remove {}: {fault}\n", self.path.display()));
        }
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    std::fs::remove_dir_all(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_gives_way_to_a_free_one_unless_it_was_asked_for() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert_eq!(address(None, port).port(), 0);
        assert_eq!(address(Some(port), 1).port(), port);
    }

    #[test]
    fn the_directory_is_private_and_goes() {
        use std::os::unix::fs::PermissionsExt;
        let directory = Directory::create().unwrap();
        let path = directory.path.clone();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        drop(directory);
        assert!(!path.exists());
    }
}
