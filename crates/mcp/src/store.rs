//! `mcp-auth.json`: what logins at servers gave, for its owner only. One entry for each name and address, as in pi; written
//! in one step, under a file lock of the system, which ends with its process, and the lock of pi, so that neither agent
//! overwrites what the other stores.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use files::{Mode, PiLock, replace};
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::error::McpError;
use crate::limits;

/// How long each lock is waited for.
const LOCK: Duration = Duration::from_secs(30);

/// The file. Clones share the refreshes under way.
#[derive(Debug, Clone)]
pub struct Logins {
    path: PathBuf,
    /// Counts the tasks whose refresh token may be spent and whose new tokens are not stored yet.
    refreshes: TaskTracker,
}

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Document {
    servers: BTreeMap<String, Value>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Logins {
    /// The file in a directory of settings; it need not be there.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            refreshes: TaskTracker::new(),
        }
    }

    /// Waits until the refreshes under way are stored, and lets no other begin. To be called before the process ends, which would lose
    /// their tokens. Returns at once if there are none, else after [`limits::FINISH`] at most.
    pub async fn finish(&self) {
        self.refreshes.close();
        let _late = timeout(limits::FINISH, self.refreshes.wait()).await;
    }

    /// The tasks that may refresh a token. It is closed when the process ends.
    pub(crate) fn refreshes(&self) -> &TaskTracker {
        &self.refreshes
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if a login at this server is stored.
    #[must_use]
    pub fn has(&self, name: &str, url: &str) -> bool {
        self.read()
            .is_ok_and(|document| document.servers.contains_key(&key(name, url)))
    }

    /// Forgets a login; false when there was none.
    ///
    /// # Errors
    /// When the file cannot be changed.
    pub(crate) fn remove(&self, name: &str, url: &str) -> Result<bool, McpError> {
        if !self.path.exists() {
            return Ok(false);
        }
        let key = key(name, url);
        self.change(|document| document.servers.remove(&key).is_some())
    }

    pub(crate) fn of(&self, name: &str, url: &str) -> Kept {
        Kept {
            logins: self.clone(),
            key: key(name, url),
        }
    }

    fn read(&self) -> Result<Document, McpError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Document::default()),
            Err(error) => return Err(self.failed(&error)),
        };
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(Document::default());
        }
        serde_json::from_slice(&text).map_err(|error| {
            McpError::Store(format!(
                "{} is no JSON of the known form (line {} column {})",
                self.path.display(),
                error.line(),
                error.column()
            ))
        })
    }

    /// Changes the file under the lock; gives what the change gives.
    fn change<T>(&self, change: impl FnOnce(&mut Document) -> T) -> Result<T, McpError> {
        let target = self.target();
        let _ours = self.lock(&target, "pinion-lock")?;
        let _pis = self.lock_against_pi(&target)?;
        let mut document = self.read()?;
        let outcome = change(&mut document);
        let text = serde_json::to_vec_pretty(&document).map_err(|error| self.failed(&error.into()))?;
        replace(&target, &text, Mode::Set(0o600)).map_err(|error| self.failed(&error))?;
        Ok(outcome)
    }

    /// The real path of the file, which pi locks as well: a link stays a link.
    fn target(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// Takes the lock of pi. Blocks.
    fn lock_against_pi(&self, target: &Path) -> Result<PiLock, McpError> {
        // Earlier versions made a file of this name. Pi can neither make its directory then nor remove the file.
        let left = beside(target, "lock");
        if left.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            let _gone = fs::remove_file(&left);
        }
        PiLock::take(target, LOCK).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => self.locked(),
            _ => self.failed(&error),
        })
    }

    /// Locks a file next to `target` against other processes of this agent. Blocks.
    fn lock(&self, target: &Path, suffix: &str) -> Result<File, McpError> {
        let failed = |error: &io::Error| self.failed(error);
        if let Some(dir) = self.path.parent() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
            made.map_err(|error| failed(&error))?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(beside(target, suffix))
            .map_err(|error| failed(&error))?;
        let until = Instant::now() + LOCK;
        loop {
            match file.try_lock() {
                // A file system without locks has to do without.
                Ok(()) | Err(fs::TryLockError::Error(_)) => return Ok(file),
                Err(fs::TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(fs::TryLockError::WouldBlock) => return Err(self.locked()),
            }
        }
    }

    fn locked(&self) -> McpError {
        McpError::Store(format!("{} is locked by another process", self.path.display()))
    }

    fn failed(&self, error: &io::Error) -> McpError {
        McpError::Store(format!("{}: {error}", self.path.display()))
    }
}

