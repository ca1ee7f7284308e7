//! The tree of a session's entries, flat: conversations are chains of any length.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::nested;
use crate::session::Session;

/// The entries of a session as a tree.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Tree {
    /// All nodes; a parent comes before its children.
    pub nodes: Vec<TreeNode>,
    /// Indexes of the roots in `nodes`.
    pub roots: Vec<usize>,
    /// Id of the current entry.
    pub leaf_id: Option<String>,
}

/// An entry in the tree.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TreeNode {
    /// The entry as it is in the session file.
    pub entry: Value,
    /// Index of the parent in [`Tree::nodes`]; none for a root.
    pub parent: Option<usize>,
    /// Indexes of the children in [`Tree::nodes`], in the order of the answer.
    pub children: Vec<usize>,
    /// Its label.
    pub label: Option<String>,
}

impl Session {
    /// The tree of all entries, of any depth.
    ///
    /// # Errors
    /// Those of [`Session::call`].
    pub async fn tree(&self) -> Result<Tree> {
        let text = self.call_raw("get_tree", &json!({})).await?;
        let wrong = |what: String| Error::Protocol(format!("answer of get_tree: {what}"));
        let mut data = nested::parse(text.get()).map_err(wrong)?;
        let leaf_id = data.get("leafId").and_then(Value::as_str).map(str::to_owned);
        let roots = data.get_mut("tree").map(Value::take);
        nested::discard(data);
        let Some(Value::Array(roots)) = roots else {
            roots.into_iter().for_each(nested::discard);
            return Err(wrong("there is no tree".to_owned()));
        };
        Ok(flat(roots, leaf_id))
    }
}

/// Takes nested nodes apart.
fn flat(roots: Vec<Value>, leaf_id: Option<String>) -> Tree {
    let mut tree = Tree {
        leaf_id,
        ..Tree::default()
    };
    let mut left: Vec<(Option<usize>, Value)> = roots.into_iter().rev().map(|root| (None, root)).collect();
    while let Some((parent, mut node)) = left.pop() {
        let at = tree.nodes.len();
        let children = node.get_mut("children").map(Value::take);
        let entry = node.get_mut("entry").map(Value::take).unwrap_or_default();
        let label = node.get("label").and_then(Value::as_str).map(str::to_owned);
        nested::discard(node);
        match parent.and_then(|parent| tree.nodes.get_mut(parent)) {
            Some(parent) => parent.children.push(at),
            None => tree.roots.push(at),
        }
        tree.nodes.push(TreeNode {
            entry,
            parent,
            children: Vec::new(),
            label,
        });
        match children {
            Some(Value::Array(children)) => {
                left.extend(children.into_iter().rev().map(|child| (Some(at), child)));
            }
            other => other.into_iter().for_each(nested::discard),
        }
    }
    tree
}
