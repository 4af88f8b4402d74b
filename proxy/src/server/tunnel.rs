//! After a 101: bytes both ways until both sides have ended or nothing has moved for the idle timeout. They are no messages
//! any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::clock::Moment;

/// Copied at once in each direction.
const BUFFER: usize = 16 * 1024;

/// One direction's end points and its count. The two directions never wait for each other: an echo would stand still.
struct Way<'a> {
    carried: &'a AtomicU64,
    last_move: &'a AtomicU64,
}

/// `early` is what the client sent behind its request. Returns the bytes that went to the origin and to the client.
pub(super) async fn run<C, O>(client: C, origin: O, early: &[u8], idle: Duration) -> (u64, u64)
where
    C: AsyncRead + AsyncWrite,
    O: AsyncRead + AsyncWrite,
{
    let last_move = AtomicU64::new(Moment::now().as_micros());
    let (to_origin, to_client) = (AtomicU64::new(0), AtomicU64::new(0));
    let (from_client, into_client) = tokio::io::split(client);
    let (from_origin, mut into_origin) = tokio::io::split(origin);
    let there = Way {
        carried: &to_origin,
        last_move: &last_move,
    };
    let back = Way {
        carried: &to_client,
        last_move: &last_move,
    };
    let both = async {
        if into_origin.write_all(early).await.is_ok() {
            to_origin.fetch_add(early.len() as u64, Ordering::Relaxed);
            tokio::join!(
                there.copy(from_client, into_origin),
                back.copy(from_origin, into_client)
            );
        }
    };
    tokio::select! {
        () = both => {}
        () = stillness(&last_move, idle) => {}
    }
    (to_origin.load(Ordering::Relaxed), to_client.load(Ordering::Relaxed))
}

impl Way<'_> {
    async fn copy(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let mut buffer = vec![0; BUFFER];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            self.moved();
            if to.write_all(buffer.get(..read).unwrap_or_default()).await.is_err() {
                return;
            }
            self.carried.fetch_add(read as u64, Ordering::Relaxed);
            self.moved();
        }
        // The other side sees that this one has ended; if it is gone already, its own direction ends too.
        let _ = to.shutdown().await;
    }

    fn moved(&self) {
        self.last_move.store(Moment::now().as_micros(), Ordering::Relaxed);
    }
}

/// Returns once nothing has moved for `idle`.
async fn stillness(last_move: &AtomicU64, idle: Duration) {
    loop {
        let ends = Moment::from_micros(last_move.load(Ordering::Relaxed)).after(idle);
        let left = ends.micros_since(Moment::now());
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_micros(left)).await;
    }
}
