//! What workers and gateways share in NATS: the streams of a prefix and their subjects. The decision record
//! 35-workers-and-gateways.md describes them. Session lines have a stream of their own (`NatsStore`).

mod events;
mod lease;
mod log;
mod records;

use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType, Stream};
use store::{SessionId, StoreError};

use crate::address::NatsAddress;
use crate::limits::{
    ANSWER_WAIT, EVENT_MESSAGES, NATS_WAIT, PUBLISH_PAUSE, PUBLISH_WAIT, QUEUED_COMMANDS, RECORD_AGE,
    REQUEST_TRIES,
};
use crate::nats::{client, engine, open_stream, unless_reconnected};

pub(crate) use events::{EventWriter, Frame, Frames, RunEdge, complete_seq_of, next_after, run_of, seq_of};
pub(crate) use lease::{Lease, LeaseState};
pub(crate) use log::{Fault, Follower, Log, Publication, Until};
pub(crate) use records::{Begun, RECORDED};

/// The RPC dialect of the lines that workers publish and gateways read.
pub(crate) const DIALECT: &str = "pi";

/// The streams of one prefix.
pub(crate) struct Bus {
    client: Client,
    prefix: String,
    /// `PREFIX.command.SESSION`: commands that have no durable response yet, in order.
    pub(crate) commands: Log,
    /// `PREFIX.event.SESSION`: events and responses.
    pub(crate) events: Log,
    /// `PREFIX.record.SESSION.KEY`: which commands were begun, and their responses.
    pub(crate) records: Log,
    /// `PREFIX.call.SESSION.KEY`: tool calls with side effects that were begun in an open run.
    pub(crate) calls: Log,
    /// `PREFIX.queue.SESSION`: messages that are queued in the session, with their images, and settings that protect its user.
    pub(crate) queues: Log,
    /// `PREFIX.wanted.SESSION`: sessions that a worker should have.
    pub(crate) wanted: Log,
    /// `PREFIX.lease.SESSION`: which worker has the session. Messages end with the lease.
    pub(crate) leases: Log,
    /// Time after which the server removes a lease that was not renewed.
    pub(crate) lease_time: Duration,
}

impl Bus {
    /// Connects and makes missing streams. A worker gives the lease time; an existing stream of leases keeps its own. A gateway
    /// gives none, and waits for the stream that the first worker makes.
    ///
    /// # Errors
    /// [`StoreError::Engine`] when no server can be reached, or JetStream refuses a stream.
    pub(crate) async fn connect(address: &NatsAddress, lease: Option<Duration>) -> Result<Self, StoreError> {
        let client = client(address).await?;
        let prefix = address.prefix.clone();
        let wait = lease.map_or(NATS_WAIT, |lease| {
            (lease / 4).clamp(Duration::from_millis(250), NATS_WAIT)
        });
        let context = ContextBuilder::new()
            .timeout(wait)
            .ack_timeout(wait)
            .build(client.clone());
        // The streams are opened before a lease depends on the answers.
        let patient = ContextBuilder::new().timeout(PUBLISH_WAIT).build(client.clone());
        let open = |config: Config| {
            let (client, context, patient) = (client.clone(), context.clone(), patient.clone());
            async move {
                let stream = open_existing(&context, &config.name).await?;
                until_connected(&client, || open_stream(&patient, config.clone())).await?;
                Ok::<_, StoreError>(Log::new(client, context, config.name, stream))
            }
        };
        let commands = open(Config {
            max_messages_per_subject: QUEUED_COMMANDS,
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            ..base(address, "command", "*")
        });
        let events = open(Config {
            max_messages_per_subject: EVENT_MESSAGES,
            // A run that is taken over, or a client that connects again, reads many messages.
            allow_direct: true,
            ..base(address, "event", "*")
        });
        let records = open(Config {
            max_age: RECORD_AGE,
            ..latest(address, "record", "*.*")
        });
        // Without an age: a run can stay lost for days before a worker takes it over.
        let calls = open(latest(address, "call", "*.*"));
        // Of their own, since the stream of events drops old ones while a message is still queued.
        let queues = open(latest(address, "queue", "*"));
        let wanted = open(latest(address, "wanted", "*"));
        let leases = async {
            match lease {
                Some(time) => open(leases(address, time)).await,
                None => {
                    let name = format!("{prefix}-leases");
                    let stream = until_connected(&client, || wait_for(&context, &name)).await?;
                    Ok(Log::new(client.clone(), context.clone(), name, stream))
                }
            }
        };
        let (commands, events, records, calls, queues, wanted, leases) =
            tokio::try_join!(commands, events, records, calls, queues, wanted, leases)?;
        let lease_time = until_connected(&client, || lease_time(&patient, &prefix)).await?;
        Ok(Self {
            client,
            prefix,
            commands,
            events,
            records,
            calls,
            queues,
            wanted,
            leases,
            lease_time,
        })
    }

