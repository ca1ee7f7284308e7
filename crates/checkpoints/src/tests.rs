//! Changes, rewinds and their refusals on a real disk.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use tempfile::TempDir;
use wire::changes::{FileStatus, KeptReason};

use crate::blobs::Blobs;
use crate::state::FileState;
use crate::{CheckpointError, Checkpoints, Scope, directory_of};

mod storing;
mod worktree;

struct Place {
    dir: TempDir,
    checkpoints: Checkpoints,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let checkpoints = Checkpoints::new(&directory_of(&dir.path().join("s.jsonl")), None);
        Self { dir, checkpoints }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("work").join(name)
    }

    /// A change of a tool in a turn.
    fn change(&self, turn: &str, name: &str, work: impl FnOnce(&PathBuf)) {
        let (turn, path) = (self.checkpoints.turn(turn), self.at(name));
        let pending = turn.begin(&path).unwrap();
        work(&path);
        turn.end(pending).unwrap();
    }

    fn write(&self, turn: &str, name: &str, text: &str) {
        self.change(turn, name, |path| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        });
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.at(name)).ok()
    }

    /// The same checkpoints in another process.
    fn reopened(&self) -> Checkpoints {
        Checkpoints::new(self.checkpoints.dir(), None)
    }
}

fn turns(names: &[&str]) -> HashSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn rewind_restores_content_mode_and_absence() {
    let place = Place::new();
    fs::write(place.at("a"), "one\n").unwrap();
    fs::set_permissions(place.at("a"), fs::Permissions::from_mode(0o640)).unwrap();
    place.write("t1", "a", "two\n");
    place.write("t2", "a", "three\n");
    place.write("t2", "new/deep/b", "b");
    place.change("t2", "a", |path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    });
    let rewound = place
        .checkpoints
        .rewind(&turns(&["t1"]), true, None, false)
        .unwrap();
    assert_eq!(
        (rewound.restored.len(), rewound.kept.len()),
        (2, 0),
        "{rewound:?}"
    );
    assert_eq!(place.read("a").unwrap(), "two\n");
    assert!(!place.at("new").exists(), "directories that write made go, too");
    let first = place.reopened().rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(first.restored.len(), 1);
    assert_eq!(place.read("a").unwrap(), "one\n");
    let mode = fs::metadata(place.at("a")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640);
}

#[test]
fn unrewind_restores_state_before_rewind() {
    let place = Place::new();
    place.write("t1", "a", "1");
    place.write("t2", "x/b", "2");
    let leaf = Some("leaf".to_owned());
    place.checkpoints.rewind(&turns(&[]), true, leaf, false).unwrap();
    assert_eq!((place.read("a"), place.read("x/b")), (None, None));
    let (back, leaf) = place.reopened().unrewind(false).unwrap();
    assert_eq!((back.restored.len(), leaf.as_deref()), (2, Some("leaf")));
    assert_eq!(place.read("x/b").unwrap(), "2");
    let again = place.reopened();
    assert!(matches!(
        again.unrewind(false),
        Err(CheckpointError::NothingRewound)
    ));
    let rewound = again.rewind(&turns(&["t1"]), true, None, false).unwrap();
    assert_eq!(rewound.restored.len(), 1, "the steps count again");
    assert_eq!((place.read("a").as_deref(), place.read("x/b")), (Some("1"), None));
}

#[test]
fn file_changed_by_others_is_kept() {
    let place = Place::new();
    place.write("t1", "a", "agent");
    place.write("t1", "b", "agent");
    place.write("t2", "c", "agent");
    fs::write(place.at("a"), "user").unwrap();
    fs::write(place.at("c"), "user").unwrap();
    place.write("t3", "c", "agent again");
    let none = turns(&[]);
    let rewound = place.checkpoints.rewind(&none, true, None, false).unwrap();
    let kept: Vec<_> = rewound.kept.iter().map(|kept| kept.path.clone()).collect();
    let text = |name: &str| place.at(name).to_string_lossy().into_owned();
    assert_eq!(kept, [text("a"), text("c")], "now and between two changes");
    assert!(rewound.kept.iter().all(|kept| kept.reason == KeptReason::Changed));
    assert_eq!(
        (place.read("a").as_deref(), place.read("b")),
        (Some("user"), None)
    );
    let forced = place.checkpoints.rewind(&none, true, None, true).unwrap();
    assert_eq!((forced.restored.len(), forced.kept.len()), (2, 0));
    assert_eq!((place.read("a"), place.read("c")), (None, None));
    place.checkpoints.unrewind(false).unwrap();
    assert_eq!(
        place.read("a").as_deref(),
        Some("user"),
        "nothing is lost by force"
    );
}

