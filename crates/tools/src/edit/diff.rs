//! The diff clients show of an edit (pi-core.md 5.5): numbered lines, four lines of context, no hunk heads.

use std::fmt::Write as _;

use imara_diff::{Algorithm, Diff as LineDiff, InternedInput};

const CONTEXT: usize = 4;

/// A diff for clients.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    /// Its lines, without a final line feed.
    pub(crate) text: String,
    /// First line of the new text that differs, from 1.
    pub(crate) first_changed_line: Option<usize>,
}

/// Compares two texts by lines.
pub(crate) fn diff(before: &str, after: &str) -> Diff {
    let input = InternedInput::new(before, after);
    let hunks: Vec<_> = LineDiff::compute(Algorithm::Myers, &input).hunks().collect();
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let lines = before.split('\n').count().max(after.split('\n').count());
    let mut out = Printer {
        out: String::new(),
        width: lines.to_string().len(),
    };
    let mut done = 0;
    for (i, hunk) in hunks.iter().enumerate() {
        let (from, to) = (hunk.before.start as usize, hunk.before.end as usize);
        out.context(&old, done..from, i > 0, true);
        out.lines('-', &old, from..to);
        out.lines('+', &new, hunk.after.start as usize..hunk.after.end as usize);
        done = to;
    }
    if !hunks.is_empty() {
        out.context(&old, done..old.len(), true, false);
    }
    out.out.pop();
    Diff {
        text: out.out,
        first_changed_line: hunks.first().map(|hunk| hunk.after.start as usize + 1),
    }
}

struct Printer {
    out: String,
    width: usize,
}

impl Printer {
    fn lines(&mut self, sign: char, lines: &[&str], range: std::ops::Range<usize>) {
        for number in range {
            let text = lines
                .get(number)
                .map_or("", |line| line.strip_suffix('\n').unwrap_or(line));
            let _ = writeln!(
                self.out,
                "{sign}{:>width$} {text}",
                number + 1,
                width = self.width
            );
        }
    }

    /// Writes unchanged lines: lines near a change, and a mark for the others.
    fn context(&mut self, old: &[&str], range: std::ops::Range<usize>, before: bool, after: bool) {
        let head = if before { CONTEXT } else { 0 };
        let tail = if after { CONTEXT } else { 0 };
        if range.len() <= head + tail {
            return self.lines(' ', old, range);
        }
        self.lines(' ', old, range.start..range.start + head);
        let _ = writeln!(self.out, " {:>width$} ...", "", width = self.width);
        self.lines(' ', old, range.end - tail..range.end);
    }
}
