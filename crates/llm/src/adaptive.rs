//! Which Claude models decide for themselves how long to think: the flag `forceAdaptiveThinking` of Anthropic's models in the
//! built-in list. Models of `models.json` and models behind Bedrock have no such flag; their id or name tells which model of
//! the list they are.

/// The ids of Anthropic's models and whether they are marked. `xtask models` writes it with the built-in list, and a test of
/// `models` compares both: this crate does not know the list.
const LISTED: &str = include_str!("../data/adaptive_thinking.txt");

/// Returns true when the text names a model that the list marks. The longest id of the list that is part of the text counts;
/// dots are dashes, because some providers write `claude-opus-4.6`.
#[must_use]
pub fn thinks_adaptively(text: &str) -> bool {
    let text = text.to_ascii_lowercase().replace('.', "-");
    let named = listed().filter(|(id, _)| text.contains(id));
    named
        .max_by_key(|(id, _)| id.len())
        .is_some_and(|(_, adaptive)| adaptive)
}

fn listed() -> impl Iterator<Item = (&'static str, bool)> {
    LISTED
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(id, word)| (id, word == "adaptive"))
}

#[cfg(test)]
mod tests {
    use super::thinks_adaptively;

    #[test]
    fn adaptive_thinking_list_matches_ids_and_names() {
        for id in [
            "claude-opus-4-6",
            "anthropic/claude-sonnet-4.6",
            "us.anthropic.claude-opus-4-7-v1",
            "claude-opus-5",
            "claude-haiku-5-5",
            "global.anthropic.claude-fable-5-1",
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
            "",
        ] {
            assert!(!thinks_adaptively(id), "{id}");
        }
    }
}
