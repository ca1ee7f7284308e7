//! Where the custom system prompt and the text appended to it come from (pi-core.md 6.1, last paragraph).

use std::path::Path;

use files::{Root, is_absent};

use crate::diagnostic::Diagnostic;
use crate::resources::ResourceOptions;
use crate::resources::limits;
use crate::source::resolve_path;

/// The texts a user put in place of, or after, the built-in prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptTexts {
    /// Replaces role, tool list and guidelines.
    pub custom: Option<String>,
    /// Follows; already joined by blank lines.
    pub append: Option<String>,
}

/// Finds both texts. A flag replaces the search for the file of the same purpose.
#[must_use]
pub fn prompt_texts(options: &ResourceOptions) -> (PromptTexts, Vec<Diagnostic>) {
    let mut notes = Vec::new();
    let custom = match &options.system_prompt {
        Some(given) => Some(file_or_text(given, options, &mut notes)),
        None => discovered("SYSTEM.md", options, &mut notes),
    };
    let append = if options.append_system_prompt.is_empty() {
        discovered("APPEND_SYSTEM.md", options, &mut notes)
    } else {
        let given = options.append_system_prompt.iter();
        let parts: Vec<String> = given
            .map(|text| file_or_text(text, options, &mut notes))
            .collect();
        Some(parts.join("\n\n"))
    };
    (PromptTexts { custom, append }, notes)
}

/// The content of the file, if there is one of that name, else the text itself.
fn file_or_text(given: &str, options: &ResourceOptions, notes: &mut Vec<Diagnostic>) -> String {
    if options.literal || given.is_empty() || given.contains(['\n', '\0']) {
        return given.to_owned();
    }
    let path = resolve_path(given, &options.cwd, options.home.as_deref());
    match Root::user().read(&path, limits::PROMPT_FILE_BYTES) {
        Ok(text) => {
            note_cut(&path, text.cut, notes);
            text.text
        }
        Err(error) => {
            // A long sentence is no path at all; only an existing file that cannot be read is worth a word.
            if !is_absent(&error) && path.exists() {
                notes.push(Diagnostic::left_out(
                    &path,
                    format!("could not read prompt file: {error}"),
                ));
            }
            given.to_owned()
        }
    }
}

fn discovered(name: &str, options: &ResourceOptions, notes: &mut Vec<Diagnostic>) -> Option<String> {
    let root = options.boundaries.project(&options.cwd);
    let dirs = options.project_dirs();
    let project = dirs.map(|dir| (root.clone(), dir.join(name)));
    let global = (Root::user(), options.agent_dir.join(name));
    project.chain([global]).find_map(|(root, path)| {
        match root.read_if_there(&path, limits::PROMPT_FILE_BYTES) {
            Ok(Some(text)) => {
                note_cut(&path, text.cut, notes);
                Some(text.text)
            }
            Ok(None) => None,
            Err(error) => {
                notes.push(Diagnostic::left_out(
                    &path,
                    format!("could not read prompt file: {error}"),
                ));
                None
            }
        }
    })
}

fn note_cut(path: &Path, cut: bool, notes: &mut Vec<Diagnostic>) {
    if cut {
        let kib = limits::PROMPT_FILE_BYTES / 1024;
        notes.push(Diagnostic::new(
            path,
            format!("only the first {kib} KiB are used"),
        ));
    }
}
