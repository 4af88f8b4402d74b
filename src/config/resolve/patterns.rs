//! Globs and regular expressions, compiled once to see that they do. The data plane compiles them again in the same way.

use globset::{Glob, GlobBuilder};

use crate::config::diagnostics::Report;
use crate::config::values::{At, shown};

/// Of a compiled expression. Larger ones cost more than they are worth on every request.
const REGEX_SIZE_MAX: usize = 1 << 20;

pub(super) fn check_path_glob(glob: &At<String>, report: &mut Report) {
    if !glob.starts_with(['/', '*']) {
        let message = format!("the pattern `{}` can match no path", shown(glob));
        report.error(
            glob.span(),
            message,
            format!("paths begin with a slash: write \"/{}\"", shown(glob)),
        );
        return;
    }
    if glob.contains('?') && glob.contains('=') {
        let help = "the query is not part of the path: use `query` in the match; `?` stands for one character";
        report.warning(
            glob.span(),
            format!("the pattern `{}` looks like a path with a query", shown(glob)),
            help,
        );
    }
    match GlobBuilder::new(glob).literal_separator(true).build() {
        Ok(compiled) => {
            if regex(compiled.regex()).is_err() {
                report.error(glob.span(), format!("the pattern `{}` is too large", shown(glob)), "");
            }
        }
        Err(fault) => bad_glob(glob, &fault, report),
    }
}

/// Globs on parameter names.
pub(super) fn query_globs(globs: &[At<String>], report: &mut Report) -> Vec<String> {
    for glob in globs {
        if glob.is_empty() {
            report.error(glob.span(), "the pattern is empty", "write a name such as \"utm_*\"");
        } else if let Err(fault) = Glob::new(glob) {
            bad_glob(glob, &fault, report);
        }
    }
    globs.iter().map(|glob| (**glob).clone()).collect()
}

fn bad_glob(glob: &At<String>, fault: &globset::Error, report: &mut Report) {
    let message = format!("the pattern `{}` is not a glob: {}", shown(glob), fault.kind());
    report.error(
        glob.span(),
        message,
        "`*`, `**`, `?`, [abc] and {one,two} are special; a backslash takes that away",
    );
}

pub(super) fn check_regex(source: &At<String>, report: &mut Report) {
    let Err(fault) = regex(source) else { return };
    if let regex::Error::CompiledTooBig(_) = fault {
        let help = "repetitions of repetitions make it so; a glob in `path` may do";
        report.error(source.span(), "the regular expression is too large", help);
        return;
    }
    // The first lines draw the place in the expression, which does not fit in one message.
    let text = fault.to_string();
    let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let message = format!("the regular expression `{}` does not compile: {why}", shown(source));
    let help = "single quotes spare doubling backslashes: path_regex = '\\.css$'";
    report.error(source.span(), message, help);
}

fn regex(source: &str) -> Result<regex::bytes::Regex, regex::Error> {
    regex::bytes::RegexBuilder::new(source)
        .size_limit(REGEX_SIZE_MAX)
        .build()
}
