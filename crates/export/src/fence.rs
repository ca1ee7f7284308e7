//! Text inside a Markdown document that is no Markdown and must not break out of its place: code in fences, single lines,
//! folded blocks. Messages, which are Markdown, are in `prose`; which text goes where is decided in `markdown` and `calls`.

use std::io::{self, Write};

/// A fenced block; the fence is longer than any run of backticks in the text.
/// Colours and other orders to a terminal are left out.
pub(super) fn fenced(out: &mut impl Write, info: &str, text: &str) -> io::Result<()> {
    let text = &without_terminal_orders(text);
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let info: String = info.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    writeln!(out, "{fence}{info}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// A block that viewers show closed. `summary` is ours, never text of the session.
pub(super) fn folded(summary: &str, info: &str, text: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<details><summary>{summary}</summary>\n")?;
    fenced(out, info, text)?;
    writeln!(out, "</details>\n")
}

/// Text without escape sequences and control characters, tab and line feed excepted.
fn without_terminal_orders(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\t' | '\n' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Goes past the rest of an escape sequence (ECMA-48): `[` up to its final letter, `]` and its like up to BEL or ESC \, all else up to
/// the first character above `/`.
fn skip_sequence(chars: &mut std::str::Chars<'_>) {
    match chars.clone().next() {
        Some('[') => {
            chars.next();
            // A sequence that is cut off must not take the text with it.
            while let Some(c) = chars.clone().next().filter(|c| (' '..='~').contains(c)) {
                chars.next();
                if ('@'..='~').contains(&c) {
                    break;
                }
            }
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            while let Some(c) = chars.clone().next().filter(|c| *c != '\n') {
                chars.next();
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    let after = chars.clone().next();
                    if after == Some('\\') {
                        chars.next();
                    }
                    break;
                }
            }
        }
        Some(' '..='~') => {
            while let Some(c) = chars.clone().next().filter(|c| (' '..='~').contains(c)) {
                chars.next();
                // More characters follow one up to a slash, as in `ESC ( B`, which selects a character set.
                if c > '/' {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// One line of text as inline code.
pub(super) fn code(text: &str) -> String {
    let line = one_line(text);
    let ticks = "`".repeat(longest_run(&line) + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') {
        " "
    } else {
        ""
    };
    if line.is_empty() {
        return "` `".to_owned();
    }
    format!("{ticks}{pad}{line}{pad}{ticks}")
}

/// Text that is no Markdown, on one line: every punctuation mark that could mean something is escaped.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

fn one_line(text: &str) -> String {
    let cleaned: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    cleaned.trim().to_owned()
}
