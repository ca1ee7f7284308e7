//! Text inside a Markdown document that must not break out of its place: code in fences, messages with their HTML made
//! text. Which text goes where is decided in `markdown`.

use std::io::{self, Write};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::limits::HTML_PASSES;

/// A fenced block; the fence is longer than any run of backticks in the text.
/// Colours and other orders to a terminal are left out.
pub(super) fn fenced(out: &mut impl Write, info: &str, text: &str) -> io::Result<()> {
    let text = &without_terminal_orders(text);
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let info: String = info.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    writeln!(out, "{fence}{info}\n{}\n{fence}\n", text.trim_end_matches('\n'))
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

/// Goes past the rest of an escape sequence (ECMA-48): `[` up to its final letter, `]` and its like up to BEL or ESC \.
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
        Some(' '..='~') => drop(chars.next()),
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

/// A message that is Markdown: raw HTML in it becomes text, and a code block left open is closed.
pub(super) fn message(text: &str) -> String {
    let mut text = text.trim_end().to_owned();
    // Taking the HTML away can uncover more of it, for example what stood in a comment.
    for _ in 0..HTML_PASSES {
        let tags = tags(&text);
        if tags.is_empty() {
            return closed(text);
        }
        let mut next = String::with_capacity(text.len() + tags.len() * 3);
        let mut from = 0;
        for at in tags {
            next.push_str(text.get(from..at).unwrap_or_default());
            next.push_str("&lt;");
            from = at + 1;
        }
        next.push_str(text.get(from..).unwrap_or_default());
        text = next;
    }
    closed(text.replace('<', "&lt;"))
}

/// Where in the text a `<` begins HTML, in order.
fn tags(text: &str) -> Vec<usize> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let mut found = Vec::new();
    for (event, range) in events {
        if matches!(event, Event::Html(_) | Event::InlineHtml(_)) {
            let html = text.get(range.clone()).unwrap_or_default();
            found.extend(html.match_indices('<').map(|(at, _)| range.start + at));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The text with the fence that its last code block lacks.
fn closed(mut text: String) -> String {
    let blocks = Parser::new(&text)
        .into_offset_iter()
        .filter_map(|(event, range)| {
            let fenced = matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
            fenced.then_some(range)
        });
    let open = blocks
        .last()
        .filter(|range| range.end >= text.trim_end().len())
        .and_then(|range| {
            let block = text.get(range)?;
            let mark = block.chars().next()?;
            let fence: String = block.chars().take_while(|c| *c == mark).collect();
            let last = block
                .lines()
                .skip(1)
                .last()
                .unwrap_or_default()
                .trim_matches([' ', '>']);
            let is_closed = last.len() >= fence.len() && last.chars().all(|c| c == mark);
            (!is_closed).then_some(fence)
        });
    if let Some(fence) = open {
        text.push('\n');
        text.push_str(&fence);
    }
    text
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
