//! Text of a model, a server or a file, made fit for a question to the user: everything can be seen, and the rest of a text that is
//! too long is counted. Hidden characters are escaped, padding and repetitions become notes, and of a long text both ends are shown.

use wire::hidden::{is_hidden, is_mark};

use super::limits;

/// Combining marks on one letter. Languages need up to three.
const MARKS: usize = 4;
/// Blanks inside of a line that are no padding.
const BLANKS: usize = 8;
/// Blanks at the beginning of a line that are no padding but an indentation.
const INDENTATION: usize = 32;
/// Blanks and hidden characters in a row, if some are hidden, that are all shown.
const HIDDEN_RUN: usize = 24;
/// The characters of a longer run that are shown.
const SHOWN: usize = 8;
/// Equal characters in a row that are all shown.
const EQUAL: usize = 100;
/// Empty lines in a row that are shown.
const EMPTY_LINES: usize = 2;
/// Equal lines in a row that are shown.
const EQUAL_LINES: usize = 3;

/// A text of any length, for a question. It keeps its lines.
pub fn text(text: &str) -> String {
    let (head, gap, tail) = split(text);
    let mut pieces = lines(head);
    let mut rest = lines(tail.unwrap_or_default());
    if tail.is_none() {
        rest.clear();
    }
    let total: usize = pieces.iter().chain(&rest).map(Piece::letters).sum();
    let count = pieces.len() + rest.len();
    if tail.is_none() && total <= limits::ASKED_LETTERS && count <= limits::ASKED_LINES {
        return join(pieces.iter());
    }
    pieces.extend(gap);
    pieces.extend(rest);
    ends(&pieces)
}

/// A name, a path, a URI: one line, cut in the middle if it is longer than `most` characters.
pub fn line(text: &str, most: usize) -> String {
    let (head, gap, tail) = split(text);
    let shown = |part: &str| {
        let parts: Vec<String> = part.split('\n').map(shown_line).collect();
        parts.join("\\u{a}")
    };
    let mut out = shown(head);
    if let Some(gap) = gap {
        out.push_str(&gap.text);
    }
    out.push_str(&tail.map(shown).unwrap_or_default());
    shorten(out, most)
}

/// A number with commas between its thousands.
pub fn number(value: usize) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number and its unit: `1 line`, `2,000 lines`.
pub fn counted(value: usize, what: &str) -> String {
    format!("{} {what}{}", number(value), if value == 1 { "" } else { "s" })
}

/// One or more lines as they are shown, and what they stand for.
struct Piece {
    text: String,
    /// Lines of the original.
    lines: usize,
    /// Characters of the original.
    originals: usize,
    /// The part in the middle that was not even looked at.
    is_gap: bool,
}

impl Piece {
    fn letters(&self) -> usize {
        self.text.chars().count() + 1
    }
}

/// Both ends of a very long text, so that the work does not grow with it, and a note for the part between them.
fn split(text: &str) -> (&str, Option<Piece>, Option<&str>) {
    if text.len() <= 2 * limits::ASKED_RAW {
        return (text, None, None);
    }
    let (head, rest) = text.split_at(text.floor_char_boundary(limits::ASKED_RAW));
    let (gap, tail) = rest.split_at(rest.ceil_char_boundary(rest.len().saturating_sub(limits::ASKED_RAW)));
    let (lines, originals) = (gap.matches('\n').count(), gap.chars().count());
    let gap = Piece {
        text: omitted(lines, originals),
        lines,
        originals,
        is_gap: true,
    };
    (head, Some(gap), Some(tail))
}

fn omitted(lines: usize, letters: usize) -> String {
    let lines = if lines == 0 {
        String::new()
    } else {
        format!("{}, ", counted(lines, "line"))
    };
    format!("[... {lines}{} not shown ...]", counted(letters, "character"))
}

/// The lines of a text, each made visible, with notes for empty and equal ones.
fn lines(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let is_empty = |line: &str| line.trim_matches([' ', '\t', '\r']).is_empty();
        let empty = is_empty(line);
        let (mut count, mut originals) = (1, line.chars().count() + 1);
        while let Some(same) = lines.next_if(|next| *next == line || empty && is_empty(next)) {
            count += 1;
            originals += same.chars().count() + 1;
        }
        let piece = |text: String, lines, originals| Piece {
            text,
            lines,
            originals,
            is_gap: false,
        };
        let shown = shorten(shown_line(line), limits::ASKED_LINE);
        if empty && count > EMPTY_LINES {
            pieces.push(piece(
                format!("[{} empty lines]", number(count)),
                count,
                originals,
            ));
        } else if !empty && count > EQUAL_LINES {
            let note = format!("[{} more lines like this]", number(count - 1));
            pieces.push(piece(format!("{shown}\n{note}"), count, originals));
        } else {
            let each = originals / count;
            pieces.extend((0..count).map(|_| piece(shown.clone(), 1, each)));
        }
    }
    pieces
}

