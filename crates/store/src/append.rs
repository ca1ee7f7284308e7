//! Writing to an open session: one system call per batch of whole lines, all or nothing, aware of other writers.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::state::Durability;
use wire::{Entry, EntryBody};

use crate::error::{Result, StoreError};
use crate::forest::Span;
use crate::limits::{MAX_LINE, SETTLE_PAUSE, SETTLE_QUIET, SETTLE_TRIES};
use crate::load::Loader;
use crate::log::{SessionLog, json_line};
use crate::medium::{FileMedium, Medium, Presence};
use crate::stamp;

impl SessionLog {
    /// Appends an entry as a child of the leaf, which moves to it. On disk when this returns, once the session is on disk.
    ///
    /// # Errors
    /// When the entry could not be written. It is not kept then, and the file ends after its last whole entry; the next
    /// call may well succeed.
    pub fn append(&mut self, body: EntryBody) -> Result<Arc<Entry>> {
        let mut added = self.append_batch(vec![body])?;
        added
            .pop()
            .ok_or_else(|| StoreError::NoEntry { id: String::new() })
    }

    /// Appends entries, each a child of the one before, in one write: all of them or none.
    ///
    /// # Errors
    /// As [`SessionLog::append`].
    pub fn append_batch(&mut self, bodies: Vec<EntryBody>) -> Result<Vec<Arc<Entry>>> {
        self.make_way()?;
        let entries = self.make_entries(bodies);
        let lines = entries
            .iter()
            .map(|e| json_line(&**e))
            .collect::<Result<Vec<_>>>()?;
        self.append_lines(entries, &lines)
    }

    /// Appends entries of another session with their ids and parents, in one write. Leaves out entries without an id,
    /// or with an id that is in use.
    ///
    /// # Errors
    /// As [`SessionLog::append`].
    pub fn append_made(&mut self, entries: Vec<Entry>) -> Result<()> {
        self.make_way()?;
        let mut taken = HashSet::new();
        let entries = entries.into_iter().filter(|entry| {
            let is_free = !entry.id.is_empty() && self.forest.position(&entry.id).is_none();
            is_free && taken.insert(entry.id.clone())
        });
        let entries: Vec<Arc<Entry>> = entries.map(Arc::new).collect();
        let lines = entries
            .iter()
            .map(|e| json_line(&**e))
            .collect::<Result<Vec<_>>>()?;
        self.append_lines(entries, &lines).map(drop)
    }

    /// What waits to be appended comes first, and so do lines of other writers.
    fn make_way(&mut self) -> Result<()> {
        if self.committed && !self.unwritten.is_empty() {
            self.flush()
        } else {
            self.catch_up()
        }
    }

    pub(crate) fn make_entries(&self, bodies: Vec<EntryBody>) -> Vec<Arc<Entry>> {
        // One time for the batch: its entries belong together.
        let timestamp = stamp::now_iso();
        let mut parent_id = self.leaf_id().map(str::to_owned);
        let mut made: Vec<Arc<Entry>> = Vec::with_capacity(bodies.len());
        for mut body in bodies {
            let taken = |id: &str| self.forest.position(id).is_some() || made.iter().any(|e| e.id == id);
            let id = stamp::entry_id(taken);
            // An entry of an unknown type is written as its map, so these members must be in the map itself.
            if let EntryBody::Other(map) = &mut body {
                map.insert("id".to_owned(), id.clone().into());
                map.insert("parentId".to_owned(), parent_id.clone().into());
                map.insert("timestamp".to_owned(), timestamp.clone().into());
            }
            let entry = Entry {
                id: id.clone(),
                parent_id,
                timestamp: timestamp.clone(),
                body,
            };
            parent_id = Some(id);
            made.push(Arc::new(entry));
        }
        made
    }

    /// Adds entries whose lines are given, each with its line feed.
    pub(crate) fn append_lines(
        &mut self,
        entries: Vec<Arc<Entry>>,
        lines: &[Vec<u8>],
    ) -> Result<Vec<Arc<Entry>>> {
        if let Some(line) = lines.iter().find(|line| line.len() > MAX_LINE) {
            return Err(StoreError::EntryTooLarge { bytes: line.len() });
        }
        let (lines_then, start) = (self.lines, self.pending.len() as u64);
        let mut offset = if self.committed {
            self.write(&lines.concat())?
        } else {
            start
        };
        // A session in memory keeps no lines: nothing will ever read them.
        if !self.committed && self.path.is_some() {
            self.pending.extend(lines.iter().flatten());
        }
        // Reading back may have counted these lines already, and those of another writer.
        self.lines = self.lines.max(lines_then + lines.len() as u64);
        for (entry, line) in entries.iter().zip(lines) {
            let len = if self.path.is_some() { line.len() - 1 } else { 0 };
            // Known already when the lines had to be read back because another writer got in between.
            if self.forest.position(&entry.id).is_none() {
                self.forest.add(Arc::clone(entry), Span { offset, len });
            }
            self.leaf = self.forest.position(&entry.id);
            offset += line.len() as u64;
        }
        Ok(entries)
    }

