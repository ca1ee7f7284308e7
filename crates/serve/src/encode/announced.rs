//! Which blocks of a cumulative answer are announced one by one. Every start and end of a block repeats the whole answer, so an
//! answer of many blocks would cost its size times their number. Blocks that come when too much was spent are only part of
//! the message that later updates and `message_end` show.

use std::collections::HashSet;

use crate::limits::{ANNOUNCED_BYTES, UPDATE_SHARE};

/// The blocks that are left out, and what announcing the others cost.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    /// Bytes of starts and ends.
    spent: usize,
    left_out: HashSet<usize>,
}

impl Announced {
    /// Forgets everything: another answer begins.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns true if a block that begins in an answer of `size` bytes is announced.
    pub(crate) fn begin(&mut self, index: usize, size: usize) -> bool {
        // Its start and its end hold the answer twice each.
        let cost = self.spent.saturating_add(size.saturating_mul(4));
        // Updates cost up to twice UPDATE_SHARE times the answer already, so that much again for blocks keeps the sum linear.
        let fits = cost <= ANNOUNCED_BYTES.saturating_add(size.saturating_mul(2 * UPDATE_SHARE));
        if fits {
            // A block that was left out may be announced late, once the answer has grown.
            self.left_out.remove(&index);
        } else {
            self.left_out.insert(index);
        }
        fits
    }

    /// Returns true if the block is left out so far.
    pub(crate) fn leaves_out(&self, index: usize) -> bool {
        // Asked for every delta; the set is empty for nearly every answer.
        !self.left_out.is_empty() && self.left_out.contains(&index)
    }

    /// A start or an end of so many bytes was written.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.spent = self.spent.saturating_add(bytes);
    }
}
