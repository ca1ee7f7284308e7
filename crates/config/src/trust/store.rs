//! `trust.json` in the agent directory: decisions by the real path of a directory, in pi's own form (1.5), so that a decision
//! made there counts here and the other way round. Closest first: a directory's decision holds for everything below it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use files::{Mode, PiLock, Root};
use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;

use super::limits;

/// The file of decisions.
#[derive(Debug, Clone)]
pub struct TrustFile {
    path: PathBuf,
}

/// A decision of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The directory it was made for.
    pub path: PathBuf,
    /// Trusted, or expressly not.
    pub trusted: bool,
}

impl TrustFile {
    pub(super) fn new(agent_dir: &Path) -> Self {
        Self {
            path: agent_dir.join("trust.json"),
        }
    }

    /// Where it is, or would be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The decision for a directory: its own, or that of the closest directory above.
    ///
    /// # Errors
    /// When the file cannot be understood.
    pub fn nearest(&self, dir: &Path) -> Result<Option<Stored>, Diagnostic> {
        let decisions = self.read()?;
        Ok(real(dir).ancestors().find_map(|dir| {
            let trusted = decisions.get(&*dir.to_string_lossy())?.as_bool()?;
            Some(Stored {
                path: dir.to_path_buf(),
                trusted,
            })
        }))
    }

    /// All decisions, by path.
    ///
    /// # Errors
    /// When the file cannot be understood.
    pub fn all(&self) -> Result<Vec<Stored>, Diagnostic> {
        let mut all: Vec<Stored> = self
            .read()?
            .into_iter()
            .filter_map(|(path, value)| {
                Some(Stored {
                    path: path.into(),
                    trusted: value.as_bool()?,
                })
            })
            .collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }

    /// Stores a decision for a directory, or takes its own back. Decisions above it stay.
    ///
    /// # Errors
    /// When the file cannot be understood (it stays as it is then) or cannot be written.
    pub fn set(&self, dir: &Path, trusted: Option<bool>) -> Result<(), Diagnostic> {
        let failed =
            |error: io::Error| Diagnostic::new(&self.path, format!("could not store the decision: {error}"));
        if let Some(dir) = self.path.parent() {
            fs::create_dir_all(dir).map_err(failed)?;
        }
        let _lock = take_lock(&self.path).map_err(failed)?;
        let mut decisions = self.read()?;
        let key = real(dir).to_string_lossy().into_owned();
        match trusted {
            Some(trusted) => drop(decisions.insert(key, Value::Bool(trusted))),
            None => drop(decisions.remove(&key)),
        }
        let mut sorted: Vec<_> = decisions.into_iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let sorted: Map<String, Value> = sorted.into_iter().collect();
        self.write(&sorted).map_err(failed)
    }

    fn read(&self) -> Result<Map<String, Value>, Diagnostic> {
        let broken = |why: String| Diagnostic::new(&self.path, format!("{why}; no stored decision counts"));
        let text = Root::user()
            .read_if_there(&self.path, limits::FILE_BYTES)
            .map_err(|error| broken(format!("could not read decisions on trust: {error}")))?;
        let Some(text) = text else { return Ok(Map::new()) };
        if text.cut {
            return Err(broken("decisions on trust are too long".to_owned()));
        }
        match serde_json::from_str(text.text.trim_start_matches('\u{feff}')) {
            Ok(Value::Object(map)) if map.values().all(|value| value.is_boolean() || value.is_null()) => {
                Ok(map)
            }
            Ok(_) => Err(broken(
                "decisions on trust must be an object of true, false and null".to_owned(),
            )),
            Err(error) => Err(broken(format!("decisions on trust are not valid JSON: {error}"))),
        }
    }

    fn write(&self, decisions: &Map<String, Value>) -> io::Result<()> {
        let text = format!("{:#}\n", Value::Object(decisions.clone()));
        files::replace(&self.path, text.as_bytes(), Mode::Set(0o600))
    }
}

/// The directory that a path leads to. Of a path that does not exist yet, the part that exists.
#[must_use]
pub fn real(dir: &Path) -> PathBuf {
    for above in dir.ancestors() {
        if let Ok(real) = above.canonicalize() {
            return match dir.strip_prefix(above) {
                Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
                _ => real,
            };
        }
    }
    dir.to_path_buf()
}

/// Waits for the lock that pi takes on a file of the agent directory.
pub(crate) fn take_lock(file: &Path) -> io::Result<PiLock> {
    PiLock::take(file, limits::LOCK)
}
