//! Links on real disks: which are followed, and how far. Replacing files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::{Boundaries, Draft, Kind, Mode, PiLock, Root, replace};

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        for dir in [
            "home/.ssh",
            "agent",
            "repo/.git",
            "repo/docs",
            "repo/pack/.pi",
            "out",
        ] {
            fs::create_dir_all(place.at(dir)).unwrap();
        }
        for file in [
            "home/.ssh/id",
            "agent/auth.json",
            "repo/docs/a",
            "repo/secret",
            "out/b",
        ] {
            fs::write(place.at(file), file).unwrap();
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn boundaries(&self) -> Boundaries {
        Boundaries::new(&self.at("agent"), Some(&self.at("home")))
    }

    /// What a link in `repo/pack` leads to.
    fn through(&self, root: &Root, target: &str) -> Result<String, String> {
        let link = self.at("repo/pack/link");
        let _ = fs::remove_file(&link);
        symlink(
            target.replace("ROOT", &self.0.path().display().to_string()),
            &link,
        )
        .unwrap();
        let text = root.read(&link, 100).map(|text| text.text);
        text.map_err(|error| error.to_string().split(" /").next().unwrap().to_owned())
    }
}

#[test]
fn links_inside_repository_are_followed_only() {
    let place = Place::new();
    let root = place.boundaries().project(&place.at("repo/pack"));
    for inside in [
        "../docs/a",
        "ROOT/repo/docs/a",
        ".././pack/../docs/a",
        ".pi/../../docs/a",
    ] {
        assert_eq!(
            place.through(&root, inside).as_deref(),
            Ok("repo/docs/a"),
            "{inside}"
        );
    }
    for outside in [
        "../../out/b",
        "ROOT/out/b",
        "ROOT/repo/../out/b",
        "ROOT/agent/auth.json",
        "/proc/self/root/etc/passwd",
        "/etc/passwd",
    ] {
        let error = place.through(&root, outside).unwrap_err();
        assert_eq!(error, "it leads out of", "{outside}");
    }
    assert!(
        place
            .through(&root, "link")
            .unwrap_err()
            .contains("symbolic links")
    );
    assert!(place.through(&root, "gone").unwrap_err().contains("No such file"));
    assert!(
        place
            .through(&root, "../docs/a/x")
            .unwrap_err()
            .contains("Not a directory")
    );
    assert_eq!(place.through(&Root::user(), "ROOT/out/b").as_deref(), Ok("out/b"));
}

#[test]
fn linked_directories_inside_repository_are_entered_only() {
    let place = Place::new();
    let root = place.boundaries().project(&place.at("repo/pack"));
    symlink("../docs", place.at("repo/pack/in")).unwrap();
    symlink("../../out", place.at("repo/pack/away")).unwrap();
    let listed = root.list(&place.at("repo/pack/in"), 10).unwrap();
    assert_eq!(listed, (vec![place.at("repo/pack/in/a")], false));
    assert!(root.list(&place.at("repo/pack/away"), 10).is_err());
    assert!(root.is_file(&place.at("repo/pack/in/a")) && root.is_dir(&place.at("repo/pack/in")));
    assert!(!root.is_file(&place.at("repo/pack/away/b")) && !root.is_dir(&place.at("repo/pack/away")));
    assert!(root.read(&place.at("out/b"), 10).is_err());
    let real = root.real(&place.at("repo/pack/in/a")).unwrap();
    assert_eq!(real, place.at("repo/docs/a").canonicalize().unwrap());
    let (first, is_cut) = root.list(&place.at("repo"), 1).unwrap();
    assert_eq!((first.len(), is_cut), (1, true));
}

#[test]
fn directory_without_repository_is_its_own_root() {
    let place = Place::new();
    fs::remove_dir(place.at("repo/.git")).unwrap();
    let root = place.boundaries().project(&place.at("repo/pack"));
    assert!(place.through(&root, "../docs/a").is_err());
    fs::write(place.at("repo/pack/own"), "own").unwrap();
    assert_eq!(place.through(&root, "own").as_deref(), Ok("own"));
}

#[test]
fn repository_around_user_directories_is_not_a_root() {
    let place = Place::new();
    fs::create_dir(place.at(".git")).unwrap();
    fs::remove_dir(place.at("repo/.git")).unwrap();
    let root = place.boundaries().project(&place.at("repo/pack"));
    assert!(place.through(&root, "../../agent/auth.json").is_err());
    assert!(place.through(&root, "../docs/a").is_err());
}

