//! The clients of `sdk/` as a wheel and an npm package.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::archive::{Entry, gzip, tar};
use super::contents::names;
use super::wheel::{Wheel, metadata};
use super::{Artefact, Release};

const PYTHON: &str = "sdk/python";
const TYPESCRIPT: &str = "sdk/typescript";

/// Makes the wheel of the Python client.
pub(crate) fn python(release: &Release) -> Result<Artefact> {
    let name = "pinion_agent";
    let mut files: Vec<(String, u32, Vec<u8>)> = Vec::new();
    for (path, bytes) in sources(&release.root.join(PYTHON).join(name))? {
        files.push((format!("{name}/{path}"), 0o644, bytes));
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let path = format!("{name}-{}.dist-info/licenses/{licence}", release.version);
        files.push((path, 0o644, release.read(licence)?));
    }
    let cli = [
        "Provides-Extra: cli".to_owned(),
        format!(
            "Requires-Dist: pinion-agent-cli=={}; extra == \"cli\"",
            release.version
        ),
    ];
    let readme = release.template(&format!("{PYTHON}/README.md"))?;
    let summary = "Client for the headless coding agent Pinion";
    let metadata = metadata(release, "pinion-agent", summary, ">=3.9", &cli, &readme);
    Wheel {
        name,
        tag: "py3-none-any".to_owned(),
        metadata,
        pure: true,
        files,
    }
    .write(release)
}

/// Makes the npm package of the JavaScript client.
pub(crate) fn typescript(release: &Release) -> Result<Artefact> {
    let folder = release.root.join(TYPESCRIPT);
    let mut manifest: Value = serde_json::from_slice(&release.read(&format!("{TYPESCRIPT}/package.json"))?)?;
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.insert("version".to_owned(), release.version.as_str().into());
        manifest.remove("scripts");
    }
    let mut files = vec![Entry::file(
        "package.json",
        0o644,
        serde_json::to_string_pretty(&manifest)? + "\n",
    )];
    files.push(Entry::file(
        "README.md",
        0o644,
        release.template(&format!("{TYPESCRIPT}/README.md"))?,
    ));
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        files.push(Entry::file(licence, 0o644, release.read(licence)?));
    }
    for (path, bytes) in sources(&folder.join("src"))? {
        files.push(Entry::file(format!("src/{path}"), 0o644, bytes));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let bytes = gzip(&tar(&files, "package/", release.seconds)?)?;
    release.write(
        format!("pinion-agent-{}.tgz", release.version),
        &bytes,
        names(&files),
    )
}

/// Reads the source files in a folder, which has no folders of its own but caches.
fn sources(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.push((name, std::fs::read(entry.path())?));
        }
    }
    found.sort();
    Ok(found)
}
