//! Tool-call ids as each family takes them (providers.md 2.2), and a stable hash for those that must be short.

use crate::limits::{ANTHROPIC_ID_LEN, COMPLETIONS_ID_LEN};

/// Anthropic and Bedrock: letters, digits, `_` and `-`, at most 64.
pub(crate) fn anthropic(id: &str) -> String {
    clean(id, ANTHROPIC_ID_LEN)
}

/// Chat completions: the call part of an id `call|item`, same characters, at most 40.
pub(crate) fn completions(id: &str) -> String {
    clean(id.split('|').next().unwrap_or(id), COMPLETIONS_ID_LEN)
}

/// Replaces what is not allowed. An id that is too long keeps its beginning and ends in a hash of the whole, so that two
/// long ids with the same beginning stay two.
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

/// FNV-1a, 64 bits, in hexadecimal: stable across runs and versions.
pub(crate) fn short_hash(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_each_family_and_stay_distinct() {
        assert_eq!(anthropic("call_77|fc_item_1"), "call_77_fc_item_1");
        assert_eq!(completions("call_77|fc_item_1"), "call_77");
        let long = |end| format!("{}{end}", "x".repeat(90));
        assert_eq!(anthropic(&long("a")).len(), 64);
        assert_eq!(completions(&long("a")).len(), 40);
        assert_ne!(completions(&long("a")), completions(&long("b")));
        assert_eq!(anthropic("käse"), "k_se");
    }
}
