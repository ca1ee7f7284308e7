//! Opening the files of sessions.

use std::path::Path;
use std::sync::Arc;

use wire::EntryBody;
use wire::entry::ModelChange;

use super::super::Session;
use super::super::session_file::{
    Empty, NewSession, Opening, closed, forked_log, open_log, stored_cwd, when_closed,
};
use super::stage::CoreStage;
use super::{kinds, user};
use crate::error::SessionError;
use crate::limits::LOCK_PAUSE;

/// Stores a session of one message that works in `cwd`.
fn stored(path: &Path, cwd: &str) {
    let header = store::new_header(cwd, None);
    let mut log = store::SessionLog::create(Some(path.to_owned()), header).unwrap();
    log.append(EntryBody::message(user("hello"))).unwrap();
    log.ensure_on_disk().unwrap();
}

#[test]
fn new_log_has_the_wanted_id() {
    let dir = tempfile::tempdir().unwrap();
    let new = NewSession::new(
        Some(dir.path().to_owned()),
        Path::new("/work"),
        Some("/parent.jsonl"),
        Some("mine"),
    );
    let log = new.log().unwrap();
    assert_eq!(log.header().id, "mine");
    assert_eq!(log.header().parent_session.as_deref(), Some("/parent.jsonl"));
    let name = log
        .path()
        .unwrap()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert!(name.ends_with("_mine.jsonl"), "{name}");
    assert!(!log.path().unwrap().exists(), "nothing was said yet");
}

#[test]
fn session_that_is_not_kept_has_no_path() {
    let log = NewSession::new(None, Path::new("/work"), None, None)
        .log()
        .unwrap();
    assert_eq!(log.path(), None);
    assert!(!log.header().id.is_empty());
}

#[tokio::test]
async fn locked_file_opens_when_its_holder_closes_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    stored(&path, "");
    let mut holder = Some(store::SessionLog::open(&path, "/").unwrap());
    let mut tries = 0;
    let opened = when_closed(async || {
        tries += 1;
        if tries == 3 {
            drop(holder.take());
        }
        open_log(&path, dir.path(), None, Empty::Begins)
    });
    let (log, _) = opened.await.unwrap();
    assert_eq!(log.entries().len(), 1);
    assert_eq!(tries, 3);
}

#[tokio::test]
async fn wait_ends_when_holder_closes_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    stored(&path, "");
    let holder = store::SessionLog::open(&path, "/").unwrap();
    let wait = tokio::spawn(closed(path.clone()));
    tokio::time::sleep(LOCK_PAUSE * 5).await;
    assert!(!wait.is_finished());
    drop(holder);
    wait.await.unwrap();
    assert!(!store::is_locked(&path));
    assert!(!store::is_locked(&dir.path().join("none")));
}

#[test]
fn missing_file_becomes_session_at_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("later.jsonl");
    let (log, cwd) = open_log(&path, dir.path(), None, Empty::IsRefused).unwrap();
    assert_eq!(log.path(), Some(path.as_path()));
    assert_eq!(cwd, dir.path());
    assert!(!path.exists());
}

#[test]
fn empty_file_is_a_session_only_when_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty.jsonl");
    std::fs::write(&path, "").unwrap();
    assert!(open_log(&path, dir.path(), None, Empty::IsRefused).is_err());
    assert_eq!(
        std::fs::read(&path).unwrap(),
        b"",
        "a refused file stays as it is"
    );
    let (log, _) = open_log(&path, dir.path(), None, Empty::Begins).unwrap();
    assert!(log.entries().is_empty());
}

#[test]
fn stored_directory_wins_over_current_one() {
    let dir = tempfile::tempdir().unwrap();
    let (path, own) = (dir.path().join("s.jsonl"), dir.path().join("own"));
    std::fs::create_dir(&own).unwrap();
    stored(&path, &own.to_string_lossy());
    let (log, cwd) = open_log(&path, dir.path(), Some(dir.path()), Empty::Begins).unwrap();
    assert_eq!((log.entries().len(), cwd), (1, own));
}

#[test]
fn missing_directory_is_an_error_without_spare() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let gone = dir.path().join("gone");
    stored(&path, &gone.to_string_lossy());
    let opened = open_log(&path, dir.path(), None, Empty::Begins).map(|(_, cwd)| cwd);
    match opened {
        Err(SessionError::MissingCwd {
            stored,
            file,
            current,
        }) => {
            assert_eq!((stored, file, current), (gone, path, dir.path().to_owned()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn spare_directory_replaces_a_missing_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    stored(&path, "/no/such/directory");
    let open = |spare: &Path| open_log(&path, dir.path(), Some(spare), Empty::Begins).map(|(_, cwd)| cwd);
    assert_eq!(open(dir.path()).unwrap(), dir.path());
    assert!(
        open(Path::new("/also/gone")).is_err(),
        "a spare directory must exist"
    );
}

#[test]
fn session_without_directory_works_in_the_current_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    stored(&path, "");
    let log = store::open_read_only(&path).unwrap();
    let cwd = stored_cwd(&log, &path, dir.path(), None).unwrap();
    assert_eq!(cwd, dir.path());
}

#[tokio::test]
async fn forked_session_names_its_source() {
    let stage = CoreStage::new();
    let source = stage.dir.path().join("source.jsonl");
    stored(&source, "/elsewhere");
    let before = std::fs::read(&source).unwrap();
    let fork = forked_log(&stage.core.agent, &source, Some("forked")).unwrap();
    assert_eq!(fork.header().id, "forked");
    assert_eq!(
        fork.header().parent_session,
        Some(source.to_string_lossy().into_owned())
    );
    assert_eq!(fork.header().cwd, stage.core.agent.cwd.to_string_lossy());
    assert_eq!(fork.entries().len(), 1);
    assert_eq!(std::fs::read(&source).unwrap(), before, "the source is only read");
    assert!(forked_log(&stage.core.agent, &source.with_extension("none"), None).is_err());
}

#[tokio::test]
async fn model_of_command_line_replaces_choice_of_omp() {
    let CoreStage {
        core,
        sent: _sent,
        outbox,
        dir,
        ..
    } = CoreStage::new();
    let path = dir.path().join("omp.jsonl");
    let header = store::new_header(&core.agent.cwd.to_string_lossy(), None);
    let mut log = store::SessionLog::create(Some(path.clone()), header).unwrap();
    let chosen = ModelChange {
        provider: String::new(),
        model_id: String::new(),
        model: Some("test/a".to_owned()),
        extra: wire::Extra::default(),
    };
    log.append(EntryBody::ModelChange(chosen)).unwrap();
    log.append(EntryBody::message(user("hello"))).unwrap();
    log.ensure_on_disk().unwrap();
    drop(log);
    let session = Session::start(Arc::clone(&core.agent), outbox, &Opening::File(path)).unwrap();
    let log = &session.driver.core.conversation.log;
    let noted = ["model_change", "message", "model_change", "thinking_level_change"];
    assert_eq!(kinds(log), noted);
    let context = log.context(log.leaf_id());
    assert_eq!(context.model, Some(("offline".to_owned(), "script".to_owned())));
    assert!(!context.is_model_chosen, "later answers count");
}
