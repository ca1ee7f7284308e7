//! Names of tools as users write them, with `*` for any letters.

/// Returns true if a pattern, in which `*` stands for any letters, matches the name.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(head) else {
        return false;
    };
    // Tries each way to split the rest. Names are short, so the cost stays small.
    name.char_indices()
        .map(|(at, _)| at)
        .chain([name.len()])
        .any(|at| name.get(at..).is_some_and(|tail| fits(rest, tail)))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn tool_pattern_star_matches_any_letters() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "read"),
            ("re*", "read"),
            ("*a*", "read"),
            ("r*d", "read"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "read"),
            ("rea", "read"),
            ("*x*", "read"),
            ("r*e", "read"),
            ("read*s", "read"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
