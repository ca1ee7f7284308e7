//! From a body to the text for the model. Pages are hostile: the parser's work grows with the square of the depth, and the converter calls
//! itself for each level, so a page that becomes too deep is parsed no further. The depth is that of the parser and not of the tags: the
//! parser ignores tags, and opens and closes elements without any.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use htmd::{HtmlToMarkdown, Node};
use html5ever::tendril::TendrilSink as _;
use html5ever::tree_builder::Tracer;
use html5ever::{ParseOpts, Parser, parse_document};
use markup5ever_rcdom::{NodeData, RcDom};

use crate::{limits, table};

/// Elements whose content is no text for a reader.
const SKIPPED: [&str; 7] = ["head", "script", "style", "noscript", "template", "svg", "iframe"];
/// Bytes that are parsed between two looks at the depth: they add some thousand levels at most.
const PART: usize = 4096;

/// A page as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
}

/// Converts HTML. Blocks, with a thread of its own.
pub(crate) fn from_html(html: String) -> Page {
    let worker = std::thread::Builder::new().stack_size(limits::FETCH_STACK);
    let converted = worker
        .spawn(move || convert(&html))
        .map(std::thread::JoinHandle::join);
    match converted {
        Ok(Ok(page)) => page,
        _ => Page::default(),
    }
}

fn convert(html: &str) -> Page {
    let title = title(html);
    let text = structured(html, Instant::now() + limits::FETCH_TIME).unwrap_or_else(|| strip_tags(html));
    Page { title, text }
}

/// Markdown; none if the page is too deep or would become too large, or is not parsed in time.
fn structured(html: &str, end: Instant) -> Option<String> {
    let tree = parse(html, end)?;
    if !is_affordable(&tree) {
        return None;
    }
    let converter = HtmlToMarkdown::builder()
        .skip_tags(SKIPPED.to_vec())
        .add_handler(vec!["table"], table::markdown)
        .build();
    Some(converter.tree_to_markdown(&tree))
}

fn parse(html: &str, end: Instant) -> Option<Rc<Node>> {
    let mut parser = parse_document(RcDom::default(), ParseOpts::default());
    let mut rest = html;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART));
        parser.process(part.into());
        // Other work than that of the depth grows with the square of the page, too.
        if nesting(&parser) > limits::FETCH_DEPTH || Instant::now() > end {
            return None;
        }
        rest = after;
    }
    Some(parser.finish().document)
}

/// Elements that the parser keeps open, or opens again for the next text.
fn nesting(parser: &Parser<RcDom>) -> usize {
    let counter = Counter::default();
    parser.tokenizer.sink.trace_handles(&counter);
    counter.0.get()
}

/// Counts elements.
#[derive(Default)]
struct Counter(Cell<usize>);

impl Tracer for Counter {
    type Handle = Rc<Node>;

    fn trace_handle(&self, _: &Rc<Node>) {
        self.0.set(self.0.get() + 1);
    }
}

/// Returns true if the conversion of a tree takes time and memory that grow with the page. The converter moves all following children when
/// it joins two of one element, and each list and quotation indents the lines in it.
fn is_affordable(tree: &Rc<Node>) -> bool {
    let mut nested_lines = 0;
    let mut open = vec![(Rc::clone(tree), 1)];
    while let Some((node, depth)) = open.pop() {
        let children = node.children.borrow();
        nested_lines += lines(&node) * depth;
        // Elements may have moved below others that are closed, so the tree can be deeper than what the parser kept open.
        if depth > 2 * limits::FETCH_DEPTH
            || children.len() > limits::FETCH_SIBLINGS
            || nested_lines > limits::FETCH_NESTED_LINES
        {
            return false;
        }
        open.extend(children.iter().map(|child| (Rc::clone(child), depth + 1)));
    }
    true
}

/// Lines that a node may add to those of its children.
fn lines(node: &Node) -> usize {
    let feeds = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    match &node.data {
        NodeData::Text { contents } => 1 + feeds(&contents.borrow()),
        NodeData::Element { attrs, .. } => {
            let attrs = attrs.borrow();
            1 + attrs.iter().map(|attr| feeds(&attr.value)).sum::<usize>()
        }
        _ => 0,
    }
}

/// Names of tags with their places, those of ends with their slash.
fn tags(html: &str) -> impl Iterator<Item = (usize, &str)> {
    html.match_indices('<').filter_map(|(at, _)| {
        let rest = html.get(at + 1..)?;
        let is_name = |c: char| c.is_ascii_alphanumeric();
        let start = usize::from(rest.starts_with('/'));
        let name = rest.get(start..)?;
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
        Some((at, rest.get(..start + end)?))
    })
}

fn title(html: &str) -> Option<String> {
    let (at, _) = tags(html).find(|(_, tag)| tag.eq_ignore_ascii_case("title"))?;
    let rest = html.get(at..)?;
    let begin = rest.find('>')? + 1;
    let end = rest.find("</")?;
    let words: Vec<&str> = rest.get(begin..end)?.split_whitespace().collect();
    let mut title = decode(&words.join(" "));
    title.truncate(title.floor_char_boundary(limits::FETCH_TITLE));
    (!title.is_empty()).then_some(title)
}

