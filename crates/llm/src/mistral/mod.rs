//! Mistral's own dialect of chat completions (providers.md 7): requests in `request` and `messages`. Answers are
//! understood by `openai_completions`, which knows the differences.

mod messages;
pub(crate) mod request;

use auth::text::without_markup;

/// Status and body, as the provider's SDK shows them.
pub(crate) fn error_text(status: u16, body: &str) -> String {
    if body.is_empty() {
        return format!("{status} status code (no body)");
    }
    format!("Mistral API error ({status}): {}", without_markup(body))
}
