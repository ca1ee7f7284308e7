//! The entries of a session in memory: file order, links to parents, index by id, labels, name, and the leaf that the next
//! entry follows. No files here.

use std::collections::HashMap;
use std::sync::Arc;

use wire::{Entry, EntryBody};

use crate::context::is_reset;
use crate::error::{Result, StoreError};
use crate::stamp;

/// Where a line is: in the file, or in the lines still to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Bytes from the start of the file.
    pub(crate) offset: u64,
    /// Bytes without the line feed.
    pub(crate) len: usize,
}

/// What became of an entry that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// It has this position now.
    New(usize),
    /// It was there before, word for word, at this position.
    Known(usize),
}

/// Entries in file order with their links. A parent always comes before its children, so no walk can go round in circles.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    entries: Vec<Arc<Entry>>,
    parents: Vec<Option<usize>>,
    spans: Vec<Span>,
    index: HashMap<Box<str>, usize>,
    /// Target id to label and the time it was set.
    labels: HashMap<String, (String, String)>,
    name: Option<String>,
    leaf: Option<usize>,
}

impl Forest {
    /// All entries in file order.
    pub(crate) fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Position of an entry; of the later one when two share the id.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// The entry at a position.
    pub(crate) fn at(&self, position: usize) -> Option<&Arc<Entry>> {
        self.entries.get(position)
    }

    /// Position of the parent; none for roots and orphans.
    pub(crate) fn parent(&self, position: usize) -> Option<usize> {
        self.parents.get(position).copied().flatten()
    }

    /// Where the entry's line is.
    pub(crate) fn span(&self, position: usize) -> Option<Span> {
        self.spans.get(position).copied()
    }

    /// Notes where the entry's line is now.
    pub(crate) fn set_span(&mut self, position: usize, span: Span) {
        if let Some(known) = self.spans.get_mut(position) {
            *known = span;
        }
    }

    /// Label of an entry and the time it was set.
    pub(crate) fn label(&self, id: &str) -> Option<(&str, &str)> {
        self.labels
            .get(id)
            .map(|(label, time)| (label.as_str(), time.as_str()))
    }

