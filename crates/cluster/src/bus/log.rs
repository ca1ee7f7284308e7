//! One stream of JetStream as the worker and the gateways use it: publish with a fence, read by subject, follow. What the messages
//! mean does not live here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use store::StoreError;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::lease::LeaseState;
use crate::limits::{FOLLOW_AGAIN, FOLLOW_LOOK, FOLLOW_PAUSE, PUBLISH_PAUSE, PUBLISH_WAIT};
use crate::nats::{batch, engine, repeat, unless_reconnected};

/// Why a message was not published.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Another writer was faster. Nothing was stored.
    Fenced,
    /// The message has more bytes than the server takes. Nothing was stored.
    TooLarge(String),
    /// No acknowledgement arrived in time. The message may be stored or not.
    Unavailable(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fenced => f.write_str("another worker has the session"),
            Self::TooLarge(reason) => write!(f, "NATS does not take a message of this size: {reason}"),
            Self::Unavailable(reason) => write!(f, "NATS did not confirm a message in time: {reason}"),
        }
    }
}

impl std::error::Error for Fault {}

/// How long a publication is sent again while no acknowledgement arrives.
#[derive(Debug, Clone)]
pub(crate) enum Until {
    /// Until this time.
    Time(Instant),
    /// While a lease is valid, which is renewed meanwhile, and until this time.
    Lease(watch::Receiver<LeaseState>, Instant),
}

impl Until {
    /// While a lease is valid, for `PUBLISH_WAIT` at most.
    pub(crate) fn lease(state: watch::Receiver<LeaseState>) -> Self {
        Self::Lease(state, Instant::now() + PUBLISH_WAIT)
    }

    /// Returns true if the time is over at this moment.
    pub(super) fn is_over(&self, at: Instant) -> bool {
        match self {
            Self::Time(end) => at >= *end,
            Self::Lease(state, end) => at >= *end || state.borrow().is_over(at),
        }
    }
}

/// One stream.
#[derive(Clone)]
pub(crate) struct Log {
    client: Client,
    context: Context,
    name: String,
    stream: Stream<()>,
}

/// A message to publish.
pub(crate) struct Publication {
    pub(crate) subject: String,
    pub(crate) payload: Bytes,
    pub(crate) headers: HeaderMap,
    /// Sequence of the subject's last message, 0 for none. None publishes in any case.
    pub(crate) expected: Option<u64>,
}

impl Publication {
    pub(crate) fn new(subject: String, payload: impl Into<Bytes>, expected: Option<u64>) -> Self {
        Self {
            subject,
            payload: payload.into(),
            headers: HeaderMap::new(),
            expected,
        }
    }
}

impl Log {
    pub(crate) fn new(client: Client, context: Context, name: String, stream: Stream<()>) -> Self {
        Self {
            client,
            context,
            name,
            stream,
        }
    }

