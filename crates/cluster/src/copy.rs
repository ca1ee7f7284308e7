//! Copies sessions between two stores. A copy only ever appends missing lines: it compares all lines that both have, and stops
//! at the first difference.

use std::fmt;

use store::{SessionId, SessionStore, StoreError};

use crate::limits::COPY_BYTES;

/// What a copy did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Lines that were appended to the target.
    pub added: u64,
    /// Position of the target afterwards.
    pub position: u64,
    /// True if the target has lines that the source lacks. Nothing was appended then.
    pub is_ahead: bool,
}

/// Why a session was not copied.
#[derive(Debug)]
pub enum CopyError {
    /// The source has no session of this id.
    Missing,
    /// Both have this session, and they differ in this line (counted from 1).
    Diverged(u64),
    /// One of the stores failed. Lines that were appended before stay.
    Store(StoreError),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such session"),
            Self::Diverged(line) => write!(
                f,
                "the two copies were continued separately and differ from line {line} on; nothing was changed"
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CopyError {}

impl From<StoreError> for CopyError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Appends to a session in `target` what it lacks of the session in `source`. Both may grow meanwhile: lines that come after this
/// looked are left for the next copy, and a writer of the target makes it fail with [`StoreError::Stale`].
///
/// # Errors
/// [`CopyError`].
pub async fn copy(
    source: &dyn SessionStore,
    target: &dyn SessionStore,
    session: &SessionId,
) -> Result<Copied, CopyError> {
    let mut from = Lines::new(source, session);
    let mut to = Lines::new(target, session);
    if from.peek().await?.is_none() {
        return Err(CopyError::Missing);
    }
    loop {
        match (from.peek().await?, to.peek().await?) {
            (Some(ours), Some(theirs)) if ours == theirs => {}
            (Some(_), Some(_)) => return Err(CopyError::Diverged(to.position + 1)),
            (None, Some(_)) => {
                return Ok(Copied {
                    added: 0,
                    position: to.end().await?,
                    is_ahead: true,
                });
            }
            (_, None) => break,
        }
        from.advance();
        to.advance();
    }
    let start = to.position;
    let mut position = start;
    loop {
        let batch = from.batch().await?;
        if batch.is_empty() {
            return Ok(Copied {
                added: position - start,
                position,
                is_ahead: false,
            });
        }
        position = target.append(session, &batch, position).await?;
    }
}

/// The lines of a session, loaded bit by bit.
struct Lines<'a> {
    store: &'a dyn SessionStore,
    session: &'a SessionId,
    loaded: std::collections::VecDeque<Vec<u8>>,
    /// Position of the first line of `loaded`.
    position: u64,
    is_over: bool,
}

impl<'a> Lines<'a> {
    fn new(store: &'a dyn SessionStore, session: &'a SessionId) -> Self {
        Self {
            store,
            session,
            loaded: std::collections::VecDeque::new(),
            position: 0,
            is_over: false,
        }
    }

    /// The next line; none at the end.
    async fn peek(&mut self) -> Result<Option<&Vec<u8>>, StoreError> {
        if self.loaded.is_empty() && !self.is_over {
            self.loaded = self.store.load(self.session, self.position).await?.into();
            self.is_over = self.loaded.is_empty();
        }
        Ok(self.loaded.front())
    }

    fn advance(&mut self) {
        if self.loaded.pop_front().is_some() {
            self.position += 1;
        }
    }

    /// Takes the next lines, about [`COPY_BYTES`] of them.
    async fn batch(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < COPY_BYTES && self.peek().await?.is_some() {
            let Some(line) = self.loaded.pop_front() else {
                break;
            };
            self.position += 1;
            bytes += line.len();
            batch.push(line);
        }
        Ok(batch)
    }

    /// The position behind the last line.
    async fn end(&mut self) -> Result<u64, StoreError> {
        while self.peek().await?.is_some() {
            self.position += self.loaded.len() as u64;
            self.loaded.clear();
        }
        Ok(self.position)
    }
}
