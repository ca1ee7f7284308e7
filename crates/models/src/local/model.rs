//! A found model as the registry wants it: what small servers understand of chat completions, and that they cost nothing.

use serde_json::{Map, Value, json};
use wire::Model;
use wire::model::{Modality, Prices};

use crate::limits::{LOCAL_CONTEXT, LOCAL_OUTPUT};

/// The form in which a model takes its thinking level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinks {
    /// Not at all, as far as one can tell.
    No,
    /// It does, and nothing can be said about how much.
    Always,
    /// `reasoning_effort` of low, medium and high; `none` switches it off.
    Effort,
    /// `enable_thinking` of its chat template.
    Template,
}

/// What a server says about a model.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// What to call it in a request.
    pub(super) id: String,
    /// Name for people.
    pub(super) name: String,
    /// Tokens that fit in a conversation, as it is loaded now.
    pub(super) context: Option<u64>,
    /// True if the model can call tools, or if that is unknown.
    pub(super) tools: bool,
    /// True if the model accepts images.
    pub(super) images: bool,
    /// How the model thinks.
    pub(super) thinks: Thinks,
}

impl Facts {
    /// A model of which only the id is known.
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: id.to_owned(),
            context: None,
            tools: true,
            images: false,
            thinks: Thinks::No,
        }
    }

    /// The model at this server.
    pub(super) fn model(self, provider: &str, url: &str) -> Model {
        let context = self.context.filter(|tokens| *tokens > 0).unwrap_or(LOCAL_CONTEXT);
        let mut input = vec![Modality::Text];
        if self.images {
            input.push(Modality::Image);
        }
        Model {
            name: self.name,
            api: "openai-completions".to_owned(),
            provider: provider.to_owned(),
            base_url: format!("{url}/v1"),
            reasoning: self.thinks != Thinks::No,
            thinking_level_map: levels(self.thinks),
            input,
            cost: Prices::default(),
            context_window: context,
            // Some servers refuse a request if prompt and longest answer together exceed the context.
            max_tokens: (context / 4).clamp(1, LOCAL_OUTPUT),
            compat: Some(compat(self.tools, self.thinks)),
            input_limits: None,
            prompt_cache: None,
            sampling_params: None,
            sampling_params_by_thinking_level: None,
            kind: None,
            id: self.id,
        }
    }
}

fn levels(thinks: Thinks) -> Option<Map<String, Value>> {
    let map = match thinks {
        Thinks::No => return None,
        Thinks::Effort => json!({"off": "none", "minimal": null}),
        // On and off is all there is; one level stands for on.
        Thinks::Template => json!({"minimal": null, "low": null, "high": null}),
        Thinks::Always => json!({"off": null, "minimal": null, "low": null, "high": null}),
    };
    map.as_object().cloned()
}

fn compat(tools: bool, thinks: Thinks) -> Map<String, Value> {
    let mut flags = Map::new();
    let mut set = |name: &str, value: Value| drop(flags.insert(name.to_owned(), value));
    set("supportsStore", json!(false));
    set("supportsDeveloperRole", json!(false));
    set("supportsStrictMode", json!(false));
    set("supportsLongCacheRetention", json!(false));
    set("supportsReasoningEffort", json!(thinks == Thinks::Effort));
    set("maxTokensField", json!("max_tokens"));
    if thinks == Thinks::Template {
        set("thinkingFormat", json!("qwen-chat-template"));
    }
    if !tools {
        set("supportsTools", json!(false));
    }
    flags
}
