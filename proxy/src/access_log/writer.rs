//! The thread that writes the log.

use std::io;

use super::queue::{Attempt, Queue, Work};
use super::sink::{Sink, Torn};

/// Ends the queue however the writer ends.
struct Finish<'a>(&'a Queue);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Writes until the queue is closed and empty.
pub(super) fn run(queue: &Queue, mut sink: Sink) {
    let _finish = Finish(queue);
    loop {
        match queue.next() {
            Work::Reopen => report(queue, Attempt::Reopen, sink.reopen().as_ref().err()),
            Work::Write(batch) => {
                let result = sink.write_lines(&batch.text);
                if let Err(Torn { whole_lines, .. }) = &result {
                    queue.count_dropped(batch.lines.saturating_sub(*whole_lines));
                }
                report(queue, Attempt::Write, result.as_ref().err().map(|torn| &torn.source));
            }
            Work::End => break,
        }
    }
}

/// Says a trouble once, and once that it is over: not for every batch of a full disk.
fn report(queue: &Queue, attempt: Attempt, trouble: Option<&io::Error>) {
    let what = match attempt {
        Attempt::Write => "written",
        Attempt::Reopen => "opened anew",
    };
    let is_news = queue.note(
        attempt,
        trouble.map(|error| format!("the access log cannot be {what}: {error}")),
    );
    match trouble {
        Some(error) if is_news => tracing::error!(%error, "the access log cannot be {what}"),
        None if is_news => tracing::info!("the access log can be {what} again"),
        Some(_) | None => {}
    }
}
