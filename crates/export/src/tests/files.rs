//! Where exports go and what they leave alone (GUARANTEES.md 16), and that reading a session for one does not touch it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Session, user};
use crate::{ExportError, Format, Result, write_file};

fn write(path: &Path, text: &str) -> Result<PathBuf> {
    write_file(path, Format::Html, &Session::of(&[user(text)]).input())
}

/// Names in a folder; a temporary file left behind would be among them.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn export_replaces_only_export_of_same_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.html");
    assert_eq!(write(&path, "first").unwrap(), path);
    assert_eq!(write(&path, "second").unwrap(), path);
    assert!(fs::read_to_string(&path).unwrap().contains("second"));
    let session = Session::of(&[user("third")]);
    for format in [Format::Markdown, Format::Json] {
        let refused = write_file(&path, format, &session.input());
        assert!(matches!(refused, Err(ExportError::NotAnExport { .. })));
        let own = dir.path().join(format.extension());
        write_file(&own, format, &session.input()).unwrap();
        write_file(&own, format, &session.input()).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap().contains("second"));
    assert_eq!(names(dir.path()), ["json", "md", "out.html"]);
}

#[test]
fn export_never_overwrites_foreign_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes.html");
    for content in ["", "my notes", "<html><head><title>a page</title>"] {
        fs::write(&path, content).unwrap();
        let refused = write(&path, "x").unwrap_err();
        assert!(matches!(refused, ExportError::NotAnExport { .. }), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    assert_eq!(names(dir.path()), ["notes.html"]);
}

#[test]
fn export_never_overwrites_text_with_copied_export() {
    let dir = tempfile::tempdir().unwrap();
    let session = Session::of(&[user("x")]);
    for format in [Format::Markdown, Format::Json] {
        let path = dir.path().join(format.extension());
        let notes = format!("my notes\n\n{}", session.export(format));
        fs::write(&path, &notes).unwrap();
        let refused = write_file(&path, format, &session.input());
        assert!(matches!(refused, Err(ExportError::NotAnExport { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), notes);
    }
}

/// A session that talks about exports is not one: the marker is at the very beginning of a page or not at all.
#[test]
fn export_never_overwrites_session_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let text = r#"{"type":"session","version":3,"id":"a","cwd":"<meta name=\"generator\" content=\"pinion-export\">"}"#;
    fs::write(&path, text).unwrap();
    assert!(write(&path, "x").is_err());
    assert!(write_file(&path, Format::Json, &Session::of(&[user("x")]).input()).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn invalid_export_targets_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let long = dir.path().join("x".repeat(300));
    let trailing = PathBuf::from(format!("{}/new/", dir.path().display()));
    let nul = dir.path().join("a\0b");
    let inside = folder.join("..");
    for path in [
        Path::new(""),
        Path::new("/"),
        &folder,
        &trailing,
        &long,
        &nul,
        &inside,
    ] {
        assert!(write(path, "x").is_err(), "{}", path.display());
    }
    assert_eq!(names(dir.path()), ["folder"]);
    assert!(names(&folder).is_empty());
    let missing = Path::new("no/such/dir/report.html");
    let error = write(missing, "x").unwrap_err();
    assert_eq!(
        error.to_string(),
        "ENOENT: no such file or directory, open 'no/such/dir/report.html'"
    );
}

#[cfg(unix)]
#[test]
fn export_to_link_fifo_or_device_is_refused() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let mine = dir.path().join("mine.txt");
    fs::write(&mine, "mine").unwrap();
    let export = dir.path().join("export.html");
    write(&export, "old").unwrap();
    let fifo = dir.path().join("fifo");
    let made = rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU);
    made.unwrap();
    for (name, target) in [
        ("a", &mine),
        ("b", &export),
        ("c", &dir.path().join("nothing")),
        ("d", &PathBuf::from("/dev/null")),
    ] {
        symlink(target, dir.path().join(name)).unwrap();
    }
    for name in ["a", "b", "c", "d", "fifo"] {
        let error = write(&dir.path().join(name), "new").unwrap_err();
        assert!(matches!(error, ExportError::NotAFile { .. }), "{name}: {error}");
    }
    assert!(matches!(
        write(Path::new("/dev/null"), "x"),
        Err(ExportError::NotAFile { .. })
    ));
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
    assert!(fs::read_to_string(&export).unwrap().contains("old"));
    assert_eq!(
        names(dir.path()),
        ["a", "b", "c", "d", "export.html", "fifo", "mine.txt"]
    );
}

/// Another thread replaces the target by a link to a file of the user again and again: that file never changes.
#[cfg(unix)]
#[test]
fn export_race_for_target_is_safe() {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let (mine, path) = (dir.path().join("mine"), dir.path().join("out.html"));
    fs::write(&mine, "mine").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let spare = dir.path().join("spare");
            while !done.load(Ordering::Relaxed) {
                let _ = symlink(&mine, &spare);
                let _ = fs::rename(&spare, &path);
                let _ = fs::remove_file(&path);
            }
        });
        let session = Session::of(&[user("x")]);
        for _ in 0..300 {
            let _ = write_file(&path, Format::Json, &session.input());
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
    assert!(
        !names(dir.path()).iter().any(|name| name.starts_with('.')),
        "{:?}",
        names(dir.path())
    );
}

#[cfg(unix)]
#[test]
fn export_is_readable_by_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir.path().join("out.html"), "x").unwrap();
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}
