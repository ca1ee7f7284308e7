//! Finds where each edit applies and makes the new text. All edits are matched against the original (pi-core.md 5.5).

use std::ops::Range;

use super::endings::Endings;
use super::fuzzy::normalize;
use super::nearest::{nearest, repeats};
use crate::config::FuzzyEdit;

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The text to replace.
    pub(crate) old: String,
    /// What shall be there.
    pub(crate) new: String,
}

/// The result of all edits, with `\n` for every ending.
#[derive(Debug)]
pub(crate) struct Applied {
    /// What the diff starts from.
    pub(crate) before: String,
    /// The new text.
    pub(crate) after: String,
    /// Its endings.
    pub(crate) endings: Endings,
}

/// A piece of the text and what takes its place.
#[derive(Debug, Clone)]
struct Change {
    at: Range<usize>,
    new: String,
}

/// Applies edits to `text`. The error is the text the model sees; `shown` is the path in it.
pub(crate) fn apply(
    text: &str,
    endings: &Endings,
    shown: &str,
    edits: &[Edit],
    mode: FuzzyEdit,
) -> Result<Applied, String> {
    let edits: Vec<Edit> = edits
        .iter()
        .map(|edit| Edit {
            old: Endings::split(&edit.old).0,
            new: Endings::split(&edit.new).0,
        })
        .collect();
    let words = Words {
        shown,
        many: edits.len() > 1,
    };
    if let Some(i) = edits.iter().position(|edit| edit.old.is_empty()) {
        return Err(words.empty(i));
    }
    let normal = normalize(text);
    let fuzzy = edits.iter().any(|edit| !text.contains(&edit.old));
    let base = if fuzzy { normal.as_str() } else { text };
    let mut found = Vec::with_capacity(edits.len());
    for (i, edit) in edits.into_iter().enumerate() {
        let at = find(base, &edit.old).ok_or_else(|| words.missing(i) + &nearest(text, &edit.old))?;
        let normal_old = normalize(&edit.old);
        let (in_normal, in_base) = (occurrences(&normal, &normal_old), occurrences(base, &edit.old));
        if in_normal.max(in_base) > 1 {
            // Both forms have the same lines.
            let places = match in_normal > in_base {
                true => repeats(&normal, &normal_old),
                false => repeats(base, &edit.old),
            };
            return Err(words.repeated(i, in_normal.max(in_base)) + &places);
        }
        found.push((i, Change { at, new: edit.new }));
    }
    found.sort_by_key(|(_, change)| change.at.start);
    for pair in found.windows(2) {
        if let [(a, first), (b, second)] = pair
            && first.at.end > second.at.start
        {
            return Err(words.overlap(*a.min(b), *a.max(b)));
        }
    }
    let changes: Vec<Change> = found.into_iter().map(|(_, change)| change).collect();
    let (before, changes) = match mode {
        FuzzyEdit::KeepRest if fuzzy => (text, onto_lines(text, &normal, &changes)),
        _ => (base, changes),
    };
    let (after, new_endings) = assemble(before, endings, &changes);
    if after == before {
        return Err(words.unchanged());
    }
    Ok(Applied {
        before: before.to_owned(),
        after,
        endings: new_endings,
    })
}

/// Exactly, else in normal form.
fn find(base: &str, old: &str) -> Option<Range<usize>> {
    let exact = base.find(old).map(|start| start..start + old.len());
    exact.or_else(|| {
        let old = normalize(old);
        let start = base.find(&old).filter(|_| !old.is_empty())?;
        Some(start..start + old.len())
    })
}

fn occurrences(text: &str, old: &str) -> usize {
    if old.is_empty() {
        0
    } else {
        text.matches(old).count()
    }
}

