//! `xtask models <data.json.gz>`: trims a models.dev snapshot to the catalogue in `crates/llm/data`.
//!
//! Here: reading the snapshot and writing the file. What is made of it is `llm::registry::snapshot`'s business, which makes
//! the catalogues of `pinion models update`, too.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use llm::registry::snapshot;
use serde_json::Value;

/// Largest snapshot that is read, in bytes after decompression.
const MAX_SNAPSHOT: u64 = 64 << 20;

/// Writes `catalogue.jsonl` in `data` from the snapshot and from `overrides.json` in the same folder. Returns one line of
/// figures for the terminal.
///
/// # Errors
/// When a file cannot be read or written, a named source is missing, or a provider's default model is not in its list.
pub fn run(snapshot: &Path, data: &Path) -> Result<String> {
    let source: Value = serde_json::from_slice(&gunzip(snapshot)?).context("the snapshot is not JSON")?;
    let overrides = fs::read(data.join("overrides.json")).context("cannot read overrides.json")?;
    let overrides: Value = serde_json::from_slice(&overrides).context("overrides.json is not JSON")?;
    let (mut sections, mut count) = (BTreeMap::new(), 0);
    for section in snapshot::sections(&source, &overrides, snapshot::OldDefault::MustBeThere) {
        let section = section?;
        count += section.models;
        sections.insert(section.id, section.text);
    }
    let providers = sections.len();
    let out: String = sections.into_values().collect();
    fs::write(data.join("catalogue.jsonl"), &out).context("cannot write the catalogue")?;
    Ok(format!(
        "{count} models of {providers} providers, {} bytes",
        out.len()
    ))
}

fn gunzip(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut bytes = Vec::new();
    GzDecoder::new(file)
        .take(MAX_SNAPSHOT)
        .read_to_end(&mut bytes)
        .context("cannot decompress")?;
    Ok(bytes)
}
