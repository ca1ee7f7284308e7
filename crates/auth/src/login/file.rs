//! Changes to `auth.json`: under the lock, in one step, readable by its owner only. Entries that are not meant stay byte
//! for byte; comments go. A file that cannot be read as JSON is never overwritten. Reading it for requests is
//! `auth_file`'s business.

use std::fs;
use std::io;
use std::path::PathBuf;

use files::{Draft, Mode, replace};
use serde_json::json;

use super::LoginError;
use super::auth_file::AuthFile;
use super::fields::{Fields, Member};
use super::json_file::{plain_json, read_text};
use super::limits::{MAX_KEY, TOKEN_ROOM};
use super::lock::{Guard, lock};
use super::tokens::{Tokens, is_kind, kept};

/// Permission bits of the file.
const OWNER_ONLY: Mode = Mode::Set(0o600);

/// `auth.json`, to be changed.
#[derive(Debug, Clone)]
pub struct AuthStore {
    path: PathBuf,
}

impl AuthStore {
    /// The file; it need not be there.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Stores an API key in place of what the provider had; its variables stay.
    ///
    /// # Errors
    /// When it is no key, or the file cannot be changed.
    pub async fn put_key(&self, provider: &str, key: &str) -> Result<(), LoginError> {
        let text = literal(key)?;
        let guard = self.lock().await?;
        self.put(guard, provider, move |old| {
            let mut entry = kept(old, "api_key");
            entry.set("type", Member::New(json!("api_key")));
            entry.set("key", Member::New(json!(text)));
            Some(entry)
        })
        .await
        .map(|_| ())
    }

    /// Removes the entry of a provider; returns false if there was none.
    ///
    /// # Errors
    /// When the file cannot be changed.
    pub async fn remove(&self, provider: &str) -> Result<bool, LoginError> {
        if !self.path.exists() {
            return Ok(false);
        }
        let guard = self.lock().await?;
        self.put(guard, provider, |_| None).await
    }

    /// Removes the login of a provider; returns false if there was none. A stored API key stays.
    ///
    /// # Errors
    /// When the file cannot be changed.
    pub async fn remove_login(&self, provider: &str) -> Result<bool, LoginError> {
        if !self.path.exists() {
            return Ok(false);
        }
        let guard = self.lock().await?;
        let (store, provider) = (self.clone(), provider.to_owned());
        off_thread(move || {
            let _held = guard;
            let root = store.document()?;
            let entry = root.get(&provider).and_then(Fields::of_member);
            if !entry.is_some_and(|entry| is_kind(&entry, "oauth")) {
                return Ok(false);
            }
            store.put_now(&provider, |_| None)
        })
        .await
    }

    /// The credentials as they are now. Needs no lock: the file is replaced in one step.
    pub(super) fn read(&self) -> AuthFile {
        AuthFile::read(&self.path)
    }

    /// Locks the file against changes by other tasks and processes. The lock of a link is that of its target, as in pi.
    pub(super) async fn lock(&self) -> Result<Guard, LoginError> {
        lock(&self.target()).await
    }

    /// Stores tokens. The guard says that the lock is held; it is given back with the work done.
    pub(super) async fn put_tokens(
        &self,
        guard: Guard,
        provider: &str,
        tokens: &Tokens,
    ) -> Result<(), LoginError> {
        let tokens = tokens.clone();
        self.put(guard, provider, move |old| Some(tokens.entry(old)))
            .await
            .map(|_| ())
    }

    /// Fails when the file could not be written, for example because the disk is full. To be asked before a token is used up
    /// that works only once.
    pub(super) async fn check(&self) -> Result<(), LoginError> {
        let store = self.clone();
        off_thread(move || store.check_now()).await
    }

    /// Writes a draft as long as the file can become: an empty one needs no space.
    fn check_now(&self) -> Result<(), LoginError> {
        let length = self.text(&self.document()?)?.len() + TOKEN_ROOM;
        // Dropped at once, which removes it.
        let draft = Draft::write(&self.target(), &vec![b' '; length], OWNER_ONLY);
        draft.map(drop).map_err(|error| self.failed(&error))
    }

    /// Changes one entry; returns whether it existed.
    pub(super) async fn put(
        &self,
        guard: Guard,
        provider: &str,
        change: impl FnOnce(Option<&Member>) -> Option<Fields> + Send + 'static,
    ) -> Result<bool, LoginError> {
        let (store, provider) = (self.clone(), provider.to_owned());
        off_thread(move || {
            let _held = guard;
            store.put_now(&provider, change)
        })
        .await
    }

    fn put_now(
        &self,
        provider: &str,
        change: impl FnOnce(Option<&Member>) -> Option<Fields>,
    ) -> Result<bool, LoginError> {
        let mut root = self.document()?;
        let was_there = root.get(provider).is_some();
        match change(root.get(provider)) {
            Some(entry) => root.set(provider, Member::Fields(entry)),
            None if !root.remove(provider) => return Ok(false),
            None => {}
        }
        replace(&self.target(), &self.text(&root)?, OWNER_ONLY).map_err(|error| self.failed(&error))?;
        Ok(was_there)
    }

    /// The text of the file with this content.
    fn text(&self, root: &Fields) -> Result<Vec<u8>, LoginError> {
        let mut text = serde_json::to_vec_pretty(root).map_err(|error| self.unreadable(&error))?;
        text.push(b'\n');
        Ok(text)
    }

    /// The whole file.
    fn document(&self) -> Result<Fields, LoginError> {
        let text = read_text(&self.path).map_err(|error| self.failed(&error))?;
        let text = text.unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if text.trim().is_empty() {
            return Ok(Fields::default());
        }
        serde_json::from_str(&plain_json(text)).map_err(|error| self.unreadable(&error))
    }

    /// Where the file really is: a link stays one.
    fn target(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    fn failed(&self, error: &io::Error) -> LoginError {
        LoginError::File {
            path: self.path.display().to_string(),
            reason: error.to_string(),
        }
    }

    /// Names the place only: the text around it may be a key.
    fn unreadable(&self, error: &serde_json::Error) -> LoginError {
        LoginError::File {
            path: self.path.display().to_string(),
            reason: format!(
                "not changed, since it is no JSON object (line {} column {})",
                error.line(),
                error.column()
            ),
        }
    }
}

/// The text that stands for a key literally (pi-core.md 8.3).
fn literal(key: &str) -> Result<String, LoginError> {
    let key = key.trim();
    if key.is_empty() {
        return Err(LoginError::Key("No key was given"));
    }
    if key.len() > MAX_KEY || key.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(LoginError::Key(
            "This is no key: it has spaces or line breaks, or is too long",
        ));
    }
    let key = key.replace('$', "$$");
    Ok(if key.starts_with('!') {
        format!("${key}")
    } else {
        key
    })
}

/// Work that waits for the disk, on a blocking thread.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LoginError> + Send + 'static,
) -> Result<T, LoginError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(LoginError::System(error.to_string())))
}
