//! Permission dialogs of a session as `session/request_permission`, and the client's answer.

use serde_json::{Map, Value, json};
use wire::hosted::Frame;
use wire::ui::UiRequest;

use crate::content;

/// The options of a permission dialog in their order, with the id and kind that a client gets.
const CHOICES: [(&str, &str, &str); 3] = [
    ("Allow once", "allow-once", "allow_once"),
    ("Allow for this session", "allow-session", "allow_always"),
    ("Deny", "reject", "reject_once"),
];

/// Returns the parameters of the request. `call` is the tool call with its diffs, the dialog describes it in words.
pub(crate) fn params(session: &str, mut call: Map<String, Value>, dialog: &UiRequest) -> Value {
    let options: Vec<Value> = CHOICES
        .iter()
        .map(|(name, id, kind)| json!({"optionId": id, "name": name, "kind": kind}))
        .collect();
    let title = dialog.title.as_deref().unwrap_or("Allow the tool call?");
    let question = json!({"type": "content", "content": content::text(title)});
    match call.get("content") {
        // The diffs show what the words of the dialog describe.
        Some(Value::Array(content)) if !content.is_empty() => {}
        _ => drop(call.insert("content".to_owned(), json!([question]))),
    }
    call.insert("status".to_owned(), "pending".into());
    json!({"sessionId": session, "toolCall": call, "options": options})
}

/// Converts the client's answer. Everything but a known option denies the call.
pub(crate) fn answer(dialog: &str, result: Option<&Value>) -> Option<Frame> {
    let outcome = result.and_then(|result| result.get("outcome"));
    let selected =
        outcome.filter(|outcome| outcome.get("outcome").and_then(Value::as_str) == Some("selected"));
    let option = selected
        .and_then(|outcome| outcome.get("optionId"))
        .and_then(Value::as_str);
    let chosen = CHOICES.iter().find(|(_, id, _)| Some(*id) == option);
    match chosen {
        Some((name, ..)) => frame(&json!({"id": dialog, "value": name})),
        None => cancelled(dialog),
    }
}

/// Answers a dialog that no user sees: it returns its default.
pub(crate) fn cancelled(dialog: &str) -> Option<Frame> {
    frame(&json!({"id": dialog, "cancelled": true}))
}

/// Makes the answer to a dialog.
pub(crate) fn frame(answer: &Value) -> Option<Frame> {
    Frame::parse("extension_ui_response", &answer.to_string())
}
