//! How much memory a line of JSON takes once it is parsed. Text of 30 MB can hold 15 million values, which take more than a gigabyte, so
//! the length of a line alone bounds nothing.

use crate::limits::{MAX_VALUES, VALUE_BYTES};

/// Returns true if the line has more than [`MAX_VALUES`] values and must not be parsed.
#[must_use]
pub fn has_too_many(line: &[u8]) -> bool {
    // Each value has a byte at least, so short lines need no look.
    line.len() > MAX_VALUES && count(line) > MAX_VALUES
}

/// Bytes of memory that the values of the line take at most, next to its text.
#[must_use]
pub fn parsed_bytes(line: &[u8]) -> usize {
    count(line).saturating_mul(VALUE_BYTES)
}

/// The marks in front of values: commas, colons and opening brackets outside of strings. Stops above [`MAX_VALUES`].
fn count(line: &[u8]) -> usize {
    let mut count = 0;
    let mut rest = line;
    while let Some(end) = memchr::memchr(b'"', rest) {
        let (marks, tail) = rest.split_at_checked(end).unwrap_or_default();
        count += marks_in(marks);
        if count > MAX_VALUES {
            return count;
        }
        rest = after_string(tail.get(1..).unwrap_or_default());
    }
    count + marks_in(rest)
}

fn marks_in(text: &[u8]) -> usize {
    let is_mark = |byte: &&u8| matches!(byte, b',' | b':' | b'[' | b'{');
    text.iter().filter(is_mark).count()
}

/// What follows a string after its opening quote.
fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let is_end = rest.get(at) == Some(&b'"');
        // An escape hides the byte behind it.
        rest = rest.get(at + if is_end { 1 } else { 2 }..).unwrap_or_default();
        if is_end {
            return rest;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_outside_of_strings_are_counted() {
        assert_eq!(count(b""), 0);
        assert_eq!(count(br#"{"a":[0,0],"b":{}}"#), 7);
        assert_eq!(count(br#"{"a":",,[[{{::\",,"}"#), 2);
        assert_eq!(count(br#"["\\",0]"#), 2);
        assert_eq!(count(br#"["open, and never closed"#), 1);
        assert_eq!(parsed_bytes(b"[0,0]"), 2 * VALUE_BYTES);
    }

    #[test]
    fn lines_with_too_many_values_are_found() {
        let list = |items: usize| format!("[0{}]", ",0".repeat(items - 1));
        assert!(!has_too_many(list(MAX_VALUES).as_bytes()));
        assert!(has_too_many(list(MAX_VALUES + 1).as_bytes()));
        let strings = format!("[\"a\"{}]", ",\"a\"".repeat(MAX_VALUES));
        assert!(has_too_many(strings.as_bytes()));
        let text = format!("{{\"text\":\"{}\"}}", ",".repeat(2 * MAX_VALUES));
        assert!(!has_too_many(text.as_bytes()), "text is one value");
    }

    #[test]
    fn values_take_no_more_than_is_charged() {
        // The costliest values for the bytes of their marks: lists and objects with one member.
        let size = size_of::<serde_json::Value>();
        assert!(size <= VALUE_BYTES, "{size}");
        // A list reserves four places, an object a table, too.
        assert!(4 * size + size <= 2 * VALUE_BYTES, "{size}");
    }
}
