//! Texts that fit patterns with `*` for any letters. Takes time in proportion to pattern times text at worst: the texts come
//! from a model.

/// Returns true if the text fits. `*` stands for any number of letters, blanks and slashes; everything else for itself.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where the newest star is, and what it covers so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(letter) if text.get(t) == Some(letter) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, covered)) => {
                    star = Some((at, covered + 1));
                    (p, t) = (at + 1, covered + 1);
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .is_some_and(|rest| rest.iter().all(|letter| *letter == b'*'))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn wildcard_matches_any_text() {
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("*", "a b/c"),
            ("git *", "git log -p"),
            ("*log*", "git log -p"),
            ("a*b*c", "a__b__b_c"),
            ("**", "x"),
            ("ü*", "üb"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("git", "git log"),
            ("git *", "git"),
            ("*log", "git log -p"),
            ("a*b*c", "a__c__b"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
