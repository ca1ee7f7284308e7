//! Entries that wait to be written. When the disk is full or fails, an entry stays in the session with its id and its
//! place, and is appended as soon as a later attempt works. The caller decides when to try again.

use std::sync::Arc;

use wire::{Entry, EntryBody};

use crate::deferred::load_texts;
use crate::error::{Result, StoreError};
use crate::forest::Span;
use crate::limits::MAX_LINE;
use crate::log::{SessionLog, json_line, lines_of};

impl SessionLog {
    /// Adds entries, each a child of the one before, and writes them together with everything that waited, in one write and
    /// with at most one sync. Entries stay when they cannot be written, and [`SessionLog::flush`] tries again.
    ///
    /// # Errors
    /// When the entries could not be written; [`SessionLog::waiting`] says how many wait. An entry above
    /// [`crate::limits::MAX_LINE`] can never be written: it is reported and not kept.
    pub fn keep(&mut self, bodies: Vec<EntryBody>) -> Result<()> {
        if !self.file.is_committed() {
            // One by one, so that an entry which is too large does not take the others with it.
            let kept = bodies.into_iter().map(|body| {
                let entries = self.forest.make(vec![body]);
                let lines = lines_of(&entries)?;
                self.append_lines(entries, &lines).map(drop)
            });
            let kept = kept.collect::<Vec<Result<()>>>();
            return kept.into_iter().collect();
        }
        // An entry must not follow an entry that cannot be read.
        load_texts(self)?;
        // Ids of other writers are known before ours are drawn; when the file cannot be read, it is read later.
        let caught_up = self.catch_up();
        let mut lines = Vec::with_capacity(bodies.len());
        let mut refused = Ok(());
        for body in bodies {
            match self.add_unwritten(body) {
                Ok(line) => lines.push(line),
                Err(error) => refused = Err(error),
            }
        }
        caught_up?;
        self.write_waiting(lines)?;
        refused
    }

    /// Writes what waits to be written: the whole session when its file could not be made, else the entries at its end.
    /// Does nothing when nothing waits.
    ///
    /// # Errors
    /// As [`SessionLog::append`]; everything goes on waiting then.
    pub fn flush(&mut self) -> Result<()> {
        if self.waiting() == 0 {
            return Ok(());
        }
        if !self.file.is_committed() {
            return self.ensure_on_disk();
        }
        self.catch_up()?;
        self.write_waiting(Vec::new())
    }

    /// Adds an entry to the tree; gives its line, which is not in the file yet.
    fn add_unwritten(&mut self, body: EntryBody) -> Result<Vec<u8>> {
        let entry = self.forest.make(vec![body]).pop();
        let Some(entry) = entry else { return Ok(Vec::new()) };
        let line = json_line(&*entry)?;
        if line.len() > MAX_LINE {
            return Err(StoreError::EntryTooLarge { bytes: line.len() });
        }
        let id = entry.id.clone();
        // A span of zero says that the text must be made anew.
        self.forest.add(entry, Span { offset: 0, len: 0 });
        let position = self.forest.position(&id);
        self.forest.move_leaf(position);
        self.unwritten.extend(position);
        Ok(line)
    }

    /// Writes everything that waits; `newest` are the lines of the last of it.
    fn write_waiting(&mut self, newest: Vec<Vec<u8>>) -> Result<()> {
        let older = self.unwritten.len().saturating_sub(newest.len());
        let older = self.unwritten.iter().take(older);
        let older: Vec<Arc<Entry>> = older.filter_map(|at| self.forest.at(*at).cloned()).collect();
        let mut lines = lines_of(&older)?;
        lines.extend(newest);
        if lines.is_empty() {
            return Ok(());
        }
        let lines_before = self.lines;
        let mut offset = match lines.as_slice() {
            // Nearly always, and a line can be megabytes.
            [line] => self.write(line)?,
            lines => self.write(&lines.concat())?,
        };
        self.lines = self.lines.max(lines_before + lines.len() as u64);
        let written = std::mem::take(&mut self.unwritten);
        // Fewer when another writer got in between: then they were read back, and their places are known.
        if written.len() == lines.len() {
            for (at, line) in written.into_iter().zip(&lines) {
                let len = line.len().saturating_sub(1);
                self.forest.set_span(at, Span { offset, len });
                offset += line.len() as u64;
            }
        }
        Ok(())
    }

    /// Lines that were read back from the file need not be written: another writer came in between, or a write that failed
    /// could not be taken back as a whole.
    pub(crate) fn find_written(&mut self, known: &[(usize, Span)]) {
        for (at, span) in known {
            if let Some(place) = self.unwritten.iter().position(|waiting| waiting == at) {
                self.unwritten.remove(place);
                self.forest.set_span(*at, *span);
                self.damage.duplicate_entries = self.damage.duplicate_entries.saturating_sub(1);
            }
        }
    }
}

/// What waits gets a last chance, however the session ends.
impl Drop for SessionLog {
    fn drop(&mut self) {
        // An error cannot be reported any more.
        drop(self.flush());
    }
}
