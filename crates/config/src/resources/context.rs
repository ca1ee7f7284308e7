//! Context files: instructions for agents in the project and above (pi-core.md 6.2). How they appear in the prompt is `system_prompt`'s business.

use std::path::{Path, PathBuf};

use files::{Boundaries, Root, is_absent};

use crate::diagnostic::Diagnostic;
use crate::resources::limits;

/// Per directory the first of these that can be read counts; the override replaces its neighbours.
const NAMES: [&str; 5] = [
    "AGENTS.override.md",
    "AGENTS.md",
    "AGENTS.MD",
    "CLAUDE.md",
    "CLAUDE.MD",
];

/// A file whose text goes into every system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Absolute when the directories given were.
    pub path: PathBuf,
    /// Its text, at most [`limits::CONTEXT_FILE_BYTES`].
    pub content: String,
}

/// The context files: the one of `agent_dir` first, then from the root of the file system down to `cwd`. The one of `agent_dir` is
/// the user's own; each of the others must lie in the repository of its directory, or in the directory itself.
#[must_use]
pub fn context_files(
    agent_dir: &Path,
    cwd: &Path,
    boundaries: &Boundaries,
) -> (Vec<ContextFile>, Vec<Diagnostic>) {
    let mut files: Vec<ContextFile> = Vec::new();
    let mut notes = Vec::new();
    let mut directories = vec![agent_dir];
    let mut ancestors: Vec<&Path> = cwd.ancestors().take(limits::ANCESTORS).collect();
    ancestors.reverse();
    directories.extend(ancestors);
    for directory in directories {
        let root = if directory == agent_dir {
            Root::user()
        } else {
            boundaries.project(directory)
        };
        if let Some(file) = context_file(directory, &root, &mut notes)
            && !files.iter().any(|known| known.path == file.path)
        {
            files.push(file);
        }
    }
    (files, notes)
}

fn context_file(directory: &Path, root: &Root, notes: &mut Vec<Diagnostic>) -> Option<ContextFile> {
    NAMES.iter().find_map(|name| {
        let path = directory.join(name);
        match root.read(&path, limits::CONTEXT_FILE_BYTES) {
            Ok(text) => {
                if text.cut {
                    let kib = limits::CONTEXT_FILE_BYTES / 1024;
                    notes.push(Diagnostic::new(
                        &path,
                        format!("only the first {kib} KiB are used"),
                    ));
                }
                Some(ContextFile {
                    path,
                    content: text.text,
                })
            }
            Err(error) => {
                if !is_absent(&error) {
                    notes.push(Diagnostic::left_out(
                        &path,
                        format!("could not read context file: {error}"),
                    ));
                }
                None
            }
        }
    })
}
