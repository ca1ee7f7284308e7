//! A made-up session is as long as planned, a proper tree, and holds what real ones hold.

use std::collections::BTreeSet;

use serde_json::Value;
use wire::{Entry, EntryBody};

use super::{Plan, Sample};

fn plan(entries: usize, bytes: usize) -> Plan {
    Plan {
        entries,
        bytes,
        seed: 7,
        cwd: "/w".to_owned(),
        compaction: true,
    }
}

#[test]
fn sample_has_planned_size_and_is_deterministic() {
    let sample = Sample::new(&plan(4_000, 10_000_000));
    assert_eq!(sample.lines.len(), 4_001);
    let bytes = sample.text().len();
    assert!((9_500_000..10_500_000).contains(&bytes), "{bytes}");
    assert_eq!(sample.text(), Sample::new(&plan(4_000, 10_000_000)).text());
}

#[test]
fn sample_entries_follow_their_parents() {
    let sample = Sample::new(&plan(2_000, 4_000_000));
    let mut seen = BTreeSet::new();
    let (mut branches, mut kinds) = (0, BTreeSet::new());
    let mut parents = BTreeSet::new();
    for line in sample.lines.iter().skip(1) {
        let value: Value = serde_json::from_str(line).unwrap();
        let entry = Entry::from_json(line.trim_end()).unwrap();
        assert!(!matches!(entry.body, EntryBody::Other(_)), "{line}");
        let parent = value["parentId"].as_str().map(str::to_owned);
        assert!(parent.as_ref().is_none_or(|parent| seen.contains(parent)));
        branches += u32::from(!parents.insert(parent));
        assert!(seen.insert(value["id"].as_str().unwrap().to_owned()));
        kinds.insert(value["type"].as_str().unwrap().to_owned());
    }
    assert!(branches > 2);
    let wanted = [
        "compaction",
        "label",
        "message",
        "model_change",
        "session_info",
        "thinking_level_change",
    ];
    assert!(wanted.iter().all(|kind| kinds.contains(*kind)), "{kinds:?}");
    assert!(seen.contains(&sample.last_user));
}
