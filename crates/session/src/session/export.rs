//! Writes the session to a file for people. How it looks is the business of the crate `export`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use export::{ExportError, ExportInput, Format};
use store::SessionLog;
use wire::reply::Exported;
use wire::{Entry, SessionHeader, ToolSpec};

/// An export that is ready to be written. A long session takes a moment, so writing runs in a task.
pub(super) struct Export {
    /// The path as it is reported.
    path: String,
    target: PathBuf,
    header: SessionHeader,
    entries: Vec<Arc<Entry>>,
    leaf: Option<String>,
    name: Option<String>,
    system_prompt: String,
    tools: Vec<ToolSpec>,
    makes_directories: bool,
}

impl Export {
    /// The export of a session to `path`, or to a file named after the session. If `is_lenient`, as in oh-my-pi, missing directories of
    /// the path are made, and a session without messages is exported.
    ///
    /// # Errors
    /// When there is nothing to export.
    pub(super) fn new(
        log: &SessionLog,
        path: Option<String>,
        cwd: &Path,
        system_prompt: String,
        tools: Vec<ToolSpec>,
        is_lenient: bool,
    ) -> Result<Self, String> {
        match export::check(log) {
            Err(ExportError::NothingToExport) if is_lenient => {}
            checked => checked.map_err(|error| error.to_string())?,
        }
        let default = || {
            // `check` has refused a session without a file.
            let file = log.path().unwrap_or(Path::new(""));
            export::default_name(file, Format::Html)
        };
        let path = path.filter(|path| !path.is_empty()).unwrap_or_else(default);
        Ok(Self {
            // The response repeats the path of the command, and not that of the file (behaviour.md 9.9).
            target: cwd.join(&path),
            path,
            header: log.header().clone(),
            // A copy of the list, since the session goes on while the file is written.
            entries: log.entries().to_vec(),
            leaf: log.leaf_id().map(str::to_owned),
            name: log.session_name().map(str::to_owned),
            system_prompt,
            tools,
            makes_directories: is_lenient,
        })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) async fn write(self) -> Result<Exported, String> {
        let path = self.path.clone();
        let written = tokio::task::spawn_blocking(move || {
            if self.makes_directories {
                make_directory_of(&self.target)?;
            }
            let input = ExportInput {
                header: &self.header,
                entries: &self.entries,
                leaf_id: self.leaf.as_deref(),
                system_prompt: Some(&self.system_prompt),
                tools: &self.tools,
                name: self.name.as_deref(),
            };
            export::write_file(&self.target, Format::of_path(&self.target), &input)
        });
        match written.await {
            Ok(Ok(_)) => Ok(Exported { path }),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Makes the missing directories of a path.
fn make_directory_of(path: &Path) -> Result<(), ExportError> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.map_err(|source| ExportError::Io {
        action: "cannot make the directory of",
        path: path.to_path_buf(),
        source,
    })
}
