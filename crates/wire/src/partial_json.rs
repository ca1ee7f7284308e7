//! Tool arguments that are still arriving: an incremental scanner whose work is linear in the whole text (see
//! docs/internals/decisions/25-linear-updates.md).
//!
//! The scanner keeps the text so far, repaired, and how much of it is *stable*: the stable text followed by the closer (a
//! quote where a string is open, then the open brackets) is valid JSON at any moment. So a partial value is shown by
//! writing two pieces of text; nothing is parsed again. Repairs (providers.md 2.3): raw control characters in strings are
//! escaped, a backslash before a character that cannot be escaped is doubled, lone surrogates become U+FFFD, a trailing
//! comma is dropped, a missing comma or colon is added. What cannot be repaired ends the value at the last stable place.

use serde_json::{Map, Value};

use crate::limits::MAX_DEPTH;

/// Where the scanner stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value must come; `true` where a `]` may come instead.
    Value(bool),
    /// A key must come; `}` closes the object.
    Key,
    /// A colon must come.
    Colon,
    /// A comma or a closing bracket must come. `true` where the value before has certainly ended: `1` and `2` without a space between them
    /// are no two values.
    After(bool),
    /// Inside a string; `key` strings are not stable before their value.
    Str { key: bool, escape: Escape },
    /// Inside a number.
    Num(Num),
    /// Inside `true`, `false` or `null`: the bytes that are missing.
    Word(&'static [u8]),
    /// The top-level value is complete.
    Done,
    /// The text makes no sense from here on; the rest is ignored.
    Broken,
}

/// Escapes inside a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    /// After a backslash.
    Slash,
    /// After `\u` and this many digits, with their value.
    Hex(u8, u16),
}

/// Parts of a number, by what may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Num {
    Minus,
    Zero,
    Int,
    Dot,
    Frac,
    Exp,
    ExpSign,
    ExpInt,
}

/// An incremental scanner for JSON that is still arriving. Its total work is linear in the length of the text.
#[derive(Debug, Clone)]
pub struct PartialJson {
    text: String,
    stable: usize,
    /// True while a string is open at the stable place.
    open_string: bool,
    /// Start of a `\uD800`-like escape that waits for its second half.
    half_pair: Option<usize>,
    stack: Vec<u8>,
    state: State,
    /// True once a comma or colon was added.
    separated: bool,
}

impl Default for PartialJson {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialJson {
    /// An empty text.
    #[must_use]
    pub fn new() -> Self {
        Self {
            text: String::new(),
            stable: 0,
            open_string: false,
            half_pair: None,
            stack: Vec::new(),
            state: State::Value(false),
            separated: false,
        }
    }

    /// Takes the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        let mut rest = piece;
        while !rest.is_empty() && self.state != State::Broken {
            if let State::Str {
                key,
                escape: Escape::None,
            } = self.state
            {
                rest = self.string_run(rest, key);
            } else {
                let mut chars = rest.chars();
                if let Some(c) = chars.next() {
                    self.char(c);
                }
                rest = chars.as_str();
            }
        }
    }

    /// The text that may be shown: followed by [`closer`](Self::closer) it is a complete JSON object. `{` and `}` before
    /// anything arrived, or when the value is not an object.
    #[must_use]
    pub fn stable(&self) -> &str {
        match self.text.get(..self.stable) {
            Some(text) if text.starts_with('{') => text,
            _ => "{",
        }
    }

    /// What completes [`stable`](Self::stable): a quote, or the rest of `true`, `false` or `null` with its key, and the open brackets.
    #[must_use]
    pub fn closer(&self) -> String {
        if !self.text.starts_with('{') || self.stable == 0 {
            return "}".to_owned();
        }
        let mut out = String::with_capacity(self.stack.len() + 1);
        if self.open_string {
            out.push('"');
        }
        if let State::Word(missing) = self.state {
            // pi shows the value of a word from its first letter.
            out.push_str(self.text.get(self.stable..).unwrap_or_default());
            out.extend(missing.iter().copied().map(char::from));
        }
        for bracket in self.stack.iter().rev() {
            out.push(if *bracket == b'{' { '}' } else { ']' });
        }
        out
    }

