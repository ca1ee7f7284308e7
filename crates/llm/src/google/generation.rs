//! What the generations of models behind Google's API take (providers.md 6), read from the model id.

use serde_json::{Value, json};
use wire::{Model, ThinkingLevel};

use super::vertex;
use crate::ids::gemini_major;
use crate::request::{Budgets, ModelRequest};

/// The form in which a model takes its amount of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Gemini 3 Pro: the words LOW and HIGH.
    Pro3,
    /// Gemini 3 Flash: four words.
    Flash3,
    /// Gemma 4: the words MINIMAL and HIGH.
    Gemma4,
    /// Later Gemini models, and names that stand for the latest one: a word for each level.
    Word,
    /// Tokens for minimal, low, medium and high.
    Budget([u64; 4]),
    /// The model decides.
    Dynamic,
}

/// Names that stand for the latest model, which takes a word.
const LATEST: [&str; 2] = ["gemini-flash-latest", "gemini-flash-lite-latest"];

/// Least budget of Gemini 2.5 Pro, which cannot leave thinking out.
const PRO_2_5_LEAST: u64 = 128;

impl Style {
    fn of(model: &Model) -> Self {
        let id = model.id.to_ascii_lowercase();
        // At Google Cloud the small model takes what its big sister takes.
        let lite = model.api != vertex::API && id.contains("2.5-flash-lite");
        if is_gemini_3(&id, "-pro") {
            Self::Pro3
        } else if is_gemini_3(&id, "-flash") {
            Self::Flash3
        } else if id.contains("gemma-4") || id.contains("gemma4") {
            Self::Gemma4
        } else if LATEST.contains(&id.as_str()) || gemini_major(&id).is_some_and(|major| major >= 4) {
            Self::Word
        } else if id.contains("2.5-pro") {
            Self::Budget([PRO_2_5_LEAST, 2048, 8192, 32_768])
        } else if lite {
            Self::Budget([512, 2048, 8192, 24_576])
        } else if id.contains("2.5-flash") {
            Self::Budget([128, 2048, 8192, 24_576])
        } else {
            Self::Dynamic
        }
    }
}

/// `gemini-3`, perhaps a minor version, and the line.
fn is_gemini_3(id: &str, line: &str) -> bool {
    id.match_indices("gemini-3").any(|(at, found)| {
        let rest = id.get(at + found.len()..).unwrap_or_default();
        let rest = match rest.strip_prefix('.') {
            Some(minor) => minor.trim_start_matches(|c: char| c.is_ascii_digit()),
            None => rest,
        };
        rest.starts_with(line)
    })
}

/// Returns true if the result of a tool can contain images. As in pi, names without a version, such as `gemini-flash-latest`,
/// stand for a model that can.
pub(super) fn results_hold_images(id: &str) -> bool {
    gemini_major(id).is_none_or(|major| major >= 3)
}

/// Returns true if the model refuses calls in the history that it did not sign.
pub(super) fn wants_signed_calls(id: &str) -> bool {
    gemini_major(id).is_some_and(|major| major >= 3)
}

/// The `thinkingConfig` of a request; none for models that do not reason.
pub(super) fn thinking_config(request: &ModelRequest) -> Option<Value> {
    let model = &request.model;
    if !model.reasoning {
        return None;
    }
    let style = Style::of(model);
    if request.thinking == ThinkingLevel::Off {
        return Some(off(style, model));
    }
    let level = clamped(model, request.thinking);
    if level == ThinkingLevel::Off {
        return Some(off(style, model));
    }
    Some(match word(style, model, level) {
        Some(word) => json!({"includeThoughts": true, "thinkingLevel": word}),
        None => {
            let budget = budget(style, &request.thinking_budgets, level);
            json!({"includeThoughts": true, "thinkingBudget": budget})
        }
    })
}

/// Some models cannot leave thinking out; they get the least they take, as their level map says or else by generation.
fn off(style: Style, model: &Model) -> Value {
    let least = clamped(model, ThinkingLevel::Off);
    if least != ThinkingLevel::Off && model.mapped_thinking(least).is_some() {
        return json!({"thinkingLevel": word(style, model, least)});
    }
    let id = model.id.as_str();
    match style {
        Style::Pro3 => json!({"thinkingLevel": "LOW"}),
        Style::Flash3 | Style::Gemma4 => json!({"thinkingLevel": "MINIMAL"}),
        Style::Budget(_) if id.contains("2.5-pro") => json!({"thinkingBudget": PRO_2_5_LEAST}),
        Style::Budget(_) | Style::Dynamic | Style::Word => json!({"thinkingBudget": 0}),
    }
}

/// A level that the model offers; there is nothing above `high` here.
fn clamped(model: &Model, level: ThinkingLevel) -> ThinkingLevel {
    model.clamp_thinking(level).min(ThinkingLevel::High)
}

/// The word for a level: the model's own, else that of its generation.
fn word(style: Style, model: &Model, level: ThinkingLevel) -> Option<String> {
    if let Some(word) = model.mapped_thinking(level) {
        // Lists write the words in lower case, the API wants them in upper case.
        return Some(word.to_ascii_uppercase());
    }
    let weak = level <= ThinkingLevel::Low;
    let word = match style {
        Style::Pro3 if weak => "LOW",
        Style::Gemma4 if weak => "MINIMAL",
        Style::Pro3 | Style::Gemma4 => "HIGH",
        Style::Flash3 | Style::Word => return Some(level.as_str().to_ascii_uppercase()),
        Style::Budget(_) | Style::Dynamic => return None,
    };
    Some(word.to_owned())
}

