//! How much of the context window is left for an answer. Providers reject a request whose prompt and output limit together exceed
//! the window, so a session lowers the limit to the rest (pi-1.5-delta.md 5). How messages are estimated is in `estimate`.

use std::sync::Arc;

use wire::Message;

use crate::estimate::{Used, text_tokens, weight};
use crate::limits::{ROOM_KEPT, ROOM_MARGIN, ROOM_MARGIN_PART, ROOM_MARGIN_PERCENT};

/// The rest of a context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Tokens that an answer may take. 0 if the context fills the window.
    pub tokens: u64,
    /// True if the provider has counted the context, but for the messages after its last answer.
    pub is_counted: bool,
}

/// Returns the room that these messages leave for an answer. The newest compaction kept the first `kept` of them: their answers
/// state the size of the context before it. `prompt` returns the rest of the request.
#[must_use]
pub fn room(messages: &[Arc<Message>], kept: usize, window: u64, prompt: impl FnOnce() -> String) -> Room {
    // There can be fewer messages than were kept: `kept` was counted before answers that failed left the conversation.
    let (old, new) = messages.split_at_checked(kept).unwrap_or((messages, &[]));
    let (used, is_counted) = match Used::by(new.iter().rev()) {
        Used::Reported(tokens) => (tokens, true),
        Used::Estimated(tokens) => {
            let old: u64 = old.iter().map(|message| weight(message)).sum();
            // Only here: if the provider has counted the context, the prompt is not built.
            let prompt = text_tokens(&prompt());
            (tokens.saturating_add(old).saturating_add(prompt), false)
        }
    };
    let rest = |margin: u64| window.saturating_sub(used.saturating_add(margin));
    let least_margin = ROOM_MARGIN.min(window / ROOM_MARGIN_PART);
    // Divided first: `used` may have saturated, and the product would overflow.
    let careful = rest(least_margin.max(used / 100 * ROOM_MARGIN_PERCENT));
    // The large margin is for providers that count more tokens than were reported. It must not take what an answer needs.
    let tokens = match careful < ROOM_KEPT {
        true => rest(least_margin).min(ROOM_KEPT),
        false => careful,
    };
    Room { tokens, is_counted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn user(chars: usize) -> Arc<Message> {
        Arc::new(Message::user("x".repeat(chars), 1))
    }

    /// An answer that reported this many tokens of context.
    fn answer(tokens: u64) -> Arc<Message> {
        let message = json!({"role": "assistant", "content": [], "stopReason": "stop",
            "usage": {"input": tokens, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens}});
        Arc::new(serde_json::from_value(message).unwrap())
    }

    fn tokens(messages: &[Arc<Message>], window: u64) -> u64 {
        room(messages, 0, window, String::new).tokens
    }

    #[test]
    fn room_is_window_without_context_and_margin() {
        assert_eq!(tokens(&[user(400)], 200_000), 200_000 - 100 - 4_096);
        // 15 % of the context is more than the fixed margin.
        assert_eq!(tokens(&[answer(100_000)], 200_000), 85_000);
        // A small window has a small margin.
        assert_eq!(tokens(&[user(4_000)], 8_000), 8_000 - 1_000 - 1_000);
    }

    #[test]
    fn nearly_full_window_keeps_the_fixed_margin_only() {
        assert_eq!(tokens(&[answer(150_000)], 200_000), 32_768);
        assert_eq!(tokens(&[answer(180_000)], 200_000), 20_000 - 4_096);
        assert_eq!(tokens(&[answer(199_000)], 200_000), 0);
        assert_eq!(tokens(&[answer(300_000)], 200_000), 0);
    }

    #[test]
    fn reported_tokens_count_with_an_estimate_of_the_rest() {
        let messages = [user(4_000), answer(50_000), user(4_000)];
        let counted = room(&messages, 0, 60_000, || panic!("the prompt is part of the count"));
        let tokens = 60_000 - 51_000 - 4_096;
        assert_eq!(
            counted,
            Room {
                tokens,
                is_counted: true
            }
        );
    }

    #[test]
    fn answers_before_a_compaction_report_nothing() {
        let messages = [user(4_000), answer(50_000), user(4_000)];
        let after = |kept| room(&messages, kept, 60_000, || "fourmore".to_owned());
        let tokens = 60_000 - 2_002 - 4_096;
        let estimated = Room {
            tokens,
            is_counted: false,
        };
        assert_eq!(after(2), estimated);
        assert_eq!(after(9), estimated, "fewer messages than were kept");
    }
}
