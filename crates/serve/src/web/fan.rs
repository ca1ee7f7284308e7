//! What sessions say becomes what all clients of a web door are told: events into the log, answers to whoever asked, in one
//! order. A delta that comes after a pause is shown at once; those that follow soon are collected for a moment, so that
//! nobody is told of deltas more than a hundred times a second.
//!
//! The lines are those of the web dialect: `message_update` says what is new and shows the message without its content, as
//! its description has it (seed 001).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use host::{ClientId, Origin, Outgoing};
use serde_json::{Value, json};
use wire::command::{NoParams, ReplayParams};
use wire::connection::{HelloParams, Protocol, Refused, Replayed, Snapshot, Welcome};
use wire::table::ConnectionHandler;
use wire::ui::UiMethod;
use wire::{ConnectionCommand, Dialect, Event, Message, Response, StopReason, StreamEvent, Usage};

use super::clients::Clients;
use super::log::{Delta, Entry, Text};
use crate::connection::{Agreement, NO_SNAPSHOT, protocol};
use crate::encode::Encoder;
use crate::encode::json::escape;
use crate::lanes::{Lanes, Said};
use crate::limits::WEB_PICTURE;
use crate::manner::{Spoken, WantedUi};

/// The `extensionPath` of errors that no extension made but the model's provider.
const MODEL: &str = "<model>";

/// A session that says something; none is the first.
type Handle = Option<Arc<str>>;

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Fan {
    clients: Clients,
    version: String,
    voices: HashMap<Handle, Voice>,
    /// When deltas were shown last.
    shown: Option<Instant>,
    /// When those are due that nobody can read yet.
    due: Option<Instant>,
}

/// What must be remembered of a session from one line to the next.
#[derive(Debug)]
struct Voice {
    encoder: Encoder,
    /// When the answer that streams in began, in milliseconds since 1970.
    began: i64,
}

impl Voice {
    fn new() -> Self {
        let spoken = Spoken::new(Dialect::Web);
        spoken.choose_delta(Some(true));
        spoken.choose_ui(WantedUi {
            titles: Some(true),
            cancels: Some(true),
        });
        Self {
            encoder: Encoder::speaking(spoken),
            began: 0,
        }
    }
}

impl Fan {
    /// For these clients.
    pub(crate) fn new(clients: Clients, version: &str) -> Self {
        Self {
            clients,
            version: version.to_owned(),
            voices: HashMap::from([(None, Voice::new())]),
            shown: None,
            due: None,
        }
    }

