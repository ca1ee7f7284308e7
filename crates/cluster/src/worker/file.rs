//! The session file of a worker: a copy of the stored session that the agent appends to. What it appended goes to the store before
//! anything that was written after it reaches a client.

use std::fmt;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use store::{SessionId, SessionStore};

use super::agent_line::AgentLine;
use super::child::handle;
use crate::lines;

/// What the agent keeps next to a session file: the sessions of sub-agents and the checkpoints. The store does not have it.
const KEPT: [&str; 2] = ["subagents", "checkpoints"];
/// The note next to the kept directories: how many lines the session had when it left.
const LEFT: &str = "left";

/// This worker cannot write a session file, for example because its disk is full. Another worker may have room.
#[derive(Debug)]
pub(crate) struct NotWritten(PathBuf);

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be written", self.0.display())
    }
}

/// A session file and how much of it is stored.
#[derive(Debug)]
pub(crate) struct SessionFile {
    pub(crate) path: PathBuf,
    /// Working directory of the session.
    pub(crate) cwd: PathBuf,
    /// Bytes that are stored.
    stored: u64,
    /// Lines that are stored.
    position: u64,
}

impl SessionFile {
    /// Writes the file of a session as the store has it, and replaces what an earlier owner left. A session that is not stored yet
    /// begins with a header for the directory `cwd`.
    pub(crate) async fn fetch(
        store: &dyn SessionStore,
        session: &SessionId,
        dir: &Path,
        cwd: &Path,
    ) -> Result<Self> {
        let mut all: Vec<Vec<u8>> = Vec::new();
        loop {
            let more = store.load(session, all.len() as u64).await?;
            if more.is_empty() {
                break;
            }
            all.extend(more);
        }
        if all.is_empty() {
            let header = header(session, cwd);
            store.append(session, std::slice::from_ref(&header), 0).await?;
            all.push(header);
        }
        let cwd = check(session, all.first())?;
        let path = dir.join(format!("{}.jsonl", handle(session).encoded()));
        let (kept, position) = (path.clone(), all.len() as u64);
        // Not here, since checkpoints can be many files, and leases have to be renewed meanwhile.
        drop(tokio::task::spawn_blocking(move || check_kept(&kept, position)).await);
        let text = lines::join(&all);
        if let Err(error) = write(&path, &text) {
            // Nothing uses a part of it, and the disk may be full.
            drop(std::fs::remove_file(&path));
            return Err(error).context(NotWritten(path));
        }
        // Not before, or the next attempt to write the file would remove the kept entries.
        drop(std::fs::remove_file(path.with_extension(LEFT)));
        Ok(Self {
            path,
            cwd,
            stored: text.len() as u64,
            position,
        })
    }

    /// Stores the complete lines that were appended since.
    pub(crate) async fn sync(&mut self, store: &dyn SessionStore, session: &SessionId) -> Result<()> {
        let size = match std::fs::metadata(&self.path) {
            Ok(found) => found.len(),
            Err(error) => bail!("{} is gone: {error}", self.path.display()),
        };
        if size < self.stored {
            bail!("{} is shorter than what was stored", self.path.display());
        }
        if size == self.stored {
            return Ok(());
        }
        // Blocking, since these are the last few kilobytes that the agent wrote a moment ago.
        let mut file = std::fs::File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.stored))?;
        let mut text = Vec::new();
        file.take(size - self.stored).read_to_end(&mut text)?;
        let complete = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        text.truncate(complete);
        let Some(new) = lines::split(&text) else {
            return Ok(());
        };
        self.position = store.append(session, &new, self.position).await?;
        self.stored += complete as u64;
        Ok(())
    }

    /// Stores lines and appends them to the file, which no process has open.
    pub(crate) async fn append(
        &mut self,
        store: &dyn SessionStore,
        session: &SessionId,
        new: &[Vec<u8>],
    ) -> Result<()> {
        self.position = store.append(session, new, self.position).await?;
        let text = lines::join(new);
        std::fs::OpenOptions::new()
            .append(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(&text))
            .with_context(|| NotWritten(self.path.clone()))?;
        self.stored += text.len() as u64;
        Ok(())
    }

    /// Removes the file, since the store has the session. What the agent keeps next to it stays, with a note for the next
    /// [`fetch`](Self::fetch). It goes, too, if the file has lines that were not stored, which it may belong to.
    pub(crate) async fn remove(&self) {
        let (path, stored, position) = (self.path.clone(), self.stored, self.position);
        let removed = tokio::task::spawn_blocking(move || {
            let is_stored = std::fs::metadata(&path).is_ok_and(|found| found.len() == stored);
            drop(std::fs::remove_file(&path));
            if !KEPT.iter().any(|kept| path.with_extension(kept).exists()) {
                return;
            }
            if !is_stored || std::fs::write(path.with_extension(LEFT), position.to_string()).is_err() {
                remove_kept(&path);
            }
        });
        drop(removed.await);
    }
}

/// Removes what the agent kept unless the session has as many lines as when it left: then no other worker went on with it.
fn check_kept(path: &Path, position: u64) {
    let left = std::fs::read_to_string(path.with_extension(LEFT));
    let is_same = left.is_ok_and(|left| left.parse::<u64>() == Ok(position));
    if !is_same {
        remove_kept(path);
    }
}

fn remove_kept(path: &Path) {
    for kept in KEPT {
        drop(std::fs::remove_dir_all(path.with_extension(kept)));
    }
}

/// Writes a new file that only this user can read, in place of an older one.
fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    drop(std::fs::remove_file(path));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)
}

/// The header of a new session.
pub(crate) fn header(session: &SessionId, cwd: &Path) -> Vec<u8> {
    let header = json!({
        "type": "session",
        "version": 3,
        "id": session.as_str(),
        "timestamp": store::now_iso(),
        "cwd": cwd.to_string_lossy(),
    });
    header.to_string().into_bytes()
}

