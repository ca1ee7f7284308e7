//! Calls of tools that report no changes, undone with looks at the worktree.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use wire::changes::Checkpoints as Kind;

use super::{Place, call, turns, whole};
use crate::{Checkpoints, Scope};

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
fn edit_during_call_is_undone() {
    let place = Place::new();
    fs::write(place.at("a"), "old").unwrap();
    let all = whole(&place);
    let turn = all.turn("t1");
    call(&all, "t1", || {
        for name in ["a", "new"] {
            let pending = turn.begin(&place.at(name)).unwrap();
            fs::write(place.at(name), "edited").unwrap();
            turn.end(pending).unwrap();
        }
        fs::write(place.at("new"), "by the command").unwrap();
    });
    let rewound = all.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(
        (rewound.restored.len(), rewound.kept.len()),
        (2, 0),
        "{rewound:?}"
    );
    assert_eq!(
        (place.read("a").as_deref(), place.at("new").exists()),
        (Some("old"), false)
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

#[test]
fn directory_moved_behind_link_is_restored() {
    let place = Place::new();
    fs::create_dir(place.at("d")).unwrap();
    fs::write(place.at("d/a"), "old").unwrap();
    let elsewhere = place.dir.path().join("elsewhere");
    let all = whole(&place);
    call(&all, "t1", || {
        fs::rename(place.at("d"), &elsewhere).unwrap();
        symlink(&elsewhere, place.at("d")).unwrap();
    });
    let rewound = all.rewind(&turns(&[]), true, None, false).unwrap();
    assert_eq!(
        (rewound.restored.len(), rewound.kept.len()),
        (2, 0),
        "{rewound:?}"
    );
    assert!(!place.at("d").is_symlink());
    assert_eq!(place.read("d/a").as_deref(), Some("old"));
    whole(&place).unrewind(false).unwrap();
    assert!(place.at("d").is_symlink());
    assert_eq!(fs::read_to_string(elsewhere.join("a")).unwrap(), "old");
}
