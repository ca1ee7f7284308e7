//! Rows of the page's tables, and type names with links.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::view::{description, fields, label, type_name};

/// What a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Parameters: required ones are marked in words.
    Parameters,
    /// Fields of something the agent writes.
    Fields,
}

/// Links from names of types to their sections.
pub(super) struct Linker<'a> {
    names: BTreeSet<&'a str>,
    /// Page with the sections, as a relative link; empty for the page of the link itself.
    page: &'static str,
}

impl<'a> Linker<'a> {
    /// From the names that have a section, and the page with the sections.
    pub(super) fn new(names: Vec<&'a str>, page: &'static str) -> Self {
        Self {
            names: names.into_iter().collect(),
            page,
        }
    }

    /// A type for running text: names with a section are links, everything else is code.
    pub(super) fn type_text(&self, schema: &Value) -> String {
        let name = type_name(schema);
        let mut out = String::new();
        let mut code = String::new();
        for word in split_words(&name) {
            if self.names.contains(word) {
                flush(&mut out, &mut code);
                out.push_str(&format!("[{word}]({}#{})", self.page, word.to_lowercase()));
            } else {
                code.push_str(word);
            }
        }
        flush(&mut out, &mut code);
        out
    }
}

fn flush(out: &mut String, code: &mut String) {
    let text = code.trim();
    if !text.is_empty() {
        let before = if code.starts_with(' ') { " " } else { "" };
        let after = if code.ends_with(' ') { " " } else { "" };
        out.push_str(&format!("{before}`{text}`{after}"));
    }
    code.clear();
}

/// Cuts into names and what stands between them.
fn split_words(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = first.is_alphanumeric();
        let end = rest
            .find(|letter: char| letter.is_alphanumeric() != is_word)
            .unwrap_or(rest.len());
        let (word, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        out.push(word);
        rest = tail;
    }
    out
}

/// One row per field, without those named in `skip`.
pub(super) fn rows(schema: &Value, skip: &[&str], style: Style, links: &Linker<'_>) -> Vec<String> {
    let mut rows = Vec::new();
    for field in fields(schema).iter().filter(|field| !skip.contains(&field.name)) {
        let mut text = description(field.schema).to_owned();
        if style == Style::Parameters && field.required {
            text = format!("{text} Required.");
        }
        let name = if style == Style::Parameters {
            field.name.to_owned()
        } else {
            label(field)
        };
        let kind = links.type_text(field.schema).replace('|', "\\|");
        rows.push(format!(
            "| `{name}` | {kind} | {} |",
            text.trim().replace('|', "\\|")
        ));
    }
    rows
}
