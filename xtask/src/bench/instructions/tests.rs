//! Tests of the guard: what it stores, when it fails, and that it notices a planted slowdown of a real program.

use super::record::{Counts, Record, Verdict};
use super::{judge, valgrind};

fn record(changes: &[(&str, u64)]) -> Record {
    let mut record = Record::default();
    for (reason, count) in changes {
        record.add("here".to_owned(), reason, counts(*count));
    }
    record
}

fn counts(count: u64) -> Counts {
    Counts::from([("start".to_owned(), count)])
}

#[test]
fn growth_above_tolerance_fails() {
    let record = record(&[("first", 1_000)]);
    assert_eq!(record.judge("start", 5.0, 1_049), (Some(1_000), Verdict::Holds));
    assert_eq!(record.judge("start", 5.0, 1_051), (Some(1_000), Verdict::Grew));
    assert_eq!(record.judge("start", 5.0, 949), (Some(1_000), Verdict::Fell));
    assert!(judge(&record, &counts(1_049)) && judge(&record, &counts(949)));
    assert!(!judge(&record, &counts(1_051)));
}

#[test]
fn path_without_stored_count_fails() {
    let record = record(&[("first", 1_000)]);
    assert_eq!(record.judge("other", 5.0, 1), (None, Verdict::Unknown));
    assert!(!judge(&record, &Counts::from([("other".to_owned(), 1)])));
}

#[test]
fn last_change_counts_and_survives_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counts.json");
    record(&[("first", 1_000), ("a new feature", 2_000)])
        .write(&file)
        .unwrap();
    let read = Record::read(&file).unwrap();
    assert_eq!(read.judge("start", 5.0, 2_000), (Some(2_000), Verdict::Holds));
    assert!(std::fs::read_to_string(&file).unwrap().contains("a new feature"));
    assert_eq!(read.recorded_elsewhere("here"), None);
    assert_eq!(read.recorded_elsewhere("there"), Some("here"));
}

#[test]
fn stored_count_without_reason_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counts.json");
    std::fs::write(
        &file,
        r#"{"changes": [{"environment": "here", "instructions": {"start": 9}}]}"#,
    )
    .unwrap();
    Record::read(&file).unwrap_err();
}

#[test]
fn count_is_read_from_log() {
    let log = "==7== Cachegrind\n==7== \n==7== I   refs:      3,872,733\n";
    assert_eq!(valgrind::parse(log), Some(3_872_733));
    assert_eq!(valgrind::parse("==7== nothing"), None);
}

#[test]
fn planted_slowdown_fails_guard() {
    if valgrind::version().is_none() {
        return crate::out::complain("skipped: valgrind is not installed");
    }
    let loops = |count: u32| {
        let script = format!("i=0; while [ $i -lt {count} ]; do i=$((i + 1)); done");
        valgrind::of_program("sh", &["-c", &script]).unwrap()
    };
    let record = record(&[("first", loops(20_000))]);
    assert!(judge(&record, &counts(loops(20_000))));
    assert!(!judge(&record, &counts(loops(22_000))));
}
