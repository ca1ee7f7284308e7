//! The order of names in a directory listing: that of `localeCompare` in JavaScript, which pi sorts with (recorded with pi 0.74.2).

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// ASCII punctuation and symbols in the order of the Unicode Collation Algorithm with the root data of CLDR.
const SYMBOLS: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// What the first comparison of two names looks at: letters without accents, after digits, after symbols, after blanks.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Primary {
    Blank,
    Symbol(usize),
    Other(char),
    Digit(char),
    Letter(char),
}

impl Primary {
    fn of(c: char) -> Self {
        if c.is_whitespace() {
            Self::Blank
        } else if let Some(at) = SYMBOLS.find(c) {
            Self::Symbol(at)
        } else if c.is_ascii_digit() {
            Self::Digit(c)
        } else if c.is_alphanumeric() {
            Self::Letter(c)
        } else {
            Self::Other(c)
        }
    }
}

/// Sorts names; small letters, capitals and accents only decide between names that are otherwise equal.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    primary: Vec<Primary>,
    lower: String,
}

impl Key {
    pub(super) fn of(name: &str) -> Self {
        let lower = name.to_lowercase();
        let bare = lower.nfd().filter(|c| !is_combining_mark(*c));
        Self {
            primary: bare.map(Primary::of).collect(),
            lower,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_like_locale_compare() {
        // The output of `sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase()))` in Node 20.
        let expected = [
            " a", "_z", "-a", ",a", ";a", ":a", "!a", "?a", ".a", "'a", "(a", "[a", "{a", "@a", "*a", "\\a",
            "&a", "#a", "%a", "`a", "^a", "+a", "<a", "=a", ">a", "|a", "~a", "$a", "0a", "10", "9", "a",
            "ä", "a b", "a_b", "a-b", "a.b", "ab", "b", "e", "é", "f", "ñ", "st", "z", "Z", "я", "日",
        ];
        let mut names = expected;
        names.reverse();
        names.sort_by_key(|name| Key::of(name));
        let places = |list: &[&str]| list.iter().map(|name| name.to_lowercase()).collect::<Vec<_>>();
        assert_eq!(places(&names), places(&expected));
    }
}
