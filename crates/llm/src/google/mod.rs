//! The Gemini API of Google (providers.md 6): requests in `request` and `messages`, what a model generation can do in
//! `generation`, answers in `stream`. The same API behind Google Cloud is in `vertex`, its token in `token`.

mod generation;
mod messages;
pub(crate) mod request;
mod schemas;
pub(crate) mod stream;
pub(crate) mod token;
pub(crate) mod vertex;

use auth::text::without_markup;
use serde_json::Value;

use crate::pattern::has_number;

/// The JSON body, as the provider's SDK shows it; the status leads where the body does not say it.
pub(crate) fn error_text(status: u16, body: &str) -> String {
    if body.is_empty() {
        return format!("{status} status code (no body)");
    }
    let Ok(json) = serde_json::from_str::<Value>(body) else {
        return format!("{status} {}", without_markup(body));
    };
    // Without the stream some servers answer with a list of one.
    let json = match json.as_array().map(Vec::as_slice) {
        Some([only]) => only.to_string(),
        _ => json.to_string(),
    };
    if has_number(&json, &status.to_string()) {
        json
    } else {
        format!("{status} {json}")
    }
}
