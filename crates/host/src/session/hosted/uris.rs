//! URIs of the host: what `read` and `write` make of its answers, and what the model is told of the schemes.

use serde_json::{Map, Value, json};
use tools::{ToolOutcome, Toolbox};
use wire::hosted::{HostUriResult, HostUriScheme, UriOperation};
use wire::{ToolResult, UserBlock};

use crate::strings;

/// A rule for the system prompt.
pub(super) fn rule(scheme: &HostUriScheme) -> String {
    let HostUriScheme {
        scheme: name,
        description,
        writable,
        ..
    } = scheme;
    let what = description.as_deref().unwrap_or("served by the host application");
    let how = if *writable { "read and write" } else { "read" };
    format!("Use {how} with URIs that begin with {name}:// as with files: {what}.")
}

/// What the tool says.
pub(super) fn outcome(
    operation: UriOperation,
    url: &str,
    mut args: Map<String, Value>,
    immutable: bool,
    frame: HostUriResult,
) -> ToolOutcome {
    let content = match frame.content {
        Value::String(text) => Some(text),
        _ => None,
    };
    if frame.is_error {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let error = filled(frame.error).or(filled(content));
        return ToolOutcome::error(error.unwrap_or_else(|| strings::host_uri_failed(operation, url)));
    }
    if operation == UriOperation::Write {
        let written = args.get("content").and_then(Value::as_str).unwrap_or_default();
        // In UTF-16 units, as `write` counts.
        let units = written.encode_utf16().count();
        let text = content.unwrap_or_else(|| format!("Successfully wrote {units} bytes to {url}"));
        return ToolOutcome::ok(ToolResult::text(text));
    }
    args.insert("path".to_owned(), Value::from(url));
    let mut outcome = Toolbox::read_text(args, &content.unwrap_or_default());
    if !outcome.is_error {
        if let Some(UserBlock::Text(block)) = outcome.result.content.last_mut() {
            for note in &frame.notes {
                block.text.push_str(&format!("\n\n[{note}]"));
            }
        }
        let mut details = json!({
            "url": url,
            "contentType": frame.content_type.as_deref().unwrap_or("text/plain"),
            "immutable": frame.immutable.unwrap_or(immutable),
        });
        if let (Some(Value::Object(more)), Some(details)) =
            (outcome.result.details.take(), details.as_object_mut())
        {
            details.extend(more);
        }
        outcome.result.details = Some(details);
    }
    outcome
}