    /// The subject of a session in one of the streams.
    pub(crate) fn subject(&self, kind: &str, session: &SessionId) -> String {
        format!("{}.{kind}.{}", self.prefix, session.encoded())
    }

    /// All names of one kind of subject.
    pub(crate) fn all(&self, kind: &str) -> String {
        format!("{}.{kind}.*", self.prefix)
    }

    /// True while a server is connected.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Asks for a worker, unless the session has one or has asked already: workers look for such sessions again and again.
    pub(crate) async fn want(&self, session: &SessionId) -> Result<(), Fault> {
        let unavailable = |e: StoreError| Fault::Unavailable(e.to_string());
        let (lease, wanted) = (self.subject("lease", session), self.subject("wanted", session));
        let is_leased = self.leases.last(&lease).await.map_err(unavailable)?.is_some();
        if is_leased || self.wanted.last(&wanted).await.map_err(unavailable)?.is_some() {
            return Ok(());
        }
        self.announce(session).await
    }

    /// Asks all workers to take the session now.
    pub(crate) async fn announce(&self, session: &SessionId) -> Result<(), Fault> {
        let publication = Publication::new(self.subject("wanted", session), "", None);
        let until = Until::Time(Instant::now() + PUBLISH_WAIT);
        self.wanted.publish(publication, &until).await.map(drop)
    }

    /// Follows the requests for workers from now on, as a hint.
    pub(crate) async fn follow_wanted(&self) -> Result<async_nats::Subscriber, StoreError> {
        self.client
            .subscribe(self.all("wanted"))
            .await
            .map_err(|e| engine("subscribe", &e))
    }
}

/// The lease time that the stream of leases has.
async fn lease_time(context: &Context, prefix: &str) -> Result<Duration, StoreError> {
    let stream = context
        .get_stream(format!("{prefix}-leases"))
        .await
        .map_err(|e| engine("read the lease time", &e))?;
    Ok(stream.cached_info().config.max_age)
}

/// Repeats a request that can be sent twice when its answer was lost: the connection broke, or a cluster of servers dropped the request while
/// it chose a leader or while another process made the same stream. A new process would else wait for the whole timeout.
async fn until_connected<T, F: Future<Output = Result<T, StoreError>>>(
    client: &Client,
    request: impl Fn() -> F,
) -> Result<T, StoreError> {
    for attempt in 1..REQUEST_TRIES {
        let answer = tokio::time::timeout(ANSWER_WAIT, unless_reconnected(client, request()));
        if let Ok(Some(Ok(answer))) = answer.await {
            return Ok(answer);
        }
        tokio::time::sleep(PUBLISH_PAUSE * attempt).await;
    }
    request().await
}

/// What all streams have in common.
fn base(address: &NatsAddress, name: &str, tail: &str) -> Config {
    let prefix = &address.prefix;
    Config {
        name: format!("{prefix}-{name}s"),
        subjects: vec![format!("{prefix}.{name}.{tail}")],
        storage: StorageType::File,
        num_replicas: address.replicas,
        ..Config::default()
    }
}

/// The stream of leases, each of which ends with this time.
fn leases(address: &NatsAddress, time: Duration) -> Config {
    Config {
        max_age: time,
        // The server does not accept a window above the age.
        duplicate_window: time.min(Duration::from_secs(120)),
        ..latest(address, "lease", "*")
    }
}

/// A stream of which only the last message of each subject counts.
fn latest(address: &NatsAddress, name: &str, tail: &str) -> Config {
    Config {
        max_messages_per_subject: 1,
        ..base(address, name, tail)
    }
}

/// Opens a stream that another process makes.
async fn wait_for(context: &Context, name: &str) -> Result<Stream<()>, StoreError> {
    let until = Instant::now() + PUBLISH_WAIT;
    loop {
        match context.get_stream(name).await {
            Ok(_) => break,
            Err(error) if Instant::now() >= until => {
                let reason = format!("{error}. No worker has been started with this prefix");
                return Err(engine("open the stream of leases", &reason));
            }
            Err(_) => tokio::time::sleep(PUBLISH_PAUSE * 4).await,
        }
    }
    open_existing(context, name).await
}

/// A stream that exists. Sends no request.
async fn open_existing(context: &Context, name: &str) -> Result<Stream<()>, StoreError> {
    context
        .get_stream_no_info(name)
        .await
        .map_err(|e| engine("open a stream", &e))
}
