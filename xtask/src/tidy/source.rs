//! Rules for one file: its module comment, its length, the length of its functions, paths of one machine. What clippy can
//! check (printing, the environment, `allow`) is in `clippy.toml` and the workspace's lints.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::files::SourceFile;
use super::{Figures, Finding, MAX_FILE, MAX_FUNCTION, finding};

/// Beginnings of paths that exist on one machine only. In two parts, so that this file keeps its own rule.
const MACHINE_PATHS: [(&str, &str); 2] = [("/wo", "rk/"), ("/ro", "ot/")];

/// Runs all rules on a file and adds it to the figures.
pub(super) fn check(file: &SourceFile, findings: &mut Vec<Finding>, figures: &mut Figures) {
    if !has_module_comment(&file.text) {
        let message = "no `//!` comment that says what lives here and what does not";
        findings.push(finding(&file.path, 1, message));
    }
    if file.is_test {
        return;
    }
    let mut shape = Shape::default();
    shape.visit_file(&file.syntax);
    let is_outside = |line: usize| {
        !shape
            .tests
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&line))
    };
    let lines: Vec<&str> = (1..)
        .zip(file.text.lines())
        .filter(|(line, _)| is_outside(*line))
        .map(|(_, text)| text.trim_start())
        .collect();
    if lines.len() > MAX_FILE {
        let message = format!("{} lines, more than {MAX_FILE}", lines.len());
        findings.push(finding(&file.path, 1, &message));
    }
    for (line, name, length) in &shape.functions {
        if *length > MAX_FUNCTION {
            let message = format!("{name} has {length} lines, more than {MAX_FUNCTION}");
            findings.push(finding(&file.path, *line, &message));
        }
    }
    figures.lengths.push(lines.len());
    let begins = |line: &&&str, sign: &str| line.starts_with(sign);
    figures.doc += lines
        .iter()
        .filter(|line| begins(line, "///") || begins(line, "//!"))
        .count();
    figures.code += lines
        .iter()
        .filter(|line| !line.is_empty() && !begins(line, "//"))
        .count();
}

fn has_module_comment(text: &str) -> bool {
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    lines.next().is_some_and(|line| line.starts_with("//!"))
}

/// True for items behind `#[cfg(test)]` and `#[cfg(all(test, ...))]`.
pub(super) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                let text = list.tokens.to_string();
                text == "test" || text.replace(' ', "").starts_with("all(test,")
            })
    })
}

/// Where the functions and the tests of a file are, in lines from 1.
#[derive(Default)]
struct Shape {
    /// First line, name, number of lines.
    functions: Vec<(usize, String, usize)>,
    /// First and last line.
    tests: Vec<(usize, usize)>,
}

impl Shape {
    fn function(&mut self, name: &syn::Ident, signature: Span, block: Span) {
        let (first, last) = (signature.start().line, block.end().line);
        self.functions.push((first, name.to_string(), last + 1 - first));
    }
}

impl<'a> Visit<'a> for Shape {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = attributes(item);
        if is_for_tests(attributes) {
            let span = item.span();
            self.tests.push((span.start().line, span.end().line));
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.function(&item.sig.ident, item.sig.span(), item.block.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.function(&item.sig.ident, item.sig.span(), item.block.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, item.sig.span(), block.span());
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// The attributes of the kinds of item that can stand behind `#[cfg(test)]`.
pub(super) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Paths of the machine that the file was written on.
pub(super) fn machine_paths(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (head, tail) in MACHINE_PATHS {
        let word = format!("{head}{tail}");
        for (index, line) in text.lines().enumerate() {
            let begins = |at: usize| {
                let before = line.get(..at).and_then(|head| head.chars().next_back());
                !before.is_some_and(|letter| letter.is_alphanumeric() || "._-~}/".contains(letter))
            };
            if line.match_indices(&word).any(|(at, _)| begins(at)) {
                found.push(finding(
                    path,
                    index + 1,
                    &format!("{word} is a path of one machine"),
                ));
            }
        }
    }
    found
}
