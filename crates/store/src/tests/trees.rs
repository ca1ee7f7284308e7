//! Branching, and the tree against a slow and simple model of it.

use std::collections::HashMap;

use proptest::prelude::*;
use wire::EntryBody;
use wire::entry::Compaction;

use super::fixtures::*;
use crate::{SessionLog, StoreError, new_header};

#[test]
fn moved_leaf_branches_and_needs_append_to_persist() {
    let (_dir, path) = on_disk(text(&all_entries()));
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    log.set_leaf(Some("aaaa0003")).unwrap();
    assert!(matches!(
        log.set_leaf(Some("nope")).unwrap_err(),
        StoreError::NoEntry { .. }
    ));
    assert_eq!(log.leaf_id(), Some("aaaa0003"));
    drop(log);
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(log.leaf_id(), Some("aaaa0013"));
    log.set_leaf(Some("aaaa0003")).unwrap();
    let branch = log.append(user("other")).unwrap();
    assert_eq!(branch.parent_id.as_deref(), Some("aaaa0003"));
    log.set_leaf(None).unwrap();
    assert!(log.context(log.leaf_id()).messages.is_empty());
    let root = log.append(user("new root")).unwrap();
    assert_eq!(root.parent_id, None);
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none());
    assert_eq!(log.leaf_id(), Some(root.id.as_str()));
    let children: Vec<String> = log
        .children(Some("aaaa0003"))
        .iter()
        .map(|e| e.id.clone())
        .collect();
    assert_eq!(children, ["aaaa0004".to_owned(), branch.id.clone()]);
    assert_eq!(log.children(None).len(), 2);
    assert!(log.children(Some("nope")).is_empty());
    let tree = log.tree();
    assert_eq!(tree.roots.len(), 2);
    assert_eq!(tree.nodes[2].label.as_deref(), Some("mark"));
    assert_eq!(tree.nodes[2].children.len(), 2);
}

#[test]
fn long_entry_chain_needs_no_deep_stack() {
    let mut log = SessionLog::create(None, new_header("/", None)).unwrap();
    let bodies = (0..30_000)
        .map(|_| EntryBody::Other(serde_json::Map::new()))
        .collect();
    // One batch checks ids of its own members one by one; keep that short.
    let bodies: Vec<EntryBody> = bodies;
    for chunk in bodies.chunks(100) {
        log.append_batch(chunk.to_vec()).unwrap();
    }
    assert_eq!(log.branch(log.leaf_id()).len(), 30_000);
    assert_eq!(log.tree().roots, [0]);
}

/// The context by the letter of pi-core.md 2.5, without positions or indexes.
fn naive_texts(log: &SessionLog, leaf: &str) -> Vec<String> {
    let by_id: HashMap<&str, &wire::Entry> = log.entries().iter().map(|e| (e.id.as_str(), &**e)).collect();
    let mut path = vec![by_id[leaf]];
    while let Some(parent) = path[0].parent_id.as_deref() {
        path.insert(0, by_id[parent]);
    }
    let text = |e: &wire::Entry| match &e.body {
        EntryBody::Message(m) => Some(
            serde_json::to_value(&*m.message).unwrap()["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned(),
        ),
        _ => None,
    };
    let Some(at) = path
        .iter()
        .rposition(|e| matches!(e.body, EntryBody::Compaction(_)))
    else {
        return path.iter().filter_map(|e| text(e)).collect();
    };
    let EntryBody::Compaction(compaction) = &path[at].body else {
        unreachable!()
    };
    let mut out = vec![compaction.summary.clone()];
    let mut keeping = false;
    for (n, entry) in path.iter().enumerate() {
        keeping |= entry.id == compaction.first_kept_entry_id;
        if n > at || (keeping && n < at) {
            out.extend(text(entry));
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn context_matches_naive_implementation(steps in prop::collection::vec((0..4u8, any::<prop::sample::Index>()), 1..40)) {
        let (_dir, path) = on_disk(text(&[HEADER]));
        let (mut log, _) = SessionLog::open(&path, "/").unwrap();
        for (n, (kind, at)) in steps.iter().enumerate() {
            let target = (!log.entries().is_empty()).then(|| log.entries()[at.index(log.entries().len())].id.clone());
            match (kind, target) {
                (0, Some(target)) => log.set_leaf(Some(&target)).unwrap(),
                (1, Some(target)) => {
                    let body = Compaction {
                        summary: format!("s{n}"), first_kept_entry_id: target, tokens_before: 1, details: None, from_hook: None, extra: wire::Extra::default(), usage: None, };
                    log.append(EntryBody::Compaction(body)).unwrap();
                }
                _ => { log.append(user(&format!("m{n}"))).unwrap(); }
            }
        }
        let (seen, leaves) = (log.entries().to_vec(), ids(&log));
        drop(log);
        let (log, damage) = SessionLog::open(&path, "/").unwrap();
        prop_assert!(damage.is_none());
        prop_assert_eq!(log.entries(), seen);
        for leaf in leaves {
            let texts: Vec<String> = log.context(Some(&leaf)).messages.iter().map(|m| {
                let value = serde_json::to_value(&**m).unwrap();
                value["content"][0]["text"].as_str().or(value["summary"].as_str()).unwrap().to_owned()
            }).collect();
            prop_assert_eq!(texts, naive_texts(&log, &leaf));
        }
    }
}
