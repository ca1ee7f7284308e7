//! Looking around on disk for the person in front of a client, beside the session: directories to work in (web.md 1.5), files
//! to name in a message. Nothing here is asked by the model, so neither permissions nor the sandbox have a say.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use wire::looking::{Directory, DirectoryEntry, DirectoryParams, FindFilesParams, FoundFile, FoundFiles};
use wire::table::Respond;

use crate::limits;
use crate::outbox::{ClientId, Responder};
use crate::strings;

use super::Session;

/// What clients look for, each its newest query, oldest first.
#[derive(Default)]
pub(super) struct Looking(VecDeque<(ClientId, CancellationToken)>);

impl Looking {
    /// A client asks for something else now. When too many look at the same time the oldest query ends.
    fn begin(&mut self, client: ClientId) -> CancellationToken {
        let token = CancellationToken::new();
        self.0.retain(|(other, before)| {
            if *other == client {
                before.cancel();
            }
            *other != client
        });
        if self.0.len() >= limits::LOOKING
            && let Some((_, oldest)) = self.0.pop_front()
        {
            oldest.cancel();
        }
        self.0.push_back((client, token.clone()));
        token
    }
}

impl Session {
    pub(super) fn list_directory(&self, responder: Responder<Directory>, params: DirectoryParams) {
        let home = self.agent.options.resources.home.clone();
        let cwd = self.cwd.clone();
        tokio::spawn(async move {
            let path = absolute(&params.path, &cwd, home.as_deref());
            let listing = tokio::task::spawn_blocking(move || list(&path));
            let outcome = match tokio::time::timeout(limits::LIST_WAIT, listing).await {
                Ok(Ok(listed)) => listed,
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(strings::LIST_TOO_SLOW.to_owned()),
            };
            responder.respond(outcome).await;
        });
    }

    /// The directory that a person means, which is there.
    pub(super) fn directory(&self, text: &str) -> Result<PathBuf, String> {
        let home = self.agent.options.resources.home.as_deref();
        let path = absolute(text, &self.cwd, home);
        must_be_directory(&path).map(|()| path)
    }

    pub(super) fn find_files(&mut self, responder: Responder<FoundFiles>, params: FindFilesParams) {
        let cwd = self.cwd.clone();
        let cancel = self.looking.begin(responder.origin().client);
        let limit = params.limit.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit
            .unwrap_or(limits::FOUND_FILES)
            .clamp(1, limits::FOUND_FILES_MAX);
        tokio::spawn(async move {
            let until = Instant::now() + limits::FIND_WAIT;
            let looking = tokio::task::spawn_blocking(move || {
                tools::complete(&cwd, &params.query, limit, until, &cancel)
            });
            // What a file system that hangs still finds interests nobody.
            let found = tokio::time::timeout(limits::LIST_WAIT, looking).await;
            let outcome = match found {
                Ok(Ok(found)) => Ok(answer(found)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(strings::LIST_TOO_SLOW.to_owned()),
            };
            responder.respond(outcome).await;
        });
    }
}

fn answer(found: tools::Completed) -> FoundFiles {
    let files = found.files.into_iter().map(|file| FoundFile {
        path: file.path,
        is_directory: file.is_directory,
    });
    FoundFiles {
        files: files.collect(),
        truncated: found.truncated,
    }
}

/// The path that a person means; nothing means home.
fn absolute(text: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let home = home.unwrap_or(cwd);
    let path = match text.strip_prefix('~') {
        None if text.is_empty() => home.to_path_buf(),
        Some("") => home.to_path_buf(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => cwd.join(text),
    };
    normalized(&path)
}

/// Without `.` and `..`, as a person reads a path: a link's parent is where the link is.
fn normalized(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn must_be_directory(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(strings::no_directory(path)),
        Err(_) => Err(strings::no_path(path)),
    }
}

/// The directories in a directory. Links to directories count as such.
fn list(path: &Path) -> Result<Directory, String> {
    must_be_directory(path)?;
    let shown = path.to_string_lossy().into_owned();
    let found = fs::read_dir(path).map_err(|error| format!("Cannot read directory: {shown}: {error}"))?;
    let names = found.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_shown = !name.starts_with('.')
            && match entry.file_type() {
                Ok(kind) if kind.is_symlink() => fs::metadata(entry.path()).is_ok_and(|found| found.is_dir()),
                Ok(kind) => kind.is_dir(),
                Err(_) => false,
            };
        is_shown.then_some(name)
    });
    let mut names: Vec<String> = names.take(limits::LISTED_DIRECTORIES).collect();
    names.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
    let entries = names.into_iter().map(|name| DirectoryEntry {
        name,
        is_directory: true,
    });
    Ok(Directory {
        absolute_path: shown,
        entries: entries.collect(),
    })
}
