//! Methods of the Rust and TypeScript SDKs for the commands that no method written by hand sends. A command that a later version of the
//! agent gets has a method by itself. The Python SDK has generated methods only (`python::methods`).
//!
//! Here: which commands need a method. `rust` and `javascript` write the methods.

mod javascript;
mod rust;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use wire::table::{CommandSpec, TABLE};

pub(super) use javascript::{declarations, render as javascript};
pub(super) use rust::render as rust;

/// What stands before the name of a command in sources of the SDKs that send it.
const SENT_AFTER: [&str; 5] = ["call(", "call_raw(", ">(", " = ", "handle(), "];

/// The commands that the sources of a folder do not send.
///
/// # Errors
/// When a source cannot be read.
pub(super) fn missing(folder: &Path, generated: &str) -> Result<Vec<&'static CommandSpec>> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let is_source = path
            .extension()
            .is_some_and(|kind| kind == "rs" || kind == "js" || kind == "py");
        if is_source && path.file_stem().is_none_or(|stem| stem != generated) {
            let text = fs::read_to_string(&path);
            sources.push(text.with_context(|| format!("cannot read {}", path.display()))?);
        }
    }
    let is_missing = |spec: &&CommandSpec| !sources.iter().any(|source| sends(source, spec.name));
    Ok(TABLE.iter().filter(is_missing).collect())
}

/// Returns true if the source sends the command.
fn sends(source: &str, command: &str) -> bool {
    SENT_AFTER
        .iter()
        .any(|before| source.contains(&format!("{before}\"{command}\"")))
}

/// `get_limits` as `getLimits`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |out, word| {
        let mut letters = word.chars();
        let upper = letters.next().into_iter().flat_map(char::to_uppercase);
        out + &upper.chain(letters).collect::<String>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_method_in_each_sdk() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for folder in [
            "crates/client/src",
            "sdk/typescript/src",
            "sdk/python/pinion_agent",
        ] {
            let missing = missing(&root.join(folder), "").unwrap();
            let names: Vec<&str> = missing.iter().map(|spec| spec.name).collect();
            assert_eq!(names, [""; 0], "{folder}");
        }
    }

    #[test]
    fn commands_sent_by_sources_are_recognised() {
        for source in [
            "return this.call(\"fork\", { entryId });",
            "self.call::<Value>(\"fork\", &())",
            "fork(entry: &str) = \"fork\", json!({}) => Forked;",
        ] {
            assert!(sends(source, "fork"), "{source}");
        }
        assert!(!sends("const SLOW = new Set([\"fork\"]);", "fork"));
        assert!(!sends("this.call(\"get_fork_messages\")", "fork"));
        assert_eq!(camel("get_last_assistant_text"), "getLastAssistantText");
    }
}
