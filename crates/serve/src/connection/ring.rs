//! The newest event lines of a connection, for a client that lost some. Bounded in number and bytes; the oldest go first.

use std::collections::VecDeque;
use std::ops::Range;

use crate::encode::Repeats;
use crate::limits::{REPLAY_BYTES, REPLAY_EVENTS};

/// Event lines with consecutive numbers.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Number of the newest line.
    newest: u64,
}

impl Ring {
    /// Keeps a line of a batch, line feed included. A line that is larger than all that may be kept drives everything out, and
    /// is not kept either.
    pub(crate) fn push(&mut self, number: u64, line: Range<usize>, repeats: &Repeats, batch: &[u8]) {
        self.newest = number;
        let length = repeats.length(line.clone());
        if length > REPLAY_BYTES {
            // The older lines go, too: after a gap the count of lines would no longer tell their numbers.
            self.lines.clear();
            self.bytes = 0;
            return;
        }
        let mut whole = Vec::with_capacity(length);
        // Writing to memory does not fail.
        let _written = repeats.write_part(batch, line, &mut whole);
        self.bytes += whole.len();
        self.lines.push_back(whole.into());
        // The numbers have no gaps, so the count of lines tells which numbers they have.
        while self.lines.len() > REPLAY_EVENTS || self.bytes > REPLAY_BYTES {
            let Some(oldest) = self.lines.pop_front() else {
                return;
            };
            self.bytes -= oldest.len();
        }
    }

    /// How many lines came after the one with this number; none when not all of them are here any more. `newest` is the
    /// number of the last event.
    pub(crate) fn count_after(&self, number: u64, newest: u64) -> Option<usize> {
        let count = usize::try_from(newest.checked_sub(number)?).ok()?;
        (count <= self.lines.len()).then_some(count)
    }

    /// Appends the lines that came after the one with this number.
    pub(crate) fn write_after(&self, number: u64, out: &mut Vec<u8>) {
        let count = usize::try_from(self.newest.saturating_sub(number)).unwrap_or(usize::MAX);
        let skipped = self.lines.len().saturating_sub(count);
        for line in self.lines.iter().skip(skipped) {
            out.extend_from_slice(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use crate::encode::Repeats;
    use crate::limits::{REPLAY_BYTES, REPLAY_EVENTS};

    fn push(ring: &mut Ring, number: u64, line: &[u8]) {
        ring.push(number, 0..line.len(), &Repeats::default(), line);
    }

    fn after(ring: &Ring, number: u64) -> String {
        let mut out = Vec::new();
        ring.write_after(number, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ring_returns_lines_after_number() {
        let mut ring = Ring::default();
        assert_eq!(ring.count_after(0, 0), Some(0));
        for number in 1..=3 {
            push(&mut ring, number, format!("{number}\n").as_bytes());
        }
        assert_eq!(ring.count_after(1, 3), Some(2));
        assert_eq!(after(&ring, 1), "2\n3\n");
        assert_eq!(after(&ring, 0), "1\n2\n3\n");
        assert_eq!(after(&ring, 3), "");
        assert_eq!(ring.count_after(4, 3), None);
    }

    #[test]
    fn ring_evicts_oldest_lines_first() {
        let mut ring = Ring::default();
        let count = REPLAY_EVENTS as u64 + 5;
        for number in 1..=count {
            push(&mut ring, number, b"x\n");
        }
        assert_eq!(ring.count_after(4, count), None);
        assert_eq!(ring.count_after(5, count), Some(REPLAY_EVENTS));
    }

    #[test]
    fn large_lines_evict_others_from_replay_ring() {
        let mut ring = Ring::default();
        push(&mut ring, 1, b"small\n");
        push(&mut ring, 2, &vec![b'x'; REPLAY_BYTES]);
        assert_eq!(ring.count_after(0, 2), None);
        assert_eq!(ring.count_after(1, 2), Some(1));
        push(&mut ring, 3, &vec![b'x'; REPLAY_BYTES + 1]);
        assert_eq!(ring.count_after(2, 3), None);
        assert_eq!(ring.count_after(3, 3), Some(0));
        assert_eq!(ring.bytes, 0);
    }
}
