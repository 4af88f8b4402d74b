//! One turn of a connection: every request that has come whole and needs no waiting is answered, in order, in one write.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use super::account::account;
use super::buffers::{Buffers, Scratch};
use super::connection::{Connection, Continue};
use super::exchange::Start;
use super::incoming::{Incoming, Step};
use super::stream::ClientGone;
use super::unsent::Unsent;
use crate::access_log::Entry;
use crate::clock::{Moment, unix_ms};
use crate::engine::{CachedObject, Persistence};
use crate::http1::response::{PageBody, reject_page};
use crate::http1::{self, FieldSlots, Reject, Version};
use crate::outcome::Outcome;
use crate::traffic::UNKNOWN;

/// Output at which a turn stops to write, however much more input there is.
const OUTPUT_FULL: usize = 128 * 1024;

/// What a turn left to do.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) unsent: Option<Unsent>,
    pub(super) next: Next,
}

#[derive(Debug)]
pub(super) enum Next {
    /// More input is needed.
    Read,
    /// A request that waits for something.
    Exchange(Box<Start>),
    End(Continue),
}

impl Turn {
    pub(super) const fn end(how: Continue) -> Self {
        Self {
            unsent: None,
            next: Next::End(how),
        }
    }

    /// Nothing is left to do but to read on.
    pub(super) const fn is_over(&self) -> bool {
        self.unsent.is_none() && matches!(self.next, Next::Read)
    }
}

/// Answers what the first `length` bytes of the input hold. What is left of them is carried over.
pub(super) fn take_turn(
    connection: &mut Connection,
    context: &mut Context<'_>,
    buffers: &mut Buffers,
    length: usize,
) -> Result<Turn, ClientGone> {
    let now = Moment::now();
    let Buffers { input, scratch } = buffers;
    scratch.output.clear();
    let input = input.get(..length).unwrap_or_default();
    let Taken {
        used,
        next,
        object,
        is_full,
    } = answer_all(connection, input, scratch, now);
    let rest = input.get(used..).unwrap_or_default();
    connection.carry = rest.to_vec();
    connection.carry_is_new = is_full || object.is_some() || matches!(next, Next::Exchange(_));
    if used > 0 {
        connection.in_head = false;
    }
    connection.wait_for_next(now);
    let unsent = send(connection, context, scratch, object)?;
    Ok(Turn { unsent, next })
}

/// What was taken of the input, and where that led.
struct Taken {
    used: usize,
    next: Next,
    object: Option<Arc<CachedObject>>,
    /// It stopped for the output's sake.
    is_full: bool,
}

fn answer_all(connection: &Connection, input: &[u8], scratch: &mut Scratch, now: Moment) -> Taken {
    let mut taken = Taken {
        used: 0,
        next: Next::Read,
        object: None,
        is_full: false,
    };
    let mut slots = FieldSlots::new();
    while matches!(taken.next, Next::Read) && taken.object.is_none() && taken.used < input.len() {
        if scratch.output.len() >= OUTPUT_FULL {
            taken.is_full = true;
            break;
        }
        let rest = input.get(taken.used..).unwrap_or_default();
        match http1::head::parse(rest, &mut slots, &connection.worker.head_limits) {
            Ok(None) => break,
            Ok(Some((head, head_length))) => {
                taken.used += head_length;
                let is_wanted = !head.persistent && taken.used == input.len();
                let incoming = Incoming {
                    connection,
                    head: &head,
                    head_length,
                    now,
                };
                match incoming.answer(scratch) {
                    Step::Answered(persistence) => taken.next = after(persistence, is_wanted),
                    Step::Large(body, persistence) => {
                        taken.object = Some(body);
                        taken.next = after(persistence, is_wanted);
                    }
                    Step::Wait(start) => taken.next = Next::Exchange(start),
                }
            }
            Err(reject) => {
                taken.next = refuse(connection, reject, rest.len(), scratch, now);
                taken.used = input.len();
            }
        }
    }
    taken
}

/// `is_wanted`: the client itself asked for the end and has sent nothing behind it, so nothing of it could turn the end into a
/// reset.
const fn after(persistence: Persistence, is_wanted: bool) -> Next {
    match persistence {
        Persistence::KeepAlive => Next::Read,
        Persistence::Close if is_wanted => Next::End(Continue::No),
        Persistence::Close => Next::End(Continue::Linger),
    }
}

/// Hands the output to the kernel; what it does not take at once is left over.
fn send(
    connection: &mut Connection,
    context: &mut Context<'_>,
    scratch: &mut Scratch,
    object: Option<Arc<CachedObject>>,
) -> Result<Option<Unsent>, ClientGone> {
    if scratch.output.is_empty() && object.is_none() {
        return Ok(None);
    }
    let mut unsent = Unsent::new(std::mem::take(&mut scratch.output), object);
    match unsent.poll_send(context, &mut connection.stream) {
        Poll::Ready(result) => {
            scratch.output = unsent.into_bytes();
            result.map(|()| None)
        }
        Poll::Pending => Ok(Some(unsent)),
    }
}

/// `received`: the bytes that were thrown away with it.
fn refuse(connection: &Connection, reject: Reject, received: usize, scratch: &mut Scratch, now: Moment) -> Next {
    connection
        .worker
        .shared()
        .traffic
        .connections()
        .malformed(reject.reason);
    let page = reject_page(reject, PageBody::Sent, SystemTime::now());
    scratch.output.extend_from_slice(&page);
    let entry = Entry {
        unix_ms: unix_ms(),
        client: connection.peer.ip(),
        vhost: UNKNOWN,
        rule: "",
        method: b"-",
        host: b"-",
        target: b"-",
        version: Version::Http11,
        status: reject.status,
        bytes_sent: page.len() as u64,
        bytes_received: received as u64,
        duration_us: Moment::now().micros_since(now),
        outcome: &Outcome::NONE,
        origin_us: None,
        referer: None,
        user_agent: None,
    };
    account(&connection.worker, None, &entry);
    Next::End(Continue::Linger)
}
