//! Exports of a session.

use wire::EntryBody;

use super::super::export::Export;
use super::{log, user};

#[tokio::test]
async fn export_is_named_after_its_session() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = log(Some(&dir.path().join("mine.jsonl")));
    let export = |log: &store::SessionLog, path: Option<&str>| {
        Export::new(
            log,
            path.map(str::to_owned),
            dir.path(),
            "prompt".to_owned(),
            Vec::new(),
            false,
        )
    };
    assert!(export(&log, None).is_err(), "nothing was said");
    log.append(EntryBody::message(user("hello"))).unwrap();
    log.ensure_on_disk().unwrap();
    let exported = export(&log, Some("")).unwrap().write().await.unwrap();
    assert_eq!(exported.path, "pi-session-mine.html");
    let page = std::fs::read_to_string(dir.path().join(&exported.path)).unwrap();
    assert!(page.contains("<html"));
    let named = export(&log, Some("own.md")).unwrap().write().await.unwrap();
    assert_eq!(named.path, "own.md");
    assert!(
        std::fs::read_to_string(dir.path().join("own.md"))
            .unwrap()
            .contains("hello")
    );
}

#[test]
fn session_in_memory_is_not_exported() {
    let log = log(None);
    for is_lenient in [false, true] {
        let export = Export::new(&log, None, "/".as_ref(), String::new(), Vec::new(), is_lenient);
        assert!(export.is_err());
    }
}

#[tokio::test]
async fn lenient_export_needs_no_message_and_makes_directories() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(Some(&dir.path().join("mine.jsonl")));
    let path = Some("no/such/page.html".to_owned());
    let export = Export::new(&log, path, dir.path(), String::new(), Vec::new(), true);
    let exported = export.unwrap().write().await.unwrap();
    assert_eq!(exported.path, "no/such/page.html");
    let page = std::fs::read_to_string(dir.path().join(&exported.path)).unwrap();
    assert!(page.contains("<html"));
}
