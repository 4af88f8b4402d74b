//! Buffers that bodies on disk are read into on their way to a client. Each thread keeps some of its own: one that is made
//! anew has to be cleared first, which costs a tenth of a hit.

use std::cell::RefCell;

use bytes::Bytes;

/// Length of each.
pub(crate) const BUFFER_BYTES: usize = 128 << 10;

/// What a thread keeps for later: as many as it reads at a time, but for clients that are slow.
const KEPT: usize = 4;

thread_local! {
    static KEEP: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer with something in it. It is kept for later when the last of its bytes is dropped.
struct Filled {
    buffer: Option<Box<[u8]>>,
    len: usize,
}

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        self.buffer
            .as_ref()
            .and_then(|buffer| buffer.get(..self.len))
            .unwrap_or_default()
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        // A thread that is ending keeps nothing.
        let _ = KEEP.try_with(|keep| {
            let mut keep = keep.borrow_mut();
            if keep.len() < KEPT {
                keep.push(buffer);
            }
        });
    }
}

/// Has `fill` write all of `len` bytes, [`BUFFER_BYTES`] at most, over whatever is there.
pub(crate) fn filled<E>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Bytes, E> {
    let kept = KEEP.with(|keep| keep.borrow_mut().pop());
    let mut buffer = kept.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
    let len = len.min(buffer.len());
    let filled = fill(buffer.get_mut(..len).unwrap_or_default());
    let bytes = Filled {
        buffer: Some(buffer),
        len,
    };
    filled.map(|()| Bytes::from_owner(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_with(byte: u8, len: usize) -> Bytes {
        filled(len, |buffer| {
            buffer.fill(byte);
            Ok::<_, ()>(())
        })
        .unwrap()
    }

    #[test]
    fn a_buffer_is_used_again_when_nobody_has_it_any_more() {
        let first = filled_with(1, 1000);
        let part = first.slice(10..20);
        drop(first);
        let second = filled_with(2, BUFFER_BYTES);
        assert_eq!(part, [1; 10].as_slice());
        let place = part.as_ptr();
        drop(part);
        let third = filled_with(3, 500);
        assert_eq!(third, [3; 500].as_slice());
        assert_eq!(third.as_ptr(), place.wrapping_sub(10));
        assert_eq!(second, [2; BUFFER_BYTES].as_slice());
    }

    #[test]
    fn few_are_kept() {
        let many: Vec<_> = (0..20).map(|byte| filled_with(byte, 10)).collect();
        drop(many);
        assert_eq!(KEEP.with(|keep| keep.borrow().len()), KEPT);
        assert_eq!(filled(5, |_| Err::<(), _>("it failed")), Err("it failed"));
        assert_eq!(KEEP.with(|keep| keep.borrow().len()), KEPT);
    }
}
