//! Reading a session in NATS from a position on.

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::{Bytes, BytesMut};
use store::limits::{LOADED_AT_ONCE, MAX_FILE};
use store::{Result, SessionId, StoreError};

use super::record::Record;
use super::{NatsStore, Place, batch, engine, repeat};
use crate::lines;

pub(super) async fn load(store: &NatsStore, session: &SessionId, from: u64) -> Result<Vec<Vec<u8>>> {
    let end = store.end(session).await?;
    if from > end.position {
        return Err(StoreError::Stale {
            session: session.to_string(),
            expected: from,
            actual: end.position,
        });
    }
    let mut found = Vec::new();
    if from == end.position {
        store.remember(session, end);
        return Ok(found);
    }
    let mut next = first_message(store, session, from, end).await?;
    let (mut position, mut bytes) = (None, 0);
    loop {
        for message in messages(store, session, next).await? {
            next = message.sequence + 1;
            let record = Record::of(session, &message.headers, message.sequence)?;
            // The first message may begin before the position, and the next ones have to follow it.
            let expected = *position.get_or_insert(record.start);
            let lines = lines_of(store, session, &record, expected, message.payload).await?;
            position = Some(record.end().position);
            let skipped = usize::try_from(from.saturating_sub(record.start)).unwrap_or(usize::MAX);
            for line in lines.into_iter().skip(skipped) {
                bytes += line.len();
                found.push(line);
            }
            if message.sequence >= end.sequence || bytes >= LOADED_AT_ONCE {
                store.remember(session, record.end());
                return Ok(found);
            }
        }
    }
}

/// The next messages of a session from a sequence on, at least one.
async fn messages(store: &NatsStore, session: &SessionId, from: u64) -> Result<Vec<StreamMessage>> {
    let subject = store.subject(session);
    let found = batch::read(
        &store.client,
        &store.context,
        &store.stream_name(),
        &subject,
        from,
    )
    .await;
    if !found.is_empty() {
        return Ok(found);
    }
    let request = store
        .stream
        .raw_message_builder()
        .sequence(from)
        .next_by_subject(subject);
    match request.send().await {
        Ok(message) => Ok(vec![message]),
        Err(error) => Err(engine("read the session", &error)),
    }
}

/// The sequence of the message that has the line at `from`, which is before the end. Without a remembered place it is searched,
/// since a stream has an index of subjects, but none of positions.
pub(super) async fn first_message(
    store: &NatsStore,
    session: &SessionId,
    from: u64,
    end: Place,
) -> Result<u64> {
    if from == 0 {
        // Asked from the leader: a replica can still have messages of a session that was deleted and begun again.
        let first = next(store, session, 1).await?;
        return Ok(first.map_or(1, |first| first.sequence));
    }
    if let Some(known) = store.known(session).filter(|known| known.position == from) {
        return Ok(known.sequence + 1);
    }
    let (mut low, mut high) = (1, end.sequence);
    while low <= high {
        let middle = low + (high - low) / 2;
        let Some(record) = next(store, session, middle).await? else {
            break;
        };
        if record.start > from {
            high = middle - 1;
        } else if record.end().position <= from {
            low = record.sequence + 1;
        } else {
            return Ok(record.sequence);
        }
    }
    Err(damaged(session, from, "no message has this line".to_owned()))
}

/// The first message of a session from a sequence on, as the leader of the stream has it.
pub(super) async fn next(store: &NatsStore, session: &SessionId, sequence: u64) -> Result<Option<Record>> {
    repeat(&store.client, async || {
        let request = store
            .stream
            .raw_message_builder()
            .sequence(sequence)
            .next_by_subject(store.subject(session));
        match request.send().await {
            Ok(message) => Record::of(session, &message.headers, message.sequence).map(Some),
            Err(e) if e.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(e) => Err(engine("read the session", &e)),
        }
    })
    .await
}

/// All lines of a message. `position` is where it has to begin.
pub(super) async fn lines_of(
    store: &NatsStore,
    session: &SessionId,
    record: &Record,
    position: u64,
    payload: Bytes,
) -> Result<Vec<Vec<u8>>> {
    if record.start != position {
        let reason = format!("the next message begins at position {}", record.start);
        return Err(damaged(session, position, reason));
    }
    let text = if record.parts == 0 {
        payload
    } else {
        fetch_parts(store, session, record).await?
    };
    let lines = lines::split(&text).filter(|lines| lines.len() as u64 == record.lines);
    lines.ok_or_else(|| {
        let reason = format!("message {} does not have {} lines", record.sequence, record.lines);
        damaged(session, position, reason)
    })
}

async fn fetch_parts(store: &NatsStore, session: &SessionId, record: &Record) -> Result<Bytes> {
    let subject = store.parts_subject(session, &record.append);
    let mut text = BytesMut::new();
    let mut sequence = 1;
    for number in 0..record.parts {
        let request = store
            .stream
            .raw_message_builder()
            .sequence(sequence)
            .next_by_subject(subject.clone());
        let part = request.send().await.map_err(|error| match error.kind() {
            LastRawMessageErrorKind::NoMessageFound => damaged(
                session,
                record.start,
                format!("part {number} of {} is missing", record.parts),
            ),
            _ => engine("read a large entry", &error),
        })?;
        sequence = part.sequence + 1;
        text.extend_from_slice(&part.payload);
        if text.len() as u64 > MAX_FILE {
            return Err(damaged(
                session,
                record.start,
                "its parts are too large".to_owned(),
            ));
        }
    }
    Ok(text.freeze())
}

fn damaged(session: &SessionId, position: u64, reason: String) -> StoreError {
    StoreError::Damaged {
        session: session.to_string(),
        position,
        reason,
    }
}
