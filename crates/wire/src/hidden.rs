//! Characters that a reader cannot see. They hide part of a command in a question, or of a description that a model reads.
//!
//! Which characters are hidden follows Unicode's general categories, as the standard library knows them for `Debug`.

/// True for a character that shows nothing or changes how its neighbours look: controls, format characters, blanks other than
/// U+0020, unassigned and private characters, fillers, variation selectors, marks that strike letters out.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    match letter {
        ' '..='~' | '\n' | '\t' => false,
        // Letters, marks and symbols by their category, but nothing or a blank to the eye.
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => true,
        '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fffc}' | '\u{fffd}' => true,
        '\u{16fe4}' | '\u{1d159}' | '\u{e0000}'..='\u{e0fff}' => true,
        // They cross letters out or enclose them.
        '\u{334}'..='\u{338}' | '\u{488}' | '\u{489}' | '\u{20d2}' | '\u{20d3}' => true,
        '\u{20d8}'..='\u{20da}'
        | '\u{20dd}'..='\u{20e0}'
        | '\u{20e2}'..='\u{20e6}'
        | '\u{20ea}'
        | '\u{20eb}' => true,
        _ => is_escaped(letter) && !is_mark(letter),
    }
}

/// `Debug` escapes marks and what has no picture: the categories Cc, Cf, Cn, Co, Cs, Zl, Zp and Zs.
fn is_escaped(letter: char) -> bool {
    letter.escape_debug().next() == Some('\\')
}

/// True for a mark that joins the letter before it. After a letter, `Debug` shows it as it is.
#[must_use]
pub fn is_mark(letter: char) -> bool {
    !letter.is_ascii()
        && is_escaped(letter)
        && String::from_iter(['x', letter]).escape_debug().nth(1) == Some(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_recognised() {
        for range in [
            '\u{0}'..='\u{8}',
            '\u{b}'..='\u{1f}',
            '\u{7f}'..='\u{a0}',
            '\u{200b}'..='\u{200f}',
            '\u{2028}'..='\u{202f}',
            '\u{2060}'..='\u{206f}',
            '\u{2000}'..='\u{200a}',
            '\u{fe00}'..='\u{fe0f}',
            '\u{fff0}'..='\u{fffb}',
            '\u{e0000}'..='\u{e01ef}',
            '\u{f0000}'..='\u{f00ff}',
        ] {
            for letter in range {
                assert!(is_hidden(letter), "{letter:?}");
            }
        }
        for letter in "aZ09~ \n\tßéнع日한अ€→😀\u{301}\u{94d}".chars() {
            assert!(!is_hidden(letter), "{letter:?}");
        }
    }
}
