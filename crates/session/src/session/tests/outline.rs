//! The tree of a session as JSON.

use serde_json::Value;
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