#[test]
fn restore_refuses_links_above_file() {
    let place = Place::new();
    fs::create_dir(place.at("dir")).unwrap();
    fs::write(place.at("dir/a"), "old").unwrap();
    fs::create_dir(place.at("elsewhere")).unwrap();
    fs::write(place.at("elsewhere/a"), "new").unwrap();
    place.write("t1", "dir/a", "new");
    fs::remove_dir_all(place.at("dir")).unwrap();
    symlink(place.at("elsewhere"), place.at("dir")).unwrap();
    let rewound = place.checkpoints.rewind(&turns(&[]), true, None, true).unwrap();
    assert_eq!(rewound.kept.len(), 1);
    assert_eq!(rewound.kept[0].reason, KeptReason::Failed);
    assert!(rewound.kept[0].message.contains("is a link now"), "{rewound:?}");
    assert_eq!(place.read("elsewhere/a").unwrap(), "new");
}

#[cfg(target_os = "linux")]
#[test]
fn file_behind_link_is_not_stored() {
    let place = Place::new();
    fs::create_dir(place.at("secret")).unwrap();
    fs::write(place.at("secret/key"), "secret").unwrap();
    symlink(place.at("secret"), place.at("dir")).unwrap();
    let mut blobs = Blobs::open(place.at("blobs"));
    let state = blobs.capture(&place.at("dir/key")).unwrap();
    assert!(matches!(state, FileState::Unknown { .. }), "{state:?}");
    assert_eq!(blobs.bytes(), 0);
}

#[test]
fn file_in_place_of_made_directory_stays() {
    for is_link in [false, true] {
        let place = Place::new();
        place.write("t1", "notes/todo.txt", "agent");
        fs::remove_dir_all(place.at("notes")).unwrap();
        if is_link {
            symlink("elsewhere", place.at("notes")).unwrap();
        } else {
            fs::write(place.at("notes"), "important").unwrap();
        }
        place.checkpoints.rewind(&turns(&[]), true, None, false).unwrap();
        assert!(place.at("notes").symlink_metadata().is_ok(), "{is_link}");
    }
}

#[test]
fn link_is_followed_to_changed_file() {
    let place = Place::new();
    fs::write(place.at("real"), "old").unwrap();
    symlink("real", place.at("link")).unwrap();
    place.write("t1", "link", "new");
    let changes = place.checkpoints.changes(None).unwrap();
    assert_eq!(changes.files[0].path, place.at("real").to_string_lossy());
    place.checkpoints.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(place.read("real").unwrap(), "old");
    assert!(place.at("link").is_symlink());
}

#[test]
fn changes_contain_diff_status_and_calls() {
    let place = Place::new();
    fs::write(place.at("a"), "1\n2\n3\n").unwrap();
    place.write("t1", "a", "1\ntwo\n3\n");
    place.write("t2", "b", "new\n");
    place.write("t2", "binary", "\0");
    let _running = place.checkpoints.turn("t2").begin_call("bash").unwrap();
    let all = place.checkpoints.changes(None).unwrap();
    let seen: Vec<_> = all
        .files
        .iter()
        .map(|file| (file.status, file.diff.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            (FileStatus::Modified, Some("@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n")),
            (FileStatus::Added, Some("@@ -1,0 +1,1 @@\n+new\n")),
            (FileStatus::Added, None),
        ]
    );
    assert_eq!(all.unknown[0].tool_name.as_deref(), Some("bash"));
    let one = place.checkpoints.changes(Some(&turns(&["t1"]))).unwrap();
    assert_eq!((one.files.len(), one.unknown.len()), (1, 0));
}

#[test]
fn change_without_effect_is_forgotten() {
    let place = Place::new();
    fs::write(place.at("a"), "same").unwrap();
    place.write("t1", "a", "same");
    assert!(place.checkpoints.changes(None).unwrap().files.is_empty());
}

#[test]
fn interrupted_change_is_reported_not_guessed() {
    let place = Place::new();
    fs::write(place.at("a"), "old").unwrap();
    let _cut = place.checkpoints.turn("t1").begin(&place.at("a")).unwrap();
    fs::write(place.at("a"), "half").unwrap();
    let again = place.reopened();
    assert_eq!(again.changes(None).unwrap().unknown.len(), 1);
    let rewound = again.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(rewound.kept[0].reason, KeptReason::Changed);
    again.rewind(&turns(&[]), true, None, true).unwrap();
    assert_eq!(place.read("a").unwrap(), "old");
}