    /// Returns true if the top-level value is complete, no garbage was cut off and no separator was missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == State::Done && !self.separated
    }

    /// The value so far; empty when nothing usable arrived.
    #[must_use]
    pub fn finish(&self) -> Map<String, Value> {
        self.parsed().unwrap_or_default()
    }

    /// The value so far.
    ///
    /// # Errors
    /// The grammar allows what no value can have: numbers that no 64-bit float can hold, and deeper nesting than the parser takes.
    pub fn parsed(&self) -> serde_json::Result<Map<String, Value>> {
        serde_json::from_str(&format!("{}{}", self.stable(), self.closer()))
    }

    fn settle(&mut self) {
        self.stable = self.text.len();
        self.open_string = false;
    }

    /// Takes text inside a string up to the next character that needs care.
    fn string_run<'a>(&mut self, rest: &'a str, key: bool) -> &'a str {
        let plain = rest
            .bytes()
            .position(|b| b == b'"' || b == b'\\' || b < 0x20)
            .unwrap_or(rest.len());
        let (run, rest) = rest.split_at_checked(plain).unwrap_or((rest, ""));
        if !run.is_empty() {
            self.break_pair();
            self.text.push_str(run);
        }
        let mut chars = rest.chars();
        match chars.next() {
            Some('"') => {
                self.break_pair();
                self.text.push('"');
                if key {
                    self.state = State::Colon;
                } else {
                    self.value_ended();
                }
            }
            Some('\\') => {
                self.string_stable(key);
                self.state = State::Str {
                    key,
                    escape: Escape::Slash,
                };
            }
            Some(control) => {
                self.break_pair();
                self.text.push_str(&format!("\\u{:04x}", u32::from(control)));
                self.string_stable(key);
            }
            None => self.string_stable(key),
        }
        chars.as_str()
    }

    fn string_stable(&mut self, key: bool) {
        if !key && self.half_pair.is_none() {
            self.stable = self.text.len();
            self.open_string = true;
        }
    }

    /// A first half of a surrogate pair is followed by something else: replace it.
    fn break_pair(&mut self) {
        if let Some(start) = self.half_pair.take() {
            self.text.truncate(start);
            self.text.push_str("\\ufffd");
        }
    }

    fn char(&mut self, c: char) {
        match self.state {
            State::Value(may_close) => self.value(c, may_close),
            State::Key => self.key(c),
            State::Colon => match c {
                ':' => {
                    self.text.push(':');
                    self.state = State::Value(false);
                }
                c if begins_value(c) => self.separate(':', c),
                _ => self.space_or_break(c),
            },
            State::After(has_ended) => self.after(c, has_ended),
            State::Str { key, escape } => self.escaped(c, key, escape),
            State::Num(num) => self.number(c, num),
            State::Word(missing) => self.word(c, missing),
            State::Done | State::Broken => {}
        }
    }

    fn space_or_break(&mut self, c: char) {
        if !matches!(c, ' ' | '\t' | '\n' | '\r') {
            self.state = State::Broken;
        }
    }

    fn value(&mut self, c: char, may_close: bool) {
        match c {
            '{' | '[' if self.stack.len() < MAX_DEPTH => {
                self.text.push(c);
                self.stack.push(if c == '{' { b'{' } else { b'[' });
                self.state = if c == '{' { State::Key } else { State::Value(true) };
                self.settle();
            }
            '"' => {
                self.text.push('"');
                self.state = State::Str {
                    key: false,
                    escape: Escape::None,
                };
                self.string_stable(false);
            }
            '-' => self.begin_number(c, Num::Minus),
            '0' => self.begin_number(c, Num::Zero),
            '1'..='9' => self.begin_number(c, Num::Int),
            't' => self.begin_word(c, b"rue"),
            'f' => self.begin_word(c, b"alse"),
            'n' => self.begin_word(c, b"ull"),
            ']' if may_close => self.close(']'),
            // A trailing comma: the stable text ends before it.
            ']' if self.stack.last() == Some(&b'[') => self.close(']'),
            _ => self.space_or_break(c),
        }
    }

    fn key(&mut self, c: char) {
        match c {
            '"' => {
                self.text.push('"');
                self.state = State::Str {
                    key: true,
                    escape: Escape::None,
                };
            }
            '}' => self.close('}'),
            _ => self.space_or_break(c),
        }
    }

    /// Adds a separator that is missing before this character, as today's pi reads such text.
    fn separate(&mut self, separator: char, c: char) {
        self.separated = true;
        self.text.push(separator);
        let is_key = separator == ',' && self.stack.last() == Some(&b'{');
        self.state = if is_key { State::Key } else { State::Value(false) };
        self.char(c);
    }

    fn after(&mut self, c: char, has_ended: bool) {
        match (c, self.stack.last()) {
            (',', Some(b'{')) => {
                self.text.push(',');
                self.state = State::Key;
            }
            (',', Some(b'[')) => {
                self.text.push(',');
                self.state = State::Value(false);
            }
            ('}', Some(b'{')) | (']', Some(b'[')) => self.close(c),
            ('"', Some(b'{')) | ('"' | '{' | '[', Some(b'[')) => self.separate(',', c),
            (c, Some(b'[')) if has_ended && begins_value(c) => self.separate(',', c),
            (' ' | '\t' | '\n' | '\r', _) => self.state = State::After(true),
            _ => self.state = State::Broken,
        }
    }

    fn close(&mut self, c: char) {
        self.text.truncate(self.stable);
        self.text.push(c);
        self.stack.pop();
        self.value_ended();
    }

    fn value_ended(&mut self) {
        self.settle();
        self.state = if self.stack.is_empty() {
            State::Done
        } else {
            // Only strings, objects and lists have an end of their own.
            State::After(self.text.ends_with(['"', '}', ']']))
        };
    }

    fn begin_number(&mut self, c: char, num: Num) {
        self.text.push(c);
        self.state = State::Num(num);
        self.number_stable(num);
    }

    fn number_stable(&mut self, num: Num) {
        if matches!(num, Num::Zero | Num::Int | Num::Frac | Num::ExpInt) {
            self.settle();
        }
    }

    fn number(&mut self, c: char, num: Num) {
        let next = match (num, c) {
            (Num::Minus, '0') => Some(Num::Zero),
            (Num::Minus, '1'..='9') | (Num::Int, '0'..='9') => Some(Num::Int),
            (Num::Zero | Num::Int, '.') => Some(Num::Dot),
            (Num::Dot | Num::Frac, '0'..='9') => Some(Num::Frac),
            (Num::Zero | Num::Int | Num::Frac, 'e' | 'E') => Some(Num::Exp),
            (Num::Exp, '+' | '-') => Some(Num::ExpSign),
            (Num::Exp | Num::ExpSign | Num::ExpInt, '0'..='9') => Some(Num::ExpInt),
            _ => None,
        };
        if let Some(next) = next {
            self.text.push(c);
            self.state = State::Num(next);
            self.number_stable(next);
        } else if matches!(num, Num::Zero | Num::Int | Num::Frac | Num::ExpInt) {
            self.value_ended();
            self.char(c);
        } else {
            self.state = State::Broken;
        }
    }

    fn begin_word(&mut self, c: char, missing: &'static [u8]) {
        self.text.push(c);
        self.state = State::Word(missing);
    }

    fn word(&mut self, c: char, missing: &'static [u8]) {
        match missing.split_first() {
            Some((first, rest)) if char::from(*first) == c => {
                self.text.push(c);
                if rest.is_empty() {
                    self.value_ended();
                } else {
                    self.state = State::Word(rest);
                }
            }
            _ => self.state = State::Broken,
        }
    }

    fn escaped(&mut self, c: char, key: bool, escape: Escape) {
        match escape {
            Escape::None => {}
            Escape::Slash if c == 'u' => {
                self.state = State::Str {
                    key,
                    escape: Escape::Hex(0, 0),
                }
            }
            Escape::Slash => {
                self.break_pair();
                if matches!(c, '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') {
                    self.text.push('\\');
                } else {
                    self.text.push_str("\\\\");
                }
                self.state = State::Str {
                    key,
                    escape: Escape::None,
                };
                if c.is_control() {
                    self.text.push_str(&format!("\\u{:04x}", u32::from(c)));
                } else {
                    self.text.push(c);
                }
                self.string_stable(key);
            }
            Escape::Hex(count, value) => self.hex(c, key, count, value),
        }
    }

    fn hex(&mut self, c: char, key: bool, count: u8, value: u16) {
        let Some(digit) = c.to_digit(16).and_then(|digit| u16::try_from(digit).ok()) else {
            // `\u12x`: show the backslash as text and take the rest as it is.
            self.break_pair();
            self.text.push_str("\\\\u");
            let digits = format!("{value:04x}");
            self.text
                .push_str(digits.get(4 - usize::from(count)..).unwrap_or(""));
            self.state = State::Str {
                key,
                escape: Escape::None,
            };
            self.push(c.encode_utf8(&mut [0; 4]));
            return;
        };
        let value = value << 4 | digit;
        if count < 3 {
            self.state = State::Str {
                key,
                escape: Escape::Hex(count + 1, value),
            };
            return;
        }
        self.state = State::Str {
            key,
            escape: Escape::None,
        };
        match value {
            0xD800..=0xDBFF => {
                self.break_pair();
                self.half_pair = Some(self.text.len());
                self.text.push_str(&format!("\\u{value:04x}"));
            }
            0xDC00..=0xDFFF if self.half_pair.is_none() => self.text.push_str("\\ufffd"),
            0xDC00..=0xDFFF => {
                self.half_pair = None;
                self.text.push_str(&format!("\\u{value:04x}"));
            }
            _ => {
                self.break_pair();
                self.text.push_str(&format!("\\u{value:04x}"));
            }
        }
        self.string_stable(key);
    }
}

