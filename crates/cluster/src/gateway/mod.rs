//! The gateway of one client: JSON lines on stdin and stdout, the session at a worker. It has no state that another gateway would
//! need: a client that connects again continues with `replay`. What the lines of the connection mean lives in `connection`.

mod connection;
mod many;
mod stdio;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use async_nats::jetstream::message::StreamMessage;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use store::SessionId;
use uuid::Uuid;

use crate::address::NatsAddress;
use crate::answer::Answer;
use crate::bus::{
    Bus, Fault, Follower, Frame, Frames, Publication, Until, complete_seq_of, next_after, run_of, seq_of,
};
use crate::limits::{
    COMMAND_BYTES, GATEWAY_COMMANDS, GATEWAY_END_WAIT, KEY_BYTES, PUBLISH_WAIT, REPLAY_BYTES, SEARCH_STEP,
};
use crate::worker::command::{headers, is_frame};
use connection::{Connection, Local};
pub use many::attach_many;
pub use stdio::{Input, Output};

/// Where a gateway attaches.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// The NATS servers and the prefix.
    pub address: NatsAddress,
    /// The session. It begins when a worker first takes it.
    pub session: SessionId,
    /// Name of the client, if its command ids are never used twice. Then a command that it sends again through another gateway
    /// runs once.
    pub client: Option<String>,
}

/// Serves one client until its input ends.
///
/// # Errors
/// When NATS cannot be reached at the start, or the output fails.
pub async fn attach(options: GatewayOptions, input: Input, output: Output) -> Result<()> {
    let bus = Arc::new(Bus::connect(&options.address, None).await?);
    serve(bus, options, input, output).await
}

/// Serves one client of a session until its input ends.
async fn serve(bus: Arc<Bus>, options: GatewayOptions, mut input: Input, output: Output) -> Result<()> {
    let mut gateway = Gateway::open(bus, options, output).await?;
    let mut wanted = tokio::time::interval(Duration::from_secs(1));
    wanted.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut end = None;
    loop {
        let has_room = end.is_none() && gateway.pending.len() < GATEWAY_COMMANDS;
        if end.is_some_and(|end| gateway.pending.is_empty() || Instant::now() >= end) {
            return gateway.output.finish().await;
        }
        tokio::select! {
            line = input.next(), if has_room => match line {
                Some(line) => gateway.line(&line).await?,
                None => end = Some(Instant::now() + GATEWAY_END_WAIT),
            },
            message = gateway.events.next() => {
                // After `detach` another gateway of this process may have the session, and the client would get each event twice.
                let is_detached = end.is_some() && gateway.output.is_shared();
                for frame in gateway.frames.take(&message) {
                    if !is_detached || matches!(frame, Frame::Response { .. }) {
                        gateway.show(frame, &message).await?;
                    }
                }
            }
            // The worker may have been lost, or have closed the session as idle.
            _ = wanted.tick() => if !gateway.pending.is_empty() {
                drop(gateway.bus.want(&gateway.session).await);
            },
        }
    }
}

struct Gateway {
    bus: Arc<Bus>,
    session: SessionId,
    /// Name of this gateway in commands and responses.
    name: String,
    client: Option<String>,
    output: Output,
    connection: Connection,
    events: Follower,
    frames: Frames,
    /// The answer that streams in, for a client without `deltas`. None between answers, and while it is not known.
    answer: Option<Answer>,
    /// Number of the last event that the client could see.
    seq: u64,
    /// Keys of the commands that wait for a response.
    pending: HashSet<String>,
}

impl Gateway {
    async fn open(bus: Arc<Bus>, options: GatewayOptions, output: Output) -> Result<Self> {
        let subject = bus.subject("event", &options.session);
        let last = bus.events.last(&subject).await?;
        let next = last.as_ref().map_or(1, next_after);
        let events = bus.events.follow(subject, next).await?;
        bus.want(&options.session).await?;
        let mut gateway = Self {
            bus,
            session: options.session,
            name: Uuid::new_v4().simple().to_string(),
            client: options.client,
            output,
            connection: Connection::default(),
            events,
            frames: Frames::default(),
            answer: None,
            seq: last.as_ref().map_or(0, complete_seq_of),
            pending: HashSet::new(),
        };
        let ready = connection::ready();
        gateway.output.line(ready).await?;
        Ok(gateway)
    }