#[test]
fn links_to_private_files_are_refused() {
    let place = Place::new();
    let boundaries = place.boundaries().deny([place.at("repo/secret")]);
    let root = boundaries.project(&place.at("repo/pack"));
    assert!(place.through(&root, "../secret").unwrap_err().contains("private"));
    let wide = boundaries.beneath(place.0.path());
    for private in ["../../agent/auth.json", "../../home/.ssh/id", "ROOT/home/.ssh/id"] {
        assert!(place.through(&wide, private).unwrap_err().contains("private"));
    }
    assert_eq!(place.through(&wide, "../../out/b").as_deref(), Ok("out/b"));
    // The user may have configured the project as the agent directory.
    assert!(wide.read(&place.at("agent/auth.json"), 100).is_ok());
}

#[test]
fn only_regular_files_are_opened_without_blocking() {
    let place = Place::new();
    let fifo = place.at("repo/fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(place.at("repo/socket")).unwrap();
    let roots = [Root::user(), place.boundaries().project(&place.at("repo"))];
    for root in &roots {
        for name in ["repo/fifo", "repo/socket"] {
            let error = root.read(&place.at(name), 10).unwrap_err();
            assert_eq!(error.to_string(), "not a regular file", "{name}");
            assert_eq!(root.find(&place.at(name)).unwrap().kind, Kind::Other);
            assert!(root.is_readable_or_refused(&place.at(name)));
        }
        assert!(root.read_if_there(&place.at("repo/docs"), 10).unwrap().is_none());
        assert!(root.read_if_there(&place.at("repo/gone"), 10).unwrap().is_none());
        assert!(!root.is_readable_or_refused(&place.at("repo/docs")));
        let text = root.read(&place.at("repo/docs/a"), 4).unwrap();
        assert_eq!((text.text.as_str(), text.cut), ("repo", true));
    }
}

#[test]
fn pi_lock_excludes_others_until_released_or_stale() {
    let place = Place::new();
    let (file, dir) = (place.at("agent/auth.json"), place.at("agent/auth.json.lock"));
    let lock = PiLock::take(&file, Duration::ZERO).unwrap();
    assert!(dir.is_dir());
    let error = PiLock::take(&file, Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    drop(lock);
    assert!(!dir.exists());
    fs::create_dir(&dir).unwrap();
    let before = SystemTime::now() - Duration::from_secs(60);
    fs::File::open(&dir).unwrap().set_modified(before).unwrap();
    drop(PiLock::take(&file, Duration::from_secs(30)).unwrap());
    assert!(!dir.exists());
}

#[test]
fn replaced_file_has_requested_mode() {
    let place = Place::new();
    let file = place.at("out/settings");
    let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    replace(&file, b"one", Mode::Keep(0o600)).unwrap();
    assert_eq!(mode(), 0o600, "there was no file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    replace(&file, b"two", Mode::Keep(0o600)).unwrap();
    assert_eq!(mode(), 0o640);
    replace(&file, b"three", Mode::Set(0o600)).unwrap();
    assert_eq!((mode(), fs::read(&file).unwrap()), (0o600, b"three".to_vec()));
}

#[test]
fn replacing_follows_no_link() {
    let place = Place::new();
    let file = place.at("out/file");
    let draft = place.at(&format!("out/file.{}.tmp", std::process::id()));
    // A project could have put the first link there, and the second one where the draft is to be.
    symlink(place.at("repo/secret"), &file).unwrap();
    symlink(place.at("agent/auth.json"), &draft).unwrap();
    replace(&file, b"new", Mode::Keep(0o600)).unwrap();
    assert!(file.symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(
        fs::read_to_string(place.at("repo/secret")).unwrap(),
        "repo/secret"
    );
    assert_eq!(
        fs::read_to_string(place.at("agent/auth.json")).unwrap(),
        "agent/auth.json"
    );
}

#[test]
fn failed_replacement_leaves_nothing_behind() {
    let place = Place::new();
    // A file cannot take the place of a directory.
    let taken = place.at("repo/docs");
    assert!(replace(&taken, b"new", Mode::Set(0o600)).is_err());
    assert_eq!(
        fs::read_to_string(place.at("repo/docs/a")).unwrap(),
        "repo/docs/a"
    );
    drop(Draft::write(&place.at("repo/secret"), b"new", Mode::Set(0o600)).unwrap());
    assert_eq!(
        fs::read_to_string(place.at("repo/secret")).unwrap(),
        "repo/secret"
    );
    let left = fs::read_dir(place.at("repo")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".git", "docs", "pack", "secret"]);
}
