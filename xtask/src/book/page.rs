//! A Markdown page taken apart: headings, links and fenced code blocks, each with its line. Only the Markdown that the repository
//! uses is understood: ATX headings, inline and reference links, fences of three or more backticks, indented code after a blank
//! line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A fenced code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Line of its first line of text.
    pub(super) line: usize,
    /// Language, the first word of the info string.
    pub(super) language: String,
    /// The other words of the info string.
    pub(super) marks: Vec<String>,
    pub(super) text: String,
}

impl Block {
    pub(super) fn has(&self, mark: &str) -> bool {
        self.marks.iter().any(|known| known == mark)
    }
}

/// A page.
#[derive(Debug, Clone)]
pub(super) struct Page {
    /// Its path, seen from the root.
    pub(super) path: PathBuf,
    /// Anchors of its headings, and ids of HTML elements.
    pub(super) anchors: BTreeSet<String>,
    /// Targets of links with their lines.
    pub(super) links: Vec<(usize, String)>,
    pub(super) blocks: Vec<Block>,
}

impl Page {
    /// Where something is, for messages.
    pub(super) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    pub(super) fn parse(path: &Path, text: &str) -> Self {
        let mut page = Self {
            path: path.to_owned(),
            anchors: BTreeSet::new(),
            links: Vec::new(),
            blocks: Vec::new(),
        };
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut open: Option<(String, Block)> = None;
        let mut after_blank = true;
        let mut in_code = false;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let trimmed = line.trim_start();
            if let Some((fence, block)) = &mut open {
                if trimmed.trim_end() == fence.as_str() {
                    page.blocks.extend(open.take().map(|(_, block)| block));
                } else {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                continue;
            }
            let ticks = trimmed.chars().take_while(|letter| *letter == '`').count();
            if ticks >= 3 {
                open = Some(("`".repeat(ticks), block(trimmed.trim_matches('`'), number + 1)));
                continue;
            }
            in_code = line.starts_with("    ") && (after_blank || in_code);
            after_blank = trimmed.is_empty();
            if in_code && !trimmed.starts_with(['-', '*']) {
                continue;
            }
            page.line(line, number, &mut counts);
        }
        page
    }

    fn line(&mut self, line: &str, number: usize, counts: &mut BTreeMap<String, usize>) {
        let level = line.chars().take_while(|letter| *letter == '#').count();
        if (1..=6).contains(&level)
            && let Some(title) = line.get(level..).and_then(|rest| rest.strip_prefix(' '))
        {
            let anchor = anchor(title);
            let count = counts.entry(anchor.clone()).or_default();
            let unique = if *count == 0 {
                anchor
            } else {
                format!("{anchor}-{count}")
            };
            *count += 1;
            self.anchors.insert(unique);
        }
        for attribute in ["id=\"", "name=\""] {
            for part in line.split(attribute).skip(1) {
                self.anchors.extend(part.split('"').next().map(str::to_owned));
            }
        }
        self.links
            .extend(targets(line).into_iter().map(|target| (number, target)));
    }
}

fn block(info: &str, line: usize) -> Block {
    let mut words = info
        .split([',', ' '])
        .map(str::trim)
        .filter(|word| !word.is_empty());
    Block {
        line,
        language: words.next().unwrap_or_default().to_owned(),
        marks: words.map(str::to_owned).collect(),
        text: String::new(),
    }
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(title: &str) -> String {
    let mut text = String::new();
    // Of a link only its text counts.
    let mut rest = title;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(&before.replacen('[', "", 1));
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let kept = text.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// Targets of the links in a line; code spans are left out.
fn targets(line: &str) -> Vec<String> {
    let line: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut out = Vec::new();
    for part in line.split("](").skip(1) {
        let target = part.split([')', ' ']).next().unwrap_or_default();
        out.push(target.trim_matches(['<', '>']).to_owned());
    }
    if line.starts_with('[')
        && let Some((_, target)) = line.split_once("]: ")
    {
        out.extend(target.split_whitespace().next().map(str::to_owned));
    }
    for attribute in ["src=\"", "href=\""] {
        for part in line.split(attribute).skip(1) {
            out.extend(part.split('"').next().map(str::to_owned));
        }
    }
    out
}
