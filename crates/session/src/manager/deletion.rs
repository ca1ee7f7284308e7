//! Deletes a stored session. The file is moved, not removed: it goes into `.trash` in the folder of the sessions,
//! on the same disk, with no tool of a desktop involved, so that a slip of the finger costs nothing on any machine. A name
//! that a client sends reaches nothing but session files where this agent keeps them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkpoints::directory_of;
use wire::looking::{DeleteSessionParams, DeletedSession};
use wire::reply::OpenSession;
use wire::table::Respond;

use crate::factory::{Agent, SessionHome};
use crate::outbox::Responder;
use crate::session::subagents_dir;
use crate::strings;

use super::SessionManager;

impl SessionManager {
    /// Deletes a session that is not open.
    pub(super) fn delete(&mut self, responder: Responder<DeletedSession>, params: DeleteSessionParams) {
        let agent_for = Arc::clone(&self.agent_for);
        let described = self.described();
        tokio::spawn(async move {
            let outcome = match described.await {
                Some(open) => {
                    let deleting = tokio::task::spawn_blocking(move || {
                        let home = agent_for(Path::new(""))?;
                        discard(&home, &params.session_path, &open)
                    });
                    deleting.await.unwrap_or_else(|error| Err(error.to_string()))
                }
                // A session that does not answer may have the file open, so nothing is deleted.
                None => Err(strings::NO_ANSWER.to_owned()),
            };
            responder.respond(outcome).await;
        });
    }
}

/// Moves the file away, if it is a session where the agent keeps its sessions, and none of these.
fn discard(home: &Agent, path: &str, open: &[OpenSession]) -> Result<DeletedSession, String> {
    let path = home.cwd.join(path);
    // Not followed: a link without a target is a name that can be deleted.
    if path.symlink_metadata().is_err() {
        return Err(strings::NO_SESSION_FILE.to_owned());
    }
    // The directory without links decides; the name itself may be a link and must not lead elsewhere.
    let place = path.parent().and_then(|dir| dir.canonicalize().ok());
    let (Some(place), Some(name)) = (place, path.file_name()) else {
        return Err(strings::not_our_session(&path));
    };
    let is_session = Path::new(name)
        .extension()
        .is_some_and(|ending| ending == "jsonl");
    if !is_session || !keeps(home, &place) {
        return Err(strings::not_our_session(&path));
    }
    let real = place.join(name);
    let files = open.iter().filter_map(|session| session.session_file.as_ref());
    // Resolved, since a session may have opened the file by another path.
    let is_open = |file: &String| Path::new(file).canonicalize().is_ok_and(|file| file == real);
    if files.into_iter().any(is_open) {
        return Err(strings::session_is_open(&path));
    }
    // The store takes the lock of the file first: another process may have the session open.
    let trash = store::discard(&real).map_err(|error| match error {
        store::StoreError::Locked { .. } => strings::session_is_open(&path),
        error => error.to_string(),
    })?;
    // After the file, whose lock shows that no other process has the session open.
    move_along(&real, &trash, directory_of, "checkpoints");
    move_along(&real, &trash, subagents_dir, "sub-agents");
    Ok(DeletedSession {
        session_path: path.to_string_lossy().into_owned(),
        trash_path: trash.to_string_lossy().into_owned(),
    })
}

/// Moves a directory of a session along with its file, so that a session that is moved back has it.
fn move_along(from: &Path, to: &Path, directory: fn(&Path) -> PathBuf, what: &str) {
    let (from, to) = (directory(from), directory(to));
    // Most sessions have no such directory.
    if let Err(error) = std::fs::rename(&from, &to)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %from.display(), "the {what} of a deleted session stay");
    }
}

/// Does the agent keep sessions in this directory?
fn keeps(home: &Agent, place: &Path) -> bool {
    let is = |dir: PathBuf| dir.canonicalize().is_ok_and(|dir| dir == place);
    let is_own = match &home.options.sessions {
        SessionHome::One(dir) => is(dir.clone()),
        SessionHome::Memory | SessionHome::ByDirectory => false,
    };
    // The trash of sessions that lie in the root itself looks like a directory of sessions, too.
    let is_hidden = place
        .file_name()
        .is_none_or(|name| name.to_string_lossy().starts_with('.'));
    let above = place.parent().map(Path::to_path_buf);
    let root = store::paths::sessions_root(&home.agent_dir).canonicalize().ok();
    is_own || (!is_hidden && root.is_some() && above == root)
}
