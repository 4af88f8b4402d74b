//! The store as its users see it.

mod disk;
mod fills;
mod model;
mod objects;
mod stress;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;

use crate::*;

/// A head that is told from others by a number.
#[derive(Debug, PartialEq, Eq)]
struct Number(u64);

impl Head for Number {
    fn weight(&self) -> usize {
        size_of::<Self>()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self(u64::from_le_bytes(bytes.try_into().ok()?)))
    }

    fn keep_until_secs(&self) -> u64 {
        u64::MAX
    }
}

/// Varies on some of a request's fields, by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fields(Vec<usize>);

impl VaryRule for Fields {
    fn weight(&self) -> usize {
        size_of::<Self>() + self.0.len() * size_of::<usize>()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.iter().map(|&index| u8::try_from(index).unwrap()));
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.iter().copied().map(usize::from).collect()))
    }
}

/// A request's values of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request<'a>(&'a [&'a str]);

impl Request<'_> {
    fn append(self, vary: &Fields, name: &mut Vec<u8>) {
        for &index in &vary.0 {
            name.extend_from_slice(self.0[index].as_bytes());
            name.push(0);
        }
    }

    fn variant(self) -> impl Fn(&Fields, &mut Vec<u8>) {
        move |vary, name| self.append(vary, name)
    }

    fn vary(self, vary: &Fields) -> Option<(Fields, Vec<u8>)> {
        let mut name = Vec::new();
        self.append(vary, &mut name);
        Some((vary.clone(), name))
    }
}

type TestStore = Store<Number, Fields>;
type TestReader = Reader<Number, Fields>;
type TestLeader = Leader<Number, Fields>;

const PLAIN: Request<'_> = Request(&[]);

const MIB: u64 = 1 << 20;

fn store(max_size: u64) -> TestStore {
    Store::new(Config::with_max_size(max_size))
}

fn keep(keep: Keep, expected_len: Option<u64>) -> Offer<Fields> {
    Offer {
        expected_len,
        keep,
        vary: None,
    }
}

fn lead(store: &TestStore, key: &str, join: Join) -> (TestLeader, TestReader) {
    match store.begin(key.as_bytes(), join, None, PLAIN.variant()) {
        Begin::Lead(leader, reader) => (leader, reader),
        other => panic!("expected to lead, got {other:?}"),
    }
}

fn join(store: &TestStore, key: &str) -> TestReader {
    join_as(store, key, Join::Any, PLAIN)
}

fn join_as(store: &TestStore, key: &str, join: Join, request: Request<'_>) -> TestReader {
    match store.begin(key.as_bytes(), join, None, request.variant()) {
        Begin::Join(reader) => reader,
        other => panic!("expected to join, got {other:?}"),
    }
}

/// Stores an object in one go.
fn fill(
    store: &TestStore,
    key: &str,
    head: u64,
    vary: Option<(Fields, Vec<u8>)>,
    body: &[u8],
) -> Result<Arc<Object<Number>>, NotKept> {
    let (leader, _reader) = lead(store, key, Join::Never);
    let offer = Offer {
        expected_len: None,
        keep: Keep::Store,
        vary,
    };
    let mut filling = leader.head(Arc::new(Number(head)), offer);
    now(filling.push(Bytes::copy_from_slice(body)))
        .expect("it does not wait")
        .expect("it is read");
    finish(filling)
}

fn found(store: &TestStore, key: &str, request: Request<'_>) -> Option<Arc<Object<Number>>> {
    match store.get(key.as_bytes(), request.variant()) {
        Lookup::Found(object) => Some(object),
        Lookup::NoVariant | Lookup::Nothing => None,
    }
}

/// Ends a fill of which nothing goes to a disk by itself.
fn finish(filling: Filling<Number, Fields>) -> Result<Arc<Object<Number>>, NotKept> {
    now(filling.finish()).expect("it does not wait")
}

/// The result of a future that does not have to wait.
fn now<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// The result of a future that somebody else has to do something for.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("it took too long")
}

/// What a reader that has its head gets until it would have to wait, and whether it saw the end.
fn read_now(reader: &mut TestReader) -> (Vec<u8>, Option<Result<(), FillError>>) {
    let mut all = Vec::new();
    loop {
        match now(reader.next_chunk()) {
            None => return (all, None),
            Some(None) => return (all, Some(Ok(()))),
            Some(Some(Err(error))) => return (all, Some(Err(error))),
            Some(Some(Ok(bytes))) => all.extend_from_slice(&bytes),
        }
    }
}

#[test]
fn everything_may_cross_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<TestStore>();
    check::<TestReader>();
    check::<TestLeader>();
    check::<Filling<Number, Fields>>();
    check::<Lookup<Number>>();
}