    /// The name in the last `session_info` entry; none when that is empty.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref().filter(|name| !name.is_empty())
    }

    /// Returns true if a `session_info` entry set or removed the name.
    pub(crate) fn name_was_set(&self) -> bool {
        self.name.is_some()
    }

    /// Returns true if the entry names a parent that is missing.
    pub(crate) fn is_orphan(&self, position: usize) -> bool {
        self.at(position).is_some_and(|e| e.parent_id.is_some()) && self.parent(position).is_none()
    }

    /// Adds an entry at the end. A copy of an entry that is there is not added again.
    pub(crate) fn add(&mut self, entry: Arc<Entry>, span: Span) -> Added {
        if let Some(known) = self.position(&entry.id)
            && self.at(known).is_some_and(|e| **e == *entry)
        {
            return Added::Known(known);
        }
        let position = self.entries.len();
        self.note(&entry);
        let parent = entry
            .parent_id
            .as_deref()
            .filter(|id| *id != entry.id)
            .and_then(|id| self.position(id));
        self.index.insert(entry.id.as_str().into(), position);
        self.parents.push(parent);
        self.spans.push(span);
        self.entries.push(entry);
        Added::New(position)
    }

    /// Replaces an entry by the same entry with its texts.
    pub(crate) fn replace(&mut self, position: usize, entry: Arc<Entry>) {
        if let Some(known) = self.entries.get_mut(position) {
            *known = entry;
        }
    }

    /// Position of the leaf.
    pub(crate) fn leaf(&self) -> Option<usize> {
        self.leaf
    }

    /// Id of the leaf.
    pub(crate) fn leaf_id(&self) -> Option<&str> {
        let leaf = self.leaf.and_then(|leaf| self.at(leaf));
        leaf.map(|entry| entry.id.as_str())
    }

    /// Moves the leaf to a position.
    pub(crate) fn move_leaf(&mut self, position: Option<usize>) {
        self.leaf = position;
    }

    /// Moves the leaf to an entry; none makes the next entry a root.
    pub(crate) fn set_leaf(&mut self, id: Option<&str>) -> Result<()> {
        let found = id.map(|id| {
            let position = self.position(id);
            position.ok_or_else(|| StoreError::NoEntry { id: id.to_owned() })
        });
        self.leaf = found.transpose()?;
        Ok(())
    }

    /// Positions from a root to `leaf`; starts at an orphan when an entry further up is missing.
    pub(crate) fn path_to(&self, leaf: Option<&str>) -> Vec<usize> {
        let mut path: Vec<usize> = self.path_from(leaf).collect();
        path.reverse();
        path
    }

    /// The end of [`path_to`](Self::path_to) that a model still sees word for word: from the first entry that the newest compaction kept,
    /// or from this compaction if it kept nothing of the path, or from a later mark of `/clear`. The whole path without these.
    pub(crate) fn seen_path_to(&self, leaf: Option<&str>) -> Vec<usize> {
        let mut path = Vec::new();
        let mut compaction = None;
        for at in self.path_from(leaf) {
            let Some(entry) = self.at(at) else { break };
            path.push(at);
            match (compaction, &entry.body) {
                (None, body) if is_reset(body) => break,
                (None, EntryBody::Compaction(body)) => {
                    let first_kept = body.first_kept_entry_id.as_str();
                    if first_kept == entry.id || self.position(first_kept).is_none() {
                        break;
                    }
                    compaction = Some((first_kept, path.len()));
                }
                (Some((first_kept, _)), _) if entry.id == first_kept => {
                    compaction = None;
                    break;
                }
                _ => {}
            }
        }
        // What it kept is on another branch.
        if let Some((_, length)) = compaction {
            path.truncate(length);
        }
        path.reverse();
        path
    }

    /// Positions from `leaf` to a root.
    fn path_from(&self, leaf: Option<&str>) -> impl Iterator<Item = usize> {
        let start = match leaf {
            // The leaf itself, even when a later entry took its id.
            Some(id) if self.leaf_id() == Some(id) => self.leaf,
            Some(id) => self.position(id),
            None => None,
        };
        std::iter::successors(start, |at| self.parent(*at))
    }

    /// The children of an entry, or the roots for none, in file order.
    pub(crate) fn children(&self, id: Option<&str>) -> Vec<Arc<Entry>> {
        let parent = id.and_then(|id| self.position(id));
        if id.is_some() && parent.is_none() {
            return Vec::new();
        }
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(at, _)| self.parent(*at) == parent)
            .map(|(_, entry)| Arc::clone(entry))
            .collect()
    }

    /// Makes entries that follow the leaf, each a child of the one before. They are not added.
    pub(crate) fn make(&self, bodies: Vec<EntryBody>) -> Vec<Arc<Entry>> {
        // One time for the batch: its entries belong together.
        let timestamp = stamp::now_iso();
        let mut parent_id = self.leaf_id().map(str::to_owned);
        let mut made: Vec<Arc<Entry>> = Vec::with_capacity(bodies.len());
        for mut body in bodies {
            let taken = |id: &str| self.position(id).is_some() || made.iter().any(|e| e.id == id);
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

    fn note(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::Label(body) => match body.label.as_deref() {
                Some(label) if !label.is_empty() => {
                    let value = (label.to_owned(), entry.timestamp.clone());
                    self.labels.insert(body.target_id.clone(), value);
                }
                _ => {
                    self.labels.remove(&body.target_id);
                }
            },
            EntryBody::SessionInfo(body) => self.name = Some(body.name.trim().to_owned()),
            // oh-my-pi's way of saying the same.
            EntryBody::Other(map) if entry.body.kind() == "title_change" => {
                if let Some(title) = map.get("title").and_then(serde_json::Value::as_str) {
                    self.name = Some(title.trim().to_owned());
                }
            }
            _ => {}
        }
    }
}
