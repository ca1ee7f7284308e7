//! Sessions in a stream of NATS JetStream. Each append is one message on the subject of its session, published with
//! `Nats-Expected-Last-Subject-Sequence`, so that the server itself refuses a stale writer. The decision record
//! 34-session-stores.md says why appends are messages and why large ones have parts in the same stream.

mod append;
pub(crate) mod batch;
mod read;
mod record;
mod watch;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use async_nats::Client;
use async_nats::jetstream::context::{ContextBuilder, GetStreamErrorKind};
use async_nats::jetstream::stream::{self, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use futures_util::TryStreamExt as _;
use store::{Result, SessionId, SessionStore, StoreError, StoreFuture, Watch, check_lines};

use crate::address::{NatsAddress, NatsLogin};
use crate::limits::{
    ANSWER_WAIT, KNOWN_SESSIONS, NATS_CONNECT_WAIT, NATS_READ_WAIT, NATS_REPEAT_WAIT, NATS_WAIT, PING_PAUSE,
    PUBLISH_PAUSE, RECONNECT_PAUSE, REQUEST_TRIES,
};
use record::Record;

/// Sessions in a stream of NATS JetStream.
pub struct NatsStore {
    client: Client,
    context: Context,
    stream: Stream<()>,
    prefix: String,
    /// Where sessions were when this store last wrote or read them. The server checks it with every append, so an old value
    /// costs a refused message and nothing else.
    known: Mutex<HashMap<SessionId, Place>>,
}

/// A point in a session: the position, and the sequences in the stream of the last messages that lead to it, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    position: u64,
    newest: Vec<u64>,
}

impl Place {
    /// The sequence of the last message that leads to it; 0 before the first one.
    fn sequence(&self) -> u64 {
        self.newest.first().copied().unwrap_or(0)
    }
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsStore")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl NatsStore {
    /// Connects, and makes the stream `<prefix>-sessions` if there is none. An existing one stays as the operator configured it.
    ///
    /// # Errors
    /// [`StoreError::Engine`] when no server can be reached, or JetStream refuses the stream.
    pub async fn connect(address: &NatsAddress) -> Result<Self> {
        let client = client(address).await?;
        let context = ContextBuilder::new()
            .timeout(NATS_READ_WAIT)
            .ack_timeout(NATS_WAIT)
            .build(client.clone());
        let config = config(&stream_name(&address.prefix), address);
        let stream = open_stream(&context, config).await?;
        Ok(Self {
            client,
            context,
            stream,
            prefix: address.prefix.clone(),
            known: Mutex::default(),
        })
    }

    fn stream_name(&self) -> String {
        stream_name(&self.prefix)
    }

    /// The subject of a session's messages.
    fn subject(&self, session: &SessionId) -> String {
        format!("{}.session.{}.log", self.prefix, session.encoded())
    }

    /// The subject of the parts of one append.
    fn parts_subject(&self, session: &SessionId, append: &str) -> String {
        format!("{}.session.{}.part.{append}", self.prefix, session.encoded())
    }

