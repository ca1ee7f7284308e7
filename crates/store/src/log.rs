//! An open session: opening, creating and looking at it. Writing lives in `append`, walking in `tree` and `context`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::state::Durability;
use wire::{Entry, SessionHeader};

use crate::damage::Damage;
use crate::error::{Result, StoreError};
use crate::forest::Forest;
use crate::header::{self, HeaderLine};
use crate::limits::{LOAD_BLOCK, MAX_FILE};
use crate::load::{Loader, Tail, Verdict, header_remains};
use crate::medium::{FileMedium, Medium};
use crate::migrate;

/// A session: its header, its entries in file order and the leaf that the next entry follows. On disk it is one append-only
/// file, locked while this value lives. A new session is in memory only until [`SessionLog::ensure_on_disk`] is called.
#[derive(Debug)]
pub struct SessionLog {
    pub(crate) header: SessionHeader,
    pub(crate) title: Option<String>,
    pub(crate) forest: Forest,
    pub(crate) leaf: Option<usize>,
    pub(crate) path: Option<PathBuf>,
    pub(crate) medium: Option<Box<dyn Medium>>,
    /// True if the session is in the file. Then every append goes there at once.
    pub(crate) committed: bool,
    /// Lines that wait for `ensure_on_disk`, header first. Spans of entries point into it until then.
    pub(crate) pending: Vec<u8>,
    /// `ensure_on_disk` was called and failed: the whole session waits to be written.
    pub(crate) wanted: bool,
    /// Positions of entries that are kept in memory and still have to be appended to the file, in file order.
    pub(crate) unwritten: Vec<usize>,
    /// Bytes of the file that were read or written here; whole lines.
    pub(crate) len: u64,
    /// Torn bytes known to follow them.
    pub(crate) torn: u64,
    /// The last whole line still lacks its line feed.
    pub(crate) needs_lf: bool,
    pub(crate) lines: u64,
    pub(crate) durability: Durability,
    pub(crate) damage: Damage,
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
        Self::unwritten(path, None, header)
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
        // A header that was cut off by the end of its process is a session that began.
        if !log.committed && damage.torn_bytes == 0 {
            return Err(StoreError::NotASession {
                path: path.to_path_buf(),
            });
        }
        Ok((log, damage))
    }

    /// [`SessionLog::open`] on any medium, for simulations of failing disks. `path` is only used as a name.
    ///
    /// # Errors
    /// As [`SessionLog::open`].
    pub fn open_on(mut medium: Box<dyn Medium>, path: &Path, cwd: &str) -> Result<(Self, Damage)> {
        let failed = |e| StoreError::io("cannot read", path, e);
        let bytes = medium.size().map_err(failed)?;
        if bytes > MAX_FILE {
            return Err(StoreError::TooLarge {
                path: path.to_path_buf(),
                bytes,
            });
        }
        let head = usize::try_from(bytes).unwrap_or(usize::MAX).min(LOAD_BLOCK);
        let head = medium.read_at(0, head).map_err(failed)?;
        if migrate::is_current(&head) {
            return Self::load_in_blocks(medium, path, bytes);
        }
        let mut content = medium.read_from(0).map_err(failed)?;
        let mut damage = Damage::default();
        if let Some((version, migrated)) = migrate::to_current(&content) {
            let replaced = medium.replace(&migrated);
            damage.backup = replaced.map_err(|e| StoreError::io("cannot migrate", path, e))?;
            damage.migrated_from = Some(version);
            content = migrated;
        }
        let log = Self::load(medium, path, cwd, &content, damage)?;
        let damage = log.damage.clone();
        Ok((log, damage))
    }

    /// Reads a file of the present version without holding it in memory.
    fn load_in_blocks(medium: Box<dyn Medium>, path: &Path, size: u64) -> Result<(Self, Damage)> {
        let (mut forest, mut loader, mut damage) = (Forest::default(), Loader::default(), Damage::default());
        let tail = loader
            .feed_all(medium.as_ref(), size, &mut forest, &mut damage)
            .map_err(|e| StoreError::io("cannot read", path, e))?;
        (damage.torn_bytes, damage.unterminated) = (tail.torn, tail.unterminated);
        let (lines, last) = (loader.lines, loader.last);
        let Verdict::Session(header) = loader.verdict(&forest, tail, Some(path)) else {
            // There was a header a moment ago.
            return Err(StoreError::Changed {
                path: path.to_path_buf(),
            });
        };
        let log = Self::loaded(medium, path, *header, forest, tail, (lines, last), damage);
        let damage = log.damage.clone();
        Ok((log, damage))
    }

    fn loaded(
        medium: Box<dyn Medium>,
        path: &Path,
        header: HeaderLine,
        forest: Forest,
        tail: Tail,
        (lines, last): (u64, Option<usize>),
        damage: Damage,
    ) -> Self {
        let HeaderLine { header, title, .. } = header;
        let mut log = Self::bare(Some(path.to_path_buf()), header);
        log.adopt(medium, forest, tail, damage);
        (log.title, log.lines, log.leaf) = (title, lines, last);
        log
    }

    /// Reads a file that must be in memory as a whole, since it may have to be written anew.
    fn load(
        mut medium: Box<dyn Medium>,
        path: &Path,
        cwd: &str,
        content: &[u8],
        mut damage: Damage,
    ) -> Result<Self> {
        let mut forest = Forest::default();
        let mut loader = Loader::default();
        let tail = loader.feed(content, 0, &mut forest, &mut damage);
        (damage.torn_bytes, damage.unterminated) = (tail.torn, tail.unterminated);
        let (lines, last) = (loader.lines, loader.last);
        match loader.verdict(&forest, tail, Some(path)) {
            Verdict::Session(header) => {
                let place = (lines, last);
                Ok(Self::loaded(medium, path, *header, forest, tail, place, damage))
            }
            Verdict::HeaderLost(header) => {
                let mut whole = json_line(&*header)?;
                whole.extend_from_slice(content.get(header_remains(content)..).unwrap_or_default());
                let replaced = medium.replace(&whole);
                let backup = replaced.map_err(|e| StoreError::io("cannot repair", path, e))?;
                let damage = Damage {
                    backup: backup.or(damage.backup),
                    header_rebuilt: true,
                    ..Damage::default()
                };
                Self::load(medium, path, cwd, &whole, damage)
            }
            Verdict::Empty => {
                let mut log = Self::unwritten(
                    Some(path.to_path_buf()),
                    Some(medium),
                    header::new_header(cwd, None),
                )?;
                // White space or a torn header: cut before the first write.
                (log.damage, log.torn) = (damage, content.len() as u64);
                Ok(log)
            }
            Verdict::NotASession => Err(StoreError::NotASession {
                path: path.to_path_buf(),
            }),
        }
    }

    fn adopt(&mut self, medium: Box<dyn Medium>, forest: Forest, tail: Tail, damage: Damage) {
        self.medium = Some(medium);
        self.forest = forest;
        self.committed = true;
        (self.len, self.torn, self.needs_lf) = (tail.whole, tail.torn, tail.unterminated);
        self.damage = damage;
    }

    pub(crate) fn unwritten(
        path: Option<PathBuf>,
        medium: Option<Box<dyn Medium>>,
        header: SessionHeader,
    ) -> Result<Self> {
        let pending = if path.is_some() {
            json_line(&header)?
        } else {
            Vec::new()
        };
        let mut log = Self::bare(path, header);
        (log.medium, log.pending, log.lines) = (medium, pending, 1);
        Ok(log)
    }

    fn bare(path: Option<PathBuf>, header: SessionHeader) -> Self {
        Self {
            header,
            title: None,
            forest: Forest::default(),
            leaf: None,
            path,
            medium: None,
            committed: false,
            pending: Vec::new(),
            wanted: false,
            unwritten: Vec::new(),
            len: 0,
            torn: 0,
            needs_lf: false,
            lines: 0,
            durability: Durability::default(),
            damage: Damage::default(),
        }
    }

    /// An empty session in memory with the header of this one.
    #[must_use]
    pub fn detached(&self) -> Self {
        let mut empty = Self::bare(None, self.header.clone());
        empty.durability = self.durability;
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
        self.path.as_deref()
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
        self.committed
    }

    /// Number of entries that are kept in memory and wait to be written, because an earlier write failed.
    #[must_use]
    pub fn waiting(&self) -> usize {
        if self.committed {
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
        self.durability
    }

    /// Damage so far: found on opening, or in lines that other writers added since.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// What an acknowledged entry is to survive from now on.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }
}

/// A value as one line of JSON with its line feed.
pub(crate) fn json_line(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
