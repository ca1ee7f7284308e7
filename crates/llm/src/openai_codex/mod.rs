//! The Responses API as ChatGPT's subscriptions reach it (providers.md 5): requests in `request`, refusals here. The
//! conversation and the stream are those of `openai_responses`; tokens come from `login`. Only SSE is spoken, not the
//! WebSocket form.

pub(crate) mod request;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::openai_completions;

/// The API family of these models.
pub(crate) const API: &str = "openai-codex-responses";

/// Errors that mean that the plan is used up, or has no part in this.
const USED_UP: [&str; 2] = ["usage_limit_reached", "usage_not_included"];

/// Returns the text of an HTTP error. An exhausted plan gets a sentence that says when to try again. The words "usage
/// limit" prevent a retry.
pub(crate) fn error_text(status: u16, body: &str) -> String {
    error_text_at(status, body, now())
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn error_text_at(status: u16, body: &str, now: Duration) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let error = json.get("error").unwrap_or(&Value::Null);
    let word = |name: &str| error.get(name).and_then(Value::as_str);
    let code = word("code").or_else(|| word("type")).unwrap_or_default();
    // Any other 429 passes by itself and keeps its status, so that it is tried again.
    let by_plan = status == 429 && (error.get("resets_at").is_some() || error.get("plan_type").is_some());
    if USED_UP.contains(&code) || by_plan {
        return used_up(error, now);
    }
    // This server also speaks in the way of other frameworks.
    match json.get("detail").and_then(Value::as_str) {
        Some(detail) => format!("{status} {detail}"),
        None => openai_completions::error_text(status, body),
    }
}

/// `You have hit your ChatGPT usage limit (plus plan). Try again in ~42 min.`
fn used_up(error: &Value, now: Duration) -> String {
    let mut text = "You have hit your ChatGPT usage limit".to_owned();
    if let Some(plan) = error.get("plan_type").and_then(Value::as_str) {
        text.push_str(&format!(" ({} plan)", plan.to_lowercase()));
    }
    text.push('.');
    let ends = error.get("resets_at").and_then(Value::as_f64);
    let wait = ends
        .map(|ends| ends - now.as_secs_f64())
        .or_else(|| error.get("resets_in_seconds").and_then(Value::as_f64));
    if let Some(seconds) = wait {
        text.push_str(&format!(
            " Try again in ~{:.0} min.",
            (seconds / 60.0).max(0.0).round()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhausted_plan_is_reported_in_minutes_without_retry() {
        let table = [
            (
                429,
                r#"{"error":{"type":"usage_limit_reached","plan_type":"Plus","resets_at":31000}}"#,
                "You have hit your ChatGPT usage limit (plus plan). Try again in ~500 min.",
            ),
            (
                403,
                r#"{"error":{"code":"usage_not_included"}}"#,
                "You have hit your ChatGPT usage limit.",
            ),
            (
                429,
                r#"{"error":{"message":"m","plan_type":"pro","resets_in_seconds":90}}"#,
                "You have hit your ChatGPT usage limit (pro plan). Try again in ~2 min.",
            ),
            (
                429,
                r#"{"error":{"code":"usage_limit_reached","resets_at":5}}"#,
                "You have hit your ChatGPT usage limit. Try again in ~0 min.",
            ),
        ];
        for (status, body, wanted) in table {
            let text = error_text_at(status, body, Duration::from_secs(1000));
            assert_eq!(text, wanted);
            assert!(!crate::is_retryable(&text), "{text}");
        }
    }

    #[test]
    fn codex_refusals_keep_their_text() {
        assert_eq!(
            error_text(400, r#"{"detail":"Unsupported model"}"#),
            "400 Unsupported model"
        );
        assert_eq!(error_text(400, r#"{"error":{"message":"bad"}}"#), "400 bad");
        let busy = error_text(
            429,
            r#"{"error":{"code":"rate_limit_exceeded","message":"slow down"}}"#,
        );
        assert!(crate::is_retryable(&busy), "{busy}");
    }
}
