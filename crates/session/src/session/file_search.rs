//! Directories to work in and files to name in a message, read for the user of a client. The model asks for none of this, so
//! neither permissions nor the sandbox apply.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use wire::looking::{Directory, DirectoryEntry, FindFilesParams, FoundFile, FoundFiles};

use crate::limits;
use crate::outbox::ClientId;
use crate::strings;

/// The newest `find_files` of each client, oldest first. A client that types sends one with every key.
#[derive(Default)]
pub(super) struct NewestQueries(VecDeque<(ClientId, CancellationToken)>);

impl NewestQueries {
    /// Cancels the query before of this client and, when too many clients search at once, the oldest one. Returns the token of
    /// the new query.
    pub(super) fn begin(&mut self, client: ClientId) -> CancellationToken {
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
        // It stays when the search has ended, which nothing reports here: to cancel it then changes nothing.
        self.0.push_back((client, token.clone()));
        token
    }
}

/// Lists the directories in the directory that a user means by `text`.
///
/// # Errors
/// When it is no directory, cannot be read, or the disk is too slow.
pub(super) async fn list_directory(
    text: String,
    cwd: PathBuf,
    home: Option<PathBuf>,
) -> Result<Directory, String> {
    let path = absolute(&text, &cwd, home.as_deref());
    let listing = tokio::task::spawn_blocking(move || list(&path));
    match tokio::time::timeout(limits::LIST_WAIT, listing).await {
        Ok(Ok(listed)) => listed,
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(strings::LIST_TOO_SLOW.to_owned()),
    }
}

/// The existing directory that a user means by `text`.
///
/// # Errors
/// When there is none.
pub(super) fn directory(text: &str, cwd: &Path, home: Option<&Path>) -> Result<PathBuf, String> {
    let path = absolute(text, cwd, home);
    must_be_directory(&path).map(|()| path)
}

/// Finds the files that match a query, until `cancel` or the time limit ends it.
///
/// # Errors
/// When the disk is too slow.
pub(super) async fn find_files(
    params: FindFilesParams,
    cwd: PathBuf,
    cancel: CancellationToken,
) -> Result<FoundFiles, String> {
    let limit = params.limit.and_then(|limit| usize::try_from(limit).ok());
    let limit = limit
        .unwrap_or(limits::FOUND_FILES)
        .clamp(1, limits::FOUND_FILES_MAX);
    let until = Instant::now() + limits::FIND_WAIT;
    let search =
        tokio::task::spawn_blocking(move || tools::complete(&cwd, &params.query, limit, until, &cancel));
    // A hanging file system keeps the blocking thread, but not the client.
    match tokio::time::timeout(limits::LIST_WAIT, search).await {
        Ok(Ok(found)) => Ok(answer(found)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(strings::LIST_TOO_SLOW.to_owned()),
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

/// The path that a user means; an empty text means home.
fn absolute(text: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let home = home.unwrap_or(cwd);
    let path = match text.strip_prefix('~') {
        None if text.is_empty() => home.to_path_buf(),
        Some("") => home.to_path_buf(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        // `~name` is an ordinary name here: home directories of other users are not looked up.
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
        // Without hidden ones, as in the fork that the command comes from (docs/internals/specifications/web.md).
        let is_shown = !name.starts_with('.')
            && match entry.file_type() {
                // The types of entries do not follow links.
                Ok(kind) if kind.is_symlink() => fs::metadata(entry.path()).is_ok_and(|found| found.is_dir()),
                Ok(kind) => kind.is_dir(),
                Err(_) => false,
            };
        is_shown.then_some(name)
    });
    // Bounded before it is sorted: a directory may have millions of entries.
    let mut names: Vec<String> = names.take(limits::LISTED_DIRECTORIES).collect();
    // The name itself decides between names that differ in case only, so that the order is always the same.
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
