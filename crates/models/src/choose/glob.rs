//! The patterns of `--models`: `*` and `?` stop at a slash, `**` does not, `[a-z]` and `[!x]` are sets, `{a,b}` are
//! alternatives. Matching takes time proportional to pattern times text.

use crate::limits::MAX_GLOB_ALTERNATIVES;

/// Returns true if the text contains characters of a pattern.
pub(crate) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// A pattern, ready to be held against many texts.
pub(crate) struct Glob(Vec<Vec<Token>>);

impl Glob {
    /// Reads a pattern; every text is one.
    pub(crate) fn new(pattern: &str) -> Self {
        Self(
            alternatives(&pattern.to_lowercase())
                .iter()
                .map(|pattern| tokens(pattern))
                .collect(),
        )
    }

    /// Returns true if the whole text matches, ignoring case.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.to_lowercase().chars().collect();
        self.0.iter().any(|tokens| run(tokens, &text))
    }
}

/// Writes out `{a,b}` groups, innermost last.
fn alternatives(pattern: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        if done.len() + open.len() >= MAX_GLOB_ALTERNATIVES {
            break;
        }
        match group(&pattern) {
            Some((before, inner, after)) => {
                open.extend(inner.split(',').map(|part| format!("{before}{part}{after}")));
            }
            None => done.push(pattern),
        }
    }
    done
}

/// The last group that has no group inside.
fn group(pattern: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = pattern.rsplit_once('{')?;
    let (inner, after) = rest.split_once('}')?;
    inner.contains(',').then_some((before, inner, after))
}

enum Token {
    Char(char),
    One,
    Run { across: bool },
    Set { not: bool, ranges: Vec<(char, char)> },
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = pattern;
    while let Some(ch) = rest.chars().next() {
        let tail = rest.get(ch.len_utf8()..).unwrap_or("");
        rest = tail;
        match ch {
            '*' => {
                rest = tail.trim_start_matches('*');
                out.push(Token::Run {
                    across: rest.len() < tail.len(),
                });
            }
            '?' => out.push(Token::One),
            '[' => match set(tail) {
                Some((token, after)) => {
                    out.push(token);
                    rest = after;
                }
                None => out.push(Token::Char(ch)),
            },
            _ => out.push(Token::Char(ch)),
        }
    }
    out
}

fn set(tail: &str) -> Option<(Token, &str)> {
    let (inner, after) = tail.split_once(']')?;
    let plain = inner.strip_prefix(['!', '^']);
    let mut chars = plain.unwrap_or(inner).chars().peekable();
    let mut ranges = Vec::new();
    while let Some(first) = chars.next() {
        let mut last = first;
        if chars.next_if_eq(&'-').is_some() {
            last = chars.next().unwrap_or('-');
        }
        ranges.push((first, last));
    }
    (!ranges.is_empty()).then_some((
        Token::Set {
            not: plain.is_some(),
            ranges,
        },
        after,
    ))
}

/// Walks the text once, keeping the set of places in the pattern that can be reached.
fn run(tokens: &[Token], text: &[char]) -> bool {
    let mut reached = vec![false; tokens.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    skip_runs(tokens, &mut reached);
    for ch in text {
        let mut next = vec![false; tokens.len() + 1];
        for (at, token) in tokens
            .iter()
            .enumerate()
            .filter(|(at, _)| reached.get(*at) == Some(&true))
        {
            let to = match token {
                Token::Run { across } => (*across || *ch != '/').then_some(at),
                Token::Char(wanted) => (wanted == ch).then_some(at + 1),
                Token::One => (*ch != '/').then_some(at + 1),
                Token::Set { not, ranges } => {
                    let inside = ranges.iter().any(|(first, last)| (first..=last).contains(&ch));
                    (inside != *not && *ch != '/').then_some(at + 1)
                }
            };
            if let Some(slot) = to.and_then(|to| next.get_mut(to)) {
                *slot = true;
            }
        }
        skip_runs(tokens, &mut next);
        reached = next;
    }
    reached.last() == Some(&true)
}

/// A run may be empty.
fn skip_runs(tokens: &[Token], reached: &mut [bool]) {
    for (at, token) in tokens.iter().enumerate() {
        let empty_run = matches!(token, Token::Run { .. }) && reached.get(at) == Some(&true);
        if let Some(slot) = reached.get_mut(at + 1).filter(|_| empty_run) {
            *slot = true;
        }
    }
}
