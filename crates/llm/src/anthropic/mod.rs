//! The Anthropic Messages API (providers.md 3): requests in `request` and `messages`, answers in `stream`, conversations that the provider
//! keeps in `threads`.

mod fallbacks;
mod messages;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod threads;
mod tools;

use auth::text::without_markup;
use serde_json::Value;

/// `<status> <message or JSON body>`; a body that is no JSON is shown as text.
pub(crate) fn error_text(status: u16, body: &str) -> String {
    if body.is_empty() {
        return format!("{status} status code (no body)");
    }
    match serde_json::from_str::<Value>(body) {
        Ok(json) => match json.get("message").and_then(Value::as_str) {
            Some(message) => format!("{status} {message}"),
            None => format!("{status} {json}"),
        },
        Err(_) => format!("{status} {}", without_markup(body)),
    }
}
