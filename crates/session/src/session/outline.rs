//! The session's tree of entries for clients: whole, and as an outline with a few words of each entry. Written as text, node
//! after node, without recursion: a conversation is a chain of many thousand nodes.

use serde::Serialize;
use serde_json::value::RawValue;
use store::{SessionLog, Tree, TreeNode};
use wire::content::AssistantBlock;
use wire::reply::{SessionOutline, SessionTree};
use wire::{Entry, EntryBody, Message};

use crate::limits;

/// The reply of `get_tree`.
///
/// # Errors
/// When an entry cannot be written as JSON.
pub(super) fn tree(log: &SessionLog) -> Result<SessionTree, String> {
    let tree = nested(&log.tree(), |node| {
        let mut tail = String::new();
        for (key, value) in [("label", &node.label), ("labelTimestamp", &node.label_timestamp)] {
            if let Some(value) = value {
                tail.push_str(&format!(",\"{key}\":{}", serde_json::to_string(value)?));
            }
        }
        Ok((serde_json::to_string(&node.entry)?, tail))
    });
    Ok(SessionTree {
        tree: tree.map_err(|error| error.to_string())?,
        leaf_id: log.leaf_id().map(str::to_owned),
    })
}

/// The reply of `get_session_tree`.
///
/// # Errors
/// When an entry cannot be written as JSON.
pub(super) fn outline(log: &SessionLog) -> Result<SessionOutline, String> {
    let nodes = nested(&log.tree(), |node| {
        Ok((serde_json::to_string(&Outlined::of(node))?, String::new()))
    });
    Ok(SessionOutline {
        leaf_id: log.leaf_id().map(str::to_owned),
        nodes: nodes.map_err(|error| error.to_string())?,
    })
}

/// An entry for a client that shows the tree to choose a place in it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outlined<'a> {
    id: &'a str,
    parent_id: Option<&'a str>,
    r#type: &'a str,
    timestamp: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
}

impl<'a> Outlined<'a> {
    fn of(node: &'a TreeNode) -> Self {
        let entry = &node.entry;
        Self {
            id: &entry.id,
            parent_id: entry.parent_id.as_deref(),
            r#type: entry.body.kind(),
            timestamp: &entry.timestamp,
            label: node.label.as_deref(),
            preview: preview(entry),
        }
    }
}

/// The first words of an entry, or its kind in brackets.
fn preview(entry: &Entry) -> Option<String> {
    let words = match &entry.body {
        EntryBody::Message(body) => return said(&body.message),
        EntryBody::Compaction(_) => "[compaction]".to_owned(),
        EntryBody::BranchSummary(_) => "[branch_summary]".to_owned(),
        EntryBody::CustomMessage(_) => "[custom_message]".to_owned(),
        EntryBody::Custom(_) => "[custom]".to_owned(),
        // Files of xcsh name provider and model in one text (dialects.md 12).
        EntryBody::ModelChange(to) => match &to.model {
            Some(model) => format!("[model:{model}]"),
            None => format!("[model:{}/{}]", to.provider, to.model_id),
        },
        EntryBody::ThinkingLevelChange(to) => {
            format!("[thinking:{}]", to.thinking_level.as_deref().unwrap_or_default())
        }
        EntryBody::Label(label) => format!("[label:{}]", label.label.as_deref().unwrap_or_default()),
        EntryBody::SessionInfo(info) => format!("[session_info:{}]", info.name),
        _ => return None,
    };
    cut([words.as_str()])
}

fn said(message: &Message) -> Option<String> {
    match message {
        Message::User(user) => cut([user.content.text().as_str()]),
        Message::Assistant(answer) => cut(answer.content.iter().filter_map(|block| match block {
            AssistantBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })),
        Message::ToolResult(result) => cut([format!("[toolResult:{}]", result.tool_name).as_str()]),
        Message::BashExecution(run) => cut(["!", run.command.as_str()]),
        _ => None,
    }
}

/// The beginning of some texts, a space between them; none when they say nothing. Pages count as JavaScript does.
fn cut<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut out = String::new();
    let mut left = limits::PREVIEW;
    for text in texts {
        let space = if out.is_empty() { "" } else { " " };
        for letter in space.chars().chain(text.chars()) {
            let Some(rest) = left.checked_sub(letter.len_utf16()) else {
                return Some(out);
            };
            left = rest;
            out.push(letter);
        }
    }
    (!out.is_empty()).then_some(out)
}

/// A part of a tree that is still to be written.
enum Step {
    Node(usize),
    Text(&'static str),
    Tail(String),
}

/// Writes a tree as nested JSON; `show` gives the entry of a node, and the members that follow its children.
fn nested(
    tree: &Tree,
    show: impl Fn(&TreeNode) -> serde_json::Result<(String, String)>,
) -> serde_json::Result<Box<RawValue>> {
    let mut out = String::from("[");
    // A stack: the last text goes in first.
    let mut steps = vec![Step::Text("]")];
    push_siblings(&mut steps, &tree.roots);
    while let Some(step) = steps.pop() {
        match step {
            Step::Text(text) => out.push_str(text),
            Step::Node(at) => {
                let Some(node) = tree.nodes.get(at) else { continue };
                let (entry, tail) = show(node)?;
                out.push_str("{\"entry\":");
                out.push_str(&entry);
                out.push_str(",\"children\":[");
                steps.push(Step::Tail(tail));
                push_siblings(&mut steps, &node.children);
            }
            Step::Tail(tail) => {
                out.push(']');
                out.push_str(&tail);
                out.push('}');
            }
        }
    }
    RawValue::from_string(out)
}

fn push_siblings(steps: &mut Vec<Step>, nodes: &[usize]) {
    // Backwards, since the stack returns the last step first.
    for (index, node) in nodes.iter().enumerate().rev() {
        steps.push(Step::Node(*node));
        if index > 0 {
            steps.push(Step::Text(","));
        }
    }
}
