//! A catalogue file from whatever list of models somebody brings: what is in the list counts, what is missing in it stays as
//! it is built in.

use serde_json::Value;

use super::{OVERRIDES, OldDefault, Section, check, list, models_dev, pi_ai, text};
use crate::registry::catalogue::{Catalogue, FORMAT, Header};
use crate::registry::error::RegistryError;

/// A catalogue file that has been read back and found whole.
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
}

/// Makes a catalogue file from lists of models: one in the form of models.dev, or any number in pi-ai's. `source` and
/// `fetched` (RFC 3339) are noted in it.
///
/// # Errors
/// [`RegistryError::Snapshot`] when no model of a known provider is in the lists.
pub fn build(lists: &[Value], source: &str, fetched: &str) -> Result<Built, RegistryError> {
    let damaged = |error: serde_json::Error| RegistryError::Snapshot(error.to_string());
    let overrides: Value = serde_json::from_str(OVERRIDES).map_err(damaged)?;
    let own = pi_ai::models(lists);
    let made = match lists {
        [one] if own.is_empty() => models_dev::sections(one, &overrides, OldDefault::MayChange),
        _ => pi_ai::sections(&own, &overrides),
    };
    let mut new: Vec<Section> = made.into_iter().filter_map(Result::ok).collect();
    if new.is_empty() {
        let why =
            "there is no model of a known provider in it: it must be a list as models.dev or pi-ai have it";
        return Err(RegistryError::Snapshot(why.to_owned()));
    }
    let mut ids: Vec<&str> = list(&overrides, "providers")
        .iter()
        .map(|provider| text(provider, "id"))
        .collect();
    ids.sort_unstable();
    let old = Catalogue::built_in();
    let (mut renewed, mut kept, mut models, mut body) = (Vec::new(), Vec::new(), 0, String::new());
    for id in ids {
        if let Some(at) = new.iter().position(|section| section.id == id) {
            let section = new.swap_remove(at);
            models += section.models;
            body.push_str(&section.text);
            renewed.push(section.id);
        } else if let Some((section, count)) = old.section(id) {
            models += count;
            body.push_str(&section);
            kept.push(id.to_owned());
        }
    }
    let header = Header {
        catalogue: FORMAT,
        source: source.to_owned(),
        fetched: fetched.to_owned(),
        models,
        providers: renewed.len() + kept.len(),
    };
    let text = format!("{}\n{body}", serde_json::to_string(&header).map_err(damaged)?);
    let header = check(&text)?;
    Ok(Built {
        models: header.models,
        providers: header.providers,
        text,
        renewed,
        kept,
    })
}
