//! Which Claude models decide for themselves how long to think (providers.md 3), read from the model id.

/// First version with adaptive thinking.
const FIRST: (u32, u32) = (4, 6);

/// Model lines whose ids carry a version after the name, for example `claude-opus-4-6`.
const LINES: [&str; 3] = ["opus-", "sonnet-", "haiku-"];

/// Does the model take `thinking: {type: "adaptive"}` instead of a budget?
pub(crate) fn thinks_adaptively(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    LINES
        .iter()
        .filter_map(|line| id.split_once(line))
        .any(|(_, rest)| version(rest) >= Some(FIRST))
}

/// `4-6...`, `4.6...` or `5...`; a number of more than two digits is a date.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = number(text)?;
    let minor = rest
        .strip_prefix(['-', '.'])
        .and_then(number)
        .map_or(0, |(minor, _)| minor);
    Some((major, minor))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if digits > 2 {
        return None;
    }
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::thinks_adaptively;

    #[test]
    fn versions_decide_and_dates_do_not() {
        for id in [
            "claude-opus-4-6",
            "anthropic/claude-sonnet-4.6",
            "us.anthropic.claude-opus-4-7-v1",
            "claude-opus-5",
        ] {
            assert!(thinks_adaptively(id), "{id}");
        }
        for id in [
            "claude-opus-4-5",
            "claude-opus-4-20250514",
            "claude-3-5-sonnet-20241022",
            "claude-sonnet-4-5-20250929",
            "claude-mock",
            "kimi-k2",
        ] {
            assert!(!thinks_adaptively(id), "{id}");
        }
    }
}
