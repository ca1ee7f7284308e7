//! The report about damage in a session file. `load` and `repair` repair it.

use std::fmt;
use std::path::PathBuf;

use crate::limits::REPORTED_LINES;

/// Why a line of a session file was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// Not a JSON object.
    NotJson,
    /// A JSON object without a string `id`.
    NoId,
    /// Longer than [`crate::limits::MAX_LINE`].
    TooLong,
}

/// A line that was left in the file but not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkippedLine {
    /// Number of the line, the first is 1.
    pub line: u64,
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// Its length in bytes without the line feed.
    pub bytes: u64,
    /// The reason.
    pub reason: SkipReason,
}

/// Damage found in a session file, and its repairs (pi-core.md 2.7).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The first [`REPORTED_LINES`] skipped lines.
    pub skipped: Vec<SkippedLine>,
    /// Number of all skipped lines.
    pub skipped_lines: u64,
    /// Length of all skipped lines, in bytes.
    pub skipped_bytes: u64,
    /// Bytes of a last line that was begun and never finished; they are cut off before the next append.
    pub torn_bytes: u64,
    /// The last line is whole and only lacks its line feed, which the next append adds.
    pub unterminated: bool,
    /// Entries got out of lines in which several were glued together, or that began with rubbish.
    pub salvaged: u64,
    /// Entries that could be read only after mending invalid UTF-8, lone surrogates or nulls in place of values.
    pub mended: u64,
    /// Entries that are whole JSON but not of the shape their type asks for; kept as they are, not sent to a model.
    pub opaque: u64,
    /// Entries whose parent is missing; they became roots, so the history before them is not in their context.
    pub orphans: u64,
    /// Headers after the first one.
    pub duplicate_headers: u64,
    /// Entries that are there twice, word for word.
    pub duplicate_entries: u64,
    /// The header was unreadable and was put together again from its remains, the file name and the entries.
    pub header_rebuilt: bool,
    /// The version the file had before it was migrated. No damage in itself.
    pub migrated_from: Option<u32>,
    /// Copy of the file as it was before migration or before its header was rebuilt.
    pub backup: Option<PathBuf>,
}

impl Damage {
    /// Returns true for an undamaged file. A migration is no damage.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self
            == Self {
                migrated_from: self.migrated_from,
                backup: self.backup.clone(),
                ..Self::default()
            }
    }

    pub(crate) fn skip(&mut self, line: SkippedLine) {
        self.skipped_lines += 1;
        self.skipped_bytes += line.bytes;
        if self.skipped.len() < REPORTED_LINES {
            self.skipped.push(line);
        }
    }
}

/// One sentence for a person, for example `2 unreadable lines (61 bytes) skipped, 17 bytes of a torn last line cut`.
impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut add = |count: u64, text: String| {
            if count > 0 {
                parts.push(text);
            }
        };
        let Self {
            skipped_lines,
            skipped_bytes,
            torn_bytes,
            salvaged,
            mended,
            opaque,
            orphans,
            ..
        } = self;
        add(u64::from(self.header_rebuilt), "header rebuilt".into());
        add(
            *skipped_lines,
            format!("{skipped_lines} unreadable lines ({skipped_bytes} bytes) skipped"),
        );
        add(*torn_bytes, format!("{torn_bytes} bytes of a torn last line cut"));
        add(
            u64::from(self.unterminated),
            "line feed added to the last line".into(),
        );
        add(
            *salvaged,
            format!("{salvaged} entries taken out of damaged lines"),
        );
        add(*mended, format!("{mended} entries mended"));
        add(*opaque, format!("{opaque} entries not understood"));
        add(*orphans, format!("{orphans} entries without their parent"));
        let duplicates = self.duplicate_headers + self.duplicate_entries;
        add(duplicates, format!("{duplicates} duplicate lines ignored"));
        f.write_str(if parts.is_empty() { "no damage" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}
