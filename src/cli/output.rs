//! The only way to standard output and standard error. A reader that went away is no error of ours, and there is nobody left
//! to tell, so faults of writing are dropped.

use std::io::{IsTerminal, Write};

use crate::config::Style;

pub(super) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

pub(super) fn err(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// How findings are drawn on standard error.
pub(super) fn style() -> Style {
    if !std::io::stderr().is_terminal() {
        return Style::Plain;
    }
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if no_color { Style::Drawn } else { Style::Coloured }
}
