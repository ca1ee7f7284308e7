//! JSON as people write it: comments and trailing commas are allowed. Positions in error messages stay right, because what
//! is taken out is replaced by blanks.

use std::ops::Range;

use serde_json::Value;

/// Parses JSON with `//` and `/* */` comments and with trailing commas. Text without any value is an empty object.
///
/// # Errors
/// When the text is not JSON even so; the error names line and column.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let mut bytes = text.as_bytes().to_vec();
    blank_comments(&mut bytes);
    blank_trailing_commas(&mut bytes);
    if bytes.trim_ascii().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_slice(&bytes)
}

/// Finds the value at a dotted key; returns its line and column, both from 1. Of the names, only the first may contain dots.
#[must_use]
pub fn locate(text: &str, key: &str) -> Option<(usize, usize)> {
    let mut bytes = text.as_bytes().to_vec();
    blank_comments(&mut bytes);
    blank_trailing_commas(&mut bytes);
    let mut scanner = Scanner { bytes: &bytes, at: 0 };
    scanner.skip_blanks();
    let start = scanner.at;
    match scanner.member(key) {
        Some(at) => scanner.at = at,
        None => {
            scanner.at = start;
            for part in key.split('.') {
                scanner.at = scanner.member(part)?;
            }
        }
    }
    let before = bytes.get(..scanner.at)?;
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    Some((line, column))
}

/// Positions in the text of an object or list. Texts that [`parse`] refuses have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The value with its brackets.
    pub(crate) span: Range<usize>,
    /// The members' or elements' values.
    pub(crate) values: Vec<Range<usize>>,
}

/// Finds the outermost object.
pub(crate) fn document(text: &str) -> Option<Layout> {
    with_scanner(text, |scanner| {
        scanner.skip_blanks();
        scanner.layout(b'{')
    })
}

/// Finds the value of a member of the outermost object, and its elements if it is a list.
pub(crate) fn list(text: &str, name: &str) -> Option<Layout> {
    with_scanner(text, |scanner| {
        scanner.skip_blanks();
        scanner.at = scanner.member(name)?;
        scanner.layout(b'[')
    })
}

/// Finds the value of a member of the object that begins at a position.
pub(crate) fn member(text: &str, object: usize, name: &str) -> Option<Range<usize>> {
    with_scanner(text, |scanner| {
        scanner.at = object;
        scanner.at = scanner.member(name)?;
        Some(scanner.value())
    })
}

/// Finds the next comma that is no part of a comment, if only blanks and comments are before it.
pub(crate) fn comma_after(text: &str, at: usize) -> Option<usize> {
    with_scanner(text, |scanner| {
        scanner.at = at;
        scanner.skip_blanks();
        (scanner.peek()? == b',').then_some(scanner.at)
    })
}

fn with_scanner<T>(text: &str, read: impl FnOnce(&mut Scanner<'_>) -> Option<T>) -> Option<T> {
    let mut bytes = text.as_bytes().to_vec();
    blank_comments(&mut bytes);
    read(&mut Scanner { bytes: &bytes, at: 0 })
}

/// Walks over valid JSON.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Where the value of a member begins in the object that begins here; of several with one name the last, which counts.
    fn member(&mut self, name: &str) -> Option<usize> {
        if self.peek()? != b'{' {
            return None;
        }
        self.at += 1;
        let mut found = None;
        loop {
            self.skip_blanks();
            if self.peek()? == b',' {
                self.at += 1;
                continue;
            }
            if self.peek()? != b'"' {
                return found;
            }
            let start = self.at;
            self.skip_text();
            let key: String = serde_json::from_slice(self.bytes.get(start..self.at)?).ok()?;
            self.skip_blanks();
            self.at += 1;
            self.skip_blanks();
            if key == name {
                found = Some(self.at);
            }
            self.skip_value();
        }
    }

    /// The value that begins here; the scanner stops behind it.
    fn value(&mut self) -> Range<usize> {
        let start = self.at;
        self.skip_value();
        let text = self.bytes.get(start..self.at).unwrap_or_default();
        start..start + text.trim_ascii_end().len()
    }

    /// The object or list that begins here.
    fn layout(&mut self, open: u8) -> Option<Layout> {
        let start = self.at;
        if self.peek()? != open {
            return None;
        }
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' | b']' => break,
                _ => {
                    if open == b'{' {
                        self.skip_text();
                        self.skip_blanks();
                        self.at += 1;
                        self.skip_blanks();
                    }
                    values.push(self.value());
                }
            }
        }
        Some(Layout {
            span: start..self.at + 1,
            values,
        })
    }

    fn skip_text(&mut self) {
        self.at += 1;
        let mut at = At::Text;
        while let Some(byte) = self.peek() {
            self.at += 1;
            at = at.after(byte);
            if at == At::Code {
                return;
            }
        }
    }

    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.skip_text();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return,
                b'}' | b']' => depth -= 1,
                b',' if depth == 0 => return,
                _ => {}
            }
            self.at += 1;
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    Code,
    Text,
    /// After a backslash in a string.
    Escape,
    LineComment,
    BlockComment,
}

impl At {
    /// The state after this byte inside or outside of a string; comments are handled by their caller.
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Text, b'\\') => Self::Escape,
            (Self::Text, b'"') => Self::Code,
            (Self::Escape, _) | (Self::Code, b'"') => Self::Text,
            (same, _) => same,
        }
    }
}

fn blank_comments(bytes: &mut [u8]) {
    let mut at = At::Code;
    let mut index = 0;
    while let Some(byte) = bytes.get(index).copied() {
        let next = bytes.get(index + 1).copied();
        let mut width = 1;
        let mut blank = matches!(at, At::LineComment | At::BlockComment);
        match (at, byte, next) {
            (At::Code, b'/', Some(b'/')) => (at, blank) = (At::LineComment, true),
            (At::Code, b'/', Some(b'*')) => (at, blank, width) = (At::BlockComment, true, 2),
            (At::BlockComment, b'*', Some(b'/')) => (at, width) = (At::Code, 2),
            (At::LineComment, b'\n', _) => at = At::Code,
            _ => at = at.after(byte),
        }
        if blank {
            for old in bytes
                .iter_mut()
                .skip(index)
                .take(width)
                .filter(|b| !matches!(b, b'\n' | b'\r'))
            {
                *old = b' ';
            }
        }
        index += width;
    }
}

fn blank_trailing_commas(bytes: &mut [u8]) {
    let mut at = At::Code;
    let mut comma = None;
    for index in 0..bytes.len() {
        let Some(byte) = bytes.get(index).copied() else {
            break;
        };
        if at == At::Code {
            match byte {
                b',' => comma = Some(index),
                b'}' | b']' => {
                    if let Some(old) = comma.take().and_then(|i: usize| bytes.get_mut(i)) {
                        *old = b' ';
                    }
                }
                b if b.is_ascii_whitespace() => {}
                _ => comma = None,
            }
        }
        at = at.after(byte);
    }
}
