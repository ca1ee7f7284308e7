//! The patterns of `overrides.json`: `*` stands for any run of characters, everything else for itself.

use serde_json::Value;

/// Returns true if one of the patterns matches.
pub(super) fn any(patterns: &[Value], text: &str) -> bool {
    patterns
        .iter()
        .filter_map(Value::as_str)
        .any(|pattern| glob(pattern, text))
}

fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, rest)) => text.strip_prefix(before).is_some_and(|tail| {
            let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            ends.into_iter()
                .any(|at| tail.get(at..).is_some_and(|tail| glob(rest, tail)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn model_glob_matches_any_text() {
        for (pattern, text, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcd", false),
            ("*", "", true),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }
}