    /// Runs until every session has ended.
    pub(crate) async fn run(mut self, mut queue: Lanes) {
        loop {
            let due = self.due;
            let timer = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = timer => self.publish(),
                said = queue.next() => match said {
                    Some(said) => self.take(said),
                    None => break,
                },
            }
        }
        self.publish();
    }

    fn publish(&mut self) {
        if self.due.take().is_some() {
            self.shown = Some(Instant::now());
        }
        self.clients.publish();
    }

    /// Shows a delta that was just taken, or says when it will be.
    fn show(&mut self) {
        let now = Instant::now();
        let earliest = self.shown.map_or(now, |shown| shown + WEB_PICTURE);
        self.due.get_or_insert(earliest);
        if earliest <= now {
            self.publish();
        }
    }

    fn take(&mut self, said: Said) {
        match said {
            Said::Joined(session) => drop(self.voices.insert(Some(session), Voice::new())),
            Said::Left(session) => drop(self.voices.remove(&Some(session))),
            Said::Item(session, Outgoing::Event(event)) => self.event(&session, &event),
            Said::Item(session, Outgoing::Response(client, response)) => {
                self.respond(&session, client, &response);
            }
            Said::Item(session, Outgoing::Connection(origin, command, snapshot)) => {
                self.answer(&session, origin, command, snapshot);
            }
            Said::Item(_, Outgoing::Flush(done)) => {
                self.publish();
                // Who asked may have given up.
                let _ = done.send(());
            }
            Said::Item(..) => {}
        }
    }

    fn event(&mut self, session: &Handle, event: &Event) {
        let Some(voice) = self.voices.get_mut(session) else {
            return;
        };
        if let Event::MessageStart { message } = event
            && let Message::Assistant(message) = message.as_ref()
        {
            voice.began = message.timestamp;
        }
        if let Event::MessageUpdate {
            usage,
            assistant_message_event,
        } = event
        {
            let text = update(voice.began, assistant_message_event, usage);
            let waits = matches!(text, Text::Delta(_));
            self.push(session, event.name(), text);
            if waits {
                self.show();
            } else {
                self.publish();
            }
            return;
        }
        let mut out = Vec::new();
        voice.encoder.event(event, Instant::now(), &mut out);
        let lines = lines(out);
        let first = lines
            .first()
            .filter(|_| matches!(event, Event::ExtensionUiRequest { .. }));
        let frame = first.map(|line| whole(line.clone(), session));
        for line in lines {
            self.push(session, event.name(), Text::Line(line));
        }
        if let Some(failed) = failed(event) {
            self.event(session, &failed);
        }
        if let Event::ExtensionUiRequest { request } = event {
            let is_question = matches!(
                request.method,
                UiMethod::Select | UiMethod::Confirm | UiMethod::Input | UiMethod::Editor
            );
            if let (true, Some(frame)) = (is_question, frame) {
                self.clients.asked(&request.id, frame.into());
            } else if let (UiMethod::Cancel, Some(target)) = (request.method, &request.target_id) {
                self.clients.settled(target);
            }
        }
        self.publish();
    }

    fn push(&self, session: &Handle, name: &'static str, text: Text) {
        self.clients.push(Entry {
            name,
            session: session.clone(),
            text,
        });
    }

    fn respond(&mut self, session: &Handle, client: ClientId, response: &Response) {
        self.publish();
        let mut out = Vec::new();
        if let Some(voice) = self.voices.get_mut(session) {
            voice.encoder.response(response, Instant::now(), &mut out);
        }
        for line in lines(out) {
            self.clients.tell(client, whole(line, session).into());
        }
    }

    /// Carries out a command of the connection and answers it. `snapshot` is the session at this place.
    fn answer(
        &mut self,
        session: &Handle,
        origin: Origin,
        command: ConnectionCommand,
        snapshot: Option<Box<Snapshot>>,
    ) {
        self.publish();
        let client = origin.client;
        let Some(agreement) = self.clients.agreement(client) else {
            return;
        };
        let mut answering = Answering {
            clients: &mut self.clients,
            version: &self.version,
            client,
            agreement,
            snapshot,
            send_after: None,
        };
        let outcome = command.dispatch(&mut answering);
        let send_after = answering.send_after;
        let response = Response {
            id: origin.id,
            command: Some(origin.command.into()),
            outcome,
        };
        self.respond(session, client, &response);
        if let Some(number) = send_after {
            self.clients.send_back(client, number);
        }
    }
}

/// A command of one client's connection that is being carried out.
struct Answering<'a> {
    clients: &'a mut Clients,
    version: &'a str,
    client: ClientId,
    agreement: Agreement,
    /// The session at this place.
    snapshot: Option<Box<Snapshot>>,
    /// The number after which events are sent again, behind the response.
    send_after: Option<u64>,
}

impl ConnectionHandler for Answering<'_> {
    fn get_protocol(&mut self, _: NoParams) -> Result<Protocol, String> {
        Ok(protocol(self.version, &self.agreement))
    }

    fn hello(&mut self, params: Box<HelloParams>) -> Result<Welcome, String> {
        let (wishes, mut refused) = fitting(&params);
        let (new, more) = self.agreement.changed(&wishes);
        refused.extend(more);
        let mut welcome = new.welcome(self.version, self.clients.last(), refused);
        welcome.instance_id = Some(self.clients.instance().to_owned());
        self.clients.agree(self.client, new);
        Ok(welcome)
    }

    fn replay(&mut self, params: ReplayParams) -> Result<Replayed, String> {
        let last_seq = self.clients.last();
        let is_ours = params
            .instance
            .as_ref()
            .is_none_or(|id| *id == self.clients.instance());
        let after = params.after.filter(|_| is_ours);
        let missed = after.and_then(|after| self.clients.count_after(after));
        self.send_after = missed.and(params.after);
        let snapshot = match (missed, self.snapshot.take()) {
            (Some(_), _) => None,
            (None, Some(snapshot)) => Some(*snapshot),
            (None, None) => return Err(NO_SNAPSHOT.to_owned()),
        };
        Ok(Replayed {
            events: missed.unwrap_or_default(),
            last_seq,
            instance_id: Some(self.clients.instance().to_owned()),
            snapshot,
        })
    }
}

