//! Directories and files for the user of a client.

use std::fs;

use tokio_util::sync::CancellationToken;
use wire::looking::FindFilesParams;

use super::super::file_search::{NewestQueries, directory, find_files, list_directory};
use crate::limits;
use crate::outbox::ClientId;

#[tokio::test]
async fn directory_list_has_visible_directories_sorted() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["b", "A", ".hidden"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink(dir.path().join("b"), dir.path().join("link")).unwrap();
    let home = Some(dir.path().to_path_buf());
    let listed = list_directory(String::new(), "/".into(), home.clone())
        .await
        .unwrap();
    let names: Vec<_> = listed.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["A", "b", "link"]);
    let file = list_directory("~/file".to_owned(), "/".into(), home).await;
    assert!(file.unwrap_err().contains("file"));
}

#[test]
fn paths_are_resolved_as_users_read_them() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let (cwd, home) = (dir.path().join("sub"), Some(dir.path()));
    let resolved = |text: &str| directory(text, &cwd, home).unwrap();
    assert_eq!(resolved(".."), dir.path());
    assert_eq!(resolved("~/sub/./"), cwd);
    assert_eq!(resolved("../sub"), cwd);
    assert!(directory("missing", &cwd, home).is_err());
}

#[tokio::test]
async fn found_files_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..5 {
        fs::write(dir.path().join(format!("note{n}.txt")), "").unwrap();
    }
    let params = |limit| FindFilesParams {
        query: "note".to_owned(),
        limit: Some(limit),
    };
    let cwd = || dir.path().to_path_buf();
    let all = find_files(params(50), cwd(), CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(all.files.len(), 5);
    let two = find_files(params(2), cwd(), CancellationToken::new())
        .await
        .unwrap();
    assert!(two.files.len() == 2 && two.truncated);
}

#[test]
fn newer_search_cancels_older_of_client() {
    let mut searches = NewestQueries::default();
    let first = searches.begin(ClientId(1));
    let other = searches.begin(ClientId(2));
    let second = searches.begin(ClientId(1));
    assert!(first.is_cancelled() && !other.is_cancelled() && !second.is_cancelled());
    for client in 0..u64::try_from(limits::LOOKING).unwrap() {
        searches.begin(ClientId(100 + client));
    }
    assert!(
        other.is_cancelled() && second.is_cancelled(),
        "too many search at once"
    );
}

#[test]
fn tilde_means_home_only_before_a_slash() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["cwd", "home", "cwd/~name"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    let (cwd, home) = (dir.path().join("cwd"), dir.path().join("home"));
    let resolved = |text: &str| directory(text, &cwd, Some(&home)).unwrap();
    assert_eq!((resolved("~"), resolved("~/")), (home.clone(), home.clone()));
    assert_eq!(resolved("~//"), home, "more slashes lead nowhere else");
    assert_eq!(resolved("~name"), cwd.join("~name"));
    assert_eq!(directory("", &cwd, None).unwrap(), cwd, "without a home");
}

#[test]
fn parent_of_link_is_where_the_link_is() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("a/b"), dir.path().join("link")).unwrap();
    let resolved = directory("link/..", dir.path(), None).unwrap();
    assert_eq!(resolved, dir.path(), "not the directory that the link leads into");
    assert_eq!(
        directory("/../..", dir.path(), None).unwrap(),
        std::path::Path::new("/")
    );
}

#[test]
fn missing_path_and_file_have_their_own_errors() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let refused = |text: &str| directory(text, dir.path(), None).unwrap_err();
    assert!(refused("file").contains("not a directory"));
    assert!(refused("none").contains("does not exist"));
}

#[tokio::test]
async fn broken_link_is_not_listed() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(dir.path().join("gone"), dir.path().join("link")).unwrap();
    let listed = list_directory(".".to_owned(), dir.path().to_owned(), None)
        .await
        .unwrap();
    assert!(listed.entries.is_empty(), "{:?}", listed.entries);
    assert_eq!(listed.absolute_path, dir.path().to_string_lossy());
}

#[tokio::test]
async fn search_limit_of_zero_finds_one() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..3 {
        fs::write(dir.path().join(format!("note{n}.txt")), "").unwrap();
    }
    let params = FindFilesParams {
        query: "note".to_owned(),
        limit: Some(0),
    };
    let found = find_files(params, dir.path().to_owned(), CancellationToken::new())
        .await
        .unwrap();
    assert!(found.files.len() == 1 && found.truncated);
}
