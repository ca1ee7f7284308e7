//! The fields that ask for reasoning, in the half dozen forms that servers want (providers.md 4).

use serde_json::{Map, Value, json};
use wire::ThinkingLevel;

use super::dialect::{Dialect, ThinkingFormat};
use crate::request::ModelRequest;

/// Adds the fields to a request body.
pub(super) fn write(request: &ModelRequest, dialect: &Dialect, body: &mut Map<String, Value>) {
    let model = &request.model;
    if !model.reasoning {
        return;
    }
    let level = model.clamp_thinking(request.thinking);
    let on = level != ThinkingLevel::Off;
    let effort = model.mapped_thinking(level).unwrap_or(level.as_str());
    let off = model.thinking_level_map.as_ref().and_then(|map| map.get("off"));
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    match dialect.thinking {
        ThinkingFormat::OpenAi => match (on, off.and_then(Value::as_str)) {
            (true, _) if dialect.reasoning_effort => set("reasoning_effort", json!(effort)),
            (false, Some(word)) if dialect.reasoning_effort => set("reasoning_effort", json!(word)),
            _ => {}
        },
        ThinkingFormat::OpenRouter => {
            if on {
                set("reasoning", json!({"effort": effort}));
            } else if !off.is_some_and(Value::is_null) {
                let word = off.and_then(Value::as_str).unwrap_or("none");
                set("reasoning", json!({"effort": word}));
            }
        }
        ThinkingFormat::DeepSeek => {
            set(
                "thinking",
                json!({"type": if on { "enabled" } else { "disabled" }}),
            );
            if on && dialect.reasoning_effort {
                set("reasoning_effort", json!(effort));
            }
        }
        ThinkingFormat::Together => {
            set("reasoning", json!({"enabled": on}));
            if on && dialect.reasoning_effort {
                set("reasoning_effort", json!(effort));
            }
        }
        ThinkingFormat::Enable => set("enable_thinking", json!(on)),
        ThinkingFormat::QwenTemplate => {
            set(
                "chat_template_kwargs",
                json!({"enable_thinking": on, "preserve_thinking": true}),
            );
        }
    }
}
