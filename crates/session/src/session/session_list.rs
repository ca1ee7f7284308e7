//! Lists the stored sessions. Two thousand files must not hold up a stream, so this runs in a task: all texts are only read when
//! they are asked for, and everything else comes from a cache where nothing changed.

use std::path::{Path, PathBuf};

use store::{Listing, SessionSummary};
use wire::command::{ListParams, ListScope};
use wire::reply::{ListedSession, Sessions};

use crate::factory::Agent;

/// What listings remember, below the agent directory. It may be deleted at any time.
const SESSION_CACHE: &str = "cache/sessions";

/// Where sessions are listed.
pub(super) struct SessionList {
    cwd: PathBuf,
    /// Where the sessions of the working directory are.
    own: PathBuf,
    /// Where the sessions of all directories are.
    root: PathBuf,
    cache: PathBuf,
}

impl SessionList {
    /// The sessions that an agent sees from a working directory.
    pub(super) fn new(agent: &Agent, cwd: &Path) -> Self {
        let kept = agent.session_dir(cwd);
        // Without a place of their own (`--no-session`), clients still see the stored sessions of the directory.
        let usual = || store::paths::session_dir(&agent.agent_dir, &cwd.to_string_lossy());
        Self {
            cwd: cwd.to_path_buf(),
            own: kept.unwrap_or_else(usual),
            root: store::paths::sessions_root(&agent.agent_dir),
            cache: agent.agent_dir.join(SESSION_CACHE),
        }
    }

    /// Lists the sessions that `params` ask for, `current` first.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) async fn read(
        self,
        params: ListParams,
        current: Option<ListedSession>,
    ) -> Result<Sessions, String> {
        let found = tokio::task::spawn_blocking(move || self.find(&params)).await;
        let found = found.map_err(|error| error.to_string())?;
        let found = found.map_err(|error| error.to_string())?;
        let mut sessions: Vec<ListedSession> = found.into_iter().map(listed).collect();
        if let Some(current) = current {
            put_first(&mut sessions, current);
        }
        Ok(Sessions { sessions })
    }

    fn find(&self, params: &ListParams) -> Result<Vec<SessionSummary>, store::StoreError> {
        let how = if params.texts {
            Listing::WithTexts
        } else {
            Listing::Cached(&self.cache)
        };
        match params.scope {
            ListScope::All => all(&self.root, &self.own, how),
            ListScope::Cwd => {
                let mut found = store::list(&self.own, how)?;
                // With `--session-dir` one directory has the sessions of all working directories (pi-core.md 2.1).
                let cwd = self.cwd.to_string_lossy();
                found.retain(|session| session.cwd.is_empty() || session.cwd == cwd);
                Ok(found)
            }
        }
    }
}

/// The sessions of every directory in the usual place, and those of a directory elsewhere.
fn all(root: &Path, own: &Path, how: Listing<'_>) -> Result<Vec<SessionSummary>, store::StoreError> {
    let mut found = store::list_all(root, how)?;
    // A directory below the root is in the list already.
    if !own.starts_with(root) {
        found.extend(store::list(own, how)?);
        // Each of the two lists is sorted by itself. The newest session comes first (pi-core.md 2.8).
        found.sort_by_key(|session| std::cmp::Reverse(session.modified));
    }
    Ok(found)
}

/// The session with this id goes to the front, as it is listed, else as it is.
pub(super) fn put_first(sessions: &mut Vec<ListedSession>, current: ListedSession) {
    let found = sessions.iter().position(|session| session.id == current.id);
    let current = found.map_or(current, |place| sessions.remove(place));
    sessions.insert(0, current);
}

fn listed(found: SessionSummary) -> ListedSession {
    ListedSession {
        path: found.path.to_string_lossy().into_owned(),
        id: found.id,
        cwd: found.cwd,
        name: found.name,
        parent_session_path: found.parent_session_path,
        created: store::ms_to_iso(found.created),
        modified: store::ms_to_iso(found.modified),
        message_count: found.message_count,
        first_message: found.first_message,
        all_messages_text: found.all_messages_text.unwrap_or_default(),
    }
}
