//! The small language of prompt templates: splitting arguments and filling in placeholders (pi-core.md 6.4). Pure text work.

use crate::resources::limits;

/// Splits what follows `/name` at white space. Double quotes group wherever they stand; a single quote groups only where it
/// opens a word and is closed at the end of one, so that `don't` and `'tis` are text. Empty quoted arguments count.
pub(crate) fn split(text: &str) -> Vec<String> {
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
        match c {
            '"' => {
                let (inside, after) = rest.split_once('"').unwrap_or((rest, ""));
                current.push_str(inside);
                rest = after;
            }
            '\'' if opens_word => match closing_apostrophe(rest) {
                Some((inside, after)) => {
                    current.push_str(inside);
                    rest = after;
                }
                None => current.push(c),
            },
            other => current.push(other),
        }
    }
    out.extend(word);
    out
}

/// Cuts at the first apostrophe that is not followed by a letter or digit.
fn closing_apostrophe(text: &str) -> Option<(&str, &str)> {
    text.match_indices('\'').find_map(|(at, _)| {
        let (inside, after) = text.split_at_checked(at)?;
        let after = after.strip_prefix('\'')?;
        (!after.starts_with(char::is_alphanumeric)).then_some((inside, after))
    })
}

/// Fills in `$1`, `$@`, `$ARGUMENTS`, `${1:-default}`, `${@:start}` and `${@:start:length}` in one pass: what an argument
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
