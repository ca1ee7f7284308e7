//! All entries as a tree for people to look at (pi-core.md 2.5). Paths and the leaf are in `forest`; what a path means to a
//! model is in `context`.

use std::sync::Arc;

use wire::Entry;

use crate::forest::Forest;

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

impl Tree {
    /// Links all entries; siblings ordered by time.
    pub(crate) fn of(forest: &Forest) -> Self {
        let mut tree = Self::default();
        for (at, entry) in forest.entries().iter().enumerate() {
            let label = forest.label(&entry.id);
            tree.nodes.push(TreeNode {
                entry: Arc::clone(entry),
                children: Vec::new(),
                label: label.map(|(label, _)| label.to_owned()),
                label_timestamp: label.map(|(_, time)| time.to_owned()),
            });
            match forest.parent(at).and_then(|parent| tree.nodes.get_mut(parent)) {
                Some(parent) => parent.children.push(at),
                None => tree.roots.push(at),
            }
        }
        let time = |at: &usize| forest.at(*at).map(|entry| entry.timestamp.as_str());
        tree.roots.sort_by(|a, b| time(a).cmp(&time(b)));
        for node in &mut tree.nodes {
            node.children.sort_by(|a, b| time(a).cmp(&time(b)));
        }
        tree
    }
}
