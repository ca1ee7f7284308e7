//! Tests of the entries in memory: the leaf, paths, children and the entries made to follow the leaf.

use std::sync::Arc;

use super::fixtures::*;
use crate::StoreError;
use crate::forest::{Added, Forest, Span};
use wire::Entry;

const NOWHERE: Span = Span { offset: 0, len: 0 };

fn entry(id: &str, parent: Option<&str>) -> Arc<Entry> {
    Arc::new(Entry {
        id: id.to_owned(),
        parent_id: parent.map(str::to_owned),
        timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
        body: user(id),
    })
}

fn forest(entries: &[(&str, Option<&str>)]) -> Forest {
    let mut forest = Forest::default();
    for (id, parent) in entries {
        forest.add(entry(id, *parent), NOWHERE);
    }
    forest
}

fn ids(forest: &Forest, leaf: Option<&str>) -> Vec<String> {
    let path = forest.path_to(leaf).into_iter();
    path.map(|at| forest.at(at).unwrap().id.clone()).collect()
}

#[test]
fn path_leads_from_root_to_leaf() {
    let forest = forest(&[("a", None), ("b", Some("a")), ("c", Some("a")), ("d", Some("b"))]);
    assert_eq!(ids(&forest, Some("d")), ["a", "b", "d"]);
    assert_eq!(ids(&forest, Some("c")), ["a", "c"]);
    assert!(ids(&forest, None).is_empty());
    assert!(ids(&forest, Some("unknown")).is_empty());
}

#[test]
fn path_of_an_orphan_starts_there() {
    let forest = forest(&[("b", Some("gone")), ("c", Some("b"))]);
    assert_eq!(ids(&forest, Some("c")), ["b", "c"]);
    assert!(forest.is_orphan(0) && !forest.is_orphan(1));
}

#[test]
fn leaf_stays_when_its_id_is_taken() {
    let mut forest = forest(&[("a", None), ("b", Some("a"))]);
    forest.set_leaf(Some("b")).unwrap();
    let mut later = Entry::clone(&entry("b", None));
    later.timestamp = "2026-02-02T00:00:00.000Z".to_owned();
    assert_eq!(forest.add(Arc::new(later), NOWHERE), Added::New(2));
    assert_eq!(
        ids(&forest, Some("b")),
        ["a", "b"],
        "the leaf, not the later entry"
    );
    forest.move_leaf(None);
    assert_eq!(ids(&forest, Some("b")), ["b"]);
}

#[test]
fn unknown_leaf_leaves_the_old_one() {
    let mut forest = forest(&[("a", None)]);
    forest.set_leaf(Some("a")).unwrap();
    let error = forest.set_leaf(Some("gone")).unwrap_err();
    assert!(matches!(error, StoreError::NoEntry { .. }), "{error}");
    assert_eq!(forest.leaf_id(), Some("a"));
    forest.set_leaf(None).unwrap();
    assert_eq!(forest.leaf_id(), None);
}

#[test]
fn made_entries_follow_the_leaf_in_a_chain() {
    let mut forest = forest(&[("a", None)]);
    forest.set_leaf(Some("a")).unwrap();
    let made = forest.make(vec![user("one"), user("two")]);
    assert_eq!(made[0].parent_id.as_deref(), Some("a"));
    assert_eq!(made[1].parent_id.as_deref(), Some(made[0].id.as_str()));
    assert_eq!(made[0].timestamp, made[1].timestamp);
    assert_eq!(forest.entries().len(), 1, "made, not added");
    assert_eq!(forest.leaf_id(), Some("a"));
}

#[test]
fn children_of_none_are_the_roots() {
    let forest = forest(&[("a", None), ("b", Some("a")), ("c", None), ("d", Some("a"))]);
    let ids = |id| -> Vec<String> { forest.children(id).iter().map(|e| e.id.clone()).collect() };
    assert_eq!(ids(None), ["a", "c"]);
    assert_eq!(ids(Some("a")), ["b", "d"]);
    assert!(ids(Some("unknown")).is_empty());
}
