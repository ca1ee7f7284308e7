//! New sessions out of an open one (pi-core.md 2.9). Which entry a user may fork at is the caller's rule.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use wire::entry::Label;
use wire::{Entry, EntryBody, Extra, SessionHeader};

use crate::error::{Result, StoreError};
use crate::log::{SessionLog, json_line};

/// What a fork takes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkScope<'a> {
    /// The path from a root to this entry. Labels on it are made anew at the end.
    Path(&'a str),
    /// All branches, with the leaf where it is.
    All,
}

/// A fork that is being filled.
struct Fork<'a> {
    source: &'a SessionLog,
    copy: SessionLog,
}

/// Begins a session with entries of another one.
pub(crate) fn fork(
    source: &SessionLog,
    path: Option<PathBuf>,
    header: SessionHeader,
    scope: ForkScope<'_>,
) -> Result<SessionLog> {
    if source.is_deferred {
        return Err(StoreError::Changed {
            path: source.file.name(),
        });
    }
    let mut copy = SessionLog::create(path, inherited(source, header))?;
    copy.title.clone_from(&source.title);
    let mut fork = Fork { source, copy };
    match scope {
        ForkScope::All => {
            for (at, entry) in source.forest.entries().iter().enumerate() {
                let line = fork.line_of(at, entry)?;
                fork.add(Arc::clone(entry), line)?;
            }
            fork.copy.set_leaf(source.leaf_id())?;
        }
        ForkScope::Path(leaf) => {
            let positions = source.forest.path_to(Some(leaf));
            if positions.is_empty() {
                return Err(StoreError::NoEntry { id: leaf.to_owned() });
            }
            fork.copy_path(&positions)?;
            fork.copy_labels()?;
        }
    }
    Ok(fork.copy)
}

/// A header with what other agents wrote into the one of the source: a title, or the model and level of a version 1 file.
fn inherited(source: &SessionLog, mut header: SessionHeader) -> SessionHeader {
    if header.extra.is_empty()
        && let Ok(Value::Object(mut others)) = serde_json::to_value(&source.header.extra)
    {
        // oh-my-pi has it in a line of its own, which belongs to its file.
        if let Some(title) = &source.title {
            others.entry("title").or_insert_with(|| title.as_str().into());
        }
        // Says where the source comes from, not where the fork does.
        others.shift_remove("branchedFrom");
        header.extra = Extra::from(others);
    }
    header
}

impl Fork<'_> {
    fn add(&mut self, entry: Arc<Entry>, line: Vec<u8>) -> Result<()> {
        self.copy.append_lines(vec![entry], &[line]).map(drop)
    }

    /// Copies a path without its labels. An entry that followed a label follows the entry before the label instead.
    fn copy_path(&mut self, positions: &[usize]) -> Result<()> {
        let source = self.source;
        let entries = positions
            .iter()
            .filter_map(|at| source.forest.at(*at).map(|entry| (*at, entry)));
        for (at, entry) in entries.filter(|(_, entry)| !matches!(entry.body, EntryBody::Label(_))) {
            let mut line = self.line_of(at, entry)?;
            let parent_id = self.copy.leaf_id().map(str::to_owned);
            let mut copy = Arc::clone(entry);
            if copy.parent_id != parent_id {
                let changed = Arc::make_mut(&mut copy);
                changed.parent_id.clone_from(&parent_id);
                // An entry of an unknown type is written as its map, so the parent must be in the map itself.
                if let EntryBody::Other(map) = &mut changed.body {
                    map.insert("parentId".to_owned(), parent_id.clone().into());
                }
                line = match serde_json::from_slice(&line) {
                    Ok(map) => with_parent(map, parent_id.as_deref())?,
                    // The source's line could be read only after mending: the fork gets the mended entry.
                    Err(_) => json_line(&*copy)?,
                };
            }
            self.add(copy, line)?;
        }
        Ok(())
    }

    /// Makes the labels of the copied entries anew, each with the time at which it was set.
    fn copy_labels(&mut self) -> Result<()> {
        let source = &self.source.forest;
        let copied = self.copy.entries().iter();
        let labels: Vec<(String, String, String)> = copied
            .filter_map(|e| {
                let (label, time) = source.label(&e.id)?;
                Some((e.id.clone(), label.to_owned(), time.to_owned()))
            })
            .collect();
        for (target_id, label, timestamp) in labels {
            let body = EntryBody::Label(Label {
                target_id,
                label: Some(label),
                extra: Extra::default(),
            });
            for mut entry in self.copy.forest.make(vec![body]) {
                Arc::make_mut(&mut entry).timestamp.clone_from(&timestamp);
                let line = json_line(&*entry)?;
                self.add(entry, line)?;
            }
        }
        Ok(())
    }

    /// The line of an entry of the source as it was read or written, with its line feed.
    fn line_of(&self, position: usize, entry: &Entry) -> Result<Vec<u8>> {
        let span = self.source.forest.span(position);
        let raw = span.map(|span| self.source.file.line(span)).transpose()?;
        match raw.flatten() {
            Some(mut line) => {
                line.push(b'\n');
                Ok(line)
            }
            None => json_line(entry),
        }
    }
}

fn with_parent(mut map: Map<String, Value>, parent_id: Option<&str>) -> Result<Vec<u8>> {
    map.insert("parentId".to_owned(), parent_id.into());
    json_line(&map)
}
