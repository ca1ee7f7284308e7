//! `xtask breaking`: would a client of the last release break? Compares the protocol's schema with that of the last tag, or
//! with `protocol/released.json` while there is none. Breaking changes need another major version of the protocol.
//!
//! Here: where the two schemas come from, and the verdict. What counts as breaking is in `compare`.

mod compare;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use crate::out::{complain, say};

/// The schema in a released tree.
const SCHEMA: &str = "protocol/schema.json";
/// The protocol to compare with while there is no tag.
const RELEASED: &str = "protocol/released.json";

/// The chore; false when clients would break and the major version did not say so. `against` is a tag or a file.
///
/// # Errors
/// When one of the two schemas cannot be had.
pub fn run(root: &Path, against: Option<&str>) -> Result<bool> {
    let (place, old) = released(root, against)?;
    let new = wire::schema::document().map_err(|text| anyhow!(text))?;
    let findings = compare::breaking(&old, &new);
    let (was, is) = (version(&old), version(&new));
    say(&format!(
        "protocol {was} ({place}) -> {is}: {} breaking changes",
        findings.len()
    ));
    if findings.is_empty() {
        return Ok(true);
    }
    for finding in &findings {
        complain(&format!("  {finding}"));
    }
    let is_announced = major(is) > major(was);
    if !is_announced {
        complain(
            "Clients would break: PROTOCOL_VERSION in crates/wire/src/protocol.rs needs another major version.",
        );
    }
    Ok(is_announced)
}

/// The schema to compare with, and where it is from.
fn released(root: &Path, against: Option<&str>) -> Result<(String, Value)> {
    let tag = match against {
        Some(name) if Path::new(name).is_file() => return read(Path::new(name), name),
        Some(tag) => Some(tag.to_owned()),
        None => git(root, &["describe", "--tags", "--abbrev=0"]).ok(),
    };
    let Some(tag) = tag else {
        return read(&root.join(RELEASED), RELEASED);
    };
    let tag = tag.trim();
    let text = git(root, &["show", &format!("{tag}:{SCHEMA}")])
        .with_context(|| format!("{tag} is neither a file nor a tag with {SCHEMA}"))?;
    Ok((tag.to_owned(), serde_json::from_str(&text)?))
}

fn read(path: &Path, name: &str) -> Result<(String, Value)> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let schema = serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))?;
    Ok((name.to_owned(), schema))
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").current_dir(root).args(arguments).output()?;
    if !output.status.success() {
        return Err(anyhow!(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A schema from before there were versions counts as the first.
fn version(schema: &Value) -> &str {
    schema.get("version").and_then(Value::as_str).unwrap_or("1.0.0")
}

fn major(version: &str) -> u64 {
    let first = version.split('.').next();
    first.and_then(|first| first.parse().ok()).unwrap_or(0)
}
