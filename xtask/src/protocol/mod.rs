//! `xtask gen`: writes all generated files, or compares them with those in the repository: the schema, types and pages
//! of the protocol from the types and tables of `wire`, the protocol modules of the SDKs, and the other reference pages
//! (`reference`).
//!
//! Here: the list of files. `wire::schema` makes the schema; examples are written by hand or recorded.

mod acp;
mod compatibility;
mod examples;
mod methods;
mod page;
mod python;
mod typescript;
pub(crate) mod view;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

pub use examples::{Examples, Kind, fenced_lines};
pub(crate) use page::contents as pages;
pub(crate) use page::conversation;

use crate::out::{complain, say};
use crate::reference;

/// A generated file: its path, seen from the root, and its text.
pub type File = (String, String);

/// All generated files, as they should be.
///
/// # Errors
/// When an example is unreadable, or two types have one name.
pub fn files(root: &Path) -> Result<Vec<File>> {
    let document = wire::schema::document().map_err(|text| anyhow!(text))?;
    let examples = Examples::load(&root.join("protocol/examples"))?;
    let mut schema = serde_json::to_string_pretty(&document)?;
    schema.push('\n');
    let types = typescript::render(&document);
    let compatibility = compatibility::render(&document) + &acp::render(&root.join("protocol"))?;
    let mut files = vec![
        file("protocol/schema.json", schema),
        file("protocol/types.d.ts", types.clone()),
        file("protocol/COMPATIBILITY.md", compatibility),
        file("sdk/typescript/src/protocol.d.ts", types),
        file("sdk/python/pinion_agent/protocol.py", python::types(&document)),
        file("sdk/python/pinion_agent/commands.py", python::methods(&document)),
        file("docs/reference/extension-protocol.md", extensions(root)?),
    ];
    let (rust, script) = ("crates/client/src", "sdk/typescript/src");
    let missing = methods::missing(&root.join(rust), "generated")?;
    files.push(file(&format!("{rust}/generated.rs"), methods::rust(&missing)));
    let missing = methods::missing(&root.join(script), "commands")?;
    let (code, declarations) = (
        methods::javascript(&document, &missing),
        methods::declarations(&document, &missing),
    );
    files.push(file(&format!("{script}/commands.js"), code));
    files.push(file(&format!("{script}/commands.d.ts"), declarations));
    files.extend(page::render(&document, &examples));
    files.extend(reference::files(root, &compatibility::sent(&document))?);
    if let Some(summary) = reference::summary(root) {
        files.push(file("docs/SUMMARY.md", summary));
    }
    Ok(files)
}

fn file(path: &str, text: String) -> File {
    (path.to_owned(), text)
}

/// The page about extensions that are programs.
fn extensions(root: &Path) -> Result<String> {
    let read = |path: String| {
        let path = root.join(path);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let examples = page::extensions::EXAMPLES;
    Ok(page::extensions::render(
        &extensions::reference::document(),
        &read("examples/programs/minimal.py".to_owned())?,
        &read(format!("{examples}/agent.jsonl"))?,
        &read(format!("{examples}/program.jsonl"))?,
    ))
}

/// Names of the files that differ from those in the repository.
///
/// # Errors
/// Those of [`files`].
pub fn stale(root: &Path) -> Result<Vec<String>> {
    let differs = |(name, text): File| {
        let known = fs::read_to_string(root.join(&name)).unwrap_or_default();
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
            complain(&format!("{name} is out of date: run `cargo run -p xtask -- gen`"));
        }
        return Ok(stale.is_empty());
    }
    for (name, text) in files(root)? {
        let path = root.join(&name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("{name}: {} bytes", text.len()));
    }
    Ok(true)
}
