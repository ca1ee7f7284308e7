//! The small language of prompt templates: splitting arguments and filling in placeholders (pi-core.md 6.4). Pure text work.

use crate::resources::limits;

/// What a double quote does that opens a word and is never closed, as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenQuote {
    /// It groups all that follows, as in pi 0.74.
    Groups,
    /// It is text, as in pi 1.5.
    IsText,
}

/// Splits what follows `/name` at white space. A quote groups only where it opens a word and is closed; else it is text, as in
/// `don't`; with [`OpenQuote::Groups`] a double quote that opens a word and is never closed groups all that follows. In quotes a backslash before the same quote makes it text. Empty quoted arguments count (pi 1.5).
pub(crate) fn split(text: &str, open: OpenQuote) -> Vec<String> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.strip_prefix(c).unwrap_or_default();
        if c.is_whitespace() {
            out.extend(word.take());
            continue;
        }
        let opens_word = word.is_none();
        let current = word.get_or_insert_default();
        match quoted(c, rest, open).filter(|_| opens_word) {
            Some((inside, after)) => {
                current.push_str(&inside);
                rest = after;
            }
            None => current.push(c),
        }
    }
    out.extend(word);
    out
}

/// What a quote that was just opened holds, and what follows it; nothing when it is none or is never closed. An apostrophe
/// inside a word closes nothing.
fn quoted(quote: char, text: &str, open: OpenQuote) -> Option<(String, &str)> {
    if !matches!(quote, '"' | '\'') {
        return None;
    }
    let mut inside = String::new();
    let mut rest = text;
    loop {
        let Some((before, after)) = rest.split_once(quote) else {
            inside.push_str(rest);
            return (quote == '"' && open == OpenQuote::Groups).then_some((inside, ""));
        };
        let (plain, is_text) = match before.strip_suffix('\\') {
            Some(plain) => (plain, true),
            None => (before, quote == '\'' && after.starts_with(char::is_alphanumeric)),
        };
        inside.push_str(plain);
        rest = after;
        if !is_text {
            return Some((inside, rest));
        }
        inside.push(quote);
    }
}

/// Fills in `$1`, `$@`, `$ARGUMENTS`, `${1:-default}`, `${@:-default}`, `${@:start}` and `${@:start:length}` in one pass: what an argument
/// contains is never looked at again. Anything else after `$` is text. `None` when the result gets too long.
pub(crate) fn substitute(template: &str, args: &[String]) -> Option<String> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        match placeholder(after, args) {
            Some((value, left)) => {
                out.push_str(&value);
                rest = left;
            }
            None => {
                out.push('$');
                rest = after;
            }
        }
        if out.len() > limits::EXPANSION_BYTES {
            return None;
        }
    }
    out.push_str(rest);
    Some(out)
}

/// The value of the placeholder that `text` starts with (after the dollar sign), and what follows it.
fn placeholder<'t>(text: &'t str, args: &[String]) -> Option<(String, &'t str)> {
    for all in ["@", "ARGUMENTS"] {
        if let Some(left) = text.strip_prefix(all) {
            return Some((args.join(" "), left));
        }
    }
    if let Some(inner) = text.strip_prefix('{') {
        let (inner, left) = inner.split_once('}')?;
        return Some((braced(inner, args)?, left));
    }
    let left = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.strip_suffix(left)?;
    if digits.is_empty() {
        return None;
    }
    Some((positional(digits, args).unwrap_or_default().to_owned(), left))
}

fn braced(inner: &str, args: &[String]) -> Option<String> {
    if let Some(("@" | "ARGUMENTS", default)) = inner.split_once(":-") {
        let all = args.join(" ");
        return Some(if all.is_empty() { default.to_owned() } else { all });
    }
    if let Some(range) = inner.strip_prefix("@:") {
        let (start, length) = match range.split_once(':') {
            Some((start, length)) => (start, Some(number(length)?)),
            None => (range, None),
        };
        // Counted from 1; 0 means 1 as well.
        let skip = number(start)?.saturating_sub(1);
        let slice: Vec<&str> = args
            .iter()
            .skip(skip)
            .take(length.unwrap_or(usize::MAX))
            .map(String::as_str)
            .collect();
        return Some(slice.join(" "));
    }
    let (digits, default) = inner.split_once(":-")?;
    number(digits)?;
    let value = positional(digits, args).filter(|value| !value.is_empty());
    Some(value.unwrap_or(default).to_owned())
}

/// The argument with this number, counted from 1. There is none with the number 0.
fn positional<'a>(digits: &str, args: &'a [String]) -> Option<&'a str> {
    args.get(number(digits)?.checked_sub(1)?).map(String::as_str)
}

/// Digits only; a number too large for the machine is larger than any count of arguments.
fn number(digits: &str) -> Option<usize> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(usize::MAX))
}
