//! Opening a large session without the texts of its messages: they are read when the session is first used for more than its state.
//! Until then it has every entry with its place in the tree, and of each message only what its state depends on. Any damage, and any
//! change of the file in between, is treated as it is without this module: `open` reads such a file as a whole.

use std::path::Path;
use std::sync::Arc;

use wire::EntryBody;

use crate::damage::Damage;
use crate::error::{Result, StoreError};
use crate::forest::Forest;
use crate::limits::{DEFERRED_FILE, DEFERRED_TAIL};
use crate::load::Loader;
use crate::log::SessionLog;
use crate::medium::{FileMedium, Medium};
use crate::open::{self, Texts};
use crate::parse::{self, Line};

impl SessionLog {
    /// Opens a file like [`SessionLog::open`]. The texts of messages are left out if the file is large and undamaged; then
    /// [`SessionLog::load`] reads them. Writing and forking need them.
    ///
    /// # Errors
    /// As [`SessionLog::open`].
    pub fn open_deferred(path: &Path, cwd: &str) -> Result<(Self, Damage)> {
        let medium = FileMedium::open(path)?;
        let size = medium
            .size()
            .map_err(|e| StoreError::io("cannot read", path, e))?;
        let texts = if size < DEFERRED_FILE {
            Texts::Read
        } else {
            Texts::Deferred
        };
        let log = open::open(Box::new(medium), path, cwd, texts)?;
        let damage = log.damage.clone();
        Ok((log, damage))
    }

    /// Returns true while the texts of messages are missing.
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        self.is_deferred
    }

    /// Reads the texts of messages, if they are missing. The leaf stays where it is.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when the file says something else than it did when it was opened; [`StoreError::Io`].
    pub fn load(&mut self) -> Result<()> {
        if !self.is_deferred {
            return Ok(());
        }
        let (mut forest, mut damage) = (Forest::default(), Damage::default());
        let (mut loader, leaf) = (Loader::default(), self.forest.leaf());
        let tail = self.file.load(&mut loader, &mut forest, &mut damage)?;
        let is_same = damage.is_none()
            && tail.torn == 0
            && loader.lines == self.lines
            && forest.entries().len() == self.forest.entries().len()
            && (forest.entries().iter().zip(self.forest.entries())).all(|(new, old)| new.id == old.id);
        if !is_same {
            return Err(StoreError::Changed {
                path: self.file.name(),
            });
        }
        forest.move_leaf(leaf);
        self.forest = forest;
        self.is_deferred = false;
        Ok(())
    }
}

/// Reads the messages at the end of the branch as a whole, down to the newest answer that reports how large the context was: the
/// size of the context is estimated from them. Returns false when that takes too much, or when a later entry changes messages.
pub(crate) fn complete_tail(forest: &mut Forest, medium: &dyn Medium) -> std::io::Result<bool> {
    let path = forest.path_to(forest.leaf_id());
    let edits = path.iter().filter_map(|at| forest.at(*at));
    if edits.into_iter().any(|entry| entry.body.kind() == "context_edit") {
        return Ok(false);
    }
    let mut bytes = 0;
    for at in path.into_iter().rev() {
        let Some((span, entry)) = forest.span(at).zip(forest.at(at)) else {
            return Ok(false);
        };
        if !matches!(entry.body, EntryBody::Message(_)) {
            continue;
        }
        bytes += span.len;
        if bytes > DEFERRED_TAIL {
            return Ok(false);
        }
        let Line::Entry(parsed) = parse::line(&medium.read_at(span.offset, span.len)?) else {
            return Ok(false);
        };
        let is_last = match &parsed.entry.body {
            EntryBody::Message(body) => body
                .message
                .as_assistant()
                .is_some_and(|answer| answer.reported_tokens().is_some() && !answer.content.is_empty()),
            _ => false,
        };
        forest.replace(at, Arc::new(parsed.entry));
        if is_last {
            break;
        }
    }
    Ok(true)
}
