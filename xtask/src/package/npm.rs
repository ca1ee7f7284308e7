//! The npm packages of the program.
//!
//! `@pinion-agent/cli` has a launcher and names one package for each target as an optional dependency, so that npm
//! installs only the matching package and nothing is downloaded later. `@pinion-agent/pi` adds the command `pi`; it is a package
//! of its own because only the user may decide to replace the original.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::archive::{Entry, gzip, tar};
use super::contents::{Contents, THIRD_PARTY, names};
use super::target::Target;
use super::{Artefact, Release};

const SCOPE: &str = "@pinion-agent";

/// Makes the package of this target, and the two that are the same for all targets.
pub(crate) fn packages(release: &Release, contents: &Contents) -> Result<Vec<Artefact>> {
    Ok(vec![
        platform(release, contents)?,
        main(release, contents)?,
        pi(release, contents)?,
    ])
}

fn platform(release: &Release, contents: &Contents) -> Result<Artefact> {
    let target = release.target;
    let suffix = target.npm();
    let mut manifest = manifest(
        release,
        &format!("cli-{suffix}"),
        &format!(
            "The program of Pinion, a headless coding agent, for {}",
            target.triple
        ),
    );
    manifest.insert("os".to_owned(), json!([target.npm_os()]));
    manifest.insert("cpu".to_owned(), json!([target.npm_cpu()]));
    if let Some(libc) = target.npm_libc() {
        manifest.insert("libc".to_owned(), json!([libc]));
    }
    manifest.insert("preferUnplugged".to_owned(), true.into());
    let readme = format!(
        "# {SCOPE}/cli-{suffix}\n\nThe program of [Pinion](https://www.npmjs.com/package/{SCOPE}/cli) for {}. Install `{SCOPE}/cli`.\n",
        target.triple
    );
    let files = vec![
        Entry::file("README.md", 0o644, readme),
        Entry::file(THIRD_PARTY, 0o644, contents.document(THIRD_PARTY)?),
        Entry::file("bin/pinion", 0o755, contents.program.clone()),
    ];
    pack(release, contents, &format!("cli-{suffix}"), manifest, files)
}

fn main(release: &Release, contents: &Contents) -> Result<Artefact> {
    let mut manifest = manifest(
        release,
        "cli",
        "Pinion, a headless coding agent that works with clients of pi --mode rpc",
    );
    let optional: Map<String, Value> = Target::all()
        .iter()
        .map(|target| (format!("{SCOPE}/cli-{}", target.npm()), json!(release.version)))
        .collect();
    manifest.insert("bin".to_owned(), json!({"pinion": "bin/pinion.js"}));
    manifest.insert(
        "exports".to_owned(),
        json!({".": "./index.js", "./launch": "./launch.js"}),
    );
    manifest.insert("engines".to_owned(), json!({"node": ">=18"}));
    manifest.insert("optionalDependencies".to_owned(), Value::Object(optional));
    let mut files = Vec::new();
    for (name, mode) in [
        ("README.md", 0o644),
        ("index.js", 0o644),
        ("launch.js", 0o644),
        ("bin/pinion.js", 0o755),
    ] {
        files.push(Entry::file(
            name,
            mode,
            release.template(&format!("packaging/npm/{name}"))?,
        ));
    }
    pack(release, contents, "cli", manifest, files)
}

fn pi(release: &Release, contents: &Contents) -> Result<Artefact> {
    let mut manifest = manifest(release, "pi", "The command pi, answered by Pinion");
    manifest.insert("bin".to_owned(), json!({"pi": "pi.js"}));
    manifest.insert("engines".to_owned(), json!({"node": ">=18"}));
    manifest.insert(
        "dependencies".to_owned(),
        json!({format!("{SCOPE}/cli"): release.version}),
    );
    let mut files = Vec::new();
    for (name, mode) in [("README.md", 0o644), ("pi.js", 0o755)] {
        files.push(Entry::file(
            name,
            mode,
            release.template(&format!("packaging/npm/pi/{name}"))?,
        ));
    }
    pack(release, contents, "pi", manifest, files)
}

fn manifest(release: &Release, name: &str, description: &str) -> Map<String, Value> {
    let mut manifest = Map::new();
    let mut set = |key: &str, value: Value| manifest.insert(key.to_owned(), value);
    set("name", format!("{SCOPE}/{name}").into());
    set("version", release.version.as_str().into());
    set("description", description.into());
    set("license", "MIT OR Apache-2.0".into());
    set("homepage", env!("CARGO_PKG_REPOSITORY").into());
    set(
        "repository",
        json!({"type": "git", "url": concat!("git+", env!("CARGO_PKG_REPOSITORY"), ".git")}),
    );
    manifest
}

/// Writes a package as `npm pack` would name it.
fn pack(
    release: &Release,
    contents: &Contents,
    name: &str,
    manifest: Map<String, Value>,
    mut files: Vec<Entry>,
) -> Result<Artefact> {
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        files.push(Entry::file(licence, 0o644, contents.document(licence)?));
    }
    let text = serde_json::to_string_pretty(&Value::Object(manifest))? + "\n";
    files.push(Entry::file("package.json", 0o644, text));
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let bytes = gzip(&tar(&files, "package/", release.seconds)?)?;
    let file = format!("pinion-agent-{name}-{}.tgz", release.version);
    release.write(file, &bytes, names(&files))
}
