//! The normal form in which a model's copy of a text and the text itself are compared when they are not equal: what
//! fonts, editors and tokenisers change silently (pi-core.md 5.5).

use unicode_normalization::UnicodeNormalization as _;

use crate::path::is_unicode_space;

/// Normalises a text. The number of lines stays.
pub(crate) fn normalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        if line.is_ascii() {
            out.push_str(line.trim_end());
            continue;
        }
        let composed: String = line.nfkc().collect();
        let trimmed = composed.trim_end_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        out.extend(trimmed.chars().map(plain));
    }
    out
}

fn plain(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        c if is_unicode_space(c) => ' ',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzzy_normalisation_maps_lookalikes() {
        for (raw, normal) in [
            ("a  \nb\t\n", "a\nb\n"),
            ("\u{201c}q\u{201d} \u{2018}s\u{2019}", "\"q\" 's'"),
            ("a\u{2013}b\u{2212}c", "a-b-c"),
            ("a\u{a0}b\u{3000}", "a b"),
            ("\u{fb01}n e\u{301}", "fin \u{e9}"),
            ("\u{2026}", "..."),
        ] {
            assert_eq!(normalize(raw), normal);
        }
    }

    proptest::proptest! {
        #[test]
        fn fuzzy_normalisation_keeps_lines_and_is_idempotent(text in "\\PC{0,40}(\n\\PC{0,20}){0,3}") {
            let once = normalize(&text);
            assert_eq!(once.matches('\n').count(), text.matches('\n').count());
            assert_eq!(normalize(&once), once);
        }
    }
}
