//! The last stage of a request: its line in the counters and in the access log, from the same values.

use super::worker::Worker;
use crate::access_log::Entry;
use crate::engine::Route;
use crate::traffic::Ending;

pub(super) fn account(worker: &Worker, route: Option<&Route>, entry: &Entry<'_>) {
    let ending = Ending {
        status: entry.status,
        outcome: *entry.outcome,
        bytes_received: entry.bytes_received,
        bytes_sent: entry.bytes_sent,
        duration_us: entry.duration_us,
        origin_us: entry.origin_us,
        rule: route.map_or(usize::MAX, |route| route.rule.index),
    };
    match route {
        Some(route) => route.vhost.counters.record(worker.id, &ending),
        None => worker.shared().traffic.unknown().record(worker.id, &ending),
    }
    worker.log_line(entry);
}
