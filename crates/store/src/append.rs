//! Writing to an open session: one system call per batch of whole lines, all or nothing, aware of other writers.

use std::collections::HashSet;
use std::sync::Arc;

use wire::{Entry, EntryBody};

use crate::deferred::load_texts;
use crate::error::{Result, StoreError};
use crate::forest::Span;
use crate::limits::{MAX_LINE, SETTLE_PAUSE, SETTLE_QUIET, SETTLE_TRIES};
use crate::load::Loader;
use crate::log::{SessionLog, lines_of};

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
        let entries = self.forest.make(bodies);
        let lines = lines_of(&entries)?;
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
        let lines = lines_of(&entries)?;
        self.append_lines(entries, &lines).map(drop)
    }

    /// What waits to be appended comes first, and so do lines of other writers.
    fn make_way(&mut self) -> Result<()> {
        if self.file.is_committed() && !self.unwritten.is_empty() {
            self.flush()
        } else {
            self.catch_up()
        }
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
        let lines_then = self.lines;
        let mut offset = if self.file.is_committed() {
            match lines {
                // Nearly always, and a line can be megabytes.
                [line] => self.write(line)?,
                _ => self.write(&lines.concat())?,
            }
        } else {
            self.file.note_pending(lines)
        };
        // Reading back may have counted these lines already, and those of another writer.
        self.lines = self.lines.max(lines_then + lines.len() as u64);
        for (entry, line) in entries.iter().zip(lines) {
            let len = self.file.span_len(line);
            // Known already when the lines had to be read back because another writer got in between.
            if self.forest.position(&entry.id).is_none() {
                self.forest.add(Arc::clone(entry), Span { offset, len });
            }
            let position = self.forest.position(&entry.id);
            self.forest.move_leaf(position);
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
        // Said before the first attempt: what waits from then on waits for the disk, not for the caller.
        self.wanted = self.file.path().is_some() && !self.file.is_committed();
        let Some(first) = self.file.begin()? else {
            return Ok(());
        };
        if let Err(error) = self.write(&first.lines) {
            self.file.give_up(first);
            return Err(error);
        }
        self.file.commit();
        self.wanted = false;
        Ok(())
    }

    /// Reads what other writers added since, so that their entries are known; the leaf stays where it is. Does nothing for a
    /// session that is not on disk. Appending does this by itself.
    ///
    /// # Errors
    /// [`StoreError::Changed`] when the file was shortened or replaced.
    pub fn catch_up(&mut self) -> Result<()> {
        if !self.file.is_committed() {
            return Ok(());
        }
        load_texts(self)?;
        if self.file.has_news()? {
            self.read_more()?;
        }
        if self.file.is_torn() && self.settles()? {
            self.file.cut_torn()?;
        }
        Ok(())
    }

    /// Waits briefly for the rest of a torn last line, since a writer without our lock may be in the middle of it.
    /// Returns false if the rest came.
    fn settles(&mut self) -> Result<bool> {
        let mut quiet = 0;
        for _ in 0..SETTLE_TRIES {
            std::thread::sleep(SETTLE_PAUSE);
            if self.file.has_grown()? {
                self.read_more()?;
                quiet = 0;
            } else {
                quiet += 1;
            }
            if !self.file.is_torn() || quiet >= SETTLE_QUIET {
                return Ok(self.file.is_torn());
            }
        }
        // Another program is writing one long line, so nothing is cut and nothing appended.
        Err(StoreError::Changed {
            path: self.file.name(),
        })
    }

    /// Reads everything after the known part of the file.
    fn read_more(&mut self) -> Result<()> {
        let (from, bytes) = self.file.rest()?;
        let mut loader = Loader::resume(self.lines);
        let tail = loader.feed(&bytes, from, &mut self.forest, &mut self.damage);
        if loader.header.is_some() {
            self.damage.duplicate_headers += 1;
        }
        self.lines = loader.lines;
        self.damage.torn_bytes += self.file.advance(tail);
        self.find_written(&loader.known);
        Ok(())
    }

    /// Appends whole lines in one write and gives where they begin in the file.
    pub(crate) fn write(&mut self, lines: &[u8]) -> Result<u64> {
        let written = self.file.write(lines)?;
        if written.is_mixed {
            self.read_more()?;
        }
        Ok(written.offset)
    }
}