/// Returns true for a `session_changed` after which the agent writes to the file of another session.
pub(crate) fn leaves_file(session: &SessionId, event: &AgentLine) -> bool {
    event.get::<String>("sessionId").as_deref() != Some(session.as_str())
}

/// Refuses a session that no worker can run; returns its working directory.
pub(crate) fn check(session: &SessionId, header: Option<&Vec<u8>>) -> Result<PathBuf> {
    let header: Value = header
        .and_then(|line| serde_json::from_slice(line).ok())
        .context("the stored session has no header")?;
    // The agent would write the file anew, and the store only appends.
    if header.get("version").and_then(Value::as_u64) != Some(3) {
        bail!(
            "session {session} has an older format. Open it once with pinion, delete it from the store, and push it again"
        );
    }
    let cwd = header.get("cwd").and_then(Value::as_str).unwrap_or_default();
    Ok(PathBuf::from(cwd))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;
    use store::{SessionDirectory, SessionId, SessionStore as _};

    use super::{AgentLine, NotWritten, SessionFile, leaves_file};
    use crate::FileStore;

    #[tokio::test]
    async fn session_file_is_private_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (stored, local) = (dir.path().join("stored"), dir.path().join("local"));
        std::fs::create_dir(&local).unwrap();
        // What an earlier worker left, which all users can read.
        let path = local.join("s.jsonl");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let store = FileStore::new(SessionDirectory::new(stored, true));
        let id = SessionId::new("s").unwrap();
        let file = SessionFile::fetch(&store, &id, &local, dir.path()).await.unwrap();
        assert_eq!(file.path, path);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(std::fs::read_to_string(&path).unwrap().contains(r#""id":"s""#));
        file.remove().await;
        assert_eq!(std::fs::read_dir(&local).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn unwritable_file_is_no_fault_of_session() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::new(SessionDirectory::new(dir.path().join("stored"), true));
        let id = SessionId::new("s").unwrap();
        let local = dir.path().join("missing");
        let error = SessionFile::fetch(&store, &id, &local, dir.path())
            .await
            .unwrap_err();
        assert!(error.is::<NotWritten>(), "{error:#}");
        std::fs::create_dir(&local).unwrap();
        let mut file = SessionFile::fetch(&store, &id, &local, dir.path()).await.unwrap();
        std::fs::remove_file(&file.path).unwrap();
        let line = br#"{"type":"session_info","id":"a","parentId":null}"#.to_vec();
        let error = file.append(&store, &id, &[line]).await.unwrap_err();
        assert!(error.is::<NotWritten>(), "{error:#}");
    }

    #[tokio::test]
    async fn checkpoints_stay_if_file_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let (stored, local) = (dir.path().join("stored"), dir.path().join("local"));
        std::fs::create_dir(&local).unwrap();
        let store = FileStore::new(SessionDirectory::new(stored, true));
        let id = SessionId::new("s").unwrap();
        let fetch = || SessionFile::fetch(&store, &id, &local, dir.path());
        let file = fetch().await.unwrap();
        let kept = local.join("s.checkpoints");
        std::fs::create_dir(&kept).unwrap();
        file.remove().await;
        // A directory in the place of the file.
        std::fs::create_dir(&file.path).unwrap();
        let error = fetch().await.unwrap_err();
        assert!(error.is::<NotWritten>(), "{error:#}");
        std::fs::remove_dir(&file.path).unwrap();
        fetch().await.unwrap();
        assert!(kept.exists());
    }

    #[tokio::test]
    async fn checkpoints_stay_while_no_other_worker_had_the_session() {
        let dir = tempfile::tempdir().unwrap();
        let (stored, local) = (dir.path().join("stored"), dir.path().join("local"));
        let kept = ["s.subagents", "s.checkpoints"].map(|name| local.join(name));
        for kept in &kept {
            std::fs::create_dir_all(kept).unwrap();
            std::fs::write(kept.join("file"), "").unwrap();
        }
        let names = || std::fs::read_dir(&local).unwrap().count();
        let store = FileStore::new(SessionDirectory::new(stored, true));
        let id = SessionId::new("s").unwrap();
        let fetch = || SessionFile::fetch(&store, &id, &local, dir.path());
        // Nothing says that they belong to the stored session.
        let file = fetch().await.unwrap();
        assert_eq!(names(), 1);
        for kept in &kept {
            std::fs::create_dir(kept).unwrap();
        }
        file.remove().await;
        assert!(!file.path.exists() && kept.iter().all(|kept| kept.exists()));
        let file = fetch().await.unwrap();
        assert!(kept.iter().all(|kept| kept.exists()));
        // Without the note.
        assert_eq!(names(), 3);
        file.remove().await;
        let line = br#"{"type":"session_info","id":"a","parentId":null}"#.to_vec();
        store.append(&id, &[line], 1).await.unwrap();
        let file = fetch().await.unwrap();
        assert_eq!(names(), 1);
        // A line that is not stored.
        std::fs::create_dir(&kept[1]).unwrap();
        std::fs::write(&file.path, "").unwrap();
        file.remove().await;
        assert_eq!(names(), 0);
    }

    #[test]
    fn move_in_the_tree_stays_in_the_file() {
        let id = SessionId::new("s").unwrap();
        for (reason, session, leaves) in [("tree", "s", false), ("reload", "s", false), ("new", "t", true)] {
            let event = json!({"type": "session_changed", "reason": reason, "sessionId": session});
            let line = AgentLine::parse(event.to_string().as_bytes()).unwrap();
            assert_eq!(leaves_file(&id, &line), leaves, "{event}");
        }
    }
}