/// The text between the tags.
fn strip_tags(html: &str) -> String {
    let mut text = String::new();
    let mut from = 0;
    let mut skipping: Option<&str> = None;
    for (at, tag) in tags(html) {
        if at < from {
            continue;
        }
        if skipping.is_none() {
            text.push_str(&decode(html.get(from..at).unwrap_or_default()));
            text.push('\n');
        }
        from = html
            .get(at..)
            .and_then(|rest| rest.find('>'))
            .map_or(html.len(), |end| at + end + 1);
        let (is_end, name) = tag.strip_prefix('/').map_or((false, tag), |name| (true, name));
        match skipping {
            Some(open) if is_end && name.eq_ignore_ascii_case(open) => skipping = None,
            None if !is_end => {
                skipping = SKIPPED
                    .into_iter()
                    .find(|skipped| name.eq_ignore_ascii_case(skipped))
            }
            _ => {}
        }
    }
    if skipping.is_none() {
        text.push_str(&decode(html.get(from..).unwrap_or_default()));
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn decode(text: &str) -> String {
    let common = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    let mut text = text.to_owned();
    for (entity, character) in common {
        if text.contains('&') {
            text = text.replace(entity, character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn page_becomes_markdown() {
        let html = "<!doctype html><html><head><title>A &amp;\n  B</title><style>p{}</style></head><body><h1>Head</h1><script>evil()</script>\
                    <p>One <a href=\"/x\">link</a> and <code>code</code>.</p><ul><li>a<li>b</ul><pre>fn main() {}\n</pre>\
                    <table><tr><th>k<th>v</tr><tr><td>1<td>2</tr></table></body></html>";
        let page = from_html(html.to_owned());
        assert_eq!(page.title.as_deref(), Some("A & B"));
        for part in ["# Head", "[link](/x)", "`code`", "fn main() {}", "k", "| 1"] {
            assert!(page.text.contains(part), "{part}: {}", page.text);
        }
        assert!(
            !page.text.contains("evil") && !page.text.contains("p{}"),
            "{}",
            page.text
        );
    }

    #[test]
    fn hostile_pages_are_read_quickly() {
        let start = Instant::now();
        let size = limits::FETCH_BODY;
        let units = [
            "<div>",
            "<b>",
            "<p><b>",
            "<table><tr><td>",
            "<a href=x>",
            "<div></x>",
            "<div><!--</div>-->",
            "<li><dd>",
            "<select><option>",
            "<svg><title>",
            "<template>",
            "<!--",
            "<",
            "&amp;",
        ];
        std::thread::scope(|scope| {
            for unit in units {
                scope.spawn(move || {
                    let page = from_html(format!("{}needle</b>", unit.repeat(size / unit.len())));
                    assert!(page.text.len() <= 2 * size, "{unit}");
                });
            }
        });
        let deep = format!(
            "<script>x</script>{}needle &lt;3{}",
            "<div>".repeat(100_000),
            "</div>".repeat(100_000)
        );
        assert_eq!(from_html(deep).text, "needle <3");
        // Generous: a debug build on a busy machine. Without the bounds it takes hours.
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "{:?}",
            start.elapsed()
        );
    }

    #[test]
    fn hostile_pages_stay_small() {
        let table = format!(
            "<table><tr><th>head<tr><td>{}{}</table>",
            "x".repeat(100_000),
            "<tr><td>needle".repeat(2_000)
        );
        let quotes = format!("{}{}", "<blockquote>".repeat(200), "needle<br>".repeat(30_000));
        for html in [table, quotes] {
            let most = 2 * html.len();
            let text = from_html(html).text;
            assert!(text.contains("needle") && text.len() <= most, "{}", text.len());
        }
        let end = Instant::now() + Duration::from_secs(60);
        let siblings = "<i>a</i>".repeat(limits::FETCH_SIBLINGS + 1);
        assert_eq!(structured(&siblings, end), None);
    }

    #[test]
    fn table_keeps_headers_of_rows() {
        for (html, text) in [
            (
                "<table><caption>Ada</caption><tr><th>Born<td>1815<tr><th>Died<td>1852</table>",
                "Ada\n\n|  |  |\n|---|---|\n| Born | 1815 |\n| Died | 1852 |",
            ),
            (
                "<table><thead><tr><td>k<td>v<tbody><tr><td>a|b<td>c<br>d</table>",
                "| k | v |\n|---|---|\n| a\\|b | c d |",
            ),
            (
                "<table><tr><th>k<tr><td><table><tr><th>in<tr><td>ner</table></table>",
                "| k |\n|---|\n| in ner |",
            ),
            ("<table><tr><td>one<td>two</table>", "one\n\ntwo"),
        ] {
            assert_eq!(from_html(html.to_owned()).text.trim(), text, "{html}");
        }
    }

    #[test]
    fn depth_is_that_of_the_parser() {
        let start = Instant::now();
        let end = start + Duration::from_secs(60);
        let is_structured = |unit: &str| structured(&unit.repeat(300), end).is_some();
        for deep in [
            "<div>",
            "<div></x>",
            "<div><!--</div>-->",
            "<div title='</div>'>",
            "<li><dd>",
        ] {
            assert!(!is_structured(deep), "{deep}");
        }
        for flat in [
            "<ul><li>a<li>b</ul>",
            "<li>one<p>two<br>",
            "<p>a<img src=x><hr>",
            "<tr><td>1<td>2",
            "<dl><dt>a<dd>b</dl>",
            "<div><span>a</div>",
            "<!-- <div><div> -->",
            "<script>'<div><div>'</script>",
        ] {
            assert!(is_structured(flat), "{flat}");
        }
        assert_eq!(structured("<p>late", start), None, "the time is over");
    }

    #[test]
    fn broken_pages_give_their_text() {
        for (html, text) in [
            ("", ""),
            ("plain", "plain"),
            ("<p>open", "open"),
            ("a < b", "a < b"),
            ("<title>x", ""),
        ] {
            assert_eq!(from_html(html.to_owned()).text.trim(), text, "{html}");
        }
    }
}
