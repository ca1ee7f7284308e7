//! Facts of a failed answer that clients of today's oh-my-pi read from members of their own: the HTTP status, and whether a later attempt
//! may succeed (dialects.md 14).

use serde_json::{Deserializer, Value};
use wire::AssistantMessage;
use wire::message::StopReason;

/// The HTTP status of the response that made the answer fail; none if there was no response or it was a success.
pub(super) fn http_status(answer: &AssistantMessage) -> Option<u16> {
    if answer.stop_reason != StopReason::Error {
        return None;
    }
    let text = answer.error_message.as_deref()?;
    // Texts of most API families begin with the status. Google has an error object, Mistral a sentence; Bedrock names the exception
    // instead, and the limits of a Codex plan have a sentence without a status.
    let number = match text.strip_prefix("Mistral API error (") {
        Some(rest) => rest.split_once(')')?.0.parse().ok()?,
        None if text.starts_with('{') => google_status(text)?,
        None => text.split(' ').next()?.parse().ok()?,
    };
    (400..600).contains(&number).then_some(number)
}

/// The status in an error object of Google. A hint to the user may follow the object.
fn google_status(text: &str) -> Option<u16> {
    let error: Value = Deserializer::from_str(text).into_iter().next()?.ok()?;
    u16::try_from(error.pointer("/error/code")?.as_u64()?).ok()
}

/// Whether the same request may succeed later. A conversation that does not fit never will.
pub(super) fn may_pass(answer: &AssistantMessage) -> bool {
    !session::is_context_overflow(answer, 0)
        && answer.error_message.as_deref().is_some_and(session::is_retryable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> Option<u16> {
        http_status(&AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text.to_owned()),
            ..AssistantMessage::begin("api", "p", "m", 0)
        })
    }

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

    #[test]
    fn status_is_read_from_error_texts() {
        for (text, expected) in [
            ("401 {\"type\":\"error\"}", Some(401)),
            ("503 status code (no body)", Some(503)),
            ("429 Too fast", Some(429)),
            (
                "{\"error\":{\"code\":503,\"message\":\"Busy\"}}\nA hint",
                Some(503),
            ),
            ("Mistral API error (422): wrong", Some(422)),
            ("200 answers were expected", None),
            ("Overloaded", None),
            ("{\"error\":{\"code\":\"busy\"}}", None),
            ("", None),
        ] {
            assert_eq!(status(text), expected, "{text}");
        }
    }
}
