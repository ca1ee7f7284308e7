//! Cutting a tool's output to what a model is shown, and the record clients get of it (pi-core.md 5.1).
//!
//! A line ends at `\n`; what follows the last one counts as a line too, even when empty. An output that is over the
//! line limit by that empty line alone is not cut.

use serde::Serialize;
use serde_json::Value;

use crate::limits::MAX_BYTES;

/// Which limit cut the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TruncatedBy {
    /// Too many lines.
    Lines,
    /// Too many bytes.
    Bytes,
}

/// Facts about a cut, as in `details.truncation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// The remaining text.
    pub content: String,
    /// True if a part is missing.
    pub truncated: bool,
    /// Which limit struck first.
    pub truncated_by: Option<TruncatedBy>,
    /// Lines there were.
    pub total_lines: u64,
    /// Bytes there were.
    pub total_bytes: u64,
    /// Lines in `content`.
    pub output_lines: u64,
    /// Bytes in `content`.
    pub output_bytes: u64,
    /// True if the only line shown is the end of a longer one.
    pub last_line_partial: bool,
    /// True if the first line alone is over the limit. Then `content` is empty.
    pub first_line_exceeds_limit: bool,
    /// The line limit.
    pub max_lines: u64,
    /// The byte limit.
    pub max_bytes: u64,
}

/// Counts of the whole output, of which only a part may be at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Bytes.
    pub bytes: u64,
    /// Line feeds.
    pub newlines: u64,
    /// True if it ends in a line feed.
    pub ends_in_newline: bool,
}

impl Totals {
    /// Counts a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        Self {
            bytes: text.len() as u64,
            newlines: newlines as u64,
            ends_in_newline: text.ends_with('\n'),
        }
    }

    /// Lines, the one after the last line feed included.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.newlines + 1
    }

    /// Returns true if it is within both limits.
    #[must_use]
    pub fn fits(&self, max_lines: usize) -> bool {
        let visible = if self.ends_in_newline {
            self.newlines
        } else {
            self.newlines + 1
        };
        self.bytes <= MAX_BYTES as u64 && visible <= max_lines as u64
    }

    fn record(self, max_lines: usize) -> Truncation {
        Truncation {
            content: String::new(),
            truncated: true,
            truncated_by: None,
            total_lines: self.lines(),
            total_bytes: self.bytes,
            output_lines: 0,
            output_bytes: 0,
            last_line_partial: false,
            first_line_exceeds_limit: false,
            max_lines: max_lines as u64,
            max_bytes: MAX_BYTES as u64,
        }
    }
}

impl Truncation {
    /// The record as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    fn finish(mut self, content: &str, lines: usize, by: Option<TruncatedBy>) -> Self {
        self.output_lines = lines as u64;
        self.output_bytes = content.len() as u64;
        self.truncated_by = by;
        content.clone_into(&mut self.content);
        self
    }

    fn whole(mut self, text: &str) -> Self {
        self.truncated = false;
        let lines = self.total_lines;
        self = self.finish(text, 0, None);
        self.output_lines = lines;
        self
    }
}

/// Keeps the first lines. `text` is the beginning of the output and at least as long as what may be shown.
#[must_use]
pub fn head(text: &str, totals: Totals, max_lines: usize) -> Truncation {
    let record = totals.record(max_lines);
    if totals.fits(max_lines) {
        return record.whole(text);
    }
    let (mut end, mut lines, mut by) = (0, 0, TruncatedBy::Lines);
    for line in text.split('\n') {
        if lines == max_lines {
            break;
        }
        let start = if lines == 0 { 0 } else { end + 1 };
        if start + line.len() > MAX_BYTES {
            by = TruncatedBy::Bytes;
            break;
        }
        end = start + line.len();
        lines += 1;
    }
    let content = text.get(..end).unwrap_or_default();
    let mut record = record.finish(content, lines, Some(by));
    record.first_line_exceeds_limit = lines == 0;
    record
}

