//! The newest output of a process, by its position since the start.

use std::collections::VecDeque;

/// The end of an output. Positions count all bytes that were printed, so that a reader knows how much it missed.
#[derive(Debug)]
pub(super) struct OutputTail {
    bytes: VecDeque<u8>,
    /// Position of the first byte that is kept.
    start: u64,
    /// Bytes that are kept at most.
    most: usize,
}

/// A part of an output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Position of the first byte.
    pub(super) from: u64,
    /// Position after the last byte.
    pub(super) next: u64,
    /// Bytes between the wanted position and the first kept one.
    pub(super) dropped: u64,
    /// The bytes.
    pub(super) bytes: Vec<u8>,
}

impl OutputTail {
    /// Nothing yet.
    pub(super) fn new(most: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            start: 0,
            most,
        }
    }

    /// Position after the newest byte.
    pub(super) fn end(&self) -> u64 {
        self.start + length(self.bytes.len())
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // Of a piece that is larger than the room, only the end can stay.
        let kept = bytes
            .get(bytes.len().saturating_sub(self.most)..)
            .unwrap_or_default();
        let skipped = bytes.len() - kept.len();
        let over = (self.bytes.len() + kept.len()).saturating_sub(self.most);
        // The kept part of the new bytes fits, so at most all old ones go.
        self.bytes.drain(..over);
        self.start += length(over + skipped);
        self.bytes.extend(kept);
    }

    /// At most `most` bytes from a position on; from the first that is kept if that is later.
    pub(super) fn read(&self, from: u64, most: usize) -> Part {
        // Clients name any position: before the kept part, or beyond the end of the output.
        let begin = from.clamp(self.start, self.end());
        let skip = usize::try_from(begin - self.start).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = self.bytes.iter().skip(skip).take(most).copied().collect();
        Part {
            from: begin,
            next: begin + length(bytes.len()),
            dropped: begin.saturating_sub(from),
            bytes,
        }
    }

    /// The newest bytes from a position on, at most `most`.
    pub(super) fn read_end(&self, from: u64, most: usize) -> Part {
        // Not before `from`: the model must not get again what it has read.
        let first = self.end().saturating_sub(length(most)).max(from);
        let part = self.read(first, most);
        let dropped = part.from.saturating_sub(from);
        Part { dropped, ..part }
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{OutputTail, Part};

    #[test]
    fn tail_keeps_newest_bytes_and_counts_all() {
        let mut tail = OutputTail::new(8);
        tail.push(b"abcde");
        assert_eq!(tail.read(0, 3), part(0, 0, b"abc"));
        tail.push(b"fghij");
        assert_eq!(tail.end(), 10);
        assert_eq!(tail.read(0, 100), part(2, 2, b"cdefghij"));
        assert_eq!(tail.read(6, 2), part(6, 0, b"gh"));
        assert_eq!(tail.read_end(0, 3), part(7, 7, b"hij"));
        assert_eq!(tail.read_end(9, 3), part(9, 0, b"j"));
        tail.push(&[b'x'; 20]);
        assert_eq!(tail.end(), 30);
        assert_eq!(tail.read(0, 100), part(22, 22, &[b'x'; 8]));
        assert_eq!(tail.read(99, 5), part(30, 0, b""));
    }

    #[test]
    fn random_pushes_match_whole_output() {
        let mut seed = 7_u64;
        let mut next = |end: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % end
        };
        for _ in 0..200 {
            let most = 1 + usize::try_from(next(40)).unwrap();
            let (mut tail, mut whole) = (OutputTail::new(most), Vec::new());
            for _ in 0..20 {
                let piece: Vec<u8> = (0..next(60)).map(|_| u8::try_from(next(256)).unwrap()).collect();
                tail.push(&piece);
                whole.extend(piece);
                assert_eq!(tail.end(), whole.len() as u64);
                let from = next(whole.len() as u64 + 3);
                let got = tail.read(from, 1000);
                let first = (whole.len().saturating_sub(most)).max(usize::try_from(from).unwrap());
                let first = first.min(whole.len());
                assert_eq!(got.bytes, whole[first..], "from {from}, at most {most}");
                assert_eq!(got.next, whole.len() as u64);
            }
        }
    }

    fn part(from: u64, dropped: u64, bytes: &[u8]) -> Part {
        Part {
            from,
            next: from + bytes.len() as u64,
            dropped,
            bytes: bytes.to_vec(),
        }
    }
}
