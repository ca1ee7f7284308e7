//! What a place for sessions offers, be it a directory of session files or an engine that several machines share: the trait
//! [`SessionStore`]. Implementations live elsewhere: files in [`crate::SessionDirectory`], which is synchronous, and everything
//! that needs a runtime in the crate `cluster`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::error::{Result, StoreError};
use crate::limits::{MAX_LINE, STORED_ID};

/// A future of a store. Boxed, so that the store can be chosen by its address at run time.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The name of a session in a store: the `id` of its header.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

impl SessionId {
    /// Takes any text of 1 to [`STORED_ID`] bytes without control characters.
    ///
    /// # Errors
    /// [`StoreError::BadId`] for another text.
    pub fn new(id: impl Into<String>) -> Result<Self> {
        let id = id.into();
        let is_fit = !id.is_empty() && id.len() <= STORED_ID && !id.chars().any(char::is_control);
        if is_fit {
            Ok(Self(id))
        } else {
            Err(StoreError::BadId { id })
        }
    }

    /// The id as the header has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id in letters, digits, `-`, `_` and `=` only, for the names of subjects, keys and objects. Every other byte becomes
    /// `=` and two hexadecimal digits, so that different ids have different names.
    #[must_use]
    pub fn encoded(&self) -> String {
        let mut name = String::with_capacity(self.0.len());
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
                name.push(char::from(byte));
            } else {
                name.push_str(&format!("={byte:02X}"));
            }
        }
        name
    }

    /// The id behind a name that [`SessionId::encoded`] made; none for another name.
    #[must_use]
    pub fn decode(name: &str) -> Option<Self> {
        let mut bytes = Vec::with_capacity(name.len());
        let mut parts = name.split('=');
        bytes.extend_from_slice(parts.next()?.as_bytes());
        for part in parts {
            let (digits, rest) = part.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            bytes.extend_from_slice(rest.as_bytes());
        }
        let id = Self::new(String::from_utf8(bytes).ok()?).ok()?;
        (id.encoded() == name).then_some(id)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A place for sessions. A session is a list of lines that only grows: the lines of its file, byte for byte and without line
/// feeds, the header first. A position is a number of lines; 0 means that the header is not stored yet, so a session that does
/// not exist has position 0.
///
/// Several writers may use a store at the same time. The store itself lets exactly one of them append at each position.
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// Appends lines, all or none, if the session is at position `expected`, and returns its new position. They survive a
    /// failure of the engine's process when this returns. After a lost response the store finds out whether the lines were
    /// stored; it never stores them twice.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when the session is at another position; [`StoreError::BadLine`] and
    /// [`StoreError::EntryTooLarge`] for lines that no session can have; [`StoreError::Engine`] when the store fails. After
    /// [`StoreError::Unconfirmed`] the lines may be stored or not.
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        lines: &'a [Vec<u8>],
        expected: u64,
    ) -> StoreFuture<'a, u64>;

    /// Returns the next lines from position `from`: at least one if there is one, and about
    /// [`crate::limits::LOADED_AT_ONCE`] bytes at most. An empty list means that `from` is the session's position.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when `from` is beyond the session's position; [`StoreError::Engine`].
    fn load<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, Vec<Vec<u8>>>;

    /// The ids of all sessions, sorted.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    fn list(&self) -> StoreFuture<'_, Vec<SessionId>>;

    /// Deletes a session; false if there was none. Appends of writers that still have it are refused.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool>;

    /// Follows a session from position `from`, which may be its present position.
    ///
    /// # Errors
    /// As [`SessionStore::load`].
    fn watch<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, Box<dyn Watch>>;
}

/// A session that is followed. It does not report that the session was deleted.
pub trait Watch: Send {
    /// Waits for the next lines; never returns an empty list. Dropping the future loses no line.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    fn next(&mut self) -> StoreFuture<'_, Vec<Vec<u8>>>;
}

/// Checks what an append may contain.
///
/// # Errors
/// [`StoreError::BadLine`] for no lines at all and for a line with a line feed; [`StoreError::EntryTooLarge`].
pub fn check_lines(lines: &[Vec<u8>]) -> Result<()> {
    if lines.is_empty() {
        return Err(StoreError::BadLine);
    }
    for line in lines {
        if line.len() > MAX_LINE {
            return Err(StoreError::EntryTooLarge { bytes: line.len() });
        }
        if memchr::memchr(b'\n', line).is_some() {
            return Err(StoreError::BadLine);
        }
    }
    Ok(())
}