#[test]
fn large_file_is_listed_as_unknown() {
    let place = Place::new();
    let file = fs::File::create(place.at("big")).unwrap();
    file.set_len(crate::limits::FILE_BYTES + 1).unwrap();
    place.write("t1", "big", "small");
    let rewound = place.checkpoints.rewind(&turns(&[]), true, None, true).unwrap();
    assert_eq!((rewound.unknown.len(), rewound.restored.len()), (1, 0));
    assert_eq!(
        place.read("big").unwrap(),
        "small",
        "what is not kept is not touched"
    );
}

#[test]
fn file_behind_dangling_link_is_recorded() {
    let place = Place::new();
    symlink("deep/../target", place.at("link")).unwrap();
    symlink("nowhere-yet", place.at("target")).unwrap();
    fs::create_dir(place.at("deep")).unwrap();
    place.change("t1", "link", |path| fs::write(path, "made").unwrap());
    assert_eq!(place.read("nowhere-yet").unwrap(), "made");
    let rewound = place.checkpoints.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(rewound.restored.len(), 1, "{rewound:?}");
    assert_eq!(place.read("nowhere-yet"), None);
    assert!(place.at("link").symlink_metadata().unwrap().is_symlink());
    symlink("loop", place.at("loop")).unwrap();
    assert_eq!(crate::plan::real_path(&place.at("loop")), place.at("loop"));
}

/// Cuts the end of a rewind off the journal, as the end of the process would.
fn interrupt(place: &Place) {
    let journal = place.checkpoints.dir().join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let (whole, last) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(last.contains("\"rewound\""), "{last}");
    fs::write(&journal, format!("{whole}\n")).unwrap();
}

#[test]
fn interrupted_rewind_is_completed_by_another() {
    let place = Place::new();
    place.write("t1", "a", "1");
    place.write("t1", "b", "1");
    place.write("t2", "a", "2");
    place.write("t2", "b", "2");
    let first = turns(&["t1"]);
    place.checkpoints.rewind(&first, true, None, false).unwrap();
    interrupt(&place);
    // The process ended before the second file was restored.
    fs::write(place.at("b"), "2").unwrap();
    let again = place.reopened();
    let rewound = again.rewind(&first, true, None, false).unwrap();
    assert_eq!(
        (rewound.restored.len(), rewound.kept.len()),
        (1, 0),
        "{rewound:?}"
    );
    assert_eq!(
        (place.read("a").unwrap(), place.read("b").unwrap()),
        ("1".into(), "1".into())
    );
    again.unrewind(false).unwrap();
    assert_eq!(place.read("b").unwrap(), "2");
    again.unrewind(false).unwrap();
    assert_eq!(
        (place.read("a").unwrap(), place.read("b").unwrap()),
        ("2".into(), "2".into())
    );
}

#[test]
fn interrupted_rewind_can_be_taken_back() {
    let place = Place::new();
    place.write("t1", "a", "1");
    place.write("t1", "b", "1");
    place.checkpoints.rewind(&turns(&[]), true, None, false).unwrap();
    interrupt(&place);
    fs::write(place.at("b"), "1").unwrap();
    let again = place.reopened();
    again.unrewind(false).unwrap();
    assert_eq!(
        (place.read("a").unwrap(), place.read("b").unwrap()),
        ("1".into(), "1".into())
    );
    assert_eq!(
        again.changes(None).unwrap().files.len(),
        2,
        "the steps count again"
    );
}

#[test]
fn directories_get_their_modes_back() {
    let place = Place::new();
    place.write("t1", "private/inner/a", "1");
    let mode = |name: &str| fs::metadata(place.at(name)).unwrap().permissions().mode() & 0o7777;
    for (name, bits) in [("private", 0o2750), ("private/inner", 0o700)] {
        fs::set_permissions(place.at(name), fs::Permissions::from_mode(bits)).unwrap();
    }
    place.checkpoints.rewind(&turns(&[]), true, None, false).unwrap();
    assert!(!place.at("private").exists());
    place.reopened().unrewind(false).unwrap();
    assert_eq!((mode("private"), mode("private/inner")), (0o2750, 0o700));
    assert_eq!(place.read("private/inner/a").unwrap(), "1");
}

/// Checkpoints of all of `work`, as another process finds them.
fn whole(place: &Place) -> Checkpoints {
    let scope = Scope {
        root: place.at("").canonicalize().unwrap(),
        excluded: vec![place.at("agent")],
    };
    Checkpoints::new(place.checkpoints.dir(), Some(scope))
}

/// A call of a tool that reports no changes.
fn call(checkpoints: &Checkpoints, turn: &str, work: impl FnOnce()) {
    let turn = checkpoints.turn(turn);
    let running = turn.begin_call("bash").unwrap();
    work();
    turn.end_call(running).unwrap();
}