    /// Publishes a message and returns its sequence. Sends it again until `until` when no acknowledgement arrives; the message is
    /// stored at most once.
    pub(crate) async fn publish(&self, publication: Publication, until: &Until) -> Result<u64, Fault> {
        let id = Uuid::new_v4().simple().to_string();
        let mut message = PublishMessage::build()
            .payload(publication.payload)
            .headers(publication.headers)
            .message_id(&id);
        if let Some(expected) = publication.expected {
            message = message.expected_last_subject_sequence(expected);
        }
        let subject = publication.subject;
        let mut attempt: u32 = 0;
        loop {
            let sent = async {
                let acknowledged = self
                    .context
                    .send_publish(subject.clone(), message.clone())
                    .await?;
                acknowledged.await
            };
            let lost = || Err(PublishErrorKind::TimedOut.into());
            let sent = unless_reconnected(&self.client, sent).await;
            let reason = match sent.unwrap_or_else(lost) {
                Ok(acknowledged) => return Ok(acknowledged.sequence),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence && attempt == 0 => {
                    return Err(Fault::Fenced);
                }
                // The client did not send it, and would not send it the next time.
                Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                    return Err(Fault::TooLarge(error.to_string()));
                }
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                    // An earlier attempt may be what took the place, also if most servers have not confirmed it yet.
                    match self.last(&subject).await {
                        Ok(Some(last)) if has_id(&last, &id) => return Ok(last.sequence),
                        Ok(last) => {
                            let sequence = last.map_or(0, |last| last.sequence);
                            if publication.expected != Some(sequence) {
                                return Err(Fault::Fenced);
                            }
                            error.to_string()
                        }
                        Err(error) => error.to_string(),
                    }
                }
                Err(error) => error.to_string(),
            };
            attempt += 1;
            let pause = PUBLISH_PAUSE * attempt.min(10);
            if until.is_over(Instant::now() + pause) {
                return Err(Fault::Unavailable(reason));
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// The last message of a subject.
    pub(crate) async fn last(&self, subject: &str) -> Result<Option<StreamMessage>, StoreError> {
        repeat(&self.client, async || {
            match self.stream.get_last_raw_message_by_subject(subject).await {
                Ok(message) => Ok(Some(message)),
                Err(e) if e.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(e) => Err(engine("read a stream", &e)),
            }
        })
        .await
    }

    /// The first message of a subject from a sequence on.
    pub(crate) async fn next(&self, subject: &str, from: u64) -> Result<Option<StreamMessage>, StoreError> {
        repeat(&self.client, || async move {
            let request = self
                .stream
                .raw_message_builder()
                .sequence(from.max(1))
                .next_by_subject(subject);
            match request.send().await {
                Ok(message) => Ok(Some(message)),
                Err(e) if e.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(e) => Err(engine("read a stream", &e)),
            }
        })
        .await
    }

    /// The next messages of a subject from a sequence on; empty if there are none.
    pub(crate) async fn several(&self, subject: &str, from: u64) -> Result<Vec<StreamMessage>, StoreError> {
        let found = batch::read(&self.client, &self.context, &self.name, subject, from).await;
        if !found.is_empty() {
            return Ok(found);
        }
        Ok(self.next(subject, from).await?.into_iter().collect())
    }

    /// Removes one message. Returns without an error if it is gone already.
    pub(crate) async fn remove(&self, sequence: u64) -> Result<(), StoreError> {
        use async_nats::jetstream::stream::DeleteMessageErrorKind as Kind;
        repeat(&self.client, || async move {
            match self.stream.delete_message(sequence).await {
                Ok(_) => Ok(()),
                Err(e) if matches!(e.kind(), Kind::JetStream(_)) => Ok(()),
                Err(e) => Err(engine("remove a message", &e)),
            }
        })
        .await
    }

    /// Removes the messages of a subject, up to and including a sequence if one is given.
    pub(crate) async fn purge(&self, subject: &str, last: Option<u64>) -> Result<(), StoreError> {
        repeat(&self.client, || async move {
            let purge = self.stream.purge().filter(subject);
            let purged = match last {
                Some(last) => purge.sequence(last + 1).await,
                None => purge.await,
            };
            purged.map(drop).map_err(|e| engine("remove messages", &e))
        })
        .await
    }

    /// The last words of all subjects that have messages.
    pub(crate) async fn names(&self, filter: &str) -> Result<Vec<String>, StoreError> {
        let mut found = self
            .stream
            .info_with_subjects(filter)
            .await
            .map_err(|e| engine("list subjects", &e))?;
        let mut names = Vec::new();
        while let Some((subject, _)) = found.try_next().await.map_err(|e| engine("list subjects", &e))? {
            names.extend(subject.rsplit('.').next().map(str::to_owned));
        }
        Ok(names)
    }

    /// Follows a subject from a sequence on.
    pub(crate) async fn follow(&self, subject: String, from: u64) -> Result<Follower, StoreError> {
        let mut subscription = self
            .client
            .subscribe(subject.clone())
            .await
            .map_err(|e| engine("subscribe", &e))?;
        // The server knows the subscription before the first look, so no message falls in between.
        self.client.flush().await.map_err(|e| engine("subscribe", &e))?;
        let arrived = Arc::new(Notify::new());
        let notify = Arc::clone(&arrived);
        // Only the fact that something was published counts. Read at once, messages do not pile up in the client.
        let task = tokio::spawn(async move {
            while subscription.next().await.is_some() {
                notify.notify_one();
            }
        });
        Ok(Follower {
            log: self.clone(),
            subject,
            next: from,
            arrived,
            task,
            connects: self.client.statistics().connects.load(Ordering::Relaxed),
            look_at: Instant::now(),
            pause: FOLLOW_AGAIN,
        })
    }
}

fn has_id(message: &StreamMessage, id: &str) -> bool {
    message
        .headers
        .get(async_nats::header::NATS_MESSAGE_ID)
        .is_some_and(|found| found.as_str() == id)
}

/// A position in the messages of a subject. Messages are read by sequence, so a server that was away costs time and no message.
pub(crate) struct Follower {
    log: Log,
    subject: String,
    next: u64,
    arrived: Arc<Notify>,
    task: JoinHandle<()>,
    /// Connections of the client when the stream was last read.
    connects: u64,
    /// The stream is read then even if nothing was announced.
    look_at: Instant,
    /// Pause before the next look. The server announces a message a moment before it can be read, so the first pauses are short.
    pause: Duration,
}

impl Follower {
    /// Waits for the next message. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> StreamMessage {
        loop {
            let connects = self.connects();
            match self.log.next(&self.subject, self.next).await {
                Ok(Some(message)) => {
                    self.next = message.sequence + 1;
                    self.pause = FOLLOW_AGAIN;
                    return message;
                }
                Ok(None) => {
                    self.connects = connects;
                    self.look_at = Instant::now() + self.pause;
                    self.pause = (self.pause * 4).min(FOLLOW_LOOK);
                }
                // An unreachable server is looked for again after the pause, for as long as the caller waits.
                Err(_) => self.look_at = Instant::now() + FOLLOW_PAUSE,
            }
            self.may_have_more().await;
        }
    }

    /// Waits until the stream may have a message: one was announced, the connection is a new one, so that announcements may have been
    /// missed, or the time for a look has come.
    async fn may_have_more(&mut self) {
        loop {
            let wait = self.look_at.saturating_duration_since(Instant::now());
            let announced = tokio::time::timeout(wait.min(FOLLOW_PAUSE), self.arrived.notified()).await;
            if announced.is_ok() || self.connects() != self.connects {
                self.pause = FOLLOW_AGAIN;
                return;
            }
            if Instant::now() >= self.look_at {
                return;
            }
        }
    }

    fn connects(&self) -> u64 {
        self.log.client.statistics().connects.load(Ordering::Relaxed)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}