    /// Writes the session to its file if it is not there yet: header and entries in one write. From then on every append goes
    /// to disk at once. Does nothing for a session in memory. When to call it is the caller's rule: pi 0.74 does so at the
    /// first assistant message, pi 0.99 and later at the first user message (behaviour.md 9.2).
    ///
    /// # Errors
    /// When the file cannot be made or written; no file is left behind then, the entries stay in memory, and a later call
    /// tries again.
    pub fn ensure_on_disk(&mut self) -> Result<()> {
        let Some(path) = self.path.clone().filter(|_| !self.committed) else {
            return Ok(());
        };
        self.wanted = true;
        let made_here = self.medium.is_none();
        if made_here {
            self.medium = Some(Box::new(FileMedium::create(&path)?));
        }
        let pending = std::mem::take(&mut self.pending);
        let written = self
            .clear_for_first_write(&path)
            .and_then(|()| self.write(&pending));
        if let Err(error) = written {
            self.pending = pending;
            if made_here {
                self.medium = None;
                // Ours and empty; nothing more can be done when even that fails.
                drop(std::fs::remove_file(&path));
            }
            return Err(error);
        }
        self.committed = true;
        self.wanted = false;
        Ok(())
    }

    /// Cuts the torn header of a file that was opened as empty. Further content means that another program wrote.
    fn clear_for_first_write(&mut self, path: &Path) -> Result<()> {
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

    /// Reads what other writers added since, so that their entries are known; the leaf stays where it is. Does nothing for a
    /// session that is not on disk. Appending does this by itself.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when the file was shortened or replaced.
    pub fn catch_up(&mut self) -> Result<()> {
        if !self.committed {
            return Ok(());
        }
        let path = self.name();
        let failed = |e| StoreError::io("cannot read", &path, e);
        let len = self.len;
        let medium = self.medium()?;
        match medium.presence().map_err(failed)? {
            Presence::Same => {}
            Presence::Missing => medium
                .restore()
                .map_err(|e| StoreError::io("cannot write", &path, e))?,
            // Appending would write to a file that no path leads to any more.
            Presence::Replaced => return Err(StoreError::Changed { path }),
        }
        let size = medium.size().map_err(failed)?;
        // Shorter than the known part: the spans of entries point to other bytes now.
        if size < len {
            return Err(StoreError::Changed { path });
        }
        if size > len + self.torn {
            self.read_more()?;
        }
        // A new line after a torn one would become part of it, and both would be lost.
        if self.torn > 0 && self.settles()? {
            let len = self.len;
            self.medium()?.truncate(len).map_err(|e| refused(&path, e))?;
            self.torn = 0;
        }
        Ok(())
    }

    /// Waits briefly for the rest of a torn last line, since a writer without our lock may be in the middle of it.
    /// Returns false if the rest came.
    fn settles(&mut self) -> Result<bool> {
        let path = self.name();
        let mut quiet = 0;
        for _ in 0..SETTLE_TRIES {
            std::thread::sleep(SETTLE_PAUSE);
            let known = self.len + self.torn;
            if self
                .medium()?
                .size()
                .map_err(|e| StoreError::io("cannot read", &path, e))?
                > known
            {
                self.read_more()?;
                quiet = 0;
            } else {
                quiet += 1;
            }
            if self.torn == 0 || quiet >= SETTLE_QUIET {
                return Ok(self.torn > 0);
            }
        }
        // Another program is writing one long line, so nothing is cut and nothing appended.
        Err(StoreError::Changed { path })
    }

    /// Reads everything after the known part of the file.
    fn read_more(&mut self) -> Result<()> {
        let path = self.name();
        let len = self.len;
        let bytes = self
            .medium()?
            .read_from(len)
            .map_err(|e| StoreError::io("cannot read", &path, e))?;
        let mut loader = Loader::resume(self.lines);
        let tail = loader.feed(&bytes, len, &mut self.forest, &mut self.damage);
        if loader.header.is_some() {
            self.damage.duplicate_headers += 1;
        }
        self.len = len + tail.whole;
        self.lines = loader.lines;
        self.needs_lf = tail.unterminated || (self.needs_lf && bytes.is_empty());
        self.damage.torn_bytes += tail.torn.saturating_sub(self.torn);
        self.torn = tail.torn;
        self.find_written(&loader.known);
        Ok(())
    }

    /// Appends whole lines in one write and gives where they begin in the file.
    pub(crate) fn write(&mut self, lines: &[u8]) -> Result<u64> {
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
        self.len = before + bytes.len() as u64;
        if size > self.len {
            // Another writer got in between: whose line is where can only be read.
            self.len = before;
            self.read_more()?;
        }
        Ok(before + lf)
    }

    pub(crate) fn name(&self) -> PathBuf {
        self.path.clone().unwrap_or_default()
    }

    pub(crate) fn medium(&mut self) -> Result<&mut Box<dyn Medium>> {
        let path = self.path.clone().unwrap_or_default();
        self.medium.as_mut().ok_or(StoreError::Missing { path })
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
