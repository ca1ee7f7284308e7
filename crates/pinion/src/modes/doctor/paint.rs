//! The report as text for people: headings, aligned columns, long lines folded. Not here: what it says.

use std::fmt::Write as _;

use super::report::{Mark, Report, Row};
use crate::environment::plain;
use crate::version;

/// Columns of the whole text; words that are longer stick out.
const WIDTH: usize = 110;
/// Widest column of labels; a longer label pushes its text to the right.
const LABEL: usize = 40;

/// Escape sequences, or nothing where stdout is no terminal.
struct Colours {
    bold: &'static str,
    good: &'static str,
    odd: &'static str,
    bad: &'static str,
    off: &'static str,
}

const PLAIN: Colours = Colours {
    bold: "",
    good: "",
    odd: "",
    bad: "",
    off: "",
};

const TERMINAL: Colours = Colours {
    bold: "\u{1b}[1m",
    good: "\u{1b}[32m",
    odd: "\u{1b}[33m",
    bad: "\u{1b}[31m",
    off: "\u{1b}[0m",
};

/// The text.
pub(super) fn text(report: &Report, colours: bool) -> String {
    let colours = if colours { &TERMINAL } else { &PLAIN };
    let (bold, off) = (colours.bold, colours.off);
    let mut out = format!("{bold}pinion {}{off}\n", version::OWN);
    for section in &report.sections {
        let _ = writeln!(out, "\n{bold}{}{off}", section.title);
        rows(&mut out, &section.rows, colours);
    }
    // What keeps the model from answering is the result.
    let mut odd = report
        .problems
        .iter()
        .filter(|problem| !problem.is_error)
        .peekable();
    if odd.peek().is_some() {
        let _ = writeln!(out, "\n{bold}Worth a look{off}");
        for problem in odd {
            line(&mut out, Mark::Odd, "", 0, &problem.message, colours);
        }
    }
    let verdict = &report.verdict;
    let mark = if verdict.ready { Mark::Good } else { Mark::Bad };
    let _ = writeln!(out, "\n{bold}Result{off}");
    line(&mut out, mark, "", 0, &verdict.headline, colours);
    for advice in verdict.advice.iter().flat_map(|advice| advice.lines()) {
        line(&mut out, Mark::None, "", 0, advice, colours);
    }
    out
}

fn rows(out: &mut String, rows: &[Row], colours: &Colours) {
    let widths = rows.iter().map(|row| row.label.chars().count());
    let width = widths.filter(|width| *width <= LABEL).max().unwrap_or(0);
    for row in rows {
        line(out, row.mark, &row.label, width, &row.text, colours);
    }
}

/// One row; the text is folded under itself.
fn line(out: &mut String, mark: Mark, label: &str, width: usize, text: &str, colours: &Colours) {
    let (colour, sign) = match mark {
        Mark::None => ("", " "),
        Mark::Good => (colours.good, "✓"),
        Mark::Odd => (colours.odd, "!"),
        Mark::Bad => (colours.bad, "✗"),
    };
    let off = if colour.is_empty() { "" } else { colours.off };
    let gap = if width == 0 { "" } else { "  " };
    let indent = 4 + width + gap.len();
    let head = format!("  {colour}{sign}{off} {:<width$}{gap}", clean(label));
    for (at, folded) in fold(&clean(text), WIDTH.saturating_sub(indent))
        .iter()
        .enumerate()
    {
        let before = if at == 0 { head.clone() } else { " ".repeat(indent) };
        let _ = writeln!(out, "{}", format!("{before}{folded}").trim_end());
    }
}

/// Cuts a text at blanks into lines of at most `width` columns; blanks at the beginning stay.
fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// One line of plain text.
pub(super) fn clean(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}
