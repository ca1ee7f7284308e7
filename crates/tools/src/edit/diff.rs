//! The diff clients show of an edit (pi-core.md 5.5): numbered lines, four lines of context, no hunk heads.

use std::fmt::Write as _;

use imara_diff::{Algorithm, Diff as LineDiff, Hunk, InternedInput};

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

/// The changes as a unified patch, which `patch` and `git apply` take (pi-1.5-delta.md 7). `path` is named in its head as it is.
/// Hunks whose context would touch become one.
pub(crate) fn patch(path: &str, before: &str, after: &str) -> String {
    let input = InternedInput::new(before, after);
    let hunks: Vec<_> = LineDiff::compute(Algorithm::Myers, &input).hunks().collect();
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let mut out = format!("--- {path}\n+++ {path}\n");
    let near = |a: &Hunk, b: &Hunk| b.before.start as usize - a.before.end as usize <= 2 * CONTEXT;
    for group in hunks.chunk_by(near) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let head = (first.before.start as usize).min(CONTEXT);
        let tail = (old.len() - last.before.end as usize).min(CONTEXT);
        let from = first.before.start as usize - head;
        let to = last.before.end as usize + tail;
        let old_count = to - from;
        let new_from = first.after.start as usize - head;
        let new_count = last.after.end as usize + tail - new_from;
        // Without lines, the position is that of the line before.
        let start = |from: usize, count: usize| from + usize::from(count > 0);
        let _ = writeln!(
            out,
            "@@ -{},{old_count} +{},{new_count} @@",
            start(from, old_count),
            start(new_from, new_count)
        );
        let mut done = from;
        for hunk in group {
            let (begin, end) = (hunk.before.start as usize, hunk.before.end as usize);
            unified(&mut out, ' ', old.get(done..begin));
            unified(&mut out, '-', old.get(begin..end));
            unified(
                &mut out,
                '+',
                new.get(hunk.after.start as usize..hunk.after.end as usize),
            );
            done = end;
        }
        unified(&mut out, ' ', old.get(done..to));
    }
    out
}

/// Writes lines behind a sign. The last line of a text may lack its line feed, which a patch has to say.
fn unified(out: &mut String, sign: char, lines: Option<&[&str]>) {
    for line in lines.unwrap_or_default() {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
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
