//! Buffers of a thread, used by whichever connection has its turn. Nobody holds them while waiting.

use std::cell::RefCell;

use crate::target::Target;

/// Read at once: a full head at its default limit fits twice, and sixteen pipelined requests many times.
const INPUT: usize = 64 * 1024;

/// Output beyond this is given back after a turn.
const OUTPUT_KEPT: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) input: Vec<u8>,
    pub(super) scratch: Scratch,
}

/// Used for one request after the other.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) output: Vec<u8>,
    pub(super) target: Target,
    pub(super) authority: Vec<u8>,
    pub(super) key: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers { input: vec![0; INPUT], scratch: Scratch::default() });
}

pub(super) fn with_buffers<R>(work: impl FnOnce(&mut Buffers) -> R) -> R {
    BUFFERS.with_borrow_mut(|buffers| {
        let result = work(buffers);
        if buffers.scratch.output.capacity() > OUTPUT_KEPT {
            buffers.scratch.output = Vec::new();
        }
        result
    })
}

impl Buffers {
    /// Copies `carry` to the start of the input and returns its length.
    pub(super) fn take_in(&mut self, carry: &[u8]) -> usize {
        if carry.len() >= self.input.len() {
            self.input.resize(carry.len() + INPUT, 0);
        }
        if let Some(start) = self.input.get_mut(..carry.len()) {
            start.copy_from_slice(carry);
        }
        carry.len()
    }

    pub(super) fn input_after(&mut self, held: usize) -> &mut [u8] {
        self.input.get_mut(held..).unwrap_or_default()
    }
}
