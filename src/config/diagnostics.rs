//! What is wrong with a file: collected while it is read, sorted by place, and shown as data, as plain lines or as a
//! drawing. Knows nothing of what the keys mean.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;
use std::sync::Arc;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource};
use serde::Serialize;

/// More than this nobody reads; what is left shows after the first are mended.
const SHOWN_MAX: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

/// One finding, as plain data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The file, as it was named by the caller.
    pub path: String,
    /// From 1; 0 where it concerns the file as a whole.
    pub line: usize,
    /// In characters, from 1; 0 where it concerns the file as a whole.
    pub column: usize,
    pub message: String,
    pub help: Option<String>,
    #[serde(skip)]
    span: Range<usize>,
}

/// How to draw findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `path:line:column: error: message`, for logs, editors and scripts.
    Plain,
    /// With the lines of the file, for a terminal.
    Drawn,
    /// The same, in colours.
    Coloured,
}

/// Findings of one file, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    text: Arc<str>,
    items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// A single error that concerns the file as a whole.
    pub(super) fn of_file(path: &str, message: String, help: String) -> Self {
        let mut report = Report::default();
        report.error(0..0, message, help);
        report.finish(path, "").1
    }

    pub fn items(&self) -> &[Diagnostic] {
        &self.items
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn render(&self, style: Style) -> String {
        let mut out = String::new();
        for item in &self.items {
            let drawn = match style {
                Style::Plain => None,
                Style::Drawn => draw(item, &self.text, GraphicalTheme::unicode_nocolor()),
                Style::Coloured => draw(item, &self.text, GraphicalTheme::unicode()),
            };
            out.push_str(&drawn.unwrap_or_else(|| plain(item)));
        }
        out
    }
}

impl Display for Diagnostics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(Style::Plain).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

fn plain(item: &Diagnostic) -> String {
    let Diagnostic {
        path,
        line,
        column,
        message,
        ..
    } = item;
    let word = match item.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = if *line == 0 {
        path.clone()
    } else {
        format!("{path}:{line}:{column}")
    };
    let help = item.help.iter().map(|help| format!("  help: {help}\n"));
    format!("{place}: {word}: {message}\n{}", help.collect::<String>())
}

/// `None` where there is nothing to draw.
fn draw(item: &Diagnostic, text: &Arc<str>, theme: GraphicalTheme) -> Option<String> {
    if item.line == 0 {
        return None;
    }
    let drawing = Drawing {
        item,
        source: NamedSource::new(&item.path, Arc::clone(text)),
    };
    let mut out = String::new();
    let handler = GraphicalReportHandler::new_themed(theme).without_cause_chain();
    handler.render_report(&mut out, &drawing).ok()?;
    out.push('\n');
    Some(out)
}

/// A finding as miette sees it.
#[derive(Debug)]
struct Drawing<'a> {
    item: &'a Diagnostic,
    source: NamedSource<Arc<str>>,
}

impl Display for Drawing<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.item.message)
    }
}

impl std::error::Error for Drawing<'_> {}

impl miette::Diagnostic for Drawing<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.item.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        let help = self.item.help.as_ref()?;
        Some(Box::new(help))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::underline(self.item.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

/// Collects findings while a file is read.
#[derive(Debug, Default)]
pub(super) struct Report {
    found: Vec<Finding>,
    /// Keys, dotted and without indices, whose value was taken out because it was faulty. That they are missing is no fault.
    lost: BTreeSet<String>,
}

#[derive(Debug)]
struct Finding {
    severity: Severity,
    span: Range<usize>,
    message: String,
    help: String,
}

impl Report {
    pub(super) fn error(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(Severity::Error, span, message.into(), help.into());
    }

    pub(super) fn warning(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(Severity::Warning, span, message.into(), help.into());
    }

    fn push(&mut self, severity: Severity, span: Range<usize>, message: String, help: String) {
        self.found.push(Finding {
            severity,
            span,
            message,
            help,
        });
    }

    pub(super) fn lose(&mut self, key: String) {
        self.lost.insert(key);
    }

    pub(super) fn is_lost(&self, key: &str) -> bool {
        self.lost.contains(key)
    }

    pub(super) fn into_lost(self) -> BTreeSet<String> {
        self.lost
    }

    pub(super) fn has_errors(&self) -> bool {
        self.found.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Whether there were errors, and all findings.
    pub(super) fn finish(mut self, path: &str, text: &str) -> (bool, Diagnostics) {
        let has_errors = self.has_errors();
        self.found.sort_by_key(|finding| finding.span.start);
        let places = Places::new(text);
        let mut items: Vec<_> = self.found.into_iter().map(|f| places.locate(f, path)).collect();
        items.dedup();
        if has_errors {
            // Errors must not be cut off by warnings.
            items.sort_by_key(|item| item.severity == Severity::Warning);
            items.truncate(SHOWN_MAX);
            items.sort_by_key(|item| item.span.start);
        }
        let text = text.into();
        (has_errors, Diagnostics { text, items })
    }
}

/// Finds lines in a text.
struct Places<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            line_starts: std::iter::once(0).chain(after_newlines).collect(),
        }
    }

    fn locate(&self, finding: Finding, path: &str) -> Diagnostic {
        let (line, column) = if finding.span.is_empty() && finding.span.start == 0 {
            (0, 0)
        } else {
            self.line_column(finding.span.start)
        };
        Diagnostic {
            severity: finding.severity,
            path: path.to_owned(),
            line,
            column,
            message: finding.message,
            help: (!finding.help.is_empty()).then_some(finding.help),
            span: finding.span,
        }
    }

    fn line_column(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|at| self.line_starts.get(at));
        let before = start.and_then(|start| self.text.get(*start..offset));
        (line, before.map_or(1, |before| before.chars().count() + 1))
    }
}
