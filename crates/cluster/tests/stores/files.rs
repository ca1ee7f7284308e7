//! Session files: the suite, and what only files can do.

use std::path::Path;

use anyhow::{Result, ensure};
use cluster::FileStore;
use store::{SessionDirectory, SessionLog, SessionStore, StoreError};

use crate::suite::{Place, all, line, session};

/// The files of a directory as a store.
pub(crate) fn at(dir: &Path) -> FileStore {
    FileStore::new(SessionDirectory::new(dir.to_path_buf(), false))
}

struct Directory(tempfile::TempDir);

impl Place for Directory {
    async fn open(&self) -> Result<Box<dyn SessionStore>> {
        Ok(Box::new(at(self.0.path())))
    }

    /// Files have no engine.
    async fn restart(&self) -> Result<()> {
        Ok(())
    }
}

async fn place() -> Result<Option<Directory>> {
    Ok(Some(Directory(tempfile::tempdir()?)))
}

crate::whole_suite!(place);

#[test]
fn stored_session_opens_as_session_log() -> Result<()> {
    crate::suite::run(async {
        let dir = tempfile::tempdir()?;
        let files = at(dir.path());
        let (id, header) = session("opened")?;
        let entry = line(
            r#"{"type":"custom","customType":"c","id":"aaaa0001","parentId":null,"timestamp":"2026-11-24T00:00:00.000Z"}"#,
        );
        files.append(&id, &[header, entry], 0).await?;
        let path = dir.path().join("--w--/2026-11-24T00-00-00-000Z_opened.jsonl");
        let (log, damage) = SessionLog::open_existing(&path, "/w")?;
        ensure!(damage.is_none(), "{damage}");
        ensure!(log.entries().len() == 1 && log.header().id == "opened");
        // The log holds the lock of the file.
        let refused = files.append(&id, &[line("{}")], 2).await;
        ensure!(matches!(refused, Err(StoreError::Locked { .. })), "{refused:?}");
        drop(log);
        ensure!(files.append(&id, &[line("{}")], 2).await? == 3);
        Ok(())
    })
}

#[test]
fn torn_line_counts_for_no_position() -> Result<()> {
    crate::suite::run(async {
        let dir = tempfile::tempdir()?;
        let files = at(dir.path());
        let (id, header) = session("torn")?;
        files.append(&id, std::slice::from_ref(&header), 0).await?;
        let path = dir.path().join("--w--/2026-11-24T00-00-00-000Z_torn.jsonl");
        let whole = std::fs::read(&path)?;
        std::fs::write(&path, [&whole[..], br#"{"type":"mess"#].concat())?;
        ensure!(all(&files, &id, 0).await? == std::slice::from_ref(&header));
        ensure!(files.append(&id, &[line("{\"a\":1}")], 1).await? == 2);
        // A whole object only lacks its line feed.
        let whole = std::fs::read(&path)?;
        std::fs::write(&path, [&whole[..], br#"{"b":2}"#].concat())?;
        ensure!(files.append(&id, &[line("{\"c\":3}")], 3).await? == 4);
        let expected = [header, line("{\"a\":1}"), line("{\"b\":2}"), line("{\"c\":3}")];
        ensure!(all(&files, &id, 0).await? == expected);
        Ok(())
    })
}

#[test]
fn first_line_must_be_its_header() -> Result<()> {
    crate::suite::run(async {
        let dir = tempfile::tempdir()?;
        let files = at(dir.path());
        let (id, _) = session("mine")?;
        let (_, foreign) = session("other")?;
        for lines in [vec![line("{}")], vec![foreign]] {
            let refused = files.append(&id, &lines, 0).await;
            ensure!(
                matches!(refused, Err(StoreError::NotASession { .. })),
                "{refused:?}"
            );
        }
        ensure!(std::fs::read_dir(dir.path())?.next().is_none(), "a file was left");
        Ok(())
    })
}