/// Returns true for the first character of a value.
fn begins_value(c: char) -> bool {
    matches!(c, '"' | '{' | '[' | '-' | '0'..='9' | 't' | 'f' | 'n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scan(text: &str) -> Value {
        let mut partial = PartialJson::new();
        partial.push(text);
        Value::Object(partial.finish())
    }

    #[test]
    fn partial_json_shows_complete_values() {
        for (text, want) in [
            ("", json!({})),
            ("{", json!({})),
            ("{\"pa", json!({})),
            ("{\"path\"", json!({})),
            ("{\"path\":", json!({})),
            ("{\"path\":\"hel", json!({"path": "hel"})),
            ("{\"a\":1,\"limit\": 2", json!({"a": 1, "limit": 2})),
            ("{\"a\":1,\"limit\": 2.", json!({"a": 1, "limit": 2})),
            ("{\"a\":-", json!({})),
            ("{\"a\":tru", json!({"a": true})),
            ("{\"a\":1, \"b\": [n", json!({"a": 1, "b": [null]})),
            ("{\"a\":f", json!({"a": false})),
            ("{\"a\":trx", json!({})),
            ("{\"a\":true", json!({"a": true})),
            ("{\"a\":[1,", json!({"a": [1]})),
            ("{\"a\":[{\"b\":\"x\\", json!({"a": [{"b": "x"}]})),
            ("{\"a\":\"x\\ud83d", json!({"a": "x"})),
            ("{\"a\":\"x\\ud83d\\ude00", json!({"a": "x\u{1F600}"})),
        ] {
            assert_eq!(scan(text), want, "{text}");
        }
    }

    #[test]
    fn partial_json_repairs_malformed_text() {
        for (text, want) in [
            ("{\"a\":\"x\ny\"}", json!({"a": "x\ny"})),
            ("{\"a\":\"c:\\dir\"}", json!({"a": "c:\\dir"})),
            ("{\"a\":1,}", json!({"a": 1})),
            ("{\"a\":[1,2,],\"b\":2}", json!({"a": [1, 2], "b": 2})),
            ("{\"a\":\"\\ud83dx\"}", json!({"a": "\u{FFFD}x"})),
            ("{\"a\":\"\\u12x\"}", json!({"a": "\\u12x"})),
            ("{\"a\":1} trailing", json!({"a": 1})),
            ("garbage", json!({})),
            ("[1,2]", json!({})),
            ("{\"a\":1,oops", json!({"a": 1})),
        ] {
            assert_eq!(scan(text), want, "{text}");
        }
    }

    #[test]
    fn missing_separators_are_added() {
        for (text, want) in [
            ("{\"a\":1 \"b\":2}", json!({"a": 1, "b": 2})),
            ("{\"a\":\"x\"\"b\":\"y", json!({"a": "x", "b": "y"})),
            ("{\"a\" \"x\",\"b\" 2", json!({"a": "x", "b": 2})),
            ("{\"a\"{\"b\"true", json!({"a": {"b": true}})),
            (
                "{\"a\":[1 2 \"x\"{}[]null 3]",
                json!({"a": [1, 2, "x", {}, [], null, 3]}),
            ),
            ("{\"a\":[1 2,]}", json!({"a": [1, 2]})),
            ("{\"a\":[01", json!({"a": [0]})),
            ("{\"a\":[truen", json!({"a": [true]})),
            ("{\"a\":1 2,\"b\":3", json!({"a": 1})),
            ("{\"a\" \"b\":1", json!({"a": "b"})),
        ] {
            let mut partial = PartialJson::new();
            for c in text.chars() {
                partial.push(c.encode_utf8(&mut [0; 4]));
                partial.parsed().expect(text);
            }
            assert_eq!(Value::Object(partial.finish()), want, "{text}");
            // The call does not run: complete arguments must be JSON.
            assert!(!partial.is_complete(), "{text}");
        }
    }

    #[test]
    fn every_json_prefix_is_valid() {
        let text =
            "{\"a\":[1,-2.5e+3,null,{\"k\\\"\":\"v\\u00e9\\ud83d\\ude00\\n\"}],\"b\":{\"c\":[]},\"d\":false}";
        let whole: Value = serde_json::from_str(text).unwrap();
        let mut partial = PartialJson::new();
        for c in text.chars() {
            partial.push(c.encode_utf8(&mut [0; 4]));
            let shown = format!("{}{}", partial.stable(), partial.closer());
            serde_json::from_str::<Map<String, Value>>(&shown).expect(&shown);
        }
        assert!(partial.is_complete());
        assert_eq!(Value::Object(partial.finish()), whole);
    }
}
