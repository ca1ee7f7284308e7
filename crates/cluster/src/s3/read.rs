//! Reading and following a session in S3.

use object_store::ObjectStoreExt as _;
use store::limits::LOADED_AT_ONCE;
use store::{Result, SessionId, StoreError, StoreFuture, Watch};

use super::head::{Head, Segment};
use super::{S3Store, engine};
use crate::limits::{S3_WATCH_PAUSE, WATCH_TRIES};
use crate::lines;

pub(super) async fn load(store: &S3Store, session: &SessionId, from: u64) -> Result<Vec<Vec<u8>>> {
    let version = store.version(session).await?;
    let found = lines_of(store, session, &version.head, from).await?;
    if !found.is_empty() {
        store.remember(session, version);
    }
    Ok(found)
}

async fn lines_of(store: &S3Store, session: &SessionId, head: &Head, from: u64) -> Result<Vec<Vec<u8>>> {
    if from > head.position {
        return Err(StoreError::Stale {
            session: session.to_string(),
            expected: from,
            actual: head.position,
        });
    }
    let (mut found, mut bytes, mut position) = (Vec::new(), 0, from);
    let mut take = |lines: Vec<Vec<u8>>, start: u64, position: &mut u64| {
        let skipped = usize::try_from(position.saturating_sub(start)).unwrap_or(usize::MAX);
        for line in lines.into_iter().skip(skipped) {
            bytes += line.len();
            found.push(line);
            *position += 1;
        }
        bytes >= LOADED_AT_ONCE
    };
    for segment in &head.segments {
        if segment.start + segment.lines <= position {
            continue;
        }
        let lines = fetch(store, session, head, segment).await?;
        if take(lines, segment.start, &mut position) {
            return Ok(found);
        }
    }
    let start = head.tail_start().unwrap_or_default();
    take(head.tail.clone(), start, &mut position);
    if position < head.position {
        return Err(StoreError::Damaged {
            session: session.to_string(),
            position,
            reason: "no segment has this line".to_owned(),
        });
    }
    Ok(found)
}

async fn fetch(store: &S3Store, session: &SessionId, head: &Head, segment: &Segment) -> Result<Vec<Vec<u8>>> {
    let path = store.segment_path(session, &head.generation, segment);
    let failed = |e: &object_store::Error| engine("read a segment of the session", e);
    let object = store.objects.get(&path).await.map_err(|e| failed(&e))?;
    let text = object.bytes().await.map_err(|e| failed(&e))?;
    let lines = lines::split(&text).filter(|lines| lines.len() as u64 == segment.lines);
    lines.ok_or_else(|| StoreError::Damaged {
        session: session.to_string(),
        position: segment.start,
        reason: format!("its segment does not have {} lines", segment.lines),
    })
}

/// A session whose head is looked at again and again: S3 reports no changes by itself.
pub(super) struct S3Watch {
    store: S3Store,
    session: SessionId,
    position: u64,
}

impl S3Watch {
    pub(super) async fn start(store: &S3Store, session: &SessionId, from: u64) -> Result<Self> {
        let version = store.version(session).await?;
        if from > version.head.position {
            return Err(StoreError::Stale {
                session: session.to_string(),
                expected: from,
                actual: version.head.position,
            });
        }
        Ok(Self {
            store: S3Store {
                objects: store.objects.clone(),
                prefix: store.prefix.clone(),
                known: std::sync::Mutex::default(),
            },
            session: session.clone(),
            position: from,
        })
    }
}

impl Watch for S3Watch {
    fn next(&mut self) -> StoreFuture<'_, Vec<Vec<u8>>> {
        Box::pin(async move {
            let mut failures = 0;
            loop {
                match load(&self.store, &self.session, self.position).await {
                    Ok(lines) if !lines.is_empty() => {
                        self.position += lines.len() as u64;
                        return Ok(lines);
                    }
                    Ok(_) => failures = 0,
                    Err(StoreError::Engine { .. }) if failures < WATCH_TRIES => failures += 1,
                    Err(other) => return Err(other),
                }
                tokio::time::sleep(S3_WATCH_PAUSE).await;
            }
        })
    }
}
