//! An open session: creating and looking at it. Reading its file is in `open`, writing in `append` and `waiting`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::state::Durability;
use wire::{Entry, SessionHeader};

use crate::context::Context;
use crate::damage::Damage;
use crate::error::{Result, StoreError};
use crate::forest::Forest;
use crate::fork::{self, ForkScope};
use crate::limits::SHORT_LINE;
use crate::log_file::LogFile;
use crate::medium::{FileMedium, Medium};
use crate::open;
use crate::texts::Texts;
use crate::tree::Tree;

/// A session: its header, its entries in file order and the leaf that the next entry follows. On disk it is one append-only
/// file, locked while this value lives. A new session is in memory only until [`SessionLog::ensure_on_disk`] is called.
#[derive(Debug)]
pub struct SessionLog {
    pub(crate) header: SessionHeader,
    pub(crate) title: Option<String>,
    pub(crate) forest: Forest,
    pub(crate) file: LogFile,
    /// `ensure_on_disk` was called and failed: the whole session waits to be written.
    pub(crate) wanted: bool,
    /// Positions of entries that are kept in memory and still have to be appended to the file, in file order.
    pub(crate) unwritten: Vec<usize>,
    pub(crate) lines: u64,
    pub(crate) damage: Damage,
    /// Entries lack the texts of their messages.
    pub(crate) is_deferred: bool,
}

impl SessionLog {
    /// Begins a session. With no path it stays in memory for good. Nothing is written yet, no directory is made.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when something is at the path.
    pub fn create(path: Option<PathBuf>, header: SessionHeader) -> Result<Self> {
        if let Some(path) = &path
            && std::fs::symlink_metadata(path).is_ok()
        {
            return Err(StoreError::AlreadyExists { path: path.clone() });
        }
        Self::unwritten(path, header)
    }

    /// Opens, locks and reads a session file; damage is worked around and reported. Nothing is written, with two
    /// exceptions: a file of version 1 or 2, or with a lost header, is replaced by a repaired one and a `.bak` copy
    /// kept. An empty file becomes a new session with the working directory `cwd`, unwritten as after `create`.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::NotAFile`], [`StoreError::NotASession`], [`StoreError::Locked`],
    /// [`StoreError::TooLarge`] or [`StoreError::Io`]; the file is untouched then.
    pub fn open(path: &Path, cwd: &str) -> Result<(Self, Damage)> {
        let medium = FileMedium::open(path)?;
        Self::open_on(Box::new(medium), path, cwd)
    }

    /// Opens a file like [`SessionLog::open`], but only if it contains a session. An empty file, or one of white space,
    /// belongs to another program.
    ///
    /// # Errors
    /// As [`SessionLog::open`]; [`StoreError::NotASession`] for an empty file.
    pub fn open_existing(path: &Path, cwd: &str) -> Result<(Self, Damage)> {
        let (log, damage) = Self::open(path, cwd)?;
        open::check_begun(&log)?;
        Ok((log, damage))
    }

    /// [`SessionLog::open`] on any medium, for simulations of failing disks. `path` is only used as a name.
    ///
    /// # Errors
    /// As [`SessionLog::open`].
    pub fn open_on(medium: Box<dyn Medium>, path: &Path, cwd: &str) -> Result<(Self, Damage)> {
        let log = open::open(medium, path, cwd, Texts::Read)?;
        let damage = log.damage.clone();
        Ok((log, damage))
    }

    pub(crate) fn unwritten(path: Option<PathBuf>, header: SessionHeader) -> Result<Self> {
        let pending = if path.is_some() {
            json_line(&header)?
        } else {
            Vec::new()
        };
        let mut log = Self::bare(header, LogFile::new(path, pending));
        log.lines = 1;
        Ok(log)
    }

    pub(crate) fn bare(header: SessionHeader, file: LogFile) -> Self {
        Self {
            header,
            title: None,
            forest: Forest::default(),
            file,
            wanted: false,
            unwritten: Vec::new(),
            lines: 0,
            damage: Damage::default(),
            is_deferred: false,
        }
    }

    /// An empty session in memory with the header of this one.
    #[must_use]
    pub fn detached(&self) -> Self {
        let mut empty = Self::bare(self.header.clone(), LogFile::default());
        empty.set_durability(self.durability());
        empty
    }

