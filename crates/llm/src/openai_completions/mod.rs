//! Chat completions, the API of OpenAI and of most others (providers.md 4): what a server can do in `dialect`, requests in
//! `request` and `messages`, answers in `stream`.

mod chunk;
mod details;
mod dialect;
mod messages;
mod reasoning;
pub(crate) mod request;
pub(crate) mod stream;

use auth::text::without_markup;
use serde_json::Value;
use wire::Model;

/// Returns true if the server takes the level as `reasoning_effort`, as OpenAI does.
pub(crate) fn takes_efforts(model: &Model) -> bool {
    let dialect = dialect::Dialect::of(model);
    dialect.reasoning_effort && matches!(dialect.thinking, dialect::ThinkingFormat::OpenAi)
}

/// `<status> <error.message>`; other JSON as it is, web pages in a few words.
pub(crate) fn error_text(status: u16, body: &str) -> String {
    if body.is_empty() {
        return format!("{status} status code (no body)");
    }
    let Ok(json) = serde_json::from_str::<Value>(body) else {
        return format!("{status} {}", without_markup(body));
    };
    format!("{status} {}", error_message(&json))
}

/// The error object of a body; none if the body has no such object.
pub(crate) fn error_object(body: &str) -> Option<Value> {
    let mut json: Value = serde_json::from_str(body).ok()?;
    let error = json.get_mut("error").map(Value::take)?;
    let is_filled = error.as_object().is_some_and(|members| !members.is_empty());
    is_filled.then_some(error)
}

/// `<status>: <error object>`, with the upstream's own words where a router passes them on and the object does not show them.
pub(crate) fn error_object_text(status: u16, body: &str) -> Option<String> {
    let error = error_object(body)?;
    let text = format!("{status}: {error}");
    let raw = match error.pointer("/metadata/raw") {
        Some(Value::String(raw)) => raw.clone(),
        Some(raw) if !raw.is_null() => raw.to_string(),
        _ => return Some(text),
    };
    Some(if text.contains(&raw) {
        text
    } else {
        format!("{text}\n{raw}")
    })
}

/// What an error object says: `error.message`, with the upstream's own words where a router passes them on.
pub(crate) fn error_message(json: &Value) -> String {
    let error = json.get("error").unwrap_or(json);
    // As the SDK: without a message the whole object is shown, because its code decides whether the run is tried again.
    let message = error
        .get("message")
        .filter(|message| !message.is_null() && message.as_str() != Some(""));
    let message = match message.unwrap_or(error) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match error.pointer("/metadata/raw") {
        Some(Value::String(raw)) => format!("{message}\n{raw}"),
        Some(raw) if !raw.is_null() => format!("{message}\n{raw}"),
        _ => message,
    }
}
