//! llama.cpp's server: `/v1/models` lists, `/props` says how large the window of a slot is and what the chat template knows.

use serde::Deserialize;
use wire::Model;

use super::Place;
use super::asker::{Asker, Listed, Miss};
use super::model::{Facts, Thinks};

/// `/props`, as much of it as matters.
#[derive(Deserialize, Default)]
pub(super) struct Props {
    #[serde(default)]
    default_generation_settings: Settings,
    #[serde(default)]
    chat_template: String,
    #[serde(default)]
    chat_template_caps: Caps,
    #[serde(default)]
    modalities: Modalities,
}

#[derive(Deserialize, Default)]
struct Settings {
    n_ctx: Option<u64>,
}

#[derive(Deserialize, Default)]
struct Caps {
    /// Absent in older servers.
    supports_tools: Option<bool>,
    #[serde(default)]
    supports_reasoning_effort: bool,
}

#[derive(Deserialize, Default)]
struct Modalities {
    #[serde(default)]
    vision: bool,
}

/// Its models: mostly one.
pub(super) async fn models(asker: &Asker, place: &Place, listed: Vec<Listed>) -> Result<Vec<Model>, Miss> {
    // The properties are those of the one model; a server that chooses between models has none of its own.
    let props: Props = if listed.len() == 1 {
        asker.get(place, "/props").await.unwrap_or_default()
    } else {
        Props::default()
    };
    let facts = listed.into_iter().map(|model| {
        let slot = props.default_generation_settings.n_ctx;
        Facts {
            name: file_name(&model.id).to_owned(),
            context: slot.or(model.meta.n_ctx).or(model.meta.n_ctx_train),
            tools: props.tools(),
            images: props.modalities.vision,
            thinks: props.thinks(),
            ..Facts::new(&model.id)
        }
    });
    Ok(facts.map(|facts| facts.model(&place.id, &place.url)).collect())
}

impl Props {
    /// Returns true if the chat template has a place for tools. Without one the server accepts tools, but the model
    /// never sees them.
    fn tools(&self) -> bool {
        let by_text = || self.chat_template.is_empty() || self.chat_template.contains("tools");
        self.chat_template_caps.supports_tools.unwrap_or_else(by_text)
    }

    fn thinks(&self) -> Thinks {
        match () {
            () if self.chat_template.contains("enable_thinking") => Thinks::Template,
            () if self.chat_template_caps.supports_reasoning_effort => Thinks::Effort,
            () if self.chat_template.contains("<think>") => Thinks::Always,
            () => Thinks::No,
        }
    }
}

/// `/models/small.gguf` is the model `small`.
fn file_name(id: &str) -> &str {
    let name = id.rsplit('/').next().unwrap_or(id);
    name.strip_suffix(".gguf").unwrap_or(name)
}
