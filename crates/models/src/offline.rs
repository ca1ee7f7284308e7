//! The built-in provider that needs no key and no network (docs/internals/decisions/26-offline-model.md).
//! Here: its two models. Not here: its answers.

use wire::Model;
use wire::model::{Modality, Prices};

use crate::limits::{DEFAULT_CONTEXT, DEFAULT_OUTPUT};

/// Provider and API id.
pub(crate) const OFFLINE: &str = "offline";

/// The two models.
#[derive(Debug)]
pub(crate) struct Offline {
    /// Offered when nothing else is available.
    pub(crate) echo: Model,
    /// Plays a file; must be named.
    pub(crate) script: Model,
}

impl Default for Offline {
    fn default() -> Self {
        Self {
            echo: model("echo", "Offline echo (not an AI)"),
            script: model("script", "Offline script (not an AI)"),
        }
    }
}

fn model(id: &str, name: &str) -> Model {
    Model {
        id: id.to_owned(),
        name: name.to_owned(),
        api: OFFLINE.to_owned(),
        provider: OFFLINE.to_owned(),
        base_url: String::new(),
        reasoning: false,
        thinking_level_map: None,
        input: vec![Modality::Text],
        cost: Prices::default(),
        context_window: DEFAULT_CONTEXT,
        max_tokens: DEFAULT_OUTPUT,
        compat: None,
        input_limits: None,
        prompt_cache: None,
        sampling_params: None,
        sampling_params_by_thinking_level: None,
        kind: None,
    }
}