/// The agreement of a client that just came: numbers and linear updates are there unasked.
pub(crate) fn first_agreement() -> Agreement {
    let spoken = Spoken::new(Dialect::Web);
    spoken.choose_delta(Some(true));
    let mut agreement = Agreement::new(spoken.manner());
    agreement.sequence = true;
    agreement
}

/// The wishes that can be granted to one of many clients, and those that cannot.
fn fitting(wishes: &HelloParams) -> (HelloParams, Vec<Refused>) {
    let mut refused = Vec::new();
    let mut refuse = |option: &'static str, wish: &mut Option<Value>, granted: &Value, reason: &str| {
        if let Some(value) = wish.take().filter(|value| value != granted) {
            refused.push(Refused {
                option,
                value,
                reason: reason.to_owned(),
            });
        }
    };
    let mut wishes = wishes.clone();
    let all = "All clients of this door get the same lines";
    refuse("dialect", &mut wishes.dialect, &json!("web"), all);
    refuse("deltas", &mut wishes.deltas, &json!(true), all);
    refuse("sequence", &mut wishes.sequence, &json!(true), all);
    let pings = "The connection has a sign of life of its own";
    refuse("heartbeat", &mut wishes.heartbeat, &Value::Null, pings);
    (wishes, refused)
}

/// A `message_update` without its closing brace.
fn update(began: i64, event: &StreamEvent, usage: &Usage) -> Text {
    let message = json!({"role": "assistant", "content": [], "timestamp": began});
    let head = format!("{{\"type\":\"message_update\",\"message\":{message},\"assistantMessageEvent\":");
    let usage = serde_json::to_string(usage).unwrap_or_else(|_| "{}".to_owned());
    let (kind, index, delta) = match event {
        StreamEvent::TextDelta { content_index, delta } => ("text_delta", content_index, delta),
        StreamEvent::ThinkingDelta { content_index, delta } => ("thinking_delta", content_index, delta),
        StreamEvent::ToolcallDelta { content_index, delta } => ("toolcall_delta", content_index, delta),
        other => {
            let event = serde_json::to_string(other).unwrap_or_else(|_| "{}".to_owned());
            return Text::Line(format!("{head}{event},\"usage\":{usage}"));
        }
    };
    let mut text = Vec::new();
    escape(&mut text, delta);
    Text::Delta(Delta {
        before: format!("{head}{{\"type\":\"{kind}\",\"contentIndex\":{index},\"delta\":\""),
        text: String::from_utf8(text).unwrap_or_default(),
        after: format!("\"}},\"usage\":{usage}"),
    })
}

/// What says that a run has failed for good: pages of the family show neither an answer's error nor retries, but every
/// `extension_error` (web.md R3; seed 001, "extension_error").
fn failed(event: &Event) -> Option<Event> {
    let Event::AgentEnd {
        messages,
        will_retry: false,
        ..
    } = event
    else {
        return None;
    };
    let answer = messages.last()?.as_assistant()?;
    let error = answer.error_message.clone();
    (answer.stop_reason == StopReason::Error).then(|| Event::ExtensionError {
        extension_path: MODEL.to_owned(),
        event: event.name().to_owned(),
        error: error.unwrap_or_else(|| "The provider failed".to_owned()),
    })
}

/// The objects of an encoder's lines, without their closing braces. A single line, which is nearly always all, is not copied:
/// it can be as long as an answer.
fn lines(mut out: Vec<u8>) -> Vec<String> {
    if memchr::memchr(b'\n', &out).is_some_and(|end| end + 1 == out.len()) && out.ends_with(b"}\n") {
        out.truncate(out.len() - 2);
        return vec![text(out)];
    }
    let whole = out.split(|byte| *byte == b'\n');
    whole
        .filter_map(|line| line.strip_suffix(b"}"))
        .map(|line| text(line.to_vec()))
        .collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A whole object that has no number.
fn whole(mut line: String, session: &Handle) -> String {
    if let Some(session) = session {
        line.push_str(",\"session\":");
        line.push_str(&Value::from(session.as_ref()).to_string());
    }
    line.push('}');
    line
}
