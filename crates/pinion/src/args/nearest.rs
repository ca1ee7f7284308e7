//! Finds the known name that a mistyped one most likely means.

/// Longest name that is compared. Longer ones match nothing.
const MOST: usize = 64;

/// Returns the candidate closest to `typed`, if it is close: at most a third of the letters differ, or `typed` is the
/// beginning of the candidate.
pub(crate) fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let length = typed.chars().count();
    if length > MOST {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let lower = candidate.to_lowercase();
        let allowed = (length.max(lower.chars().count()) / 3).max(1);
        let distance = if length >= 4 && lower.starts_with(&typed) {
            1
        } else {
            distance(&typed, &lower)
        };
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The number of letters to insert, delete, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if b.len() > MOST {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, right) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, j) + usize::from(left != right);
            let mut least = replaced.min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let is_swap = i > 0 && j > 0 && a.get(i - 1) == Some(right) && b.get(j - 1) == Some(left);
            if is_swap {
                least = least.min(at(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("ab", "ba", 1),
            ("docter", "doctor", 1),
            ("modles", "models", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn only_close_names_are_found() {
        let names = ["sandbox", "sandbox-network", "tools", "no-tools", "help"];
        assert_eq!(nearest("sandbx", names), Some("sandbox"));
        assert_eq!(nearest("Tools", names), Some("tools"));
        assert_eq!(nearest("sandbox-net", names), Some("sandbox-network"));
        for far in ["x", "hello", "colour", "", &"t".repeat(500)] {
            assert_eq!(nearest(far, names), None, "{far}");
        }
    }
}
