//! Where a text that an edit did not find, or found several times, is in the file: advice under the error, so that the model
//! can correct the edit without reading the file again.

use std::fmt::Write as _;

use crate::limits;

/// Least average likeness of lines, in thousandths, at which a place counts as near.
const NEAR: usize = 500;

/// Shows the lines most like `old` with their numbers; empty if no place of `text` is like it.
pub(super) fn nearest(text: &str, old: &str) -> String {
    let wanted: Vec<&str> = old.trim_matches('\n').split('\n').collect();
    let compared: Vec<&str> = wanted.iter().copied().take(limits::NEAREST_EDIT_LINES).collect();
    let lines: Vec<&str> = text.lines().collect();
    let Some(start) = best_start(&lines, &compared) else {
        return String::new();
    };
    let end = (start + compared.len()).min(lines.len());
    let shown = lines.get(start..end).unwrap_or_default();
    let mut out = match shown.len() {
        1 => format!("\nThe nearest text is in line {}:", start + 1),
        _ => format!("\nThe nearest text is in lines {}-{end}:", start + 1),
    };
    for (i, line) in shown.iter().enumerate() {
        let (line, cut) = match line.char_indices().nth(limits::NEAREST_LINE_MAX) {
            Some((at, _)) => (line.get(..at).unwrap_or_default(), "..."),
            None => (*line, ""),
        };
        let _ = write!(out, "\n{}: {line}{cut}", start + i + 1);
    }
    out
}

/// The index of the line at which `wanted` fits best; none if no line is like it.
fn best_start(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return None;
    }
    let starts = (lines.len() + 1).saturating_sub(wanted.len()).max(1);
    let most = limits::NEAREST_EDIT_PAIRS / wanted.len().max(1);
    let mut best: Option<(usize, usize)> = None;
    for start in 0..starts.min(most) {
        let pairs = wanted.iter().zip(lines.get(start..).unwrap_or_default());
        let likeness = pairs.map(|(a, b)| likeness(a.trim(), b.trim())).sum::<usize>() / wanted.len();
        if likeness >= NEAR && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, start));
        }
    }
    best.map(|(_, start)| start)
}

/// How alike two lines are, in thousandths: the part that is equal at both ends. Cheap, since it runs for each pair of lines.
fn likeness(a: &str, b: &str) -> usize {
    let (a, b) = (cut(a), cut(b));
    let longest = a.len().max(b.len());
    if longest == 0 {
        return 1000;
    }
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - start;
    let end = a.iter().rev().zip(b.iter().rev()).take(rest);
    let end = end.take_while(|(a, b)| a == b).count();
    1000 * (start + end) / longest
}

fn cut(line: &str) -> &[u8] {
    let bytes = line.as_bytes();
    bytes.get(..limits::NEAREST_LINE_MAX).unwrap_or(bytes)
}

/// Says in which lines the occurrences of a repeated text begin.
pub(super) fn repeats(text: &str, old: &str) -> String {
    let (mut line, mut at) = (1, 0);
    let mut found: Vec<String> = Vec::new();
    for (start, _) in text.match_indices(old).take(limits::REPEATS_NAMED + 1) {
        let between = text.get(at..start).unwrap_or_default();
        line += memchr::memchr_iter(b'\n', between.as_bytes()).count();
        at = start;
        found.push(line.to_string());
    }
    let more = found.len() > limits::REPEATS_NAMED;
    found.truncate(limits::REPEATS_NAMED);
    let more = if more { " and further ones" } else { "" };
    format!("\nThey begin in lines {}{more}.", found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "fn one() {\n    let a = 1;\n    a + 1\n}\n\nfn two() {\n    let b = 2;\n    b + 2\n}\n";

    #[test]
    fn nearest_text_is_shown_with_lines() {
        assert_eq!(
            nearest(TEXT, "fn two() {\n    let b = 3;\n    b + 2\n"),
            "\nThe nearest text is in lines 6-8:\n6: fn two() {\n7:     let b = 2;\n8:     b + 2"
        );
        assert_eq!(
            nearest(TEXT, "let a = 11;"),
            "\nThe nearest text is in line 2:\n2:     let a = 1;"
        );
        for far in ["something else entirely", "\n\n", ""] {
            assert_eq!(nearest(TEXT, far), "", "{far:?}");
        }
        assert_eq!(nearest("", "a"), "");
    }

    #[test]
    fn nearest_text_of_huge_file_is_bounded() {
        let text = "x".repeat(5000) + "\n" + &"line of a long file\n".repeat(100_000);
        let shown = nearest(&text, &"line of a lung file\n".repeat(500));
        assert!(
            shown.starts_with("\nThe nearest text is in lines 2-31:\n2: line of"),
            "{shown}"
        );
        assert!(nearest(&text, &"x".repeat(4999)).ends_with("xxx..."));
    }

    #[test]
    fn repeated_text_names_its_lines() {
        assert_eq!(repeats(TEXT, "let "), "\nThey begin in lines 2, 7.");
        assert_eq!(
            repeats(&"a\n".repeat(12), "a"),
            "\nThey begin in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and further ones."
        );
    }
}
