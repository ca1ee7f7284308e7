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
    for candidate in candidates.into_iter().filter(|candidate| candidate.len() <= MOST) {
        let lower = candidate.to_lowercase();
        let allowed = (length.max(lower.chars().count()) / 3).max(1);
        let distance = if length >= 4 && lower.starts_with(&typed) {
            1
        } else {
            strsim::osa_distance(&typed, &lower)
        };
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn option_suggestions_need_close_names() {
        let names = ["sandbox", "sandbox-network", "tools", "no-tools", "help"];
        assert_eq!(nearest("sandbx", names), Some("sandbox"));
        assert_eq!(nearest("Tools", names), Some("tools"));
        assert_eq!(nearest("sandbox-net", names), Some("sandbox-network"));
        for far in ["x", "hello", "colour", "", &"t".repeat(500)] {
            assert_eq!(nearest(far, names), None, "{far}");
        }
    }
}
