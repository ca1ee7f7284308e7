//! Line endings: a text is worked on with `\n` alone and gets its own endings back, mixed ones included.

/// How one line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ending {
    #[default]
    Lf,
    CrLf,
    Cr,
}

/// The endings of a text, one per `\n` of its worked-on form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Endings(Vec<Ending>);

impl Endings {
    /// Converts every ending to `\n` and remembers what it was.
    pub(crate) fn split(text: &str) -> (String, Self) {
        let mut endings = Vec::new();
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((line, tail)) = rest.split_once(['\n', '\r']) {
            out.push_str(line);
            out.push('\n');
            let cr = rest.as_bytes().get(line.len()) == Some(&b'\r');
            let (ending, tail) = match (cr, tail.strip_prefix('\n')) {
                (true, Some(tail)) => (Ending::CrLf, tail),
                (true, None) => (Ending::Cr, tail),
                (false, _) => (Ending::Lf, tail),
            };
            endings.push(ending);
            rest = tail;
        }
        out.push_str(rest);
        (out, Self(endings))
    }

    /// Puts the endings back.
    pub(crate) fn join(&self, text: &str) -> String {
        if self.0.iter().all(|ending| *ending == Ending::Lf) {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len() + self.0.len());
        let mut endings = self.0.iter();
        for (i, line) in text.split('\n').enumerate() {
            if i > 0 {
                out.push_str(match endings.next().copied().unwrap_or_default() {
                    Ending::Lf => "\n",
                    Ending::CrLf => "\r\n",
                    Ending::Cr => "\r",
                });
            }
            out.push_str(line);
        }
        out
    }

    /// The endings from one line on, `count` of them.
    pub(crate) fn slice(&self, from: usize, count: usize) -> &[Ending] {
        self.0
            .iter()
            .as_slice()
            .get(from..from + count)
            .unwrap_or_default()
    }

    /// Appends endings that stay.
    pub(crate) fn keep(&mut self, endings: &[Ending]) {
        self.0.extend_from_slice(endings);
    }

    /// Appends endings for `count` new lines that take the place of lines `from..from + replaced` of `old`. A line that
    /// was there keeps its ending; a further one ends like its neighbour, else like the first line.
    pub(crate) fn replace(&mut self, old: &Self, from: usize, replaced: usize, count: usize) {
        let neighbour = old
            .0
            .get(from + replaced)
            .or_else(|| (from + replaced).checked_sub(1).and_then(|line| old.0.get(line)))
            .or_else(|| old.0.first())
            .copied()
            .unwrap_or_default();
        let there = old.slice(from, replaced);
        self.0
            .extend((0..count).map(|i| there.get(i).copied().unwrap_or(neighbour)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn line_endings_round_trip(text in "[ab\r\n\u{e9}]{0,60}") {
            let (lf, endings) = Endings::split(&text);
            assert!(!lf.contains('\r'));
            assert_eq!(lf.matches('\n').count(), endings.0.len());
            assert_eq!(endings.join(&lf), text);
        }
    }
}
