//! The tree of a session as JSON.

use serde_json::{Value, json};
use wire::EntryBody;

use super::super::outline::{outline, tree};
use super::{log, user};
use crate::limits;

#[test]
fn outline_shows_branches_and_short_previews() {
    let mut log = log(None);
    let first = log.append(EntryBody::message(user("first"))).unwrap();
    log.append(EntryBody::message(user(&"long ".repeat(100))))
        .unwrap();
    log.set_leaf(Some(&first.id)).unwrap();
    log.append(EntryBody::message(user("other"))).unwrap();
    let reply = outline(&log).unwrap();
    let nodes: Value = serde_json::from_str(reply.nodes.get()).unwrap();
    let root = &nodes[0];
    assert_eq!(root["entry"]["preview"], "first");
    let children = root["children"].as_array().unwrap();
    assert_eq!(children.len(), 2);
    assert_eq!(
        children[0]["entry"]["preview"].as_str().unwrap().len(),
        limits::PREVIEW
    );
    assert_eq!(children[1]["entry"]["preview"], "other");
}

#[test]
fn long_conversation_becomes_a_tree() {
    let mut log = log(None);
    for n in 0..20_000 {
        log.append(EntryBody::message(user(&n.to_string()))).unwrap();
    }
    let reply = tree(&log).unwrap();
    assert_eq!(reply.tree.get().matches("\"children\"").count(), 20_000);
    assert!(reply.leaf_id.is_some());
}

/// The previews of a chain of entries.
fn previews(bodies: Vec<EntryBody>) -> Vec<Option<String>> {
    let mut log = log(None);
    for body in bodies {
        log.append(body).unwrap();
    }
    let reply = outline(&log).unwrap();
    let mut node: Value = serde_json::from_str(reply.nodes.get()).unwrap();
    let mut previews = Vec::new();
    while let Some(first) = node.get_mut(0).map(Value::take) {
        previews.push(first["entry"]["preview"].as_str().map(str::to_owned));
        node = first["children"].clone();
    }
    previews
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[test]
fn preview_counts_as_javascript_does() {
    let wide = "😀".repeat(limits::PREVIEW);
    let odd = format!("x{wide}");
    let previews = previews(vec![
        EntryBody::message(user(&wide)),
        EntryBody::message(user(&odd)),
    ]);
    let units = |preview: &Option<String>| preview.as_ref().unwrap().encode_utf16().count();
    assert_eq!(units(&previews[0]), limits::PREVIEW);
    assert_eq!(units(&previews[1]), limits::PREVIEW - 1, "no half letters");
}

#[test]
fn entries_without_words_show_their_kind() {
    let shown = previews(vec![
        EntryBody::ModelChange(read(json!({"provider": "p", "modelId": "m"}))),
        EntryBody::ThinkingLevelChange(read(json!({"thinkingLevel": "high"}))),
        EntryBody::SessionInfo(read(json!({"name": "mine"}))),
        EntryBody::message(user("")),
    ]);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        shown,
        [
            some("[model:p/m]"),
            some("[thinking:high]"),
            some("[session_info:mine]"),
            None
        ]
    );
}

#[test]
fn empty_session_has_an_empty_tree() {
    let log = log(None);
    assert_eq!(tree(&log).unwrap().tree.get(), "[]");
    assert_eq!(outline(&log).unwrap().nodes.get(), "[]");
    assert_eq!(tree(&log).unwrap().leaf_id, None);
}

#[test]
fn labelled_entry_has_its_label_in_the_tree() {
    let mut log = log(None);
    let entry = log.append(EntryBody::message(user("first"))).unwrap();
    log.append(EntryBody::Label(read(
        json!({"targetId": entry.id, "label": "a \"b\""}),
    )))
    .unwrap();
    let reply = tree(&log).unwrap();
    let nodes: Value = serde_json::from_str(reply.tree.get()).unwrap();
    assert_eq!(nodes[0]["label"], "a \"b\"");
    assert!(nodes[0]["children"][0].get("label").is_none());
}
