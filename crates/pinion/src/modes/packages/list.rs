//! `pinion list`: the packages of the settings, as lines that pi prints, too, or as JSON.

use std::path::PathBuf;

use serde_json::json;

use super::npm;
use super::place::{Entry, Place};
use crate::environment::{say, say_exactly};

/// Prints all packages of the places.
pub(super) fn run(places: &[Place], as_json: bool) -> anyhow::Result<()> {
    let mut all: Vec<(&Place, Vec<Entry>)> = Vec::new();
    for place in places {
        all.push((place, place.entries()?));
    }
    if as_json {
        let packages: Vec<_> = all
            .iter()
            .flat_map(|(place, entries)| entries.iter().map(move |entry| described(place, entry)))
            .collect();
        say_exactly(&json!({ "packages": packages }).to_string());
        return Ok(());
    }
    all.retain(|(_, entries)| !entries.is_empty());
    if all.is_empty() {
        say("No packages installed.");
    }
    for (index, (place, entries)) in all.iter().enumerate() {
        let between = if index > 0 { "\n" } else { "" };
        say(&format!("{between}{} packages:", place.title()));
        for entry in entries {
            let filtered = if entry.filtered { " (filtered)" } else { "" };
            say(&format!("  {}{filtered}", entry.text));
            match installed(place, entry) {
                Some(path) => say(&format!("    {}", path.display())),
                None => say("    not installed; run: pinion update"),
            }
        }
    }
    Ok(())
}

fn installed(place: &Place, entry: &Entry) -> Option<PathBuf> {
    let source = entry.source.as_ref()?;
    Some(place.path_of(source)).filter(|path| path.exists())
}

fn described(place: &Place, entry: &Entry) -> serde_json::Value {
    let path = installed(place, entry);
    json!({
        "source": entry.text,
        "scope": place.scope,
        "filtered": entry.filtered,
        "path": path,
        "version": path.as_deref().and_then(npm::version),
    })
}
