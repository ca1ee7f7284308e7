//! Opening the file of a session: a new one, a stored one, a copy; and the directory that the session works in.

use std::path::{Path, PathBuf};

use store::{ForkScope, SessionLog, StoreError};
use tokio::time::{Instant, sleep};
use wire::SessionHeader;

use crate::error::SessionError;
use crate::factory::Agent;
use crate::limits::{LOCK_PAUSE, LOCK_WAIT};
use crate::off_thread::off_thread;

/// Which session to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// A new one, with this id if given.
    New {
        /// Id of the new session.
        id: Option<String>,
    },
    /// The one in this file; a file that is missing becomes a new session at that path.
    File(PathBuf),
    /// The same, but one whose working directory is gone works in the agent's, and a file with nothing in it is refused.
    Stored(PathBuf),
    /// A new one with everything that is in this file, all branches (`--fork`).
    Fork {
        /// The file to copy from.
        source: PathBuf,
        /// Id of the new session.
        id: Option<String>,
    },
}

/// The header and the file of a session that has not begun.
pub(super) struct NewSession {
    pub(super) header: SessionHeader,
    /// Its file, which does not exist yet; none if sessions are not kept.
    pub(super) path: Option<PathBuf>,
}

impl NewSession {
    /// A session with a file of its own in `dir`.
    pub(super) fn new(dir: Option<PathBuf>, cwd: &Path, parent: Option<&str>, id: Option<&str>) -> Self {
        let mut header = store::new_header(&cwd.to_string_lossy(), parent);
        if let Some(id) = id {
            id.clone_into(&mut header.id);
        }
        let path = dir.map(|dir| dir.join(store::paths::file_name(&header.timestamp, &header.id)));
        Self { header, path }
    }

    /// Its log without entries.
    ///
    /// # Errors
    /// When the file exists already or another process has it.
    pub(super) fn log(self) -> Result<SessionLog, SessionError> {
        Ok(SessionLog::create(self.path, self.header)?)
    }
}

/// A copy of a session for the working directory of the agent, on disk at once like every fork.
pub(super) fn forked_log(agent: &Agent, source: &Path, id: Option<&str>) -> Result<SessionLog, SessionError> {
    // Nothing is asked of the source but to be read: it may be old, or open in another process.
    let log = store::open_read_only(source)?;
    let dir = agent.session_dir(&agent.cwd);
    let new = NewSession::new(dir, &agent.cwd, Some(&source.to_string_lossy()), id);
    let mut fork = log.fork(new.path, new.header, ForkScope::All)?;
    fork.ensure_on_disk()?;
    Ok(fork)
}

/// Opens a session, and tries again for up to [`LOCK_WAIT`] while another process has its file open. Clients that restart the agent
/// start the new process before the old one has ended, since pi has no locks.
///
/// # Errors
/// The last error of `open`.
pub async fn when_closed<T>(
    mut open: impl AsyncFnMut() -> Result<T, SessionError>,
) -> Result<T, SessionError> {
    let begin = Instant::now();
    loop {
        match open().await {
            Err(SessionError::Store(StoreError::Locked { .. })) if begin.elapsed() < LOCK_WAIT => {
                sleep(LOCK_PAUSE).await;
            }
            opened => return opened,
        }
    }
}

/// Waits for up to [`LOCK_WAIT`] while another writer has the file open.
pub(super) async fn closed(path: PathBuf) {
    let begin = Instant::now();
    while begin.elapsed() < LOCK_WAIT && is_locked(path.clone()).await {
        sleep(LOCK_PAUSE).await;
    }
}

/// Returns true if another writer has the file open.
pub(super) async fn is_locked(path: PathBuf) -> bool {
    off_thread(move || store::is_locked(&path)).await
}

/// What becomes of a file with nothing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// A new session: the user named it on the command line, as in pi.
    Begins,
    /// It is another program's: a client named it.
    IsRefused,
}

/// The session in a file, and the directory it works in: `spare`, if there is one, when its own is gone. A missing file becomes
/// a new session at that path.
pub(super) fn open_log(
    path: &Path,
    cwd: &Path,
    spare: Option<&Path>,
    empty: Empty,
) -> Result<(SessionLog, PathBuf), SessionError> {
    let text = cwd.to_string_lossy();
    if !path.exists() {
        // As in pi (behaviour.md 9.4). A page, which must not make files, has checked the path before (`switch_session`).
        let header = store::new_header(&text, None);
        return Ok((
            SessionLog::create(Some(path.to_path_buf()), header)?,
            cwd.to_path_buf(),
        ));
    }
    // Without the texts of a large file: often only the state is wanted (docs/internals/decisions/39-texts-on-demand.md).
    let log = store::open_deferred(path, &text, empty == Empty::IsRefused)?;
    let stored = stored_cwd(&log, path, cwd, spare)?;
    Ok((log, stored))
}

/// The directory that a session says it works in; `cwd` when it says nothing, `spare` when that one is gone.
pub(super) fn stored_cwd(
    log: &SessionLog,
    path: &Path,
    cwd: &Path,
    spare: Option<&Path>,
) -> Result<PathBuf, SessionError> {
    let stored = &log.header().cwd;
    let stored = if stored.is_empty() {
        cwd.to_path_buf()
    } else {
        PathBuf::from(stored)
    };
    match (Agent::check_cwd(&stored, path, cwd), spare) {
        (Err(_), Some(spare)) if spare.is_dir() => Ok(spare.to_path_buf()),
        (checked, _) => checked.map(|()| stored),
    }
}

impl Agent {
    /// May a session work in this directory?
    pub(crate) fn check_cwd(stored: &Path, file: &Path, current: &Path) -> Result<(), SessionError> {
        if stored.is_dir() {
            return Ok(());
        }
        Err(SessionError::MissingCwd {
            stored: stored.to_path_buf(),
            file: file.to_path_buf(),
            current: current.to_path_buf(),
        })
    }
}