/// Turns changes of the normal form into changes of the original's whole lines, so that all other lines stay as they are.
fn onto_lines(text: &str, normal: &str, changes: &[Change]) -> Vec<Change> {
    let (lines, normal_lines) = (line_ranges(text), line_ranges(normal));
    let line_of = |at: usize| {
        normal_lines
            .partition_point(|line| line.start <= at)
            .saturating_sub(1)
    };
    // Each change with the last line that it replaces, and the end of the normalised text that it uses.
    let mut out: Vec<(Change, usize, usize)> = Vec::new();
    for change in changes {
        let first = line_of(change.at.start);
        // A match that ends with a line feed takes the feed along, but not the next line.
        let takes_feed = change.at.end > change.at.start
            && normal
                .get(..change.at.end)
                .is_some_and(|head| head.ends_with('\n'));
        let last = line_of(if takes_feed {
            change.at.end - 1
        } else {
            change.at.end
        });
        let start_of = |ranges: &[Range<usize>], line: usize| ranges.get(line).map_or(0, |r| r.start);
        let end_of = |ranges: &[Range<usize>], line: usize| {
            ranges.get(line).map_or(0, |r| r.end) + usize::from(takes_feed)
        };
        let tail_end = end_of(&normal_lines, last);
        match out.last_mut() {
            // It begins on the line the one before ends on: extend that one.
            Some((before, before_last, used)) if first <= *before_last => {
                before
                    .new
                    .truncate(before.new.len() - used.saturating_sub(change.at.start));
                before.new.push_str(&change.new);
                before
                    .new
                    .push_str(normal.get(change.at.end..tail_end).unwrap_or_default());
                before.at.end = end_of(&lines, last);
                (*before_last, *used) = (last, tail_end);
            }
            _ => {
                let start = start_of(&normal_lines, first);
                let mut new = normal.get(start..change.at.start).unwrap_or_default().to_owned();
                new.push_str(&change.new);
                new.push_str(normal.get(change.at.end..tail_end).unwrap_or_default());
                let at = start_of(&lines, first)..end_of(&lines, last);
                out.push((Change { at, new }, last, tail_end));
            }
        }
    }
    out.into_iter().map(|(change, ..)| change).collect()
}

/// Where each line is, without its line feed.
fn line_ranges(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    text.split('\n')
        .map(|line| {
            let range = start..start + line.len();
            start = range.end + 1;
            range
        })
        .collect()
}

/// Builds the new text and carries the endings along.
fn assemble(base: &str, endings: &Endings, changes: &[Change]) -> (String, Endings) {
    let feeds = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count();
    let (mut out, mut new_endings) = (String::with_capacity(base.len()), Endings::default());
    let (mut at, mut line) = (0, 0);
    for change in changes {
        let kept = base.get(at..change.at.start).unwrap_or_default();
        let gone = feeds(base.get(change.at.clone()).unwrap_or_default());
        new_endings.keep(endings.slice(line, feeds(kept)));
        line += feeds(kept);
        new_endings.replace(endings, line, gone, feeds(&change.new));
        line += gone;
        out.push_str(kept);
        out.push_str(&change.new);
        at = change.at.end;
    }
    let rest = base.get(at..).unwrap_or_default();
    new_endings.keep(endings.slice(line, feeds(rest)));
    out.push_str(rest);
    (out, new_endings)
}

/// The failure texts; they name the edit only when there are several.
struct Words<'a> {
    shown: &'a str,
    many: bool,
}

impl Words<'_> {
    fn empty(&self, i: usize) -> String {
        let what = if self.many {
            format!("edits[{i}].oldText")
        } else {
            "oldText".to_owned()
        };
        format!("{what} must not be empty in {}.", self.shown)
    }

    fn missing(&self, i: usize) -> String {
        let (what, text) = match self.many {
            true => (format!("edits[{i}]"), "oldText"),
            false => ("the exact text".to_owned(), "old text"),
        };
        let rule = "must match exactly including all whitespace and newlines.";
        format!("Could not find {what} in {}. The {text} {rule}", self.shown)
    }

    fn repeated(&self, i: usize, count: usize) -> String {
        let (what, each) = match self.many {
            true => (format!("edits[{i}]"), "Each oldText"),
            false => ("the text".to_owned(), "The text"),
        };
        let shown = self.shown;
        format!(
            "Found {count} occurrences of {what} in {shown}. {each} must be unique. Please provide more context to make it unique."
        )
    }

    fn overlap(&self, a: usize, b: usize) -> String {
        let shown = self.shown;
        format!(
            "edits[{a}] and edits[{b}] overlap in {shown}. Merge them into one edit or target disjoint regions."
        )
    }

    fn unchanged(&self) -> String {
        let why = match self.many {
            true => "The replacements produced identical content.",
            false => {
                "The replacement produced identical content. This might indicate an issue with special characters or the text not existing as expected."
            }
        };
        format!("No changes made to {}. {why}", self.shown)
    }
}
