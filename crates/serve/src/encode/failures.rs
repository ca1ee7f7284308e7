//! Whether a later attempt may succeed, which clients of today's oh-my-pi read from a member of its own (dialects.md 14).

use wire::AssistantMessage;

/// Whether the same request may succeed later. A conversation that does not fit never will.
pub(super) fn may_pass(answer: &AssistantMessage) -> bool {
    !session::is_context_overflow(answer, 0)
        && answer.error_message.as_deref().is_some_and(session::is_retryable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::StopReason;

    #[test]
    fn conversation_that_does_not_fit_never_passes() {
        let failed = |text: &str| AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text.to_owned()),
            ..AssistantMessage::begin("api", "p", "m", 0)
        };
        assert!(may_pass(&failed("500 Internal error")));
        let overflow = "500 the request exceeds the available context size";
        assert!(!may_pass(&failed(overflow)));
    }
}
