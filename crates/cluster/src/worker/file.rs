//! The session file of a worker: a copy of the stored session that the agent appends to. What it appended goes to the store before
//! anything that was written after it reaches a client.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use store::{SessionId, SessionStore};

use crate::lines;

/// A session file and how much of it is stored.
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
        let path = dir.join(format!("{}.jsonl", session.encoded()));
        let text = lines::join(&all);
        std::fs::write(&path, &text).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self {
            path,
            cwd,
            stored: text.len() as u64,
            position: all.len() as u64,
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
            .with_context(|| format!("{} cannot be written", self.path.display()))?;
        self.stored += text.len() as u64;
        Ok(())
    }

    /// Removes the file. The store has the session.
    pub(crate) fn remove(&self) {
        drop(std::fs::remove_file(&self.path));
    }
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
