//! Puts a catalogue file together from the sections of its providers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{OVERRIDES, Purpose, Section, check, list, models_dev, pi_ai, text};
use crate::catalogue::{Catalogue, FORMAT, Header};
use crate::error::RegistryError;

/// A catalogue file that has been read back without loss.
#[derive(Debug)]
pub struct Built {
    /// What to write into the file.
    pub text: String,
    /// How many models it has, in all.
    pub models: usize,
    /// How many providers it has, in all.
    pub providers: usize,
    /// Providers whose models come from the list.
    pub renewed: Vec<String>,
    /// Providers whose models stay as they are built in.
    pub kept: Vec<String>,
    /// Entries of the list that are no chat models, by their type.
    pub left_out: BTreeMap<String, usize>,
}

/// Makes a user's catalogue file from lists of models: one in the form of models.dev, or any number in pi-ai's. Providers
/// that are not in the lists stay as they are built in. `source` and `fetched` (RFC 3339) are written to the header.
///
/// # Errors
/// [`RegistryError::Snapshot`] when no model of a known provider is in the lists.
pub fn build(lists: &[Value], source: &str, fetched: &str) -> Result<Built, RegistryError> {
    let overrides: Value = serde_json::from_str(OVERRIDES).map_err(damaged)?;
    let own = pi_ai::models(lists);
    let old = Catalogue::built_in();
    let made = match lists {
        [one] if own.is_empty() => models_dev::sections(one, &overrides, &old),
        _ => pi_ai::sections(&own, &overrides, Purpose::Update),
    };
    let mut new: Vec<Section> = made.into_iter().filter_map(Result::ok).collect();
    if new.is_empty() {
        let why =
            "there is no model of a known provider in it: it must be a list as models.dev or pi-ai have it";
        return Err(RegistryError::Snapshot(why.to_owned()));
    }
    let (mut sections, mut renewed, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for id in provider_ids(&overrides) {
        if let Some(at) = new.iter().position(|section| section.id == id) {
            renewed.push(id.to_owned());
            sections.push(new.swap_remove(at));
        } else if let Some((text, models)) = old.section(id) {
            kept.push(id.to_owned());
            let id = id.to_owned();
            sections.push(Section { id, text, models });
        }
    }
    let built = join(&sections, source, fetched)?;
    Ok(Built {
        renewed,
        kept,
        left_out: pi_ai::left_out(lists),
        ..built
    })
}

/// Makes the built-in catalogue from pi-ai's lists and the text of `overrides.json`. `source` and `date` (RFC 3339) are
/// written to the header.
///
/// # Errors
/// [`RegistryError::Snapshot`] when a chat model has no provider or no route in the overrides, or when the default model of a
/// provider is not in the lists: a maintainer has to decide.
pub fn generate(lists: &[Value], overrides: &str, source: &str, date: &str) -> Result<Built, RegistryError> {
    let overrides: Value = serde_json::from_str(overrides).map_err(damaged)?;
    let own = pi_ai::models(lists);
    let ids = provider_ids(&overrides);
    if let Some(stray) = own
        .iter()
        .find(|model| !ids.iter().any(|id| pi_ai::is_of(model, id)))
    {
        let why = format!("the overrides have no provider \"{}\"", text(stray, "provider"));
        return Err(RegistryError::Snapshot(why));
    }
    let made = pi_ai::sections(&own, &overrides, Purpose::BuiltIn);
    let mut sections = made.into_iter().collect::<Result<Vec<_>, _>>()?;
    sections.sort_by(|a, b| a.id.cmp(&b.id));
    let built = join(&sections, source, date)?;
    Ok(Built {
        renewed: sections.into_iter().map(|section| section.id).collect(),
        left_out: pi_ai::left_out(lists),
        ..built
    })
}

/// The ids of the providers, sorted.
fn provider_ids(overrides: &Value) -> Vec<&str> {
    let providers = list(overrides, "providers").iter();
    let mut ids: Vec<&str> = providers.map(|provider| text(provider, "id")).collect();
    ids.sort_unstable();
    ids
}

/// Writes header and sections, and reads them back.
fn join(sections: &[Section], source: &str, fetched: &str) -> Result<Built, RegistryError> {
    let header = Header {
        catalogue: FORMAT,
        source: source.to_owned(),
        fetched: fetched.to_owned(),
        models: sections.iter().map(|section| section.models).sum(),
        providers: sections.len(),
    };
    let body: String = sections.iter().map(|section| section.text.as_str()).collect();
    let text = format!("{}\n{body}", serde_json::to_string(&header).map_err(damaged)?);
    let header = check(&text)?;
    Ok(Built {
        text,
        models: header.models,
        providers: header.providers,
        renewed: Vec::new(),
        kept: Vec::new(),
        left_out: BTreeMap::new(),
    })
}

fn damaged(error: serde_json::Error) -> RegistryError {
    RegistryError::Snapshot(error.to_string())
}
