//! `bench/instructions.json`: a list of changes, each with its reason. The count of a path is that of the last change that names it,
//! so a count without a reason cannot be stored.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// Instructions of each path.
pub(super) type Counts = BTreeMap<String, u64>;

/// All changes, the oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    changes: Vec<Change>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    reason: String,
    /// Compiler, C library, valgrind and CPU model of the machine that counted.
    environment: String,
    instructions: Counts,
}

/// How a count compares with the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    /// Less by more than the tolerance.
    Fell,
    /// More by more than the tolerance.
    Grew,
    /// Nothing is stored.
    Unknown,
}

impl Record {
    /// Reads the file; empty when there is none.
    pub(super) fn read(file: &Path) -> Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(file)?;
        serde_json::from_str(&text).with_context(|| format!("{} is no record of counts", file.display()))
    }

    /// Writes the file.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(std::fs::write(file, text)?)
    }

    /// Adds a change.
    pub(super) fn add(&mut self, environment: String, reason: &str, instructions: Counts) {
        self.changes.push(Change {
            reason: reason.to_owned(),
            environment,
            instructions,
        });
    }

    /// The environment of the last change if it is another one.
    pub(super) fn recorded_elsewhere(&self, environment: &str) -> Option<&str> {
        let last = &self.changes.last()?.environment;
        (last != environment).then_some(last.as_str())
    }

    /// The stored count of a path, and how a new one compares; the tolerance is in percent.
    pub(super) fn judge(&self, path: &str, tolerance: f64, count: u64) -> (Option<u64>, Verdict) {
        let stored = self
            .changes
            .iter()
            .rev()
            .find_map(|change| change.instructions.get(path).copied());
        let verdict = match stored.map(|stored| percent(stored, count)) {
            None => Verdict::Unknown,
            Some(change) if change > tolerance => Verdict::Grew,
            Some(change) if change < -tolerance => Verdict::Fell,
            Some(_) => Verdict::Holds,
        };
        (stored, verdict)
    }
}

/// Change from one count to another in percent.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub(super) fn percent(from: u64, to: u64) -> f64 {
    (to as f64 / from.max(1) as f64 - 1.0) * 100.0
}
