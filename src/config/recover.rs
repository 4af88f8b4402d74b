//! From text to [`File`], with every fault of syntax, shape and type at once. Serde stops at the first fault, so what is faulty
//! is reported, taken out of the tree, and the rest is read again.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

use super::diagnostics::Report;
use super::file::File;
use super::suggest;

mod shape;

/// Readings of one file. Each finds one fault; more than this nobody reads.
const FAULTS_MAX: usize = 100;
/// A lost quote makes every later line a fault.
const SYNTAX_FAULTS_MAX: usize = 5;

/// `None` where too little is left to judge.
pub(super) fn read(text: &str, report: &mut Report) -> Option<File> {
    let (mut tree, faults) = DeTable::parse_recoverable(text);
    if !faults.is_empty() {
        for fault in faults.iter().take(SYNTAX_FAULTS_MAX) {
            let span = fault.span().unwrap_or(text.len()..text.len());
            report.error(
                visible(span, text),
                format!("not valid TOML: {}", fault.message()),
                syntax_help(fault.message()),
            );
        }
        return None;
    }
    for (span, (message, help)) in shape::lists_for_tables(&tree) {
        report.error(span.clone(), message, help);
        if !take_out(tree.get_mut(), &span, "", report) {
            return None;
        }
    }
    for _ in 0..FAULTS_MAX {
        let fault = match File::deserialize(Deserializer::from(tree.clone())) {
            Ok(file) => return Some(file),
            Err(fault) => fault,
        };
        let span = fault.span()?;
        let explained = explain(fault.message());
        report.error(visible(span.clone(), text), explained.message, explained.help);
        let is_found = take_out_as(tree.get_mut(), &span, explained.meant.as_deref(), report);
        if !is_found {
            return None;
        }
    }
    None
}

/// An empty span at the end of the text would not be seen as a place.
fn visible(span: Range<usize>, text: &str) -> Range<usize> {
    if !span.is_empty() {
        return span;
    }
    let start = span.start.min(text.len().saturating_sub(1));
    let start = (0..=start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = (start + 1..=text.len()).find(|at| text.is_char_boundary(*at));
    start..end.unwrap_or(start)
}

fn syntax_help(message: &str) -> &'static str {
    if message.contains("duplicate key") {
        "each key stands once in a table; tables that repeat are written [[name]]"
    } else if message.contains("quote") || message.contains("string") {
        "text is written in double quotes: key = \"value\""
    } else {
        ""
    }
}

/// Takes out what has this span, and notes its key as lost, and the key that was meant by it.
fn take_out_as(tree: &mut DeTable<'_>, span: &Range<usize>, meant: Option<&str>, report: &mut Report) -> bool {
    let mut taken = Report::default();
    let is_found = take_out(tree, span, "", &mut taken);
    for key in taken.into_lost() {
        if let Some(meant) = meant {
            let parent = key
                .rsplit_once('.')
                .map_or(String::new(), |(parent, _)| format!("{parent}."));
            report.lose(format!("{parent}{meant}"));
        }
        report.lose(key);
    }
    is_found
}

/// The deepest match goes, since a table may have the span of its only child.
fn take_out(table: &mut DeTable<'_>, span: &Range<usize>, path: &str, report: &mut Report) -> bool {
    let mut found = None;
    for (key, value) in table.iter_mut() {
        let name = join(path, key.get_ref());
        if take_out_of_value(value, span, &name, report) {
            return true;
        }
        if key.span() == *span || value.span() == *span {
            found = Some((key.clone(), name));
        }
    }
    let Some((key, name)) = found else { return false };
    report.lose(name);
    table.remove(&key).is_some()
}

fn take_out_of_value(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>, path: &str, report: &mut Report) -> bool {
    match value.get_mut() {
        DeValue::Table(table) => take_out(table, span, path, report),
        DeValue::Array(array) => {
            for index in 0..array.len() {
                let Some(element) = array.get_mut(index) else { continue };
                if take_out_of_value(element, span, path, report) {
                    return true;
                }
                if element.span() == *span {
                    let all = std::mem::replace(array, DeArray::new()).into_iter().enumerate();
                    *array = all.filter(|(at, _)| *at != index).map(|(_, element)| element).collect();
                    report.lose(path.to_owned());
                    return true;
                }
            }
            false
        }
        _ => false,
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[derive(Debug, Default, PartialEq)]
struct Explained {
    message: String,
    help: String,
    /// The key that an unknown one stands for.
    meant: Option<String>,
}

/// Serde's words in the words of a configuration file.
fn explain(message: &str) -> Explained {
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let (word, known) = word_and_known(rest);
        let meant = suggest::nearest(word, known.iter().copied());
        return Explained {
            message: format!("unknown key `{word}`"),
            help: meant.map_or_else(
                || format!("the keys here are {}", known.join(", ")),
                |meant| format!("did you mean `{meant}`?"),
            ),
            meant: meant.map(str::to_owned),
        };
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let (word, known) = word_and_known(rest);
        let meant = suggest::nearest(word, known.iter().copied());
        let quoted: Vec<_> = known.iter().map(|known| format!("\"{known}\"")).collect();
        return Explained {
            message: format!("`{word}` is not a value of this key"),
            help: meant.map_or_else(
                || format!("write one of {}", quoted.join(", ")),
                |meant| format!("did you mean \"{meant}\"?"),
            ),
            meant: None,
        };
    }
    let mismatch = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = mismatch.and_then(|rest| rest.rsplit_once(", expected ")) {
        return explain_mismatch(found, expected);
    }
    if message == "wanted string or table" {
        return explain_mismatch("something else", "a string");
    }
    let (message, help) = message.split_once('\n').unwrap_or((message, ""));
    Explained {
        message: message.to_owned(),
        help: help.to_owned(),
        meant: None,
    }
}

fn explain_mismatch(found: &str, expected: &str) -> Explained {
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more",
        "f64" => "a number",
        "path string" => "a string",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        _ if expected.starts_with("struct ") => "a table",
        other => other,
    };
    let found = match found {
        "map" => "a table",
        "sequence" => "a list",
        other => other,
    };
    let is_text = found.starts_with("string ");
    let help = match expected {
        "a list" if is_text => format!("write [{}]", found.trim_start_matches("string ")),
        "a list" if found == "a table" => {
            "tables that repeat are written [[name]], or in a list: [{ key = value }]".to_owned()
        }
        "a table" => "write { key = value }, or a section of its own, as in [cache.memory]".to_owned(),
        "true or false" if is_text => "write it without quotes".to_owned(),
        "a whole number of 0 or more" | "a number" if is_text => "write a number without quotes".to_owned(),
        "a string" if found.starts_with("integer") || found.starts_with("float") => "write it in quotes".to_owned(),
        _ => String::new(),
    };
    Explained {
        message: format!("expected {expected}, found {found}"),
        help,
        meant: None,
    }
}

/// From "`word`, expected one of `a`, `b`": the word, and what is known.
fn word_and_known(rest: &str) -> (&str, Vec<&str>) {
    // The word is the user's and may hold a backtick, so it ends where serde's own words begin.
    let (word, known) = rest
        .rsplit_once(", expected ")
        .or_else(|| rest.rsplit_once(", there are no "))
        .unwrap_or((rest, ""));
    let word = word
        .strip_prefix('`')
        .and_then(|word| word.strip_suffix('`'))
        .unwrap_or(word);
    (word, known.split('`').skip(1).step_by(2).collect())
}

#[cfg(test)]
mod tests;