/// Tokens for a level: the user's, else the model's; -1 leaves it to the model.
fn budget(style: Style, users: &Budgets, level: ThinkingLevel) -> i64 {
    let Style::Budget([minimal, low, medium, high]) = style else {
        let own = choose(users, level);
        return own.and_then(|tokens| i64::try_from(tokens).ok()).unwrap_or(-1);
    };
    let default = match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => minimal,
        ThinkingLevel::Low => low,
        ThinkingLevel::Medium => medium,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => high,
    };
    i64::try_from(choose(users, level).unwrap_or(default)).unwrap_or(i64::MAX)
}

/// The budget that the user set for a level.
fn choose(users: &Budgets, level: ThinkingLevel) -> Option<u64> {
    match level {
        ThinkingLevel::Off => None,
        ThinkingLevel::Minimal => users.minimal,
        ThinkingLevel::Low => users.low,
        ThinkingLevel::Medium => users.medium,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => users.high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(fields: Value, level: ThinkingLevel, budgets: Budgets) -> Value {
        let mut json = json!({"id": "", "name": "", "api": "", "provider": "", "reasoning": true});
        for (key, value) in fields.as_object().unwrap() {
            json[key] = value.clone();
        }
        let mut request = ModelRequest::new(serde_json::from_value(json).unwrap(), 0);
        request.thinking = level;
        request.thinking_budgets = budgets;
        thinking_config(&request).unwrap_or_default()
    }

    #[test]
    fn gemini_generations_get_their_thinking_config() {
        use ThinkingLevel::{High, Low, Medium, Minimal, Off, Xhigh};
        let word = |word: &str| json!({"includeThoughts": true, "thinkingLevel": word});
        let tokens = |tokens: i64| json!({"includeThoughts": true, "thinkingBudget": tokens});
        for (id, level, expected) in [
            ("gemini-3-pro-preview", Low, word("LOW")),
            ("gemini-3.1-pro-preview", Medium, word("HIGH")),
            ("gemini-3.1-pro-preview", Off, json!({"thinkingLevel": "LOW"})),
            ("gemini-3-flash-preview", Minimal, word("MINIMAL")),
            ("gemini-3.5-flash-lite", Xhigh, word("HIGH")),
            ("gemini-3-flash", Off, json!({"thinkingLevel": "MINIMAL"})),
            ("gemma-4-31b", Low, word("MINIMAL")),
            ("gemma-4-31b", Medium, word("HIGH")),
            ("gemini-2.5-pro", High, tokens(32_768)),
            ("gemini-2.5-pro", Off, json!({"thinkingBudget": 128})),
            ("gemini-2.5-flash-lite-preview", Minimal, tokens(512)),
            ("gemini-2.5-flash", Minimal, tokens(128)),
            ("gemini-2.5-flash", Off, json!({"thinkingBudget": 0})),
            ("gemini-flash-latest", High, word("HIGH")),
            ("gemini-4-argon", Medium, word("MEDIUM")),
            ("gemini-exp-1206", High, tokens(-1)),
        ] {
            let given = config(json!({"id": id}), level, Budgets::default());
            assert_eq!(given, expected, "{id} {level}");
        }
        assert_eq!(
            config(json!({"reasoning": false}), High, Budgets::default()),
            Value::Null
        );
    }

    #[test]
    fn thinking_map_and_user_budgets_take_precedence() {
        let map = json!({"id": "gemini-3-pro", "thinkingLevelMap": {"off": null, "minimal": null, "low": "LOW", "medium": null, "high": "HIGH"}});
        let given = config(map, ThinkingLevel::Medium, Budgets::default());
        assert_eq!(given["thinkingLevel"], "HIGH");
        let map =
            json!({"id": "gemini-4-argon", "thinkingLevelMap": {"off": null, "minimal": null, "low": "low"}});
        let given = config(map.clone(), ThinkingLevel::Low, Budgets::default());
        assert_eq!(given, json!({"includeThoughts": true, "thinkingLevel": "LOW"}));
        let given = config(map, ThinkingLevel::Off, Budgets::default());
        assert_eq!(given, json!({"thinkingLevel": "LOW"}));
        let budgets = Budgets {
            low: Some(777),
            ..Budgets::default()
        };
        for id in ["gemini-2.5-flash", "gemini-exp-1206"] {
            let given = config(json!({"id": id}), ThinkingLevel::Low, budgets);
            assert_eq!(given["thinkingBudget"], 777);
        }
    }

    #[test]
    fn gemini_generation_is_read_from_model_id() {
        for (id, images, signed) in [
            ("gemini-2.5-pro", false, false),
            ("gemini-3-pro-preview", true, true),
            ("models/gemini-3.1-flash", true, true),
            ("gemini-flash-latest", true, false),
            ("gemma-4-31b", true, false),
            ("claude-opus-4-6", true, false),
        ] {
            assert_eq!(
                (results_hold_images(id), wants_signed_calls(id)),
                (images, signed),
                "{id}"
            );
        }
    }
}
