//! Names and other words that end up in headers, logs and metrics.

use std::collections::HashMap;
use std::ops::Range;

use http::HeaderName;

use crate::config::diagnostics::Report;
use crate::config::values::{At, shown};

const NAME_LENGTH_MAX: usize = 64;

/// Names of one kind, each taken once.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashMap<String, usize>,
}

impl Names {
    /// Notes a name; the message of a fault says what kind of thing has it.
    pub(super) fn take(&mut self, name: &str, span: Range<usize>, kind: &str, report: &mut Report) {
        let index = self.taken.len();
        if self.taken.contains_key(name) {
            let message = format!("there are two {kind}s with the name `{}`", shown(name));
            report.error(span, message, "names tell them apart in the statistics: change one");
        } else {
            self.taken.insert(name.to_owned(), index);
        }
    }
}

/// A name as statistics and headers can carry it. An underscore at the start is ours (`_unknown`).
pub(super) fn check_name(name: &At<String>, report: &mut Report) {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\') || c == ' ';
    if name.trim().is_empty() || name.trim() != name.as_str() {
        report.error(name.span(), "a name is empty or has spaces around it", "");
    } else if name.chars().count() > NAME_LENGTH_MAX {
        let message = format!("a name is longer than {NAME_LENGTH_MAX} characters");
        report.error(name.span(), message, "");
    } else if !name.chars().all(is_plain) {
        let message = format!(
            "the name `{}` has characters that cannot be printed everywhere",
            shown(name)
        );
        report.error(
            name.span(),
            message,
            "use ASCII letters, digits, spaces and signs, without quotes and backslashes",
        );
    } else if name.starts_with('_') {
        let message = format!("the name `{}` begins with an underscore", shown(name));
        report.error(
            name.span(),
            message,
            "such names are kept for rows of the appliance, such as `_unknown`",
        );
    }
}

/// Field names, in lower case.
pub(super) fn field_names(names: &[At<String>], report: &mut Report) -> Vec<String> {
    let mut good = Vec::with_capacity(names.len());
    for name in names {
        match HeaderName::from_bytes(name.as_bytes()) {
            Ok(name) => good.push(name.as_str().to_owned()),
            Err(_) => {
                let message = format!("`{}` is not the name of a header field", shown(name));
                report.error(name.span(), message, "write the name alone, such as \"X-No-Cache\"");
            }
        }
    }
    good
}

pub(super) fn cookie_names(names: &[At<String>], report: &mut Report) -> Vec<String> {
    for name in names {
        if !is_token(name) {
            let message = format!("`{}` is not the name of a cookie", shown(name));
            report.error(name.span(), message, "write the name alone, such as \"session\"");
        }
    }
    names.iter().map(|name| (**name).clone()).collect()
}

pub(super) fn query_names(names: &[At<String>], report: &mut Report) -> Vec<String> {
    for name in names {
        let is_good = !name.is_empty() && !name.contains(['=', '&', '?', '#']) && !name.contains(char::is_control);
        if !is_good {
            let message = format!("`{}` is not the name of a query parameter", shown(name));
            report.error(name.span(), message, "write the name alone, such as \"nocache\"");
        }
    }
    names.iter().map(|name| (**name).clone()).collect()
}

/// A token of RFC 9110 section 5.6.2.
pub(super) fn is_token(word: &str) -> bool {
    let is_token_char = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !word.is_empty() && word.bytes().all(is_token_char)
}
