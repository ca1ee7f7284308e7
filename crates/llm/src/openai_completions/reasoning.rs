//! The fields that ask for reasoning, in the half dozen forms that servers want (providers.md 4).

use serde_json::{Map, Value, json};
use wire::{Model, ThinkingLevel};

use super::dialect::{Dialect, ThinkingFormat};
use crate::compat::value;
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
    let budget = if on { budget(request) } else { None };
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    if let (Some(field), Some(budget)) = (dialect.budget_field, budget) {
        set(field, json!(budget));
    }
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
        ThinkingFormat::DeepSeek if !on && off.is_some_and(Value::is_null) => {}
        ThinkingFormat::Zai => {
            let fields = match on {
                true => json!({"type": "enabled", "clear_thinking": false}),
                false => json!({"type": "disabled"}),
            };
            set("thinking", fields);
            if let Some(word) = mapped(model, level).filter(|_| on && dialect.reasoning_effort) {
                set("reasoning_effort", json!(word));
            }
        }
        ThinkingFormat::DeepSeek | ThinkingFormat::Together | ThinkingFormat::Enable => {
            let (name, switch) = match dialect.thinking {
                ThinkingFormat::DeepSeek => {
                    let word = if on { "enabled" } else { "disabled" };
                    ("thinking", json!({"type": word}))
                }
                ThinkingFormat::Together => ("reasoning", json!({"enabled": on})),
                _ => ("enable_thinking", json!(on)),
            };
            set(name, switch);
            if on && dialect.reasoning_effort {
                set("reasoning_effort", json!(effort));
            }
        }
        ThinkingFormat::QwenTemplate => {
            set(
                "chat_template_kwargs",
                json!({"enable_thinking": on, "preserve_thinking": true}),
            );
        }
        _ => body.extend(rarer(model, dialect, level, budget)),
    }
}

/// The forms of servers that are rarely met.
fn rarer(model: &Model, dialect: &Dialect, level: ThinkingLevel, budget: Option<u64>) -> Map<String, Value> {
    let on = level != ThinkingLevel::Off;
    let template = |flag: &str| template(model, flag, level, budget);
    let fields = match dialect.thinking {
        ThinkingFormat::ChatTemplate => [("chat_template_kwargs", template("chatTemplateKwargs")), NONE],
        ThinkingFormat::Baseten => {
            let word = mapped(model, level).filter(|_| dialect.reasoning_effort);
            [
                ("chat_template_args", template("chatTemplateArgs")),
                ("reasoning_effort", word.map(Value::from)),
            ]
        }
        ThinkingFormat::Word => {
            let off = model.thinking_level_map.as_ref().and_then(|map| map.get("off"));
            let word = match off {
                _ if on => Some(model.mapped_thinking(level).unwrap_or(level.as_str())),
                Some(off) => off.as_str(),
                None => Some("none"),
            };
            [("thinking", word.map(Value::from)), NONE]
        }
        ThinkingFormat::AntLing => {
            let word = model.mapped_thinking(level).filter(|_| on);
            [("reasoning", word.map(|word| json!({"effort": word}))), NONE]
        }
        _ => [NONE, NONE],
    };
    let fields = fields.into_iter();
    fields
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// No field.
const NONE: (&str, Option<Value>) = ("", None);

/// Tokens for a level, so that something is left for the answer.
fn budget(request: &ModelRequest) -> Option<u64> {
    let budget = request.thinking_budgets.tokens(request.thinking);
    let most = match request.output_limit() {
        Some(limit) => budget.min(limit.saturating_sub(1024)),
        None => budget,
    };
    Some(most).filter(|tokens| *tokens > 0)
}

/// The word of a level: the model's own, else its name; none for off unless mapped, and where the map says that there is none.
fn mapped(model: &Model, level: ThinkingLevel) -> Option<&str> {
    let own = model
        .thinking_level_map
        .as_ref()
        .and_then(|map| map.get(level.as_str()));
    match own {
        Some(own) => own.as_str(),
        None => (level != ThinkingLevel::Off).then_some(level.as_str()),
    }
}

/// The values of a chat template: given ones, and `{"$var": "thinking.enabled" | "thinking.effort" | "thinking.budget"}`.
fn template(model: &Model, flag: &str, level: ThinkingLevel, budget: Option<u64>) -> Option<Value> {
    let on = level != ThinkingLevel::Off;
    let resolve = |value: &Value| {
        let Some(fields) = value.as_object() else {
            return Some(value.clone());
        };
        if !on && fields.get("omitWhenOff") == Some(&Value::Bool(true)) {
            return None;
        }
        match fields.get("$var").and_then(Value::as_str) {
            Some("thinking.enabled") => Some(json!(on)),
            Some("thinking.budget") => budget.map(Value::from),
            Some("thinking.effort") => mapped(model, level).map(Value::from),
            _ => None,
        }
    };
    let values: Map<String, Value> = value(model, flag)?
        .as_object()?
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), resolve(value)?)))
        .collect();
    (!values.is_empty()).then(|| Value::Object(values))
}
