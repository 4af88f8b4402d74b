//! The configuration file: from text to the settings of the other crates, or to all that is wrong with it. Reads one file;
//! opens no socket and applies nothing.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use larder_proxy::config::{Boot, Live};

mod diagnostics;
mod effective;
pub mod file;
mod machine;
mod recover;
mod resolve;
mod schema;
mod suggest;
pub mod values;

pub use diagnostics::{Diagnostic, Diagnostics, Severity, Style};
pub use effective::effective;
pub use machine::{Machine, raise_open_files};
pub use schema::{schema, schema_text};

use diagnostics::Report;

/// A file of thousands of vhosts has a tenth of this.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The file in `state_dir` that holds the token of the admin plane.
const TOKEN_FILE: &str = "admin.token";

/// A good configuration with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub resolved: Resolved,
    pub text: String,
    /// Where it can be read again; `None` where it came from no file.
    pub path: Option<PathBuf>,
}

/// All settings, checked, with every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    pub boot: Boot,
    pub live: Live,
    pub admin: AdminSettings,
    pub state_dir: PathBuf,
    pub warnings: Diagnostics,
}

/// Fixed for the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminSettings {
    pub listen: SocketAddr,
}

/// [`Resolved`] before it is known to be good.
#[derive(Debug)]
struct Settings {
    boot: Boot,
    live: Live,
    admin: AdminSettings,
    state_dir: PathBuf,
}

impl Resolved {
    pub fn token_path(&self) -> PathBuf {
        self.state_dir.join(TOKEN_FILE)
    }

    /// Keys in which the two differ and that a reload cannot change.
    pub fn needs_restart(&self, new: &Self) -> Vec<&'static str> {
        let (a, b) = (&self.boot, &new.boot);
        let changes = [
            ("server.workers", a.workers != b.workers),
            ("server.drain", a.drain != b.drain),
            ("server.access_log", a.access_log != b.access_log),
            ("server.timeouts", a.timeouts != b.timeouts),
            ("server.limits", a.limits != b.limits),
            ("listener", a.listeners != b.listeners),
            ("admin.listen", self.admin != new.admin),
            ("cache.name", a.cache_name != b.cache_name),
            ("cache.memory", a.memory != b.memory),
            ("cache.disk", a.disks != b.disks),
            ("state_dir", self.state_dir != new.state_dir),
        ];
        changes
            .into_iter()
            .filter(|(_, has_changed)| *has_changed)
            .map(|(key, _)| key)
            .collect()
    }
}

/// Reads and judges a file.
pub fn load(path: &Path) -> Result<Loaded, Diagnostics> {
    let name = path.display().to_string();
    let text = read(path).map_err(|(message, help)| Diagnostics::of_file(&name, message, help))?;
    let resolved = parse(&text, &name)?;
    Ok(Loaded {
        resolved,
        text,
        path: Some(path.to_owned()),
    })
}

/// Judges a text; `name` is what findings call it.
pub fn parse(text: &str, name: &str) -> Result<Resolved, Diagnostics> {
    parse_for(Machine::detect(), text, name)
}

/// [`parse`] as on another machine.
pub fn parse_for(machine: Machine, text: &str, name: &str) -> Result<Resolved, Diagnostics> {
    let mut report = Report::default();
    let settings = recover::read(text, &mut report).map(|file| resolve::resolve(&file, machine, &mut report));
    let (has_errors, findings) = report.finish(name, text);
    match settings {
        Some(settings) if !has_errors => Ok(Resolved {
            boot: settings.boot,
            live: settings.live,
            admin: settings.admin,
            state_dir: settings.state_dir,
            warnings: findings,
        }),
        _ => Err(findings),
    }
}

fn read(path: &Path) -> Result<String, (String, String)> {
    let unreadable = |fault: std::io::Error| {
        let help = match fault.kind() {
            std::io::ErrorKind::NotFound => "`larder run` and `larder check` take the file as --config FILE",
            std::io::ErrorKind::PermissionDenied => "the user that runs larder must be able to read it",
            _ => "",
        };
        (format!("cannot read the file: {fault}"), help.to_owned())
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err((
            format!("the file is larger than {} MiB", FILE_BYTES_MAX >> 20),
            String::new(),
        ));
    }
    String::from_utf8(bytes).map_err(|fault| {
        let offset = fault.utf8_error().valid_up_to();
        let line = fault.as_bytes().iter().take(offset).filter(|b| **b == b'\n').count() + 1;
        (
            format!("the file is not UTF-8 (line {line})"),
            "save it as UTF-8".to_owned(),
        )
    })
}

#[cfg(test)]
mod tests;