    /// The session's header.
    #[must_use]
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// The session's file, which need not exist yet; none for a session in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.file.path()
    }

    /// All entries of all branches, in file order.
    #[must_use]
    pub fn entries(&self) -> &[Arc<Entry>] {
        self.forest.entries()
    }

    /// The entry with this id.
    #[must_use]
    pub fn entry(&self, id: &str) -> Option<&Arc<Entry>> {
        self.forest
            .position(id)
            .and_then(|position| self.forest.at(position))
    }

    /// Returns true if the session is in its file, so that every append goes there at once.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.file.is_committed()
    }

    /// Number of entries that are kept in memory and wait to be written, because an earlier write failed.
    #[must_use]
    pub fn waiting(&self) -> usize {
        if self.file.is_committed() {
            self.unwritten.len()
        } else if self.wanted {
            self.forest.entries().len()
        } else {
            0
        }
    }

    /// What an acknowledged entry survives.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.file.durability()
    }

    /// Damage so far: found on opening, or in lines that other writers added since.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// What an acknowledged entry is to survive from now on.
    pub fn set_durability(&mut self, durability: Durability) {
        self.file.set_durability(durability);
    }

    /// Begins a session with entries of this one under the same ids; members this version does not know go along, those of the header too. Like
    /// [`SessionLog::create`] it writes nothing yet: pi writes at once when an answer is on the path.
    ///
    /// # Errors
    /// As [`SessionLog::create`]; [`StoreError::NoEntry`]; or when this session's file cannot be read.
    pub fn fork(&self, path: Option<PathBuf>, header: SessionHeader, scope: ForkScope<'_>) -> Result<Self> {
        fork::fork(self, path, header, scope)
    }

    /// The conversation at a leaf; empty for none and for unknown ids.
    #[must_use]
    pub fn context(&self, leaf: Option<&str>) -> Context {
        Context::of(&self.header, &self.branch(leaf))
    }

    /// Id of the leaf: the entry that the next one follows. None in an empty session, or when the next entry is to be a root.
    #[must_use]
    pub fn leaf_id(&self) -> Option<&str> {
        self.forest.leaf_id()
    }

    /// Moves the leaf; none makes the next entry a root. The move itself is not written: it lasts once something is
    /// appended (pi-core.md 2.5).
    ///
    /// # Errors
    /// [`StoreError::NoEntry`].
    pub fn set_leaf(&mut self, id: Option<&str>) -> Result<()> {
        self.forest.set_leaf(id)
    }

    /// The entries from a root to `leaf`, both included; empty for none and for unknown ids. Starts at an orphan when an
    /// entry further up is missing.
    #[must_use]
    pub fn branch(&self, leaf: Option<&str>) -> Vec<Arc<Entry>> {
        let path = self.forest.path_to(leaf).into_iter();
        path.filter_map(|position| self.forest.at(position).cloned())
            .collect()
    }

    /// The children of an entry, or the roots for none, in file order.
    #[must_use]
    pub fn children(&self, id: Option<&str>) -> Vec<Arc<Entry>> {
        self.forest.children(id)
    }

    /// The whole tree; siblings ordered by time.
    #[must_use]
    pub fn tree(&self) -> Tree {
        Tree::of(&self.forest)
    }

    /// The label of an entry.
    #[must_use]
    pub fn label(&self, id: &str) -> Option<&str> {
        self.forest.label(id).map(|(label, _)| label)
    }

    /// The session's name: what the last `session_info` entry says, else the title that xcsh writes into the header.
    #[must_use]
    pub fn session_name(&self) -> Option<&str> {
        if self.forest.name_was_set() {
            self.forest.name()
        } else {
            self.title.as_deref()
        }
    }
}

/// A value as one line of JSON with its line feed.
pub(crate) fn json_line(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    let mut short = ShortLine::default();
    serde_json::to_writer(&mut short, value)?;
    let mut line = short.bytes;
    if short.length > line.len() {
        // A buffer that grows to a line of megabytes takes three times its memory for a moment.
        line = Vec::with_capacity(short.length + 1);
        serde_json::to_writer(&mut line, value)?;
    }
    line.push(b'\n');
    Ok(line)
}

/// The beginning of a line, and its length.
#[derive(Default)]
struct ShortLine {
    bytes: Vec<u8>,
    length: usize,
}

impl std::io::Write for ShortLine {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.length += bytes.len();
        if self.length <= SHORT_LINE {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The lines of entries.
pub(crate) fn lines_of(entries: &[Arc<Entry>]) -> Result<Vec<Vec<u8>>> {
    entries.iter().map(|entry| json_line(&**entry)).collect()
}
