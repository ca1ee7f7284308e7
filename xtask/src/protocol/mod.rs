//! `xtask gen`: writes `protocol/schema.json`, `types.d.ts`, `PROTOCOL.md`, `EXTENSIONS.md`, `COMPATIBILITY.md` and the types of the SDKs from the
//! types and tables of `wire`, and `docs/PROVIDERS.md` from what the tests of `llm` have shown, or compares them with what is
//! checked in.
//!
//! Here: which files there are. The schema itself is made in `wire::schema`; examples are written by hand or recorded.

mod compatibility;
mod examples;
mod page;
mod providers;
mod python;
mod typescript;
mod view;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

pub use examples::{Examples, Kind, fenced_lines};

use crate::out::{complain, say};

/// A generated file: its path, seen from `protocol/`, and its text.
pub type File = (&'static str, String);

/// All generated files, as they should be.
///
/// # Errors
/// When an example is unreadable, or two types have one name.
pub fn files(root: &Path) -> Result<Vec<File>> {
    let document = wire::schema::document().map_err(|text| anyhow!(text))?;
    let examples = Examples::load(&root.join("protocol/examples"))?;
    let mut schema = serde_json::to_string_pretty(&document)?;
    schema.push('\n');
    Ok(vec![
        ("schema.json", schema),
        ("types.d.ts", typescript::render(&document)),
        ("PROTOCOL.md", page::render(&document, &examples)),
        ("EXTENSIONS.md", extensions(root)?),
        (
            "../sdk/typescript/src/protocol.d.ts",
            typescript::render(&document),
        ),
        ("../sdk/python/pinion_agent/protocol.py", python::types(&document)),
        ("COMPATIBILITY.md", compatibility::render(&document)),
        ("../docs/PROVIDERS.md", providers::render(root)?),
        (
            "../sdk/python/pinion_agent/commands.py",
            python::methods(&document),
        ),
    ])
}

/// The page about extensions that are programs.
fn extensions(root: &Path) -> Result<String> {
    let read = |path: String| {
        let path = root.join(path);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let examples = page::extensions::EXAMPLES;
    Ok(page::extensions::render(
        &door::reference::document(),
        &read("examples/programs/minimal.py".to_owned())?,
        &read(format!("{examples}/agent.jsonl"))?,
        &read(format!("{examples}/program.jsonl"))?,
    ))
}

/// Names of the files that differ from what is checked in.
///
/// # Errors
/// Those of [`files`].
pub fn stale(root: &Path) -> Result<Vec<&'static str>> {
    let differs = |(name, text): File| {
        let known = fs::read_to_string(root.join("protocol").join(name)).unwrap_or_default();
        (known != text).then_some(name)
    };
    Ok(files(root)?.into_iter().filter_map(differs).collect())
}

/// The chore; false when `check` found a difference.
///
/// # Errors
/// When a file cannot be read or written.
pub fn run(root: &Path, check: bool) -> Result<bool> {
    if check {
        let stale = stale(root)?;
        for name in &stale {
            complain(&format!(
                "protocol/{name} is out of date: run `cargo run -p xtask -- gen`"
            ));
        }
        return Ok(stale.is_empty());
    }
    for (name, text) in files(root)? {
        let path = root.join("protocol").join(name);
        fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("protocol/{name}: {} bytes", text.len()));
    }
    Ok(true)
}