    /// Handles a line of the client.
    async fn line(&mut self, text: &[u8]) -> Result<()> {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let command = match serde_json::from_slice(text) {
            Ok(Value::Object(command)) => command,
            Ok(_) => {
                return self
                    .refuse(None, "parse", "Failed to parse command: not an object")
                    .await;
            }
            Err(error) => {
                let reason = format!("Failed to parse command: {error}");
                return self.refuse(None, "parse", &reason).await;
            }
        };
        match self.connection.handle(&command, self.seq, self.session.as_str()) {
            Some(Local::Answer(data)) => {
                // The client may want updates with the answer so far from now on.
                self.answer = None;
                self.respond(&command, data).await
            }
            Some(Local::Replay(after)) => self.replay(command, after).await,
            None => self.send(command).await,
        }
    }

    /// Queues a command for the worker.
    async fn send(&mut self, mut command: Map<String, Value>) -> Result<()> {
        // The address names the session.
        command.shift_remove("session");
        let kind = command.get("type").and_then(Value::as_str).unwrap_or_default();
        let expects_response = !is_frame(kind);
        let key = key(self.client.as_deref(), command.get("id"));
        let text = Value::Object(command.clone()).to_string();
        if text.len() > COMMAND_BYTES {
            let reason = format!(
                "The command has {} bytes; a gateway takes at most {COMMAND_BYTES}",
                text.len()
            );
            return self.refuse(command.get("id"), kind, &reason).await;
        }
        let mut publication = Publication::new(self.bus.subject("command", &self.session), text, None);
        publication.headers = headers(&self.name, &key);
        let until = Until::Time(Instant::now() + PUBLISH_WAIT);
        if let Err(fault) = self.bus.commands.publish(publication, &until).await {
            return self.refuse(command.get("id"), kind, &unconfirmed(&fault)).await;
        }
        if expects_response {
            self.pending.insert(key);
        }
        // Without a server the next look asks again.
        drop(self.bus.want(&self.session).await);
        Ok(())
    }

    async fn show(&mut self, frame: Frame, message: &StreamMessage) -> Result<()> {
        match frame {
            Frame::Event { seq, line, .. } => {
                self.seq = seq;
                if self.answer.is_none() && self.connection.expands(&line) {
                    self.answer = Some(self.answer_before(seq, message).await?);
                }
                if let Some(line) = self.connection.event(line, &mut self.answer) {
                    self.output.line(line).await?;
                }
            }
            Frame::Response { gateway, key, line } => {
                // A response that a second worker published again has no recipient.
                if gateway == self.name && self.pending.remove(&key) {
                    self.output.line(line).await?;
                }
            }
        }
        Ok(())
    }

    /// Sends stored events again; without them, lets the worker answer with a snapshot.
    async fn replay(&mut self, mut command: Map<String, Value>, after: u64) -> Result<()> {
        let lines = match self.stored(after).await {
            Ok(Some(lines)) => lines,
            Ok(None) => {
                command.shift_remove("after");
                command.shift_remove("instance");
                return self.send(command).await;
            }
            // The client can ask again once NATS answers.
            Err(error) => {
                let reason = format!("The events cannot be read: {error:#}");
                return self.refuse(command.get("id"), "replay", &reason).await;
            }
        };
        let data = json!({"events": lines.len(), "lastSeq": self.seq, "instanceId": self.session.as_str()});
        self.respond(&command, data).await?;
        for line in lines {
            self.output.line(line).await?;
        }
        Ok(())
    }

    /// The events after a number, as far as the client could see them; none if the stream does not have them all, or if they are too large.
    async fn stored(&mut self, after: u64) -> Result<Option<Vec<String>>> {
        if after >= self.seq {
            return Ok((after == self.seq).then(Vec::new));
        }
        let subject = self.bus.subject("event", &self.session);
        let mut next = self.first_after(&subject, after).await?;
        let (mut expected, mut lines, mut frames) = (after + 1, Vec::new(), Frames::default());
        let (mut answer, mut bytes) = (None, 0);
        while expected <= self.seq {
            let messages = self.bus.events.several(&subject, next).await?;
            if messages.is_empty() {
                return Ok(None);
            }
            for message in messages {
                next = message.sequence + 1;
                for frame in frames.take(&message) {
                    let Frame::Event { seq, line, .. } = frame else {
                        continue;
                    };
                    if seq < expected || expected > self.seq {
                        continue;
                    }
                    if seq > expected {
                        return Ok(None);
                    }
                    expected += 1;
                    if answer.is_none() && self.connection.expands(&line) {
                        answer = Some(self.answer_before(seq, &message).await?);
                    }
                    let line = self.connection.event(line, &mut answer);
                    bytes += line.as_ref().map_or(0, String::len);
                    if bytes > REPLAY_BYTES {
                        return Ok(None);
                    }
                    lines.extend(line);
                }
            }
        }
        Ok(Some(lines))
    }

