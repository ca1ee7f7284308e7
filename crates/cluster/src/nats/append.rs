//! Appending to a session in NATS: the fence, and what to do when a response is lost.

use std::time::Instant;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use store::{Result, SessionId, StoreError};
use uuid::Uuid;

use super::record::Record;
use super::{NatsStore, Place, read, unless_reconnected};
use crate::limits::{APPEND_PAUSE, APPEND_WAIT, MESSAGE_BYTES, PART_BYTES};
use crate::lines;

pub(super) async fn append(
    store: &NatsStore,
    session: &SessionId,
    lines: &[Vec<u8>],
    expected: u64,
) -> Result<u64> {
    let place = match store.known(session).filter(|place| place.position == expected) {
        Some(place) => place,
        None => store.end(session).await?,
    };
    if place.position != expected {
        return Err(stale(session, expected, place.position));
    }
    let body = Bytes::from(lines::join(lines));
    let mut record = Record {
        start: expected,
        lines: lines.len() as u64,
        append: Uuid::new_v4().simple().to_string(),
        parts: 0,
        before: place.newest.clone(),
        sequence: 0,
    };
    if body.len() <= MESSAGE_BYTES {
        return commit(store, session, record, body, place).await;
    }
    record.parts = upload(store, session, &record.append, &body).await?;
    let subject = store.parts_subject(session, &record.append);
    let committed = commit(store, session, record, Bytes::new(), place).await;
    if matches!(committed, Err(StoreError::Stale { .. })) {
        // No message names these parts. If this fails, too, they go with the session.
        drop(store.stream.purge().filter(subject).await);
    }
    committed
}

/// Stores the parts of a large append. Nothing leads to them until the message of the append is stored.
async fn upload(store: &NatsStore, session: &SessionId, append: &str, body: &Bytes) -> Result<u64> {
    let subject = store.parts_subject(session, append);
    let (mut parts, mut last) = (0, 0);
    let mut rest = body.clone();
    while !rest.is_empty() {
        let part = rest.split_to(rest.len().min(PART_BYTES));
        last = publish_part(store, &subject, part, last).await?;
        parts += 1;
    }
    Ok(parts)
}

/// Stores a part behind the one with the sequence `last`, and returns its sequence. No other writer knows the subject, so a refusal means
/// that an earlier attempt was stored, or is about to be.
async fn publish_part(store: &NatsStore, subject: &str, part: Bytes, last: u64) -> Result<u64> {
    // The fence keeps a part from being stored twice after a lost response.
    let message = PublishMessage::build()
        .payload(part)
        .expected_last_subject_sequence(last);
    let mut tries = Tries::default();
    loop {
        let reason = match publish(store, subject, message.clone()).await {
            Ok(sequence) => return Ok(sequence),
            Err(error) if tries.failed > 0 && error.kind() == PublishErrorKind::WrongLastSequence => {
                let stored = store.stream.get_last_raw_message_by_subject(subject).await;
                match stored {
                    Ok(part) if part.sequence > last => return Ok(part.sequence),
                    // Most servers have not confirmed the earlier attempt yet: this is the part before it.
                    Ok(_) => error.to_string(),
                    Err(error) => error.to_string(),
                }
            }
            Err(error) => error.to_string(),
        };
        if !tries.again().await {
            return Err(StoreError::Engine {
                action: "store a large entry",
                reason,
            });
        }
    }
}

/// The attempts of one publication.
struct Tries {
    failed: u32,
    until: Instant,
}

impl Default for Tries {
    fn default() -> Self {
        Self {
            failed: 0,
            until: Instant::now() + APPEND_WAIT,
        }
    }
}

impl Tries {
    /// Pauses after a failed attempt. False if the time is over.
    async fn again(&mut self) -> bool {
        self.failed += 1;
        let pause = APPEND_PAUSE * self.failed.min(4);
        if Instant::now() + pause >= self.until {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }
}

/// Publishes once and waits for the acknowledgement; returns the message's sequence.
async fn publish(store: &NatsStore, subject: &str, message: PublishMessage) -> Result<u64, PublishError> {
    let sent = async {
        let sent = store.context.send_publish(subject.to_owned(), message).await?;
        sent.await.map(|acknowledged| acknowledged.sequence)
    };
    let lost = || Err(PublishErrorKind::TimedOut.into());
    unless_reconnected(&store.client, sent).await.unwrap_or_else(lost)
}

/// Publishes the message that makes the append a part of the session.
async fn commit(
    store: &NatsStore,
    session: &SessionId,
    mut record: Record,
    payload: Bytes,
    place: Place,
) -> Result<u64> {
    let message = PublishMessage::build()
        .payload(payload)
        .headers(record.headers())
        .expected_last_subject_sequence(place.sequence());
    let subject = store.subject(session);
    let mut tries = Tries::default();
    let reason = loop {
        let reason = match publish(store, &subject, message.clone()).await {
            Ok(sequence) => {
                record.sequence = sequence;
                store.remember(session, record.end());
                return Ok(record.end().position);
            }
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                match settle(store, session, &record, &place).await? {
                    Some(position) => return Ok(position),
                    // The message that took the place is gone, so the session was deleted.
                    None if tries.failed == 0 => return Err(stale(session, record.start, 0)),
                    // An earlier attempt took the place, and most servers have not confirmed it yet.
                    None => error.to_string(),
                }
            }
            // Sent again: with the same fence it is stored at most once.
            Err(error) => error.to_string(),
        };
        if !tries.again().await {
            break reason;
        }
    };
    match settle(store, session, &record, &place).await {
        Ok(Some(position)) => Ok(position),
        Err(stale @ StoreError::Stale { .. }) => Err(stale),
        // It may still be on its way to the server.
        Ok(None) | Err(_) => Err(StoreError::Unconfirmed {
            session: session.to_string(),
            expected: record.start,
            reason,
        }),
    }
}

/// Asks which append follows `place`. Returns the new position if it is this one, none if none does.
async fn settle(
    store: &NatsStore,
    session: &SessionId,
    record: &Record,
    place: &Place,
) -> Result<Option<u64>> {
    store.forget(session);
    let Some(winner) = read::next(store, session, place.sequence() + 1).await? else {
        return Ok(None);
    };
    if winner.append == record.append {
        let end = winner.end();
        let position = end.position;
        store.remember(session, end);
        return Ok(Some(position));
    }
    let end = store.end(session).await?;
    Err(stale(session, record.start, end.position))
}

fn stale(session: &SessionId, expected: u64, actual: u64) -> StoreError {
    StoreError::Stale {
        session: session.to_string(),
        expected,
        actual,
    }
}
