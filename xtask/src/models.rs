//! `xtask models`: makes the built-in catalogue, `crates/models/data/catalogue.jsonl`, from the npm package of pi-ai and from
//! `overrides.json` in the same folder; `--max-age` checks the date of the catalogue before a release.
//!
//! Here: getting the package and reading its files. `models::snapshot` makes the catalogue.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use models::{Catalogue, Header, snapshot};
use serde_json::Value;
use tempfile::TempDir;

use crate::out::say;

/// The npm package that the catalogue is made from.
const PACKAGE: &str = "@earendil-works/pi-ai";

/// Where its lists are, one file per provider.
const LISTS: &str = "dist/providers/data";

/// Says when its lists were made.
const MANIFEST: &str = ".manifest.json";

/// An unpacked npm package: a folder of the caller, or a download that lives as long as this value.
#[derive(Debug)]
pub struct Package {
    path: PathBuf,
    _download: Option<TempDir>,
}

impl Package {
    /// Takes the folder of an unpacked package, or downloads one from npm's registry; without a version the latest.
    ///
    /// # Errors
    /// When `npm` or `tar` is missing or fails.
    pub fn open(from: Option<PathBuf>, version: Option<&str>) -> Result<Self> {
        if let Some(path) = from {
            return Ok(Self {
                path,
                _download: None,
            });
        }
        let folder = tempfile::tempdir()?;
        let name = format!("{PACKAGE}@{}", version.unwrap_or("latest"));
        let packed = output(
            Command::new("npm")
                .args(["pack", "--silent", &name])
                .current_dir(folder.path()),
        )?;
        let archive = packed.lines().last().context("npm pack named no file")?.trim();
        output(
            Command::new("tar")
                .args(["-xzf", archive])
                .current_dir(folder.path()),
        )?;
        Ok(Self {
            path: folder.path().join("package"),
            _download: Some(folder),
        })
    }

    /// The folder with its `package.json`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Runs a program and returns its standard output.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().with_context(|| format!("cannot run {name}"))?;
    if !done.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// Writes `catalogue.jsonl` in `data` from the package and from `overrides.json` in `data`. Returns a summary for the
/// terminal.
///
/// # Errors
/// When a file cannot be read or written, the package has another licence than MIT, a model has no provider or route in the
/// overrides, or a provider's default model is not in its list.
pub fn run(package: &Path, data: &Path) -> Result<String> {
    let about = json(&package.join("package.json"))?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let name = text(&about, "name").context("package.json has no name")?;
    let version = text(&about, "version").context("package.json has no version")?;
    ensure!(
        text(&about, "license").as_deref() == Some("MIT"),
        "{name} {version} is not under the MIT licence: data/NOTICE would be wrong"
    );
    let lists = package.join(LISTS);
    let date = text(&json(&lists.join(MANIFEST))?, "generatedAt");
    let date = date.with_context(|| format!("{MANIFEST} does not say when the lists were made"))?;
    let overrides = fs::read_to_string(data.join("overrides.json")).context("cannot read overrides.json")?;
    let source = format!("npm package {name} {version}");
    let made = snapshot::generate(&read_lists(&lists)?, &overrides, &source, &date)?;
    fs::write(data.join("catalogue.jsonl"), &made.text).context("cannot write the catalogue")?;
    let left_out = made.left_out.iter();
    let left_out: Vec<String> = left_out
        .map(|(kind, count)| format!("{count} of type {kind}"))
        .collect();
    Ok(format!(
        "{} chat models of {} providers, {} bytes, from {source} of {date}\nLeft out: {}",
        made.models,
        made.providers,
        made.text.len(),
        if left_out.is_empty() {
            "nothing".to_owned()
        } else {
            left_out.join(", ")
        }
    ))
}

/// Writes the list of `llm` that follows from the catalogue in `data`.
///
/// # Errors
/// When a file cannot be read or written, or the catalogue has no Anthropic model.
pub fn write_adaptive(data: &Path, llm: &Path) -> Result<()> {
    let text = fs::read_to_string(data.join("catalogue.jsonl")).context("cannot read the catalogue")?;
    let (catalogue, _) = Catalogue::of_file(&text).map_err(anyhow::Error::msg)?;
    let list = snapshot::adaptive_list(&catalogue);
    ensure!(!list.is_empty(), "the catalogue has no model of Anthropic");
    fs::write(llm.join("adaptive_thinking.txt"), list).context("cannot write the list of llm")
}

/// The lists in a folder, in the order of their names.
fn read_lists(folder: &Path) -> Result<Vec<Value>> {
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|ending| ending == "json"))
        .filter(|file| file.file_name().is_some_and(|name| name != MANIFEST))
        .collect();
    files.sort();
    files.iter().map(|file| json(file)).collect()
}

fn json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is not JSON", path.display()))
}

/// Prints the age of the catalogue in `data` and returns false when it is older than this many days.
///
/// # Errors
/// When the catalogue has no header or its date cannot be read.
pub fn is_fresh(data: &Path, days: i64) -> Result<bool> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    is_fresh_at(data, days, i64::try_from(now)?)
}

fn is_fresh_at(data: &Path, days: i64, now_ms: i64) -> Result<bool> {
    let text = fs::read_to_string(data.join("catalogue.jsonl")).context("cannot read the catalogue")?;
    let first = text.lines().next().unwrap_or_default();
    let header: Header = serde_json::from_str(first).context("the catalogue has no header")?;
    let age = header.age_days(now_ms).context("the catalogue has no date")?;
    let is_fresh = age <= days;
    say(&format!(
        "The catalogue is {age} days old: {} of {}, {days} days are allowed.{}",
        header.source,
        header.day(),
        if is_fresh {
            ""
        } else {
            " Make a new one: cargo run -p xtask -- models"
        }
    ));
    Ok(is_fresh)
}
