//! Dialogs of extensions, MCP servers and logins as `elicitation/create`, and the client's answer.

use serde_json::{Map, Value, json};
use wire::hosted::Frame;
use wire::ui::{UiMethod, UiRequest};

use crate::permission::{cancelled, frame};

/// Name of the one field that forms have.
const FIELD: &str = "value";

/// What a request of this kind is about: a session, or a request outside sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    Session(&'a str),
    Request(&'a Value),
}

impl Scope<'_> {
    fn member(self) -> (String, Value) {
        match self {
            Self::Session(id) => ("sessionId".to_owned(), id.into()),
            Self::Request(id) => ("requestId".to_owned(), id.clone()),
        }
    }
}

/// Returns the parameters of a form. `None` for a dialog that needs no answer.
pub(crate) fn form(dialog: &UiRequest, scope: Scope<'_>) -> Option<Value> {
    let title = dialog.title.as_deref().filter(|title| !title.is_empty());
    let title = title.unwrap_or("Answer");
    let field = match dialog.method {
        UiMethod::Select => Some(json!({"type": "string", "title": title, "enum": dialog.options})),
        UiMethod::Input => Some(json!({"type": "string", "title": title, "description": dialog.placeholder})),
        UiMethod::Editor => Some(json!({"type": "string", "title": title, "default": dialog.prefill})),
        // The user agrees by accepting the form, so it has no field.
        UiMethod::Confirm => None,
        _ => return None,
    };
    let texts = [dialog.title.as_deref(), dialog.message.as_deref()];
    let texts: Vec<&str> = texts
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect();
    let message = texts.join("\n\n");
    let schema = match field {
        Some(field) => json!({"type": "object", "properties": {FIELD: field}, "required": [FIELD]}),
        None => json!({"type": "object", "properties": {}}),
    };
    let mut params = Map::from_iter([scope.member()]);
    params.insert("mode".to_owned(), "form".into());
    let message = if message.is_empty() {
        "An answer is needed"
    } else {
        &message
    };
    params.insert("message".to_owned(), message.into());
    params.insert("requestedSchema".to_owned(), schema);
    Some(params.into())
}

/// Returns the parameters of a request to open a page. `None` if the dialog has no page.
pub(crate) fn page(dialog: &UiRequest, scope: Scope<'_>) -> Option<Value> {
    let url = dialog.url.as_deref()?;
    let message = dialog.instructions.as_deref().unwrap_or("Log in on this page");
    let mut params = Map::from_iter([scope.member()]);
    params.insert("mode".to_owned(), "url".into());
    params.insert("elicitationId".to_owned(), dialog.id.as_str().into());
    params.insert("url".to_owned(), url.into());
    params.insert("message".to_owned(), message.into());
    Some(params.into())
}

/// Converts the client's answer to a form. Everything but an answer that fits the dialog cancels it.
pub(crate) fn answer(dialog: &UiRequest, result: Option<&Value>) -> Option<Frame> {
    let action = result.and_then(|result| result.get("action")?.as_str());
    let id = dialog.id.as_str();
    if dialog.method == UiMethod::Confirm {
        return match action {
            Some("accept") => frame(&json!({"id": id, "confirmed": true})),
            Some("decline") => frame(&json!({"id": id, "confirmed": false})),
            _ => cancelled(id),
        };
    }
    let value = result.filter(|_| action == Some("accept"));
    let value = value.and_then(|result| result.pointer("/content/value")?.as_str());
    let is_offered = |value: &&str| match (&dialog.options, dialog.method) {
        (Some(options), UiMethod::Select) => options.iter().any(|option| option.label == **value),
        _ => true,
    };
    match value.filter(is_offered) {
        Some(value) => frame(&json!({"id": id, FIELD: value})),
        None => cancelled(id),
    }
}