    /// The answer before an update in a message of the stream: reads the events of the run so far.
    async fn answer_before(&self, seq: u64, message: &StreamMessage) -> Result<Answer> {
        let subject = self.bus.subject("event", &self.session);
        let (mut answer, mut frames) = (None, Frames::default());
        let mut next = run_of(message).unwrap_or(message.sequence);
        while next <= message.sequence {
            let messages = self.bus.events.several(&subject, next).await?;
            if messages.is_empty() {
                break;
            }
            for earlier in messages {
                next = earlier.sequence + 1;
                for frame in frames.take(&earlier) {
                    if let Frame::Event { seq: other, line, .. } = frame
                        && other < seq
                        && let Ok(Value::Object(event)) = serde_json::from_str(&line)
                    {
                        Answer::follow(&mut answer, &event);
                    }
                }
            }
        }
        Ok(answer.unwrap_or_default())
    }

    /// Where reading has to begin to find the event after a number. The stream has an index of subjects, but none of numbers.
    async fn first_after(&self, subject: &str, after: u64) -> Result<u64> {
        let last = self
            .bus
            .events
            .last(subject)
            .await?
            .map_or(0, |last| last.sequence);
        let (mut low, mut high) = (1, last);
        let mut step = SEARCH_STEP;
        while step < last {
            let at = last - step;
            match self.bus.events.next(subject, at).await? {
                Some(message) if seq_of(&message) <= after => {
                    low = message.sequence + 1;
                    break;
                }
                Some(_) => high = at,
                None => break,
            }
            step = step.saturating_mul(8);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match self.bus.events.next(subject, middle).await? {
                Some(message) if seq_of(&message) <= after => low = message.sequence + 1,
                Some(_) => high = middle,
                None => break,
            }
        }
        Ok(low)
    }

    async fn respond(&mut self, command: &Map<String, Value>, data: Value) -> Result<()> {
        let mut response = Map::new();
        if let Some(id) = command.get("id") {
            response.insert("id".to_owned(), id.clone());
        }
        response.insert("type".to_owned(), json!("response"));
        response.insert(
            "command".to_owned(),
            command.get("type").cloned().unwrap_or_default(),
        );
        response.insert("success".to_owned(), json!(true));
        response.insert("data".to_owned(), data);
        self.output.line(Value::Object(response).to_string()).await
    }

    async fn refuse(&mut self, id: Option<&Value>, kind: &str, reason: &str) -> Result<()> {
        let mut response = Map::new();
        if let Some(id) = id {
            response.insert("id".to_owned(), id.clone());
        }
        response.insert("type".to_owned(), json!("response"));
        response.insert("command".to_owned(), json!(kind));
        response.insert("success".to_owned(), json!(false));
        response.insert("error".to_owned(), json!(reason));
        self.output
            .line(Value::Object(response).to_string())
            .await
            .context("stdout is closed")
    }
}

/// The idempotency key of a command: the same for the same client and id. Without both, no other command gets it.
fn key(client: Option<&str>, id: Option<&Value>) -> String {
    let Some((client, id)) = client.zip(id) else {
        return Uuid::new_v4().simple().to_string();
    };
    let name = format!("{client} {id}");
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    if name.len() <= KEY_BYTES {
        hex(name.as_bytes())
    } else {
        hex(&Sha256::digest(&name))
    }
}

/// The error of a command that NATS did not confirm.
fn unconfirmed(fault: &Fault) -> String {
    match fault {
        Fault::Fenced | Fault::TooLarge(_) => format!("The command was not queued: {fault}"),
        Fault::Unavailable(_) => {
            format!(
                "The command may have been queued; read the state of the session before you send it again: {fault}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, key, unconfirmed};
    use serde_json::json;

    #[test]
    fn long_id_has_same_key_each_time() {
        let (short, long) = (json!(7), json!("x".repeat(200)));
        assert_eq!(key(Some("web"), Some(&short)), "7765622037");
        let first = key(Some("web"), Some(&long));
        assert_eq!(first.len(), 64);
        // The worker accepts letters and digits only.
        assert!(first.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(key(Some("web"), Some(&long)), first);
        assert_ne!(key(Some("other"), Some(&long)), first);
        // Clients without a name use the same ids again.
        assert_ne!(key(None, Some(&short)), key(None, Some(&short)));
    }

    #[test]
    fn unconfirmed_command_may_have_been_queued() {
        let error = unconfirmed(&Fault::Unavailable("timed out".to_owned()));
        assert!(error.starts_with("The command may have been queued"), "{error}");
        let error = unconfirmed(&Fault::TooLarge("1048577 bytes".to_owned()));
        assert!(error.starts_with("The command was not queued"), "{error}");
    }
}
