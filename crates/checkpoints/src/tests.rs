//! Changes, rewinds and their refusals on a real disk.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use tempfile::TempDir;
use wire::changes::{Checkpoints as Kind, FileStatus, KeptReason};

use crate::{CheckpointError, Checkpoints, Scope, directory_of};

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

#[test]
fn change_without_journal_is_refused() {
    let place = Place::new();
    fs::write(place.checkpoints.dir(), "in the way").unwrap();
    let turn = place.checkpoints.turn("t1");
    assert!(turn.begin(&place.at("a")).is_err());
    assert!(turn.begin_call("bash").is_err());
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

#[test]
fn call_in_worktree_is_undone() {
    let place = Place::new();
    fs::create_dir(place.at("d")).unwrap();
    fs::write(place.at("d/old"), "old").unwrap();
    fs::set_permissions(place.at("d/old"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("old", place.at("d/link")).unwrap();
    let all = whole(&place);
    call(&all, "t1", || {
        fs::remove_dir_all(place.at("d")).unwrap();
        fs::create_dir_all(place.at("new/deep")).unwrap();
        fs::write(place.at("new/deep/file"), "new").unwrap();
    });
    let changes = all.changes(None).unwrap();
    assert_eq!(
        (changes.checkpoints, changes.files.len()),
        (Kind::Worktree, 6),
        "{changes:?}"
    );
    assert!(
        changes.unknown[0]
            .reason
            .contains("outside of the working directory")
    );
    let rewound = all.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(
        (rewound.restored.len(), rewound.kept.len()),
        (6, 0),
        "{rewound:?}"
    );
    assert_eq!(place.read("d/link").unwrap(), "old");
    let mode = fs::metadata(place.at("d/old")).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode, place.at("new").exists()), (0o640, false));
    whole(&place).unrewind(false).unwrap();
    assert_eq!(
        (place.read("new/deep/file").as_deref(), place.at("d").exists()),
        (Some("new"), false)
    );
}

#[test]
fn change_between_calls_belongs_to_others() {
    let place = Place::new();
    fs::write(place.at("a"), "1").unwrap();
    fs::write(place.at("b"), "1").unwrap();
    let all = whole(&place);
    call(&all, "t1", || fs::write(place.at("a"), "2").unwrap());
    fs::write(place.at("b"), "user").unwrap();
    fs::write(place.at("a"), "user").unwrap();
    call(&all, "t2", || fs::write(place.at("c"), "3").unwrap());
    let rewound = all.rewind(&turns(&[]), true, None, false).unwrap();
    let names = |paths: Vec<&String>| {
        paths
            .iter()
            .map(|path| path[path.len() - 1..].to_owned())
            .collect::<String>()
    };
    assert_eq!(
        names(rewound.restored.iter().map(|file| &file.path).collect()),
        "c"
    );
    assert_eq!(names(rewound.kept.iter().map(|file| &file.path).collect()), "a");
    assert_eq!(place.read("b").unwrap(), "user");
}

#[test]
fn overlapping_calls_share_changes() {
    let place = Place::new();
    fs::write(place.at("a"), "1").unwrap();
    let all = whole(&place);
    let turn = all.turn("t1");
    let first = turn.begin_call("bash").unwrap();
    fs::write(place.at("a"), "2").unwrap();
    let second = turn.begin_call("bash").unwrap();
    fs::write(place.at("b"), "2").unwrap();
    turn.end_call(first).unwrap();
    fs::write(place.at("a"), "3").unwrap();
    turn.end_call(second).unwrap();
    all.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(
        (place.read("a").as_deref(), place.at("b").exists()),
        (Some("1"), false)
    );
}

#[test]
fn ignored_and_excluded_files_stay_as_they_are() {
    let place = Place::new();
    fs::write(place.at(".gitignore"), "target\nsecret\n").unwrap();
    fs::write(place.at("secret"), "key").unwrap();
    for dir in ["target", ".git", "agent"] {
        fs::create_dir(place.at(dir)).unwrap();
        fs::write(place.at(dir).join("file"), "1").unwrap();
    }
    let all = whole(&place);
    call(&all, "t1", || {
        for dir in ["target", ".git", "agent"] {
            fs::write(place.at(dir).join("file"), "2").unwrap();
        }
        fs::write(place.at("a"), "a").unwrap();
    });
    // What the rules no longer leave out may have been there: a rewind must not remove it.
    call(&all, "t2", || {
        fs::write(place.at(".gitignore"), "target\n").unwrap()
    });
    let rewound = all.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(place.read("secret").unwrap(), "key");
    assert!(
        rewound
            .unknown
            .iter()
            .any(|note| note.path.as_ref().is_some_and(|path| path.ends_with("secret"))),
        "{rewound:?}"
    );
    assert_eq!(
        (place.read(".gitignore").unwrap().as_str(), place.at("a").exists()),
        ("target\nsecret\n", false)
    );
    for dir in ["target", ".git", "agent"] {
        assert_eq!(
            fs::read_to_string(place.at(dir).join("file")).unwrap(),
            "2",
            "{dir}"
        );
    }
}

#[test]
fn content_of_worktree_survives_refused_change() {
    let place = Place::new();
    fs::write(place.at("a"), "1").unwrap();
    let all = whole(&place);
    call(&all, "t1", || {});
    let turn = all.turn("t2");
    // An edit that is refused leaves the file as it is; the next command still needs its content.
    let pending = turn.begin(&place.at("a")).unwrap();
    turn.end(pending).unwrap();
    call(&all, "t3", || fs::remove_file(place.at("a")).unwrap());
    let rewound = all.rewind(&turns(&["t2"]), true, None, false).unwrap();
    assert_eq!(
        (rewound.kept.len(), place.read("a").as_deref()),
        (0, Some("1")),
        "{rewound:?}"
    );
}

#[test]
fn call_without_end_leaves_changes_unknown() {
    let place = Place::new();
    let all = whole(&place);
    let _cut_off = all.turn("t1").begin_call("bash").unwrap();
    fs::write(place.at("a"), "1").unwrap();
    // The process ended during the call; another one knows nothing of the file, and says so.
    let rewound = whole(&place).rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(
        (rewound.restored.len(), place.read("a").as_deref()),
        (0, Some("1"))
    );
    let reason = &rewound.unknown[0].reason;
    assert_eq!(
        reason,
        "the tool may have changed files that the checkpoint does not contain"
    );
}

#[test]
fn worktree_behind_link_is_restored() {
    let place = Place::new();
    symlink("work", place.dir.path().join("link")).unwrap();
    let scope = Scope {
        root: place.dir.path().join("link"),
        excluded: Vec::new(),
    };
    let all = Checkpoints::new(place.checkpoints.dir(), Some(scope));
    call(&all, "t1", || fs::write(place.at("a"), "1").unwrap());
    let rewound = all.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(
        (rewound.restored.len(), rewound.kept.len()),
        (1, 0),
        "{rewound:?}"
    );
    assert!(!place.at("a").exists());
}
