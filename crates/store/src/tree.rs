//! Questions about the tree of entries (pi-core.md 2.5): path, children, labels, name, and where the leaf is. What a path
//! means to a model lives in `context`.

use std::sync::Arc;

use wire::Entry;

use crate::error::{Result, StoreError};
use crate::log::SessionLog;

/// All entries of a session as a tree, flat, so that a chain of any length can be walked without recursion.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// One node per entry, in file order.
    pub nodes: Vec<TreeNode>,
    /// Indexes of the roots in `nodes`, oldest first: entries without parent, or whose parent is missing.
    pub roots: Vec<usize>,
}

/// An entry in the tree.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Indexes of its children in [`Tree::nodes`], oldest first.
    pub children: Vec<usize>,
    /// Its label.
    pub label: Option<String>,
    /// When the label was set, ISO 8601.
    pub label_timestamp: Option<String>,
}

impl SessionLog {
    /// Id of the leaf: the entry that the next one follows. None in an empty session, or when the next entry is to be a root.
    #[must_use]
    pub fn leaf_id(&self) -> Option<&str> {
        self.leaf
            .and_then(|leaf| self.forest.at(leaf))
            .map(|entry| entry.id.as_str())
    }

    /// Moves the leaf; none makes the next entry a root. The move itself is not written: it lasts once something is
    /// appended (pi-core.md 2.5).
    ///
    /// # Errors
    /// [`StoreError::NoEntry`].
    pub fn set_leaf(&mut self, id: Option<&str>) -> Result<()> {
        self.leaf = match id {
            None => None,
            Some(id) => Some(
                self.forest
                    .position(id)
                    .ok_or_else(|| StoreError::NoEntry { id: id.to_owned() })?,
            ),
        };
        Ok(())
    }

    /// The entries from a root to `leaf`, both included; empty for none and for unknown ids. Starts at an orphan when an
    /// entry further up is missing.
    #[must_use]
    pub fn branch(&self, leaf: Option<&str>) -> Vec<Arc<Entry>> {
        self.path_to(leaf)
            .into_iter()
            .filter_map(|position| self.forest.at(position).cloned())
            .collect()
    }

    /// Positions from a root to `leaf`.
    pub(crate) fn path_to(&self, leaf: Option<&str>) -> Vec<usize> {
        let start = match leaf {
            // The leaf itself, even when a later entry took its id.
            Some(id) if self.leaf_id() == Some(id) => self.leaf,
            Some(id) => self.forest.position(id),
            None => None,
        };
        let mut path: Vec<usize> = std::iter::successors(start, |at| self.forest.parent(*at)).collect();
        path.reverse();
        path
    }

    /// The children of an entry, or the roots for none, in file order.
    #[must_use]
    pub fn children(&self, id: Option<&str>) -> Vec<Arc<Entry>> {
        let parent = id.and_then(|id| self.forest.position(id));
        if id.is_some() && parent.is_none() {
            return Vec::new();
        }
        let entries = self.forest.entries().iter().enumerate();
        entries
            .filter(|(at, _)| self.forest.parent(*at) == parent)
            .map(|(_, entry)| Arc::clone(entry))
            .collect()
    }

    /// The whole tree; siblings ordered by time.
    #[must_use]
    pub fn tree(&self) -> Tree {
        let mut tree = Tree::default();
        for (at, entry) in self.forest.entries().iter().enumerate() {
            let label = self.forest.label(&entry.id);
            tree.nodes.push(TreeNode {
                entry: Arc::clone(entry),
                children: Vec::new(),
                label: label.map(|(label, _)| label.to_owned()),
                label_timestamp: label.map(|(_, time)| time.to_owned()),
            });
            match self
                .forest
                .parent(at)
                .and_then(|parent| tree.nodes.get_mut(parent))
            {
                Some(parent) => parent.children.push(at),
                None => tree.roots.push(at),
            }
        }
        let time = |at: &usize| self.forest.at(*at).map(|entry| entry.timestamp.as_str());
        tree.roots.sort_by(|a, b| time(a).cmp(&time(b)));
        for node in &mut tree.nodes {
            node.children.sort_by(|a, b| time(a).cmp(&time(b)));
        }
        tree
    }

    /// The label of an entry.
    #[must_use]
    pub fn label(&self, id: &str) -> Option<&str> {
        self.forest.label(id).map(|(label, _)| label)
    }

    /// The session's name: what the last `session_info` entry says, else the title that xcsh writes into the header.
    #[must_use]
    pub fn session_name(&self) -> Option<&str> {
        if self.forest.name_was_set() {
            self.forest.name()
        } else {
            self.title.as_deref()
        }
    }
}
