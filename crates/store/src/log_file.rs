//! The file of one open session: its lines on disk, a torn end, and the lines that wait for its first write. Not here: what
//! the lines say, entries that wait because a write failed (`waiting`).

use std::io;
use std::path::{Path, PathBuf};

use wire::state::Durability;

use crate::damage::Damage;
use crate::error::{Result, StoreError};
use crate::forest::{Forest, Span};
use crate::load::{Loader, Tail};
use crate::medium::{FileMedium, Medium, Presence};

/// Where the lines of a session are. A new session is in `pending` only, until its first write succeeded.
#[derive(Debug, Default)]
pub(crate) struct LogFile {
    /// None for a session that stays in memory.
    path: Option<PathBuf>,
    medium: Option<Box<dyn Medium>>,
    /// True if the session is in the file. Then every append goes there at once.
    committed: bool,
    /// Lines that wait for the first write, header first. Spans of entries point into it until then.
    pending: Vec<u8>,
    /// Bytes of the file that were read or written here; whole lines.
    len: u64,
    /// Torn bytes known to follow them.
    torn: u64,
    /// The last whole line still lacks its line feed.
    needs_lf: bool,
    durability: Durability,
}

/// A first write that is under way.
#[derive(Debug)]
pub(crate) struct FirstWrite {
    /// The lines to write.
    pub(crate) lines: Vec<u8>,
    /// True if the file was made for it.
    made_here: bool,
}

/// Lines that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Where they begin in the file, if no other writer got in between.
    pub(crate) offset: u64,
    /// True if another program wrote at the same time: whose line is where can only be read.
    pub(crate) is_mixed: bool,
}

impl LogFile {
    /// A file that has nothing of the session yet; without a path it never will.
    pub(crate) fn new(path: Option<PathBuf>, pending: Vec<u8>) -> Self {
        Self {
            path,
            pending,
            ..Self::default()
        }
    }

    /// Takes over a file that has no session in it: white space or a torn header, which is cut before the first write.
    pub(crate) fn adopt_empty(&mut self, medium: Box<dyn Medium>, bytes: u64) {
        self.medium = Some(medium);
        self.torn = bytes;
    }

