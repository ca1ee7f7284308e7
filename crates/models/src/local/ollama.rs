//! Ollama: `/api/tags` lists, `/api/show` describes, `/api/ps` says how large the window of a loaded model really is.

use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use wire::Model;

use super::Place;
use super::asker::{Asker, Miss};
use super::model::{Facts, Thinks};
use crate::limits::{LOCAL_AT_ONCE, LOCAL_MODELS};

/// `/api/tags` and `/api/ps`.
#[derive(Deserialize)]
struct Tags {
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    /// Of a loaded model.
    context_length: Option<u64>,
}

/// `/api/show`, as much of it as matters.
#[derive(Deserialize, Default)]
struct Shown {
    /// Absent before 0.6.4.
    capabilities: Option<Vec<String>>,
    #[serde(default)]
    model_info: Map<String, Value>,
    #[serde(default)]
    parameters: String,
    #[serde(default)]
    template: String,
    projector_info: Option<Value>,
}

/// Its models.
pub(super) async fn models(asker: &Asker, place: &Place) -> Result<Vec<Model>, Miss> {
    let tags: Tags = asker.get(place, "/api/tags").await?;
    let loaded: Tags = asker
        .get(place, "/api/ps")
        .await
        .unwrap_or(Tags { models: Vec::new() });
    let window = |name: &str| {
        let tag = loaded.models.iter().find(|tag| tag.name == name)?;
        tag.context_length
    };
    let shown = stream::iter(tags.models.into_iter().take(LOCAL_MODELS)).map(|tag| async move {
        let body = json!({ "model": tag.name });
        // A model that cannot be described can be asked all the same.
        let shown = asker.post(place, "/api/show", &body).await.unwrap_or_default();
        (tag.name, shown)
    });
    let shown: Vec<(String, Shown)> = shown.buffered(LOCAL_AT_ONCE).collect().await;
    let facts = shown
        .into_iter()
        .filter(|(_, shown)| shown.can("completion"))
        .map(|(name, shown)| shown.facts(&name, window(&name)));
    Ok(facts.map(|facts| facts.model(&place.id, &place.url)).collect())
}

impl Shown {
    /// Returns true if a capability is listed. Old servers list none; then every capability is assumed.
    fn can(&self, what: &str) -> bool {
        let list = self.capabilities.as_ref();
        list.is_none_or(|list| list.iter().any(|name| name == what))
    }

    fn facts(&self, name: &str, loaded: Option<u64>) -> Facts {
        let knows = self.capabilities.is_some();
        let thinks = knows && self.can("thinking");
        Facts {
            context: loaded.or_else(|| self.parameter()).or_else(|| self.trained()),
            tools: if knows {
                self.can("tools")
            } else {
                self.template.is_empty() || self.template.contains(".Tools")
            },
            images: if knows {
                self.can("vision")
            } else {
                self.projector_info.is_some()
            },
            thinks: if thinks { Thinks::Effort } else { Thinks::No },
            ..Facts::new(name)
        }
    }

    /// `num_ctx` of the model's own file: lines of a name and a value.
    fn parameter(&self) -> Option<u64> {
        let mut lines = self.parameters.lines();
        lines.find_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok())
    }

    /// What the model was made for: `qwen3.context_length`, the first word being its architecture.
    fn trained(&self) -> Option<u64> {
        let architecture = self.model_info.get("general.architecture")?.as_str()?;
        let key = format!("{architecture}.context_length");
        self.model_info.get(&key)?.as_u64()
    }
}
