//! Following a session in NATS. A consumer that breaks is made anew behind the last message that was passed on.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::jetstream::context::Context;
use futures_util::StreamExt as _;
use store::{Result, SessionId, StoreError, StoreFuture, Watch};

use super::record::Record;
use super::{NatsStore, engine, read};
use crate::limits::{ANSWER_WAIT, WATCH_PAUSE, WATCH_TRIES};

/// A session that is followed.
pub(super) struct NatsWatch {
    store: NatsStore,
    session: SessionId,
    messages: Option<Ordered>,
    /// Received, and not passed on yet.
    pending: Option<(Record, bytes::Bytes)>,
    /// Sequence from which a new consumer starts.
    sequence: u64,
    /// Position of the next line to pass on.
    position: u64,
    /// Position at which the next message begins; none before the first one.
    next_start: Option<u64>,
}

impl NatsWatch {
    pub(super) async fn start(store: &NatsStore, session: &SessionId, from: u64) -> Result<Self> {
        let end = store.end(session).await?;
        if from > end.position {
            return Err(StoreError::Stale {
                session: session.to_string(),
                expected: from,
                actual: end.position,
            });
        }
        let sequence = if from == end.position {
            end.sequence() + 1
        } else {
            read::first_message(store, session, from, &end).await?
        };
        let messages = Some(consume(store, session, sequence).await?);
        Ok(Self {
            store: store.share(),
            session: session.clone(),
            messages,
            pending: None,
            sequence,
            position: from,
            next_start: None,
        })
    }

    /// Waits for the next message, in `pending` then. Starts again after errors, a bounded number of times.
    async fn receive(&mut self) -> Result<()> {
        let mut failures = 0;
        while self.pending.is_none() {
            match self.attempt().await {
                Ok(()) => {}
                Err(error) if failures >= WATCH_TRIES => return Err(error),
                Err(_) => {
                    failures += 1;
                    self.messages = None;
                    tokio::time::sleep(WATCH_PAUSE).await;
                }
            }
        }
        Ok(())
    }

    async fn attempt(&mut self) -> Result<()> {
        let messages = match &mut self.messages {
            Some(messages) => messages,
            none => none.insert(consume(&self.store, &self.session, self.sequence).await?),
        };
        let message = match messages.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(engine("follow the session", &error)),
            None => return Err(engine("follow the session", &"the server ended the consumer")),
        };
        let sequence = sequence_of(&message)?;
        let headers = message.headers.clone().unwrap_or_default();
        let record = Record::of(&self.session, &headers, sequence)?;
        self.sequence = sequence + 1;
        self.pending = Some((record, message.payload.clone()));
        Ok(())
    }
}

impl Watch for NatsWatch {
    fn next(&mut self) -> StoreFuture<'_, Vec<Vec<u8>>> {
        Box::pin(async move {
            loop {
                self.receive().await?;
                let Some((record, payload)) = self.pending.clone() else {
                    continue;
                };
                let start = *self.next_start.get_or_insert(record.start);
                let lines = read::lines_of(&self.store, &self.session, &record, start, payload).await?;
                self.pending = None;
                self.next_start = Some(record.end().position);
                let skipped =
                    usize::try_from(self.position.saturating_sub(record.start)).unwrap_or(usize::MAX);
                let lines: Vec<_> = lines.into_iter().skip(skipped).collect();
                if !lines.is_empty() {
                    self.position = record.end().position;
                    return Ok(lines);
                }
            }
        })
    }
}

impl NatsStore {
    /// Another handle on the same connection, which remembers nothing.
    fn share(&self) -> Self {
        Self {
            client: self.client.clone(),
            context: Context::clone(&self.context),
            stream: self.stream.clone(),
            prefix: self.prefix.clone(),
            known: std::sync::Mutex::default(),
        }
    }
}

/// Messages of a session in their order, from a sequence on.
async fn consume(store: &NatsStore, session: &SessionId, sequence: u64) -> Result<Ordered> {
    let config = OrderedConfig {
        filter_subject: store.subject(session),
        deliver_policy: DeliverPolicy::ByStartSequence {
            start_sequence: sequence,
        },
        ..OrderedConfig::default()
    };
    let create = async {
        let consumer = store
            .stream
            .create_consumer(config)
            .await
            .map_err(|e| engine("read the session", &e))?;
        consumer
            .messages()
            .await
            .map_err(|e| engine("read the session", &e))
    };
    let limit: Duration = ANSWER_WAIT * 2;
    tokio::time::timeout(limit, create)
        .await
        .unwrap_or_else(|_| Err(engine("read the session", &"the server did not answer in time")))
}

/// The sequence of a delivered message in the stream.
fn sequence_of(message: &async_nats::jetstream::Message) -> Result<u64> {
    let info = message.info().map_err(|e| engine("read the session", &e))?;
    Ok(info.stream_sequence)
}
