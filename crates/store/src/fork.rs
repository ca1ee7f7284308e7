//! New sessions out of an open one (pi-core.md 2.9). Which entry a user may fork at is the caller's rule.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use wire::entry::Label;
use wire::{Entry, EntryBody, Extra, SessionHeader};

use crate::error::{Result, StoreError};
use crate::log::{SessionLog, json_line};
use crate::stamp;

/// What a fork takes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkScope<'a> {
    /// The path from a root to this entry. Labels on it are made anew at the end.
    Path(&'a str),
    /// All branches, with the leaf where it is.
    All,
}

impl SessionLog {
    /// Begins a session with entries of this one under the same ids; members this version does not know go along, those of the header too. Like
    /// [`SessionLog::create`] it writes nothing yet: pi writes at once when an answer is on the path.
    ///
    /// # Errors
    /// As [`SessionLog::create`]; [`StoreError::NoEntry`]; or when this session's file cannot be read.
    pub fn fork(&self, path: Option<PathBuf>, header: SessionHeader, scope: ForkScope<'_>) -> Result<Self> {
        let mut fork = Self::create(path, self.inherited(header))?;
        fork.title.clone_from(&self.title);
        match scope {
            ForkScope::All => {
                for (at, entry) in self.forest.entries().iter().enumerate() {
                    fork.append_lines(vec![Arc::clone(entry)], &[self.line_of(at, entry)?])?;
                }
                fork.set_leaf(self.leaf_id())?;
            }
            ForkScope::Path(leaf) => {
                let positions = self.path_to(Some(leaf));
                if positions.is_empty() {
                    return Err(StoreError::NoEntry { id: leaf.to_owned() });
                }
                self.copy_path(&positions, &mut fork)?;
                self.copy_labels(&mut fork)?;
            }
        }
        Ok(fork)
    }

    /// A header with what other agents wrote into ours: a title, or the model and level of a version 1 file.
    fn inherited(&self, mut header: SessionHeader) -> SessionHeader {
        if header.extra.is_empty()
            && let Ok(Value::Object(mut others)) = serde_json::to_value(&self.header.extra)
        {
            // oh-my-pi has it in a line of its own, which belongs to its file.
            if let Some(title) = &self.title {
                others.entry("title").or_insert_with(|| title.as_str().into());
            }
            // Says where we come from, not where the fork does.
            others.shift_remove("branchedFrom");
            header.extra = Extra::from(others);
        }
        header
    }

    /// Copies a path without its labels. An entry that followed a label follows the entry before the label instead.
    fn copy_path(&self, positions: &[usize], fork: &mut Self) -> Result<()> {
        let entries = positions
            .iter()
            .filter_map(|at| self.forest.at(*at).map(|entry| (*at, entry)));
        for (at, entry) in entries.filter(|(_, entry)| !matches!(entry.body, EntryBody::Label(_))) {
            let mut line = self.line_of(at, entry)?;
            let parent_id = fork.leaf_id().map(str::to_owned);
            let mut copy = Arc::clone(entry);
            if copy.parent_id != parent_id {
                line = with_parent(&line, parent_id.as_deref())?;
                Arc::make_mut(&mut copy).parent_id = parent_id;
            }
            fork.append_lines(vec![copy], &[line])?;
        }
        Ok(())
    }

    fn copy_labels(&self, fork: &mut Self) -> Result<()> {
        let labels: Vec<(String, String, String)> = fork
            .entries()
            .iter()
            .filter_map(|e| {
                self.forest
                    .label(&e.id)
                    .map(|(l, t)| (e.id.clone(), l.to_owned(), t.to_owned()))
            })
            .collect();
        for (target_id, label, timestamp) in labels {
            let id = stamp::entry_id(|id| fork.forest.position(id).is_some());
            let parent_id = fork.leaf_id().map(str::to_owned);
            let body = EntryBody::Label(Label {
                target_id,
                label: Some(label),
                extra: Extra::default(),
            });
            let entry = Arc::new(Entry {
                id,
                parent_id,
                timestamp,
                body,
            });
            let line = json_line(&*entry)?;
            fork.append_lines(vec![entry], &[line])?;
        }
        Ok(())
    }

    /// The entry's line as it was read or written, with its line feed.
    fn line_of(&self, position: usize, entry: &Entry) -> Result<Vec<u8>> {
        let span = self.forest.span(position).filter(|span| span.len > 0);
        let raw = match (span, &self.medium) {
            (Some(span), Some(medium)) if self.committed => {
                let read = medium.read_at(span.offset, span.len);
                Some(read.map_err(|e| StoreError::io("cannot read", &self.name(), e))?)
            }
            (Some(span), _) => usize::try_from(span.offset)
                .ok()
                .and_then(|from| self.pending.get(from..from.checked_add(span.len)?))
                .map(<[u8]>::to_vec),
            (None, _) => None,
        };
        match raw {
            Some(mut line) => {
                line.push(b'\n');
                Ok(line)
            }
            None => json_line(entry),
        }
    }
}

fn with_parent(line: &[u8], parent_id: Option<&str>) -> Result<Vec<u8>> {
    let mut map: Map<String, Value> = serde_json::from_slice(line)?;
    map.insert("parentId".to_owned(), parent_id.into());
    json_line(&map)
}
