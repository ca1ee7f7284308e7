//! What happens when the journal or a content cannot be written, as on a full disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use super::{Place, call, turns, whole};

#[test]
fn cut_journal_keeps_whole_lines() {
    let place = Place::new();
    place.write("t1", "a", "1");
    let journal = place.checkpoints.dir().join("journal.jsonl");
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, [&whole[..], b"{\"type\":\"cal"].concat()).unwrap();
    let again = place.reopened();
    assert_eq!(again.changes(None).unwrap().files.len(), 1);
    let _running = again.turn("t2").begin_call("bash").unwrap();
    assert_eq!(place.reopened().changes(None).unwrap().unknown.len(), 1);
}

/// The second half runs in a process whose files cannot grow beyond a few kilobytes, as on a full disk.
#[test]
fn failed_append_leaves_no_part_of_line() {
    const LIMITED: &str = "PINION_TEST_LIMITED";
    if std::env::var_os(LIMITED).is_none() {
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact tests::storing::failed_append_leaves_no_part_of_line";
        let output = Command::new("/bin/sh")
            .args(["-c", script])
            .arg(std::env::current_exe().unwrap())
            .env(LIMITED, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 passed"), "{said}");
        return;
    }
    let place = Place::new();
    place.write("t1", "a", "1");
    let long = place.checkpoints.turn(&"x".repeat(100_000));
    assert!(long.begin(&place.at("a")).is_err());
    place.write("t2", "b", "2");
    assert_eq!(place.reopened().changes(None).unwrap().files.len(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn part_of_line_is_cut_before_next_append() {
    let place = Place::new();
    assert!(place.checkpoints.changes(None).unwrap().files.is_empty());
    let journal = place.checkpoints.dir().join("journal.jsonl");
    fs::create_dir(place.checkpoints.dir()).unwrap();
    // This device takes no byte, and cannot be cut either.
    symlink("/dev/full", &journal).unwrap();
    assert!(place.checkpoints.turn("t1").begin(&place.at("a")).is_err());
    fs::remove_file(&journal).unwrap();
    fs::write(&journal, "{\"type\":\"bef").unwrap();
    place.write("t1", "a", "1");
    assert_eq!(place.reopened().changes(None).unwrap().files.len(), 1);
}

#[test]
fn change_without_journal_is_refused() {
    let place = Place::new();
    fs::write(place.checkpoints.dir(), "in the way").unwrap();
    let turn = place.checkpoints.turn("t1");
    assert!(turn.begin(&place.at("a")).is_err());
    assert!(turn.begin_call("bash").is_err());
}

#[test]
fn change_without_stored_content_is_refused() {
    let place = Place::new();
    fs::write(place.at("a"), "old").unwrap();
    let contents = place.checkpoints.dir().join("contents");
    fs::create_dir(place.checkpoints.dir()).unwrap();
    fs::write(&contents, "in the way").unwrap();
    let all = whole(&place);
    let turn = all.turn("t1");
    assert!(turn.begin(&place.at("a")).is_err());
    assert!(turn.begin_call("bash").is_err());
    fs::remove_file(&contents).unwrap();
    call(&all, "t1", || fs::write(place.at("a"), "new").unwrap());
    let rewound = all.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(
        (rewound.kept.len(), place.read("a").as_deref()),
        (0, Some("old")),
        "{rewound:?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn failed_store_leaves_no_part() {
    use sha2::{Digest as _, Sha256};

    let place = Place::new();
    fs::write(place.at("a"), "old").unwrap();
    let contents = place.checkpoints.dir().join("contents");
    fs::create_dir_all(&contents).unwrap();
    let name = crate::state::hex(&Sha256::digest("old"));
    let part = contents.join(format!("{name}.part"));
    // This device takes no byte, as a full disk.
    symlink("/dev/full", &part).unwrap();
    assert!(place.checkpoints.turn("t1").begin(&place.at("a")).is_err());
    assert!(part.symlink_metadata().is_err());
}

/// Makes the next attempt to store this text fail, as on a full disk. Returns a content that nothing needs.
#[cfg(target_os = "linux")]
fn refuse(place: &Place, text: &str) -> PathBuf {
    use sha2::{Digest as _, Sha256};

    let contents = place.checkpoints.dir().join("contents");
    fs::create_dir_all(&contents).unwrap();
    let name = crate::state::hex(&Sha256::digest(text));
    symlink("/dev/full", contents.join(format!("{name}.part"))).unwrap();
    let unneeded = contents.join("0".repeat(64));
    fs::write(&unneeded, "stored before the disk was full").unwrap();
    unneeded
}

#[cfg(target_os = "linux")]
#[test]
fn refused_call_leaves_no_content() {
    let place = Place::new();
    fs::write(place.at("a"), "old").unwrap();
    let all = whole(&place);
    let unneeded = refuse(&place, "old");
    assert!(all.turn("t1").begin_call("bash").is_err());
    assert!(!unneeded.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn refused_rewind_leaves_no_content() {
    let place = Place::new();
    place.write("t1", "a", "agent");
    let none = turns(&[]);
    fs::write(place.at("a"), "user").unwrap();
    let unneeded = refuse(&place, "user");
    assert!(place.checkpoints.rewind(&none, true, None, true).is_err());
    assert_eq!(
        (unneeded.exists(), place.read("a").as_deref()),
        (false, Some("user"))
    );
    place.checkpoints.rewind(&none, true, None, true).unwrap();
    fs::write(place.at("a"), "later").unwrap();
    let unneeded = refuse(&place, "later");
    assert!(place.checkpoints.unrewind(true).is_err());
    assert_eq!(
        (unneeded.exists(), place.read("a").as_deref()),
        (false, Some("later"))
    );
    place.checkpoints.unrewind(true).unwrap();
    assert_eq!(place.read("a").as_deref(), Some("user"));
}

#[cfg(target_os = "linux")]
#[test]
fn unstored_content_at_end_of_call_is_only_one_unknown() {
    let place = Place::new();
    for name in ["a", "b"] {
        fs::write(place.at(name), "1").unwrap();
    }
    let all = whole(&place);
    call(&all, "t1", || {
        fs::write(place.at("a"), "not stored").unwrap();
        fs::write(place.at("b"), "2").unwrap();
        refuse(&place, "not stored");
    });
    let changes = all.changes(None).unwrap();
    let unknown: Vec<_> = changes
        .unknown
        .iter()
        .filter_map(|note| note.path.clone())
        .collect();
    assert_eq!(unknown, [place.at("a").to_string_lossy()], "{changes:?}");
    assert_eq!(changes.files.len(), 2, "{changes:?}");
    // The next call stores it, as there is room again.
    call(&all, "t2", || fs::write(place.at("a"), "3").unwrap());
    all.rewind(&turns(&["t1"]), true, None, false).unwrap();
    assert_eq!(place.read("a").as_deref(), Some("not stored"));
    all.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(place.read("b").as_deref(), Some("1"));
}

#[cfg(target_os = "linux")]
#[test]
fn refused_call_harms_no_running_one() {
    let place = Place::new();
    fs::write(place.at("a"), "1").unwrap();
    let all = whole(&place);
    let turn = all.turn("t1");
    let running = turn.begin_call("bash").unwrap();
    fs::write(place.at("a"), "by the first").unwrap();
    refuse(&place, "by the first");
    assert!(turn.begin_call("bash").is_err());
    turn.end_call(running).unwrap();
    let rewound = all.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(
        (rewound.restored.len(), place.read("a").as_deref()),
        (1, Some("1")),
        "{rewound:?}"
    );
}

#[test]
fn changes_of_unwritten_look_are_unknown() {
    let place = Place::new();
    fs::write(place.at("a"), "1").unwrap();
    let all = whole(&place);
    let turn = all.turn("t1");
    let running = turn.begin_call("bash").unwrap();
    fs::write(place.at("a"), "by the first").unwrap();
    let journal = place.checkpoints.dir().join("journal.jsonl");
    let aside = journal.with_extension("aside");
    fs::rename(&journal, &aside).unwrap();
    // Nothing can be appended to a directory.
    fs::create_dir(&journal).unwrap();
    assert!(turn.begin_call("bash").is_err());
    fs::remove_dir(&journal).unwrap();
    fs::rename(&aside, &journal).unwrap();
    turn.end_call(running).unwrap();
    let rewound = all.rewind(&turns(&[]), true, None, false).unwrap();
    let unknown = "the tool may have changed files that the checkpoint does not contain";
    assert!(
        rewound.unknown.iter().any(|note| note.reason == unknown),
        "{rewound:?}"
    );
}

#[test]
fn content_that_lost_its_bytes_is_stored_again() {
    let place = Place::new();
    fs::write(place.at("a"), "old").unwrap();
    place.write("t1", "a", "new");
    // As after a power failure.
    for entry in fs::read_dir(place.checkpoints.dir().join("contents")).unwrap() {
        fs::File::create(entry.unwrap().path()).unwrap();
    }
    fs::write(place.at("b"), "old").unwrap();
    place.write("t2", "b", "new");
    let rewound = place
        .checkpoints
        .rewind(&turns(&["t1"]), true, None, false)
        .unwrap();
    assert_eq!(
        (rewound.restored.len(), rewound.kept.len()),
        (1, 0),
        "{rewound:?}"
    );
    assert_eq!(place.read("b").as_deref(), Some("old"));
}

#[test]
fn unneeded_contents_go_before_turns() {
    let place = Place::new();
    place.write("t1", "a", "1");
    place.write("t2", "a", "2");
    let old = place.checkpoints.dir().join("contents").join("0".repeat(64));
    // The file is sparse: it takes no room on the disk.
    let file = fs::File::create(&old).unwrap();
    file.set_len(crate::limits::STORE_BYTES + 1).unwrap();
    let again = place.reopened();
    let turn = again.turn("t3");
    let pending = turn.begin(&place.at("b")).unwrap();
    fs::write(place.at("b"), "3").unwrap();
    turn.end(pending).unwrap();
    let changes = again.changes(None).unwrap();
    assert_eq!(
        (changes.files.len(), changes.unknown.len()),
        (2, 0),
        "{changes:?}"
    );
    assert!(!old.exists());
}

#[test]
fn refused_change_leaves_no_content() {
    let place = Place::new();
    fs::write(place.at("secret"), "secret").unwrap();
    place.write("t1", "shared", "same");
    fs::write(place.at("copy"), "same").unwrap();
    for name in ["secret", "copy"] {
        place.change("t1", name, |_| {});
    }
    let kept: Vec<_> = fs::read_dir(place.checkpoints.dir().join("contents"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(kept, ["same"]);
    place.checkpoints.rewind(&turns(&[]), true, None, false).unwrap();
    place.reopened().unrewind(false).unwrap();
    assert_eq!(place.read("shared").unwrap(), "same");
}
