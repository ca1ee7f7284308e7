//! Matching error texts against short patterns, without regular expressions: `#` stands for one or more digits (with `,`
//! and `.` between them), `*` for up to [`GAP`] characters, `?` for at most one. A pattern that begins with `<` matches at the beginning of
//! a word only.

/// Longest text that `*` stands for, in bytes.
const GAP: usize = 200;

/// Returns true if the pattern occurs in the text. Both must be lower case.
pub(crate) fn matches(text: &str, pattern: &str) -> bool {
    let bytes = text.as_bytes();
    let begun = pattern.strip_prefix('<');
    let pattern = begun.unwrap_or(pattern).as_bytes();
    let is_inside = |at: usize| {
        let before = bytes.get(..at).and_then(<[u8]>::last);
        before.is_some_and(u8::is_ascii_alphanumeric)
    };
    (0..bytes.len())
        .filter(|at| begun.is_none() || !is_inside(*at))
        .any(|at| bytes.get(at..).is_some_and(|rest| matches_here(rest, pattern)))
}

/// Returns true if the pattern matches at the beginning of the text. Recursion is as deep as the pattern is long.
fn matches_here(text: &[u8], pattern: &[u8]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return true;
    };
    match first {
        b'#' => {
            let digits = text
                .iter()
                .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'.'))
                .count();
            text.first().is_some_and(u8::is_ascii_digit)
                && (1..=digits)
                    .rev()
                    .any(|taken| matches_here(text.get(taken..).unwrap_or_default(), rest))
        }
        b'*' => {
            (0..=text.len().min(GAP)).any(|taken| matches_here(text.get(taken..).unwrap_or_default(), rest))
        }
        b'?' => {
            matches_here(text, rest)
                || text
                    .split_first()
                    .is_some_and(|(_, text)| matches_here(text, rest))
        }
        byte => text
            .split_first()
            .is_some_and(|(found, text)| found == byte && matches_here(text, rest)),
    }
}

/// Returns true if the text contains the number with no letter or digit on either side.
pub(crate) fn has_number(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text
            .get(at + number.len()..)
            .and_then(|after| after.chars().next());
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
}
