//! The list of models that extensions look at: a file, since there are thousands and most extensions never look. One serves
//! all sessions; a session whose extensions bring models has its own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use models::Registry;
use serde_json::json;

use crate::limits;

use super::ExtensionProcesses;

/// How the names of all lists begin.
const PREFIX: &str = "extension-models-";

/// The files written, and for how many models of local servers the common one was.
#[derive(Debug, Default)]
pub(super) struct Written(Mutex<Vec<(PathBuf, usize)>>);

impl ExtensionProcesses {
    /// Where a list of models is, once it was written: the common one, or that of a session.
    pub(crate) fn models_file(&self, session: Option<&str>) -> PathBuf {
        let process = std::process::id();
        let name = match session {
            Some(session) => format!("{PREFIX}{process}-{session}.json"),
            None => format!("{PREFIX}{process}.json"),
        };
        self.cache().join(name)
    }

    /// Writes a list of models, unless it is there and as it should be. Another process may have removed it (`remove_old`).
    pub(crate) async fn write_models(&self, registry: Arc<Registry>, path: PathBuf) {
        let found = registry
            .local_servers()
            .iter()
            .map(|server| server.models.len() + 1);
        let entry = (path.clone(), found.sum());
        if self.written(|written| written.contains(&entry)) && path.exists() {
            return;
        }
        let written = tokio::task::spawn_blocking(move || write(&path, &registry)).await;
        match written {
            Ok(Ok(())) => self.written(|written| {
                written.retain(|(path, _)| *path != entry.0);
                written.push(entry);
            }),
            Ok(Err(error)) => {
                tracing::warn!("the list of models for extensions could not be written: {error}");
            }
            Err(_) => {}
        }
    }

    /// There may be other models now: rewrites the common list concurrently with the caller, if it was written. Those of sessions are
    /// written when what their extensions bring changes.
    pub(crate) fn rewrite_models(&self, registry: &Arc<Registry>) {
        let path = self.models_file(None);
        let is_there = self.written(|written| written.iter().any(|(known, _)| *known == path));
        // A registry with models of extensions belongs to one session and must not get into the common list.
        if !is_there || !registry.registered_providers().is_empty() {
            return;
        }
        let registry = Arc::clone(registry);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = write(&path, &registry) {
                tracing::warn!("the list of models for extensions could not be written: {error}");
            }
        });
    }

    /// A session looks at another list from now on.
    pub(crate) fn forget_models(&self, path: &Path) {
        if path != self.models_file(None)
            && self.written(|written| {
                let before = written.len();
                written.retain(|(known, _)| known != path);
                before != written.len()
            })
        {
            let _gone = std::fs::remove_file(path);
        }
    }

    pub(super) fn forget_all_models(&self) {
        for (path, _) in self.written(std::mem::take) {
            // They are this process's own.
            let _gone = std::fs::remove_file(path);
        }
    }

    /// A list has no broken state, so a poisoned lock is as good as any.
    fn written<T>(&self, look: impl FnOnce(&mut Vec<(PathBuf, usize)>) -> T) -> T {
        look(&mut self.models.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Held while a draft is written and renamed.
static WRITING: Mutex<()> = Mutex::new(());

/// The list is renamed into place, so that no process reads half of it.
fn write(path: &Path, registry: &Registry) -> std::io::Result<()> {
    let available: Vec<String> = registry
        .models()
        .iter()
        .map(|model| format!("{}/{}", model.provider, model.id))
        .collect();
    let list = json!({"models": registry.all(), "available": available, "oauth": registry.login_providers()});
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    // One writer at a time: another one would begin the draft anew before it is renamed.
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(dir) = path.parent() {
        remove_old(dir);
    }
    let draft = path.with_extension("new");
    std::fs::write(&draft, list.to_string())?;
    std::fs::rename(draft, path)
}

/// Removes the lists of processes that were killed. A process id says nothing here, since a container that shares the directory has
/// ids of its own, so only the age counts. A process that still runs writes its list again for its next session.
fn remove_old(dir: &Path) {
    let own = format!("{PREFIX}{}", std::process::id());
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Process ids that begin with this one's are spared, too: their own processes, or later ones, remove these lists.
        if !name.starts_with(PREFIX) || name.starts_with(&own) {
            continue;
        }
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let age = modified.and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > limits::OLD_MODEL_LISTS) {
            let _stays = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::{PREFIX, limits, remove_old};

    #[test]
    fn old_lists_of_other_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - limits::OLD_MODEL_LISTS * 2;
        let own = format!("{PREFIX}{}-s1.json", std::process::id());
        let killed = format!("{PREFIX}0-s1.json");
        for (name, modified) in [
            (killed.as_str(), old),
            ("extension-models-0.json", SystemTime::now()),
            (own.as_str(), old),
            ("another.json", old),
        ] {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            file.set_modified(modified).unwrap();
        }
        remove_old(dir.path());
        let is_there = |name: &str| dir.path().join(name).exists();
        assert!(!is_there(&killed));
        assert!(is_there("extension-models-0.json") && is_there(&own) && is_there("another.json"));
    }
}