    fn known(&self, session: &SessionId) -> Option<Place> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(session).cloned()
    }

    fn remember(&self, session: &SessionId, place: Place) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_SESSIONS && !known.contains_key(session) {
            known.clear();
        }
        known.insert(session.clone(), place);
    }

    fn forget(&self, session: &SessionId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(session);
    }

    /// Where a session ends, as the leader of the stream has it.
    async fn end(&self, session: &SessionId) -> Result<Place> {
        let subject = self.subject(session);
        repeat(&self.client, async || {
            match self.stream.get_last_raw_message_by_subject(&subject).await {
                Ok(message) => Ok(Record::of(session, &message.headers, message.sequence)?.end()),
                Err(e) if e.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(Place::default()),
                Err(e) => Err(engine("read the end of the session", &e)),
            }
        })
        .await
    }

    async fn all(&self) -> Result<Vec<SessionId>> {
        let filter = format!("{}.session.*.log", self.prefix);
        let failed = |e: &dyn fmt::Display| engine("list the sessions", e);
        let mut found = self
            .stream
            .info_with_subjects(filter)
            .await
            .map_err(|e| failed(&e))?;
        let mut ids = Vec::new();
        while let Some((subject, _)) = found.try_next().await.map_err(|e| failed(&e))? {
            let name = subject
                .strip_suffix(".log")
                .and_then(|name| name.rsplit('.').next());
            ids.extend(name.and_then(SessionId::decode));
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    /// One request removes the messages of a session and all parts of them.
    async fn purge(&self, session: &SessionId) -> Result<bool> {
        let filter = format!("{}.session.{}.>", self.prefix, session.encoded());
        self.forget(session);
        let purged = self.stream.purge().filter(filter).await;
        purged
            .map(|purged| purged.purged > 0)
            .map_err(|e| engine("delete the session", &e))
    }
}

impl SessionStore for NatsStore {
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        lines: &'a [Vec<u8>],
        expected: u64,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            check_lines(lines)?;
            append::append(self, session, lines, expected).await
        })
    }

    fn load<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, Vec<Vec<u8>>> {
        Box::pin(async move {
            for attempt in 1..REQUEST_TRIES {
                match unless_reconnected(&self.client, read::load(self, session, from)).await {
                    None | Some(Err(StoreError::Engine { .. })) => {}
                    Some(loaded) => return loaded,
                }
                tokio::time::sleep(PUBLISH_PAUSE * attempt).await;
            }
            read::load(self, session, from).await
        })
    }

    fn list(&self) -> StoreFuture<'_, Vec<SessionId>> {
        Box::pin(self.all())
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        Box::pin(self.purge(session))
    }

    fn watch<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, Box<dyn Watch>> {
        Box::pin(async move {
            let watch = watch::NatsWatch::start(self, session, from).await?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }
}

fn stream_name(prefix: &str) -> String {
    format!("{prefix}-sessions")
}

/// Nothing in the stream is ever discarded to make room: a full one refuses appends.
fn config(name: &str, address: &NatsAddress) -> stream::Config {
    let prefix = &address.prefix;
    stream::Config {
        name: name.to_owned(),
        description: Some("Sessions of Pinion".to_owned()),
        subjects: vec![
            format!("{prefix}.session.*.log"),
            format!("{prefix}.session.*.part.*"),
        ],
        storage: StorageType::File,
        num_replicas: address.replicas,
        discard: DiscardPolicy::New,
        // For `batch` and for reading by sequence.
        allow_direct: true,
        ..stream::Config::default()
    }
}

/// Connects to the servers of an address. The client connects again by itself when it loses a server.
pub(crate) async fn client(address: &NatsAddress) -> Result<Client> {
    let mut options = async_nats::ConnectOptions::new()
        .name("pinion-cluster")
        .connection_timeout(NATS_CONNECT_WAIT)
        .request_timeout(Some(ANSWER_WAIT))
        // The default of a minute is longer than a lease.
        .ping_interval(PING_PAUSE)
        // The default waits up to four seconds, in which a lease can end.
        .reconnect_delay_callback(|attempts| {
            (RECONNECT_PAUSE * attempts.min(10) as u32).min(RECONNECT_PAUSE * 10)
        });
    options = match address.login.clone() {
        Some(NatsLogin::User(user, password)) => options.user_and_password(user, password),
        Some(NatsLogin::Token(token)) => options.token(token),
        None => options,
    };
    if let Some(path) = &address.credentials {
        let read = options.credentials_file(path).await;
        options = read.map_err(|e| engine("read the NATS credentials", &e))?;
    }
    options
        .connect(address.servers.as_slice())
        .await
        .map_err(|e| engine("connect to NATS", &e))
}

/// Waits for the answer to a request. None if the client connected again meanwhile: an answer that was on its way is lost then, and
/// waiting for it would cost the whole timeout.
pub(crate) async fn unless_reconnected<F: Future>(client: &Client, request: F) -> Option<F::Output> {
    let connects = || client.statistics().connects.load(Ordering::Relaxed);
    let before = connects();
    let reconnected = async {
        while connects() == before {
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
    };
    tokio::select! {
        biased;
        answer = request => Some(answer),
        () = reconnected => None,
    }
}

/// Sends a request that changes nothing when it is sent twice again while NATS does not answer it.
pub(crate) async fn repeat<T, F: Future<Output = Result<T>>>(
    client: &Client,
    request: impl Fn() -> F,
) -> Result<T> {
    let (begin, mut pause) = (Instant::now(), PUBLISH_PAUSE);
    loop {
        match unless_reconnected(client, request()).await {
            None => {}
            Some(Err(StoreError::Engine { .. })) if begin.elapsed() < NATS_REPEAT_WAIT => {}
            Some(answer) => return answer,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PUBLISH_PAUSE * 10);
    }
}

/// Opens a stream, and makes it if there is none. An existing one stays as the operator configured it.
pub(crate) async fn open_stream(context: &Context, config: stream::Config) -> Result<Stream<()>> {
    let name = config.name.clone();
    // Clients that may use the stream, but not make one, need no other permission.
    if let Err(error) = context.get_stream(&name).await {
        let is_missing = matches!(error.kind(), GetStreamErrorKind::JetStream(e) if e.error_code() == ErrorCode::STREAM_NOT_FOUND);
        if !is_missing {
            return Err(engine("open a stream", &error));
        }
        if let Err(error) = context.create_stream(config).await {
            // Another process may have made it meanwhile, with other settings.
            context
                .get_stream(&name)
                .await
                .map_err(|_| engine("create a stream", &error))?;
        }
    }
    context
        .get_stream_no_info(&name)
        .await
        .map_err(|e| engine("open a stream", &e))
}

pub(crate) fn engine(action: &'static str, error: &dyn fmt::Display) -> StoreError {
    StoreError::Engine {
        action,
        reason: error.to_string(),
    }
}
