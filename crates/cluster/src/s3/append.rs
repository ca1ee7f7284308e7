//! Appending to a session in S3: the fence, and what to do when a response is lost.

use object_store::{ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion};
use store::{Result, SessionId, StoreError};
use uuid::Uuid;

use super::head::{Head, Outcome};
use super::{S3Store, Version, engine};
use crate::limits::{APPEND_PAUSE, APPEND_TRIES, HEAD_BYTES};

pub(super) async fn append(
    store: &S3Store,
    session: &SessionId,
    lines: &[Vec<u8>],
    expected: u64,
) -> Result<u64> {
    let known = store.known(session);
    let before = match known.filter(|version| version.head.position == expected) {
        Some(version) => version,
        None => store.version(session).await?,
    };
    if before.head.position != expected {
        return Err(stale(session, expected, before.head.position));
    }
    let id = Uuid::new_v4().simple().to_string();
    let mut head = before.head.with(lines, &id);
    let mut segment = None;
    if head.tail_bytes() > HEAD_BYTES
        && let Some((made, text)) = head.spill(&id)
    {
        let path = store.segment_path(session, &head.generation, &made);
        let stored = store.objects.put(&path, PutPayload::from(text)).await;
        stored.map_err(|e| engine("store a segment of the session", &e))?;
        segment = Some(path);
    }
    let appended = commit(store, session, before, head, &id).await;
    if let (Err(StoreError::Stale { .. }), Some(path)) = (&appended, segment) {
        // No head names it. If this fails, too, it goes with the session.
        drop(store.objects.delete(&path).await);
    }
    appended
}

/// Writes the head unless another process did since it was read.
async fn commit(store: &S3Store, session: &SessionId, before: Version, head: Head, id: &str) -> Result<u64> {
    let expected = before.head.position;
    let payload = PutPayload::from(head.write()?);
    let path = store.head_path(session);
    let mut reason = String::new();
    for attempt in 0..APPEND_TRIES {
        tokio::time::sleep(APPEND_PAUSE * attempt).await;
        let mode = before.tag.clone().map_or(PutMode::Create, PutMode::Update);
        match store
            .objects
            .put_opts(&path, payload.clone(), PutOptions::from(mode))
            .await
        {
            Ok(put) => {
                let tag = UpdateVersion {
                    e_tag: put.e_tag,
                    version: put.version,
                };
                let position = head.position;
                store.remember(session, Version { head, tag: Some(tag) });
                return Ok(position);
            }
            // The condition failed, perhaps because an earlier attempt of this append was stored.
            Err(
                error @ (object_store::Error::Precondition { .. }
                | object_store::Error::AlreadyExists { .. }
                | object_store::Error::NotFound { .. }),
            ) => {
                let now = store.version(session).await?;
                store.forget(session);
                if now.head.position == expected && now.tag == before.tag && now.tag.is_some() {
                    // Another write was under way and failed.
                    reason = error.to_string();
                    continue;
                }
                return settle(session, &now, expected, id, error.to_string());
            }
            Err(error) => reason = error.to_string(),
        }
    }
    store.forget(session);
    let now = store.version(session).await;
    match now {
        // It may still be on its way to the server.
        Ok(now) if now.head.position == expected => Err(unconfirmed(session, expected, reason)),
        Ok(now) => settle(session, &now, expected, id, reason),
        Err(_) => Err(unconfirmed(session, expected, reason)),
    }
}

fn settle(session: &SessionId, now: &Version, expected: u64, id: &str, reason: String) -> Result<u64> {
    match now.head.outcome(expected, id) {
        Outcome::Stored(position) => Ok(position),
        Outcome::Refused => Err(stale(session, expected, now.head.position)),
        Outcome::Forgotten => Err(unconfirmed(session, expected, reason)),
    }
}

fn stale(session: &SessionId, expected: u64, actual: u64) -> StoreError {
    StoreError::Stale {
        session: session.to_string(),
        expected,
        actual,
    }
}

fn unconfirmed(session: &SessionId, expected: u64, reason: String) -> StoreError {
    StoreError::Unconfirmed {
        session: session.to_string(),
        expected,
        reason,
    }
}
