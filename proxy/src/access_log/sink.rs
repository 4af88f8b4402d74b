//! Where the lines go: a file that is appended to, or standard output.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The lines hold addresses of clients: for the owner and its group.
const MODE: u32 = 0o640;

#[derive(Debug)]
pub(super) struct Sink {
    target: Target,
    /// The last write ended within a line: the next begins on a new one.
    is_torn: bool,
}

#[derive(Debug)]
enum Target {
    File { path: PathBuf, file: File },
    StandardOutput,
}

/// A write that ended early.
#[derive(Debug)]
pub(super) struct Torn {
    /// Lines that were written whole.
    pub(super) whole_lines: u64,
    pub(super) source: io::Error,
}

impl Sink {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Opening `/dev/stdout` fails where standard output is a socket, as under systemd.
        let target = if path == Path::new("-") || path == Path::new("/dev/stdout") {
            Target::StandardOutput
        } else {
            Target::File {
                path: path.to_owned(),
                file: append_to(path)?,
            }
        };
        Ok(Self { target, is_torn: false })
    }

    /// Opens the path anew; the old file stays in use where that fails.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if let Target::File { path, file } = &mut self.target {
            *file = append_to(path)?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Writes whole lines.
    pub(super) fn write_lines(&mut self, text: &[u8]) -> Result<(), Torn> {
        match &mut self.target {
            Target::File { file, .. } => write_lines(file, text, &mut self.is_torn),
            Target::StandardOutput => write_lines(&mut io::stdout().lock(), text, &mut self.is_torn),
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(MODE).open(path)
}

/// `Write::write_all` does not say how far it came, so the lines that are lost could not be counted.
fn write_lines(out: &mut impl Write, text: &[u8], is_torn: &mut bool) -> Result<(), Torn> {
    if *is_torn {
        out.write_all(b"\n").map_err(|source| Torn { whole_lines: 0, source })?;
        *is_torn = false;
    }
    let mut rest = text;
    let result = loop {
        if rest.is_empty() {
            break out.flush();
        }
        match out.write(rest) {
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    result.map_err(|source| {
        let written = text.get(..text.len() - rest.len()).unwrap_or_default();
        *is_torn = written.last().is_some_and(|byte| *byte != b'\n');
        Torn {
            whole_lines: memchr::memchr_iter(b'\n', written).count() as u64,
            source,
        }
    })
}

#[cfg(test)]
mod tests;
