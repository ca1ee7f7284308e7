//! Messages inside a Markdown document: they are Markdown themselves, and must neither bring HTML with them nor take the
//! document's outline over. Text that is no Markdown is in `fence`.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::limits::HTML_PASSES;

/// A message that is Markdown: raw HTML in it becomes text, its headlines go below ours, and a code block left open is closed.
pub(super) fn message(text: &str) -> String {
    let text = closed(lowered(&harmless(text)));
    // An indented beginning would continue a list or a code block of the message before, and code of one message can be HTML in another.
    let is_indented = text.trim_start_matches(['\r', '\n']).starts_with([' ', '\t']);
    if is_indented {
        format!("<!-- -->\n\n{text}")
    } else {
        text
    }
}

fn harmless(text: &str) -> String {
    let mut text = text.trim_end().to_owned();
    // Taking the HTML away can uncover more of it, for example what stood in a comment.
    for _ in 0..HTML_PASSES {
        let tags = tags(&text);
        if tags.is_empty() {
            return text;
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
    text.replace('<', "&lt;")
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

/// The text with its headlines two levels down, below "## User" and the like, which stay the document's outline.
fn lowered(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut from = 0;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let Event::Start(Tag::Heading { level, .. }) = event else {
            continue;
        };
        let Some(headline) = text.get(range.clone()) else {
            continue;
        };
        let marks = (level as usize).min(LOWEST) + LOWERED;
        let rest = if let Some(rest) = headline.strip_prefix('#') {
            rest.trim_start_matches('#').to_owned()
        } else if let Some(words) = underlined(headline) {
            format!(" {words}\n")
        } else {
            continue;
        };
        out.push_str(text.get(from..range.start).unwrap_or_default());
        out.push_str(&"#".repeat(marks));
        out.push_str(&rest);
        from = range.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// How far headlines of messages go down.
const LOWERED: usize = 2;

/// The lowest level that can go so far.
const LOWEST: usize = 4;

/// The words of a headline that is one by the line below it.
fn underlined(headline: &str) -> Option<&str> {
    let (words, line) = headline.trim_end().split_once('\n')?;
    let line = line.trim();
    let is_line = line.chars().all(|c| c == '=') || line.chars().all(|c| c == '-');
    (!line.is_empty() && is_line).then(|| words.trim())
}

/// The text with the fence that its last code block lacks. A block in a list or a quote ends with it: a fence after that would begin
/// another block.
fn closed(mut text: String) -> String {
    let mut around = 0_usize;
    let blocks = Parser::new(&text)
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::List(_) | Tag::BlockQuote(_)) => {
                around = around.max(range.end);
                None
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Some((range.start < around, range)),
            _ => None,
        });
    let open = blocks
        .last()
        .filter(|(is_nested, range)| !is_nested && range.end >= text.trim_end().len())
        .and_then(|(_, range)| {
            let block = text.get(range)?;
            let mark = block.chars().next()?;
            let fence: String = block.chars().take_while(|c| *c == mark).collect();
            let last = block.lines().skip(1).last().unwrap_or_default().trim();
            let is_closed = last.len() >= fence.len() && last.chars().all(|c| c == mark);
            (!is_closed).then_some(fence)
        });
    if let Some(fence) = open {
        text.push('\n');
        text.push_str(&fence);
    }
    text
}