/// A path next to another: its name, a dot and this suffix.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn key(name: &str, url: &str) -> String {
    format!("{name} {url}")
}

/// The login at one server.
pub(crate) struct Kept {
    logins: Logins,
    key: String,
}

impl Kept {
    /// Runs file work on a blocking thread.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Logins, &str) -> Result<T, McpError> + Send + 'static,
    ) -> Result<T, AuthError> {
        let (logins, key) = (self.logins.clone(), self.key.clone());
        let done = tokio::task::spawn_blocking(move || work(&logins, &key)).await;
        let done = done.unwrap_or_else(|error| Err(McpError::Store(error.to_string())));
        done.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }
}

#[async_trait::async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.beside(|logins, key| {
            let mut document = logins.read()?;
            Ok(document
                .servers
                .remove(key)
                .and_then(|entry| serde_json::from_value(entry).ok()))
        })
        .await
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.beside(move |logins, key| {
            let entry =
                serde_json::to_value(&credentials).map_err(|error| McpError::Store(error.to_string()))?;
            logins.change(|document| {
                document.servers.insert(key.to_owned(), entry);
            })
        })
        .await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.beside(|logins, key| {
            logins.change(|document| {
                document.servers.remove(key);
            })
        })
        .await
    }

    /// Two agents do not use up the same token.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let held = self
            .beside(|logins, _| logins.lock(&logins.target(), "refresh"))
            .await?;
        Ok(Some(CredentialRefreshGuard::new(held)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn logins_are_changed_under_lock_of_pi() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::new(dir.path().join("mcp-auth.json"));
        let lock = dir.path().join("mcp-auth.json.lock");
        // A file of an earlier version is in the way of the directory of pi.
        fs::write(&lock, "").unwrap();
        logins
            .change(|_| assert!(lock.is_dir(), "pi may write meanwhile"))
            .unwrap();
        assert!(lock.symlink_metadata().is_err(), "pi cannot take its lock");
        // A directory of a pi that died is taken over.
        fs::create_dir(&lock).unwrap();
        let before = SystemTime::now() - Duration::from_secs(60);
        File::open(&lock).unwrap().set_modified(before).unwrap();
        logins.change(|_| ()).unwrap();
        assert!(lock.symlink_metadata().is_err());
    }

    #[test]
    fn linked_logins_file_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real.json");
        fs::write(&real, "{}").unwrap();
        let logins = Logins::new(dir.path().join("mcp-auth.json"));
        symlink("real.json", logins.path()).unwrap();
        // Pi locks the file that the link leads to.
        let lock = dir.path().join("real.json.lock");
        let change = logins.change(|document| {
            assert!(lock.is_dir());
            document.servers.insert(key("a", "http://x/"), Value::Null);
        });
        change.unwrap();
        assert!(logins.path().is_symlink() && logins.has("a", "http://x/"));
        assert!(fs::read_to_string(&real).unwrap().contains("http://x/"));
    }

    #[tokio::test]
    async fn mcp_logins_are_readable_by_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let logins = Logins::new(dir.path().join("agent").join("mcp-auth.json"));
        assert!(!logins.has("a", "http://x/"));
        let kept = logins.of("a", "http://x/");
        kept.save(StoredCredentials::new("id".to_owned(), None, vec![], None))
            .await
            .unwrap();
        assert!(logins.has("a", "http://x/") && !logins.has("b", "http://x/"));
        assert_eq!(kept.load().await.unwrap().unwrap().client_id, "id");
        let mode = fs::metadata(logins.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(logins.remove("a", "http://x/").unwrap());
        assert!(!logins.remove("a", "http://x/").unwrap());
        fs::write(logins.path(), "{broken").unwrap();
        assert!(
            kept.save(StoredCredentials::new("id".to_owned(), None, vec![], None))
                .await
                .is_err()
        );
        assert_eq!(
            fs::read(logins.path()).unwrap(),
            b"{broken",
            "it is not overwritten"
        );
    }
}
