//! LM Studio: `/api/v0/models` lists with kinds, windows and abilities.

use serde::Deserialize;
use wire::Model;

use super::Place;
use super::asker::{Asker, Miss};
use super::model::Facts;
use crate::limits::LOCAL_MODELS;

#[derive(Deserialize)]
struct List {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    #[serde(rename = "type", default)]
    kind: String,
    /// Of a loaded model.
    loaded_context_length: Option<u64>,
    max_context_length: Option<u64>,
    capabilities: Option<Vec<String>>,
}

/// Its models.
pub(super) async fn models(asker: &Asker, place: &Place) -> Result<Vec<Model>, Miss> {
    let list: List = asker.get(place, "/api/v0/models").await?;
    let talks = |entry: &Entry| matches!(entry.kind.as_str(), "llm" | "vlm" | "");
    let entries = list.data.into_iter().filter(talks).take(LOCAL_MODELS);
    let facts = entries.map(|entry| Facts {
        context: entry.loaded_context_length.or(entry.max_context_length),
        tools: (entry.capabilities).is_none_or(|list| list.iter().any(|name| name == "tool_use")),
        images: entry.kind == "vlm",
        ..Facts::new(&entry.id)
    });
    Ok(facts.map(|facts| facts.model(&place.id, &place.url)).collect())
}
