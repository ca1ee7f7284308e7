//! Reading a session in NATS from a position on.

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use store::limits::{LOADED_AT_ONCE, MAX_FILE};
use store::{Result, SessionId, StoreError};

use super::record::Record;
use super::{NatsStore, Place, batch, engine, repeat};
use crate::limits::READ_AT_ONCE;
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
    if from == end.position {
        store.remember(session, end);
        return Ok(Vec::new());
    }
    let mut loaded = Loaded::new(store, session, from, end.sequence());
    if let Some(sequences) = sequences(store, session, from, &end).await? {
        let mut messages = futures_util::stream::iter(sequences)
            .map(|sequence| message(store, session, sequence))
            .buffered(READ_AT_ONCE);
        while let Some(message) = messages.next().await {
            if loaded.take(message?).await? {
                return Ok(loaded.lines);
            }
        }
        return Err(damaged(session, from, "its last message is missing".to_owned()));
    }
    let mut next = first_message(store, session, from, &end).await?;
    loop {
        for message in messages(store, session, next).await? {
            next = message.sequence + 1;
            if loaded.take(message).await? {
                return Ok(loaded.lines);
            }
        }
    }
}

/// Lines of a session that were read so far.
struct Loaded<'a> {
    store: &'a NatsStore,
    session: &'a SessionId,
    from: u64,
    /// Sequence of the last message.
    end: u64,
    /// Where the next message has to begin; none before the first one.
    position: Option<u64>,
    bytes: usize,
    lines: Vec<Vec<u8>>,
}

impl<'a> Loaded<'a> {
    fn new(store: &'a NatsStore, session: &'a SessionId, from: u64, end: u64) -> Self {
        Self {
            store,
            session,
            from,
            end,
            position: None,
            bytes: 0,
            lines: Vec::new(),
        }
    }

    /// Takes the next message. Returns true at the end of the session, and when enough was read for one call.
    async fn take(&mut self, message: StreamMessage) -> Result<bool> {
        let record = Record::of(self.session, &message.headers, message.sequence)?;
        // The first message may begin before the position, and the next ones have to follow it.
        let expected = *self.position.get_or_insert(record.start);
        let lines = lines_of(self.store, self.session, &record, expected, message.payload).await?;
        let end = record.end();
        self.position = Some(end.position);
        let skipped = usize::try_from(self.from.saturating_sub(record.start)).unwrap_or(usize::MAX);
        for line in lines.into_iter().skip(skipped) {
            self.bytes += line.len();
            self.lines.push(line);
        }
        let is_over = message.sequence >= self.end || self.bytes >= LOADED_AT_ONCE;
        if is_over {
            self.store.remember(self.session, end);
        }
        Ok(is_over)
    }
}

/// The sequences of the messages from a line on, oldest first; they may begin with some before the line. None if a message does not name
/// those before it, since an older version wrote it.
///
/// The server finds the messages of a subject by a search through all messages in between. With it, a session costs as much as the
/// stream has, and a worker that takes over 250 sessions keeps all servers busy.
async fn sequences(
    store: &NatsStore,
    session: &SessionId,
    from: u64,
    end: &Place,
) -> Result<Option<Vec<u64>>> {
    let mut found = end.newest.clone();
    loop {
        let Some(oldest) = found.last() else {
            return Ok(None);
        };
        let oldest = message(store, session, *oldest).await?;
        let record = Record::of(session, &oldest.headers, oldest.sequence)?;
        if record.start <= from {
            found.reverse();
            return Ok(Some(found));
        }
        match record.before.first() {
            None => return Ok(None),
            Some(newest) if *newest >= record.sequence => {
                let reason = format!("message {} names newer ones as older", record.sequence);
                return Err(damaged(session, record.start, reason));
            }
            Some(_) => found.extend(record.before),
        }
    }
}

/// The message of a session with a sequence.
async fn message(store: &NatsStore, session: &SessionId, sequence: u64) -> Result<StreamMessage> {
    // From whichever replica answers. It may not have the message yet, and the stream of an operator may not allow it.
    let found = match store.stream.direct_get(sequence).await {
        Ok(message) => message,
        Err(_) => {
            let message = store.stream.get_raw_message(sequence).await;
            message.map_err(|e| engine("read the session", &e))?
        }
    };
    // Sequences are those of this session, unless another program wrote to the stream.
    if found.subject.as_str() != store.subject(session) {
        let reason = format!("message {sequence} of the stream belongs to something else");
        return Err(damaged(session, 0, reason));
    }
    Ok(found)
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
    end: &Place,
) -> Result<u64> {
    if from == 0 {
        // Asked from the leader: a replica can still have messages of a session that was deleted and begun again.
        let first = next(store, session, 1).await?;
        return Ok(first.map_or(1, |first| first.sequence));
    }
    if let Some(known) = store.known(session).filter(|known| known.position == from) {
        return Ok(known.sequence() + 1);
    }
    let (mut low, mut high) = (1, end.sequence());
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
