//! Turns a command's raw bytes into text that is safe to show: UTF-8, no escape sequences, no control characters but
//! tab and line feed, no invisible annotation characters (pi-core.md 1.13). Works on a stream in any cut.

use crate::limits;

/// Where in an escape sequence the stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and intermediate bytes.
    Intermediate,
    /// In a control sequence (`ESC [`).
    Control,
    /// In a string that BEL or ESC `\` ends (`ESC ]`, `P`, `X`, `^`, `_`).
    String,
    /// In such a string, after ESC.
    StringEscape,
}

/// A cleaner for one stream.
#[derive(Debug, Default)]
pub struct Cleaner {
    state: State,
    /// Length of the sequence so far; a runaway one is given up.
    length: usize,
    /// The beginning of a character whose end has not arrived.
    partial: Vec<u8>,
}

/// Any byte that needs a closer look: controls but tab and line feed, DEL, and everything beyond ASCII.
fn odd(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte >= 0x7f
}

impl Cleaner {
    /// Cleans the next piece and appends it to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        if self.partial.is_empty()
            && self.state == State::Text
            && !bytes
                .chunks(64)
                .any(|block| block.iter().fold(false, |seen, byte| seen | odd(*byte)))
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            out.push_str(text);
            return;
        }
        let joined;
        let bytes = if self.partial.is_empty() {
            bytes
        } else {
            joined = [std::mem::take(&mut self.partial).as_slice(), bytes].concat();
            &joined
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            chunk.valid().chars().for_each(|c| self.character(c, out));
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if chunks.peek().is_none() && may_continue(invalid) {
                self.partial = invalid.to_vec();
            } else {
                self.character(char::REPLACEMENT_CHARACTER, out);
            }
        }
    }

    /// Ends the stream: a character that never became whole is replaced.
    pub fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.character(char::REPLACEMENT_CHARACTER, out);
        }
        self.state = State::Text;
    }

    fn character(&mut self, c: char, out: &mut String) {
        if self.state == State::Text {
            match c {
                '\u{1b}' => self.enter(State::Escape),
                '\u{9b}' => self.enter(State::Control),
                '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.enter(State::String),
                _ if keeps(c) => out.push(c),
                _ => {}
            }
            return;
        }
        self.length += 1;
        if self.length > limits::ESCAPE_MAX {
            self.state = State::Text;
            return self.character(c, out);
        }
        self.state = match (self.state, c) {
            // A new escape begins, wherever the old one stood.
            (State::Escape | State::Intermediate | State::Control, '\u{1b}') => State::Escape,
            (State::Escape, '[') => State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::String,
            (State::Escape | State::Intermediate, ' '..='/') => State::Intermediate,
            (State::Escape | State::Intermediate, '0'..='~') => State::Text,
            (State::Control, ' '..='?') => State::Control,
            (State::Control, '@'..='~') => State::Text,
            (State::String, '\u{7}' | '\u{9c}') => State::Text,
            (State::String, '\u{1b}') => State::StringEscape,
            (State::StringEscape, '\\') => State::Text,
            // A line feed inside a string: it was never closed, so what follows is text.
            (State::String | State::StringEscape, '\n') => return self.back_to_text(c, out),
            (State::StringEscape, '[') => State::Control,
            (State::String | State::StringEscape, _) => State::String,
            // Not a sequence after all: the character is text again.
            _ => return self.back_to_text(c, out),
        };
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.length = 0;
    }

    fn back_to_text(&mut self, c: char, out: &mut String) {
        self.state = State::Text;
        self.character(c, out);
    }
}

/// Characters that stay.
fn keeps(c: char) -> bool {
    matches!(c, '\n' | '\t') || !(c.is_control() || matches!(c, '\u{fff9}'..='\u{fffb}'))
}

/// Returns true if the bytes can be the beginning of a character.
fn may_continue(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => false,
        Err(error) => error.error_len().is_none(),
    }
}

/// Cleans a whole text.
#[must_use]
pub fn clean(bytes: &[u8]) -> String {
    let (mut cleaner, mut out) = (Cleaner::default(), String::new());
    cleaner.push(bytes, &mut out);
    cleaner.finish(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_output_is_cleaned() {
        for (raw, text) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\x1b[31mred\x1b[0m \x01\x02 a\rb\n", "red  ab\n"),
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("a\x1bPq#0\x1b\\b", "ab"),
            ("\x1b(Bx\x1b=y\x1b[?25lz\x1b[38:5:1mw", "xyzw"),
            ("\u{9b}31mred\u{85}\u{7f}", "red"),
            ("a\u{fff9}b\u{fffb}c", "abc"),
            ("a\r\nb\r\n", "a\nb\n"),
            ("\x1b", ""),
            ("\x1b]never closed\nnext", "\nnext"),
            ("\x1b[12\x1b[1mx", "x"),
            ("\u{e9}\u{1f600}", "\u{e9}\u{1f600}"),
        ] {
            assert_eq!(clean(raw.as_bytes()), text, "{raw:?}");
        }
        assert_eq!(clean(b"\xff\xfe bad \xe2\x82"), "\u{fffd}\u{fffd} bad \u{fffd}");
        let runaway = format!("\x1b]{}after", "x".repeat(limits::ESCAPE_MAX + 10));
        assert!(clean(runaway.as_bytes()).ends_with("after"));
    }

    proptest::proptest! {
        #[test]
        fn cleaned_text_has_no_controls_at_any_split(
            raw in proptest::collection::vec(proptest::prop_oneof![
                proptest::prelude::any::<u8>(),
                proptest::sample::select(b"\x1b[]m;0\\\x07\xc2\x9b\xe2\x82\xacPX\n".to_vec()),
            ], 0..200),
            cut in 0_usize..200,
        ) {
            let whole = clean(&raw);
            assert!(whole.chars().all(keeps));
            let (a, b) = raw.split_at(cut.min(raw.len()));
            let (mut cleaner, mut out) = (Cleaner::default(), String::new());
            cleaner.push(a, &mut out);
            cleaner.push(b, &mut out);
            cleaner.finish(&mut out);
            assert_eq!(out, whole);
        }
    }
}
