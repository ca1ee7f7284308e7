//! What Claude models behind Bedrock take that others refuse (providers.md 3 and 8): reasoning fields, cache points. A
//! model is known by its id or, where that is an ARN, by its name.

use serde::Serialize;
use serde_json::{Value, json};
use wire::{Model, ThinkingLevel};

use super::region;
use crate::adaptive::thinks_adaptively;
use crate::compat::value;
use crate::request::{CacheRetention, ModelRequest};

/// Least reasoning budget that the model takes.
const LEAST_BUDGET: u64 = 1024;

/// Lets a request say what becomes of reasoning that was made with another prompt.
const BLOCK_BINDING: &str = "thinking-binding-controls-2026-08-01";

/// Returns true for a Claude model.
pub(super) fn is_claude(model: &Model) -> bool {
    let id = model.id.to_ascii_lowercase();
    id.contains("anthropic.claude")
        || id.contains("anthropic/claude")
        || model.name.to_ascii_lowercase().contains("claude")
}

/// Id and name, each also in the form of an id: `Claude Opus 4.6` is `claude-opus-4-6`.
fn spellings(model: &Model) -> impl Iterator<Item = String> {
    [&model.id, &model.name].into_iter().flat_map(|text| {
        let lower = text.to_ascii_lowercase();
        let mut dashed = String::with_capacity(lower.len());
        for character in lower.chars() {
            match character {
                '_' | '.' | ':' | ' ' | '\t' if dashed.ends_with('-') => {}
                '_' | '.' | ':' | ' ' | '\t' => dashed.push('-'),
                other => dashed.push(other),
            }
        }
        [lower, dashed]
    })
}

/// Marks the end of a part of the prompt that is to be kept.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CachePoint {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

/// The cache point of a request; none for models that take none and when caching is off.
pub(super) fn cache_point(request: &ModelRequest) -> Option<CachePoint> {
    let ttl = match request.cache_retention {
        CacheRetention::None => return None,
        CacheRetention::Short => None,
        CacheRetention::Long => Some("1h"),
    };
    let takes = if spellings(&request.model).any(|text| text.contains("claude")) {
        spellings(&request.model).any(|text| {
            let known = ["-4-", "claude-3-7-sonnet", "claude-3-5-haiku"];
            known.iter().any(|part| text.contains(part)) || thinks_adaptively(&text)
        })
    } else {
        // The name of an application inference profile may say nothing; its owner knows.
        request.environment.is_on("AWS_BEDROCK_FORCE_CACHE")
    };
    takes.then_some(CachePoint { kind: "default", ttl })
}

/// Output limit and the fields that only the model's maker defines; they depend on each other.
#[derive(Debug, PartialEq)]
pub(super) struct Reasoning {
    pub(super) max_tokens: Option<u64>,
    pub(super) fields: Option<Value>,
}

impl Reasoning {
    /// The rules of providers.md 2.5 and 8.
    pub(super) fn of(request: &ModelRequest) -> Self {
        let model = &request.model;
        let limit = request.output_limit();
        let plain = Self {
            max_tokens: limit,
            fields: None,
        };
        if !model.reasoning || request.thinking == ThinkingLevel::Off {
            return plain;
        }
        if !is_claude(model) {
            let fields = openai(model, request.thinking);
            return Self { fields, ..plain };
        }
        let mut thinking = json!({"type": "adaptive"});
        // The government's cloud refuses the field.
        let show = |thinking: &mut Value| {
            if let (false, Some(fields)) = (region::is_gov(request), thinking.as_object_mut()) {
                fields.insert("display".into(), json!("summarized"));
            }
        };
        let by_name = || spellings(model).any(|text| thinks_adaptively(&text));
        let said = value(model, "forceAdaptiveThinking").and_then(Value::as_bool);
        if said.unwrap_or_else(by_name) {
            show(&mut thinking);
            let effort = effort(model, request.thinking);
            let effort = json!({"effort": effort});
            let fields = if binds_blocks(request) {
                // Signed reasoning belongs to the system prompt and the tools that it was made with. When they change, the API would
                // refuse the conversation.
                if let Some(thinking) = thinking.as_object_mut() {
                    let binding = json!({"prefix_mismatch_behavior": "drop_block"});
                    thinking.insert("block_binding".into(), binding);
                }
                json!({"thinking": thinking, "output_config": effort, "anthropic_beta": [BLOCK_BINDING]})
            } else {
                json!({"thinking": thinking, "output_config": effort})
            };
            return Self {
                max_tokens: limit,
                fields: Some(fields),
            };
        }
        let Some((max_tokens, budget)) = room(request) else {
            return plain;
        };
        thinking = json!({"type": "enabled", "budget_tokens": budget});
        show(&mut thinking);
        let fields = json!({"thinking": thinking, "anthropic_beta": ["interleaved-thinking-2025-05-14"]});
        Self {
            max_tokens: Some(max_tokens),
            fields: Some(fields),
        }
    }
}

/// Returns true for models that take the setting for reasoning of another prompt. Opus 4.6 and Sonnet 4.6 refuse it, and so does the
/// government's cloud.
fn binds_blocks(request: &ModelRequest) -> bool {
    let newer = ["opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "haiku-5", "fable-5"];
    !region::is_gov(request)
        && spellings(&request.model).any(|text| newer.iter().any(|part| text.contains(part)))
}

/// The field of OpenAI's models: the open ones take three words by themselves, the others their own words in an object. None for other
/// models.
fn openai(model: &Model, level: ThinkingLevel) -> Option<Value> {
    let level = model.clamp_thinking(level);
    let weak = level <= ThinkingLevel::Low;
    let is = |part: &str| spellings(model).any(|text| text.contains(part));
    if level == ThinkingLevel::Off {
        None
    } else if is("gpt-oss") {
        let word = match level {
            _ if weak => "low",
            ThinkingLevel::Medium => "medium",
            _ => "high",
        };
        Some(json!({"reasoning_effort": word}))
    } else if is("gpt-") {
        let word = if weak { "low" } else { level.as_str() };
        let word = model.mapped_thinking(level).unwrap_or(word);
        Some(json!({"reasoning": {"effort": word}}))
    } else {
        None
    }
}

/// Output limit and budget; none when there is no room to think and to answer.
fn room(request: &ModelRequest) -> Option<(u64, u64)> {
    let wanted = request.thinking_budgets.tokens(request.thinking);
    let limit = request.output_limit().unwrap_or(4096);
    let max_tokens = limit.saturating_add(wanted).min(request.most_output());
    let budget = if max_tokens <= wanted {
        max_tokens.saturating_sub(1024)
    } else {
        wanted
    };
    (budget >= LEAST_BUDGET).then_some((max_tokens, budget))
}

/// The effort word of a level: the model's own, else the nearest that every model knows.
fn effort(model: &Model, level: ThinkingLevel) -> String {
    let word = model.mapped_thinking(level).unwrap_or(match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "high",
    });
    word.to_owned()
}