/// Keeps the last lines. `text` is the end of the output and at least as long as what may be shown.
#[must_use]
pub fn tail(text: &str, totals: Totals, max_lines: usize) -> Truncation {
    let record = totals.record(max_lines);
    if totals.fits(max_lines) {
        return record.whole(text);
    }
    let (mut start, mut lines, mut by) = (text.len(), 0, TruncatedBy::Lines);
    for line in text.rsplit('\n') {
        if lines == max_lines {
            break;
        }
        let from = if lines == 0 {
            start - line.len()
        } else {
            start - line.len() - 1
        };
        if text.len() - from > MAX_BYTES {
            by = TruncatedBy::Bytes;
            break;
        }
        start = from;
        lines += 1;
    }
    let content = text.get(start..).unwrap_or_default();
    if !content.is_empty() || by == TruncatedBy::Lines {
        return record.finish(content, lines, Some(by));
    }
    // The last line alone is too big (its line feed may follow): show its end.
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_BYTES));
    let mut record = record.finish(
        text.get(from..).unwrap_or_default(),
        1 + lines,
        Some(TruncatedBy::Bytes),
    );
    record.last_line_partial = true;
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_LINES;

    fn run(f: fn(&str, Totals, usize) -> Truncation, text: &str) -> Truncation {
        f(text, Totals::of(text), MAX_LINES)
    }

    fn lines(n: usize) -> String {
        (1..=n).map(|i| format!("line {i}\n")).collect()
    }

    #[test]
    fn text_within_limits_is_not_truncated() {
        for text in ["", "\n", "a", "a\nb\n", &lines(2000), &"x".repeat(MAX_BYTES)] {
            for f in [head, tail] {
                let t = run(f, text);
                assert_eq!((t.truncated, t.content.as_str()), (false, text));
            }
        }
        assert_eq!(run(tail, "a\n").total_lines, 2);
    }

    #[test]
    fn head_truncation_by_lines_matches_recording() {
        // tool-read-truncate-lines
        let t = run(head, &lines(3000));
        assert_eq!((t.total_lines, t.total_bytes), (3001, 28_893));
        assert_eq!((t.output_lines, t.output_bytes), (2000, 18_892));
        assert_eq!(t.truncated_by, Some(TruncatedBy::Lines));
        assert!(t.content.ends_with("\nline 2000"));
        let keys: Vec<String> = t.to_value().as_object().unwrap().keys().cloned().collect();
        assert_eq!(
            keys.join(" "),
            "content truncated truncatedBy totalLines totalBytes outputLines outputBytes lastLinePartial firstLineExceedsLimit maxLines maxBytes"
        );
    }

    #[test]
    fn tail_truncation_by_bytes_matches_recording() {
        // tool-bash-truncate-bytes
        let text: String = (1..=400).map(|i| format!("{i} {}\n", "x".repeat(300))).collect();
        let t = run(tail, &text);
        assert_eq!((t.total_lines, t.total_bytes), (401, 121_892));
        assert_eq!((t.output_lines, t.output_bytes), (168, 50_935));
        assert_eq!(
            (t.truncated_by, t.last_line_partial),
            (Some(TruncatedBy::Bytes), false)
        );
        let t = run(tail, &lines(3000));
        assert!(t.content.starts_with("line 1002\n") && t.content.ends_with("line 3000\n"));
        assert_eq!(t.output_lines, 2000);
    }

    #[test]
    fn single_huge_line_is_truncated() {
        let text = "\u{e9}".repeat(30_000);
        let t = run(head, &text);
        assert!(t.first_line_exceeds_limit && t.content.is_empty());
        for text in [text.clone(), format!("{text}\n")] {
            let t = run(tail, &text);
            assert!(t.last_line_partial && t.content.len() <= MAX_BYTES && t.content.len() > MAX_BYTES - 4);
        }
        let t = run(tail, &format!("{text}\nend\n"));
        assert_eq!(
            (t.content.as_str(), t.last_line_partial, t.output_lines),
            ("end\n", false, 2)
        );
    }

    proptest::proptest! {
        #[test]
        fn truncated_text_consists_of_its_lines(parts in proptest::collection::vec("[a-\u{e9}\n]{0,20}", 0..40), max in 1_usize..8) {
            let text = parts.concat();
            let totals = Totals::of(&text);
            let h = head(&text, totals, max);
            let t = tail(&text, totals, max);
            assert!(text.starts_with(&h.content) && text.ends_with(&t.content));
            for cut in [h, t] {
                assert!(cut.output_lines as usize <= max + 1);
                assert_eq!(cut.truncated, cut.content.len() < text.len());
            }
        }
    }
}
