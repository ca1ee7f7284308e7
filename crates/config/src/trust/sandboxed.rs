//! Directories that confined commands could write (`sandboxed.json` in the agent directory). The sandbox keeps them from changing
//! what such a directory itself would run; it cannot do that in every directory below. So a decision on trust that was made above
//! says nothing about a project in one of these: its code may come from a model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use files::{Mode, Root};

use super::limits;
use super::store::{real, take_lock};

/// The file with the directories.
#[derive(Debug, Clone)]
pub(super) struct SandboxedDirs {
    path: PathBuf,
}

impl SandboxedDirs {
    pub(super) fn new(agent_dir: &Path) -> Self {
        Self {
            path: agent_dir.join("sandboxed.json"),
        }
    }

    /// Returns true if a directory lies below one of these. A file that cannot be read could name any.
    pub(super) fn hold(&self, dir: &Path) -> bool {
        let dir = real(dir);
        match self.read() {
            Ok(dirs) => dirs
                .iter()
                .any(|above| dir.starts_with(above) && dir != Path::new(above)),
            Err(_) => true,
        }
    }

    /// Adds directories.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(super) fn add<'a>(&self, dirs: impl Iterator<Item = &'a Path>) -> io::Result<()> {
        let dirs: Vec<String> = dirs.map(|dir| real(dir).to_string_lossy().into_owned()).collect();
        let is_known = |known: &[String]| dirs.iter().all(|dir| known.contains(dir));
        if is_known(&self.read()?) {
            return Ok(());
        }
        if let Some(dir) = self.path.parent() {
            fs::create_dir_all(dir)?;
        }
        let _lock = take_lock(&self.path)?;
        let mut known = self.read()?;
        known.extend(dirs);
        known.sort();
        known.dedup();
        self.write(&known)
    }

    fn read(&self) -> io::Result<Vec<String>> {
        match Root::user().read_if_there(&self.path, limits::FILE_BYTES)? {
            None => Ok(Vec::new()),
            Some(text) if text.cut => Err(io::Error::other("the file is too long")),
            Some(text) => Ok(serde_json::from_str(&text.text)?),
        }
    }

    fn write(&self, dirs: &[String]) -> io::Result<()> {
        let text = format!("{}\n", serde_json::to_string_pretty(dirs)?);
        files::replace(&self.path, text.as_bytes(), Mode::Set(0o600))
    }
}