/// The first and the last pieces, with a note between them.
fn ends(pieces: &[Piece]) -> String {
    let fit = |letters: usize, lines: usize| {
        let mut left = (letters, lines);
        move |piece: &&Piece| {
            left = match (left.0.checked_sub(piece.letters()), left.1.checked_sub(1)) {
                (Some(letters), Some(lines)) if !piece.is_gap => (letters, lines),
                _ => return false,
            };
            true
        }
    };
    let (letters, lines) = (limits::ASKED_LETTERS / 5, limits::ASKED_LINES / 5);
    let head = pieces.iter().take_while(fit(letters * 3, lines * 3)).count();
    let (first, rest) = pieces.split_at_checked(head).unwrap_or((pieces, &[]));
    let tail = rest.iter().rev().take_while(fit(letters * 2, lines * 2)).count();
    let (cut, last) = rest.split_at_checked(rest.len() - tail).unwrap_or((rest, &[]));
    let sum = |of: fn(&Piece) -> usize| cut.iter().map(of).sum::<usize>();
    let note = Piece {
        text: omitted(sum(|piece| piece.lines), sum(|piece| piece.originals)),
        lines: 0,
        originals: 0,
        is_gap: true,
    };
    if cut.is_empty() {
        return join(pieces.iter());
    }
    join(first.iter().chain([&note]).chain(last))
}

fn join<'a>(pieces: impl Iterator<Item = &'a Piece>) -> String {
    let texts: Vec<&str> = pieces.map(|piece| piece.text.as_str()).collect();
    texts.join("\n")
}

/// Both ends of a line that is too long.
fn shorten(line: String, most: usize) -> String {
    let count = line.chars().count();
    if count <= most {
        return line;
    }
    let (head, tail) = (most / 5 * 3, most / 5 * 2);
    let at = |n: usize| line.char_indices().nth(n).map_or(line.len(), |(at, _)| at);
    let (first, last) = (line.get(..at(head)), line.get(at(count - tail)..));
    format!(
        "{} {} {}",
        first.unwrap_or_default(),
        omitted(0, count - head - tail),
        last.unwrap_or_default()
    )
}

/// One line without its line feed: hidden characters escaped, padding and repetitions counted.
fn shown_line(line: &str) -> String {
    let mut out = String::new();
    let mut letters = line.chars().peekable();
    // Marks that the last letter has; none when there is no letter that a mark could join.
    let mut marks: Option<usize> = None;
    while let Some(letter) = letters.next() {
        let is_stray = |marks: Option<usize>, letter| is_mark(letter) && marks.is_none_or(|n| n >= MARKS);
        if is_padding(letter) || is_stray(marks, letter) {
            let mut run = Run::default();
            run.push(letter);
            while let Some(next) = letters.next_if(|next| is_padding(*next) || is_mark(*next)) {
                run.push(next);
            }
            run.end(&mut out);
            marks = None;
        } else if is_mark(letter) {
            out.push(letter);
            marks = marks.map(|n| n + 1);
        } else {
            let mut count = 1;
            while letters.next_if_eq(&letter).is_some() {
                count += 1;
            }
            let shown = if count > EQUAL { SHOWN } else { count };
            out.extend(std::iter::repeat_n(letter, shown));
            if shown < count {
                let note = format!("[{} more of this character]", number(count - shown));
                out.push_str(&note);
            }
            marks = Some(0);
        }
    }
    out
}

fn is_padding(letter: char) -> bool {
    letter == ' ' || letter == '\t' || is_hidden(letter)
}

/// Blanks and hidden characters in a row.
#[derive(Default)]
struct Run {
    spaces: usize,
    tabs: usize,
    hidden: usize,
    /// The first ones.
    first: Vec<char>,
}

impl Run {
    fn push(&mut self, letter: char) {
        match letter {
            ' ' => self.spaces += 1,
            '\t' => self.tabs += 1,
            _ => self.hidden += 1,
        }
        if self.first.len() < INDENTATION {
            self.first.push(letter);
        }
    }

    fn end(self, out: &mut String) {
        let all = self.spaces + self.tabs + self.hidden;
        if self.hidden == 0 {
            // Lines of a diff begin with a sign and a number.
            let is_indented = out
                .chars()
                .all(|letter| matches!(letter, ' ' | '+' | '-' | '0'..='9'));
            if all <= if is_indented { INDENTATION } else { BLANKS } {
                return out.extend(self.first);
            }
            let what = match (self.spaces, self.tabs) {
                (_, 0) => "spaces",
                (0, _) => "tabs",
                _ => "blanks",
            };
            return out.push_str(&format!("[{} {what}]", number(all)));
        }
        let shown = if all > HIDDEN_RUN { SHOWN } else { all };
        for letter in self.first.into_iter().take(shown) {
            match letter {
                ' ' | '\t' => out.push(letter),
                _ => out.extend(letter.escape_unicode()),
            }
        }
        if shown < all {
            out.push_str(&format!("[{} more invisible characters]", number(all - shown)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_on_one_line_and_shortened() {
        assert_eq!(line("a\nb\u{202e}c", 100), "a\\u{a}b\\u{202e}c");
        let long = format!("first{}last", "ab".repeat(500));
        assert_eq!(
            line(&long, 20),
            "firstabababa [... 989 characters not shown ...] abablast"
        );
        assert!(line(&"xy".repeat(5 << 20), 100).len() < 250);
    }

    #[test]
    fn escaping_cost_does_not_grow_with_text() {
        for part in ["ab", " \u{200b}x", "line\n", "\u{301}"] {
            let huge = format!("begin\n{}\nend", part.repeat(4 << 20));
            let shown = text(&huge);
            assert!(shown.starts_with("begin") && shown.ends_with("end"), "{shown}");
            assert!(shown.chars().count() < limits::ASKED_LETTERS + 200);
            assert!(shown.contains(" not shown ...]"), "{shown}");
        }
    }

    #[test]
    fn large_numbers_have_thousands_separators() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(number),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            (counted(1, "line"), counted(2, "line")),
            ("1 line".to_owned(), "2 lines".to_owned())
        );
    }
}