    /// A file whose lines were read up to `tail`.
    pub(crate) fn read(path: &Path, medium: Box<dyn Medium>, tail: Tail) -> Self {
        let mut file = Self::new(Some(path.to_path_buf()), Vec::new());
        (file.medium, file.committed) = (Some(medium), true);
        (file.len, file.torn, file.needs_lf) = (tail.whole, tail.torn, tail.unterminated);
        file
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(crate) fn is_committed(&self) -> bool {
        self.committed
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    pub(crate) fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    pub(crate) fn is_torn(&self) -> bool {
        self.torn > 0
    }

    /// The line at a place, without its line feed, as it was read or written; none if it is in no file and waits for none.
    pub(crate) fn line(&self, span: Span) -> Result<Option<Vec<u8>>> {
        if span.len == 0 {
            return Ok(None);
        }
        match &self.medium {
            Some(medium) if self.committed => {
                let read = medium.read_at(span.offset, span.len);
                read.map(Some).map_err(|e| self.cannot_read(e))
            }
            _ => Ok(usize::try_from(span.offset)
                .ok()
                .and_then(|from| self.pending.get(from..from.checked_add(span.len)?))
                .map(<[u8]>::to_vec)),
        }
    }

    /// Reads the known lines again.
    pub(crate) fn load(&self, loader: &mut Loader, forest: &mut Forest, damage: &mut Damage) -> Result<Tail> {
        let medium = self
            .medium
            .as_deref()
            .ok_or_else(|| StoreError::Missing { path: self.name() })?;
        let read = loader.feed_all(medium, self.len, forest, damage);
        read.map_err(|e| self.cannot_read(e))
    }

    /// Notes lines for the first write; gives where they begin. A session in memory keeps no lines: nothing will read them.
    pub(crate) fn note_pending(&mut self, lines: &[Vec<u8>]) -> u64 {
        let start = self.pending.len() as u64;
        if self.path.is_some() {
            self.pending.extend(lines.iter().flatten());
        }
        start
    }

    /// Bytes of an entry's line that a span counts: nothing is ever read back for a session in memory.
    pub(crate) fn span_len(&self, line: &[u8]) -> usize {
        if self.path.is_some() {
            line.len().saturating_sub(1)
        } else {
            0
        }
    }

    /// Makes the file if need be and readies it for its first lines; none when there is nothing to do.
    pub(crate) fn begin(&mut self) -> Result<Option<FirstWrite>> {
        let Some(path) = self.path.clone().filter(|_| !self.committed) else {
            return Ok(None);
        };
        let made_here = self.medium.is_none();
        if made_here {
            self.medium = Some(Box::new(FileMedium::create(&path)?));
        } else {
            self.stay_at_path()?;
        }
        let first = FirstWrite {
            lines: std::mem::take(&mut self.pending),
            made_here,
        };
        match self.clear(&path) {
            Ok(()) => Ok(Some(first)),
            Err(error) => {
                self.give_up(first);
                Err(error)
            }
        }
    }

    /// The first lines are in the file.
    pub(crate) fn commit(&mut self) {
        self.committed = true;
    }

    /// The first write failed: no file stays behind that was made for it, and its lines go on waiting.
    pub(crate) fn give_up(&mut self, first: FirstWrite) {
        self.pending = first.lines;
        if first.made_here {
            self.medium = None;
            // Ours and empty; nothing more can be done when even that fails.
            drop(std::fs::remove_file(self.name()));
        }
    }

    /// Cuts the torn header of a file that was opened as empty. Further content means that another program wrote.
    fn clear(&mut self, path: &Path) -> Result<()> {
        // The torn header that was seen on opening may go, and nothing else.
        let (torn, medium) = (self.torn, self.medium()?);
        let size = medium
            .size()
            .map_err(|e| StoreError::io("cannot read", path, e))?;
        if size != torn {
            return Err(StoreError::Changed {
                path: path.to_path_buf(),
            });
        }
        if size > 0 {
            medium
                .truncate(0)
                .map_err(|e| StoreError::io("cannot write", path, e))?;
        }
        self.torn = 0;
        Ok(())
    }

    /// Puts a file back that lost its path. Another file at the path is an error.
    fn stay_at_path(&mut self) -> Result<()> {
        let path = self.name();
        let medium = self.medium()?;
        let presence = medium.presence();
        match presence.map_err(|e| StoreError::io("cannot read", &path, e))? {
            Presence::Same => Ok(()),
            Presence::Missing => medium
                .restore()
                .map_err(|e| StoreError::io("cannot write", &path, e)),
            // A write would go to a file that no path leads to any more.
            Presence::Replaced => Err(StoreError::Changed { path }),
        }
    }

    /// Returns true if other programs wrote since. Puts a file back that lost its path.
    pub(crate) fn has_news(&mut self) -> Result<bool> {
        self.stay_at_path()?;
        let path = self.name();
        let (len, torn) = (self.len, self.torn);
        let size = self.medium()?.size();
        let size = size.map_err(|e| StoreError::io("cannot read", &path, e))?;
        // Shorter than the known part: the spans of entries point to other bytes now.
        if size < len {
            return Err(StoreError::Changed { path });
        }
        Ok(size > len + torn)
    }

    /// Returns true if bytes follow the known ones. Unlike [`Self::has_news`] it does not ask which file the path leads to.
    pub(crate) fn has_grown(&mut self) -> Result<bool> {
        let known = self.len + self.torn;
        let size = self.medium()?.size();
        size.map(|size| size > known).map_err(|e| self.cannot_read(e))
    }

    /// The bytes after the known lines, and where they begin.
    pub(crate) fn rest(&mut self) -> Result<(u64, Vec<u8>)> {
        let len = self.len;
        let read = self.medium()?.read_from(len);
        read.map(|bytes| (len, bytes)).map_err(|e| self.cannot_read(e))
    }

    /// The bytes after the known lines were read up to `tail`. Gives how many torn bytes are new.
    pub(crate) fn advance(&mut self, tail: Tail) -> u64 {
        let torn = tail.torn.saturating_sub(self.torn);
        self.len += tail.whole;
        // Torn bytes that follow do not end the line: they are cut, and it lacks its line feed as before.
        self.needs_lf = tail.unterminated || (self.needs_lf && tail.whole == 0);
        self.torn = tail.torn;
        torn
    }

    /// Cuts the torn end, for a new line after it would become part of it, and both would be lost.
    pub(crate) fn cut_torn(&mut self) -> Result<()> {
        let (path, len) = (self.name(), self.len);
        self.medium()?.truncate(len).map_err(|e| refused(&path, e))?;
        self.torn = 0;
        Ok(())
    }

    /// Appends whole lines in one write.
    pub(crate) fn write(&mut self, lines: &[u8]) -> Result<Written> {
        let path = self.name();
        let (before, is_synced) = (self.len, self.durability == Durability::Disk);
        let lf = u64::from(self.needs_lf);
        let joined;
        let bytes = if self.needs_lf {
            joined = [b"\n", lines].concat();
            &joined
        } else {
            lines
        };
        // The line feed that is missing goes out with the lines: after a write of its own the lines could still fail.
        let medium = self.medium()?;
        let (taken, written) = write_all(medium, bytes);
        // An error of the sync counts as a failed write: the caller announces an entry only once it is on disk.
        let done = written.and_then(|()| if is_synced { medium.sync() } else { Ok(()) });
        if let Err(error) = done {
            roll_back(medium, before, taken);
            return Err(refused(&path, error));
        }
        let size = medium
            .size()
            .map_err(|e| StoreError::io("cannot read", &path, e))?;
        self.needs_lf = false;
        let end = before + bytes.len() as u64;
        let is_mixed = size > end;
        if !is_mixed {
            self.len = end;
        }
        Ok(Written {
            offset: before + lf,
            is_mixed,
        })
    }

    /// Gives up the lock of the file, if there is one.
    pub(crate) fn unlock(&self) {
        if let Some(medium) = &self.medium {
            // If it stays, opening the file fails with `StoreError::Locked`.
            drop(medium.unlock());
        }
    }

    /// Takes the lock of the file again.
    pub(crate) fn lock(&mut self) -> Result<()> {
        self.medium.as_mut().map_or(Ok(()), |medium| medium.lock())
    }

    /// The path, for errors.
    pub(crate) fn name(&self) -> PathBuf {
        self.path.clone().unwrap_or_default()
    }

    fn medium(&mut self) -> Result<&mut Box<dyn Medium>> {
        let path = self.path.as_deref().unwrap_or(Path::new(""));
        self.medium.as_mut().ok_or_else(|| StoreError::Missing {
            path: path.to_path_buf(),
        })
    }

    fn cannot_read(&self, error: io::Error) -> StoreError {
        StoreError::io("cannot read", &self.name(), error)
    }
}

/// One call in nearly all cases; a short count is followed by one for the rest, which then says why. Gives the bytes taken.
fn write_all(medium: &mut Box<dyn Medium>, bytes: &[u8]) -> (u64, io::Result<()>) {
    let mut rest = bytes;
    let result = loop {
        if rest.is_empty() {
            break Ok(());
        }
        match medium.append(rest) {
            // Would repeat for ever.
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => rest = rest.get(taken..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => break Err(e),
        }
    };
    ((bytes.len() - rest.len()) as u64, result)
}

/// Removes the bytes of a failed write. If lines of another program follow them, they stay as one damaged line. If the
/// removal fails too, the next `catch_up` finds the torn line and cuts it.
fn roll_back(medium: &mut Box<dyn Medium>, before: u64, taken: u64) {
    // Only if nothing follows them: the lines of another writer must not be cut.
    if taken > 0 && medium.size().is_ok_and(|size| size == before + taken) {
        drop(medium.truncate(before));
    }
}

fn refused(path: &Path, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly {
            path: path.to_path_buf(),
        },
        _ => StoreError::io("cannot write", path, error),
    }
}
