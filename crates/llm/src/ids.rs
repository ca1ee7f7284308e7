//! Tool-call ids as each family takes them (providers.md 2.2), and a stable hash for ids that are too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wire::{AssistantMessage, Model};

use crate::limits::{
    ANTHROPIC_ID_LEN, COMPLETIONS_ID_LEN, MISTRAL_ID_LEN, PROMPT_CACHE_KEY_LEN, RESPONSES_ID_LEN,
};

/// Numbers the ids of calls that a provider sends without one, through all answers of a client, as pi does for its process. Clones
/// share the number.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallNumbers(Arc<AtomicU64>);

impl CallNumbers {
    /// The next number, from 1.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Anthropic and Bedrock: letters, digits, `_` and `-`, at most 64.
pub(crate) fn anthropic(id: &str) -> String {
    clean(id, ANTHROPIC_ID_LEN)
}

/// Chat completions: the call part of an id `call|item`, same characters, at most 40.
pub(crate) fn completions(id: &str) -> String {
    clean(id.split('|').next().unwrap_or(id), COMPLETIONS_ID_LEN)
}

/// Responses API: ids are `call|item`, and the item part must look like one of the API's own. Servers that are not known
/// to take such pairs get one cleaned id.
pub(crate) fn responses(id: &str, from: &AssistantMessage, target: &Model) -> String {
    let part = |part: &str| clean(part, RESPONSES_ID_LEN).trim_end_matches('_').to_owned();
    let takes_pairs = [
        "openai",
        "openai-codex",
        "opencode",
        "azure",
        "azure-openai-responses",
    ];
    let pair = id
        .split_once('|')
        .filter(|_| takes_pairs.contains(&target.provider.as_str()));
    let Some((call, item)) = pair else {
        return part(id);
    };
    let at_home = from.provider == target.provider && from.api == target.api;
    let item = match part(item) {
        item if at_home && item.starts_with("fc_") => item,
        item if at_home => part(&format!("fc_{item}")),
        _ => format!("fc_{}", short_hash(item)),
    };
    format!("{}|{item}", part(call))
}

/// The id of a session as OpenAI's APIs take it as a cache key: cut off.
pub(crate) fn cache_key(session: &str) -> &str {
    let end = session.char_indices().nth(PROMPT_CACHE_KEY_LEN);
    end.and_then(|(end, _)| session.get(..end)).unwrap_or(session)
}

/// Converts an id for Google: unchanged, except for models that see the ids.
pub(crate) fn google(id: &str, target: &Model) -> String {
    if google_sends_ids(&target.id) {
        anthropic(id)
    } else {
        id.to_owned()
    }
}

/// Models behind Google's API that want to see the ids of calls.
pub(crate) fn google_sends_ids(model: &str) -> bool {
    let is_guest = |guest: &&str| model.starts_with(*guest);
    ["claude-", "gpt-oss-"].iter().any(is_guest) || gemini_major(model).is_some_and(|major| major >= 3)
}

/// Major version of a Gemini model; none for other models and for names without one.
pub(crate) fn gemini_major(id: &str) -> Option<u32> {
    let id = id.to_ascii_lowercase();
    let (_, rest) = id.split_once("gemini-")?;
    let rest = rest.strip_prefix("live-").unwrap_or(rest);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..digits)?.parse().ok()
}

/// Mistral: nine letters and digits. Any other id becomes a hash; of 46 bits, so that two calls of a conversation do not meet.
pub(crate) fn mistral(id: &str) -> String {
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    if plain.len() == MISTRAL_ID_LEN {
        return plain;
    }
    let mut rest = fnv(id);
    let digit = |_| {
        let digit = u32::try_from(rest % 36).unwrap_or_default();
        rest /= 36;
        char::from_digit(digit, 36).unwrap_or('0')
    };
    (0..MISTRAL_ID_LEN).map(digit).collect()
}

/// Replaces characters that are not allowed. An id that is too long keeps its beginning and ends in a hash of the
/// whole, so that two long ids with the same beginning stay different.
fn clean(id: &str, max: usize) -> String {
    let plain: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
                c
            } else {
                '_'
            }
        })
        .collect();
    if plain.len() <= max {
        return plain;
    }
    let hash = short_hash(id);
    let room = max.saturating_sub(hash.len() + 1);
    format!("{}_{hash}", plain.get(..room).unwrap_or_default())
}

/// A hash in hexadecimal: stable across runs and versions.
pub(crate) fn short_hash(text: &str) -> String {
    format!("{:016x}", fnv(text))
}

/// FNV-1a, 64 bits.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_fit_each_family_and_stay_distinct() {
        assert_eq!(anthropic("call_77|fc_item_1"), "call_77_fc_item_1");
        assert_eq!(completions("call_77|fc_item_1"), "call_77");
        let long = |end| format!("{}{end}", "x".repeat(90));
        assert_eq!(anthropic(&long("a")).len(), 64);
        assert_eq!(completions(&long("a")).len(), 40);
        assert_ne!(completions(&long("a")), completions(&long("b")));
        assert_eq!(anthropic("käse"), "k_se");
    }

    fn target(provider: &str, id: &str) -> Model {
        let json = serde_json::json!({"id": id, "name": id, "api": "a", "provider": provider});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn paired_ids_are_kept_only_for_same_provider() {
        let openai = target("openai", "m");
        let at_home = AssistantMessage::begin("a", "openai", "other", 0);
        let abroad = AssistantMessage::begin("a", "copilot", "m", 0);
        assert_eq!(responses("c!1|fc_2", &at_home, &openai), "c_1|fc_2");
        assert_eq!(responses("c1|item", &at_home, &openai), "c1|fc_item");
        let hashed = responses("c1|fc_2", &abroad, &openai);
        assert!(hashed.starts_with("c1|fc_") && hashed != "c1|fc_2", "{hashed}");
        assert_eq!(responses("toolu_1", &abroad, &openai), "toolu_1");
        assert_eq!(
            responses("call_1|fc_abc", &at_home, &target("github-copilot", "m")),
            "call_1_fc_abc"
        );
        let long = responses(&format!("c|{}", "x".repeat(90)), &at_home, &openai);
        assert!(long.len() <= 66, "{long}");
    }

    #[test]
    fn mistral_call_ids_have_nine_characters() {
        assert_eq!(mistral("abcDEF123"), "abcDEF123");
        let hashed = mistral("toolu_01");
        assert!(hashed.len() == 9 && hashed.chars().all(|c| c.is_ascii_alphanumeric()));
        assert_ne!(hashed, mistral("toolu_02"));
        assert_eq!(hashed, mistral("toolu_01"));
    }

    #[test]
    fn google_changes_ids_only_for_other_models() {
        assert_eq!(google("a|b", &target("google", "gemini-2.5-pro")), "a|b");
        for sees in ["claude-x", "gemini-3-flash", "gemini-4-argon"] {
            assert_eq!(google("a|b", &target("google", sees)), "a_b", "{sees}");
            assert!(google_sends_ids(sees), "{sees}");
        }
        assert!(!google_sends_ids("gemini-2.5-pro") && !google_sends_ids("gemini-flash-latest"));
    }

    #[test]
    fn long_session_id_is_cut_for_cache_key() {
        let long = "é".repeat(90);
        assert_eq!(cache_key(&long).chars().count(), 64);
        assert_eq!(cache_key("sid"), "sid");
    }
}
