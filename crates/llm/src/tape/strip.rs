//! Taking credentials out of a body that comes in pieces, keeping the pieces: a credential may be cut anywhere.

use auth::Secrets;
use auth::secrets::REPLACEMENT;

/// One body. Holds back only pieces whose end may be the beginning of a credential.
#[derive(Debug)]
pub(super) struct Strip {
    secrets: Secrets,
    held: Vec<u8>,
    /// Where each held piece ends, and when it came.
    ends: Vec<(usize, u64)>,
}

impl Strip {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self {
            secrets,
            held: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Takes a piece that came `at`; gives all that can be written.
    pub(super) fn push(&mut self, piece: &[u8], at: u64) -> Vec<(u64, Vec<u8>)> {
        self.held.extend_from_slice(piece);
        self.ends.push((self.held.len(), at));
        self.clean();
        let safe = self.held.len() - self.secrets.open_end(&self.held);
        self.take(safe)
    }

    /// The rest.
    pub(super) fn finish(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.clean();
        self.take(usize::MAX)
    }

    /// Redacts complete credentials. The replacement belongs to the piece in which the credential begins.
    fn clean(&mut self) {
        for (start, end) in self.secrets.find(&self.held).into_iter().rev() {
            self.held.splice(start..end, REPLACEMENT.bytes());
            let after = start + REPLACEMENT.len();
            for (place, _) in &mut self.ends {
                if *place >= end {
                    *place = after + (*place - end);
                } else if *place > start {
                    *place = after;
                }
            }
        }
    }

    /// All pieces that end at `safe` or before.
    fn take(&mut self, safe: usize) -> Vec<(u64, Vec<u8>)> {
        let whole = self.ends.iter().take_while(|(end, _)| *end <= safe).count();
        let mut out = Vec::with_capacity(whole);
        let mut from = 0;
        for (end, at) in self.ends.drain(..whole) {
            out.push((at, self.held.get(from..end).unwrap_or_default().to_vec()));
            from = end;
        }
        self.held.drain(..from);
        self.ends.iter_mut().for_each(|(end, _)| *end -= from);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_split_at_any_position_is_redacted() {
        let secrets = Secrets::default();
        secrets.learn("sk-0123456789");
        let text = "say sk-0123456789, s";
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let mut strip = Strip::new(secrets.clone());
                let mut out = Vec::new();
                for (at, piece) in [&text[..cut], &text[cut..second], &text[second..]]
                    .iter()
                    .enumerate()
                {
                    out.extend(strip.push(piece.as_bytes(), at as u64));
                }
                out.extend(strip.finish());
                let times: Vec<u64> = out.iter().map(|(at, _)| *at).collect();
                assert_eq!(times, [0, 1, 2]);
                let whole: Vec<u8> = out.into_iter().flat_map(|(_, bytes)| bytes).collect();
                assert_eq!(
                    String::from_utf8(whole).unwrap(),
                    "say [key], s",
                    "{cut} {second}"
                );
            }
        }
    }

    #[test]
    fn chunks_without_secret_prefix_are_not_delayed() {
        let secrets = Secrets::default();
        secrets.learn("sk-0123456789");
        let mut strip = Strip::new(secrets);
        assert_eq!(strip.push(b"data: x\n", 3), [(3, b"data: x\n".to_vec())]);
        assert!(strip.push(b"sk-", 4).is_empty());
        assert_eq!(
            strip.push(b"other", 5),
            [(4, b"sk-".to_vec()), (5, b"other".to_vec())]
        );
    }
}
