//! Broadcasts the output of sessions to all clients of a web server: events go to the log, responses to the client of the
//! command, in one order. A delta after a pause is published at once; the following ones are collected, so that clients get
//! deltas at most a hundred times a second.
//!
//! The lines are those of the web dialect: `message_update` contains the new text and the message without its content, as
//! its description requires (web.md 1.6).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use serve::connection::{ConnectionRules, FixedOption, FollowUp, NegotiatedOptions, UnknownNumber};
use serve::encode::escape;
use serve::queues::{QueueItem, SessionQueues};
use serve::{Encoder, Spoken, WantedUi};
use session::{ClientId, Origin, Outgoing};
use wire::connection::Snapshot;
use wire::ui::UiMethod;
use wire::{ConnectionCommand, Dialect, Event, Message, Response, StopReason, StreamEvent, Usage};

use crate::clients::Clients;
use crate::frame_text::{FrameText, OpenObject};
use crate::limits::WEB_PICTURE;
use crate::log::{Delta, Entry, Subject, Text};

/// The `extensionPath` of errors that no extension made but the model's provider.
pub(crate) const MODEL: &str = "<model>";

/// Why lines have one form: each is encoded once for all clients.
const ONE_FORM: &str = "All clients of this door get the same lines";

/// Options that one of many clients cannot choose.
const FIXED: &[FixedOption] = &[
    FixedOption {
        name: "dialect",
        wish: |wishes| &mut wishes.dialect,
        value: "\"web\"",
        reason: ONE_FORM,
    },
    FixedOption {
        name: "deltas",
        wish: |wishes| &mut wishes.deltas,
        value: "true",
        reason: ONE_FORM,
    },
    FixedOption {
        name: "sequence",
        wish: |wishes| &mut wishes.sequence,
        value: "true",
        reason: ONE_FORM,
    },
    // WebSocket pings and the comments of an event stream do what a heartbeat does.
    FixedOption {
        name: "heartbeat",
        wish: |wishes| &mut wishes.heartbeat,
        value: "null",
        reason: "The connection has a sign of life of its own",
    },
];

/// A session that says something; none is the first.
type Handle = Option<Arc<str>>;

/// Converts the output of all sessions to log entries and responses.
#[derive(Debug)]
pub(crate) struct Broadcaster {
    clients: Clients,
    rules: ConnectionRules,
    streams: HashMap<Handle, SessionStream>,
    /// When deltas were shown last.
    shown: Option<Instant>,
    /// When the collected, unpublished deltas are due.
    due: Option<Instant>,
}

/// What must be remembered of a session from one line to the next.
#[derive(Debug)]
struct SessionStream {
    encoder: Encoder,
    /// When the answer that streams in began, in milliseconds since 1970.
    began: i64,
}

impl SessionStream {
    fn new() -> Self {
        let spoken = Spoken::new(Dialect::Web);
        spoken.choose_delta(Some(true));
        spoken.choose_ui(WantedUi {
            titles: Some(true),
            cancels: Some(true),
        });
        let mut encoder = Encoder::speaking(spoken);
        encoder.share_long_text();
        Self { encoder, began: 0 }
    }
}

impl Broadcaster {
    /// For these clients.
    pub(crate) fn new(clients: Clients, version: &str) -> Self {
        Self {
            rules: rules(&clients, version),
            clients,
            streams: HashMap::from([(None, SessionStream::new())]),
            shown: None,
            due: None,
        }
    }

    /// Runs until every session has ended.
    pub(crate) async fn run(mut self, mut queue: SessionQueues) {
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

    fn take(&mut self, said: QueueItem) {
        match said {
            QueueItem::Joined(session) => drop(self.streams.insert(Some(session), SessionStream::new())),
            QueueItem::Left(session) => {
                self.clients.forget_dialogs(&session);
                self.streams.remove(&Some(session));
            }
            QueueItem::Item(session, Outgoing::Event(event)) => self.event(&session, &event),
            QueueItem::Item(session, Outgoing::Response(client, response)) => {
                self.respond(&session, client, &response);
            }
            QueueItem::Item(session, Outgoing::Connection(origin, command, snapshot)) => {
                self.answer(&session, origin, command, snapshot);
            }
            QueueItem::Item(_, Outgoing::Flush(done)) => {
                self.publish();
                // The receiver may be gone; then no caller waits.
                let _ = done.send(());
            }
            // Pending wake-ups have lines in the dialect of oh-my-pi only, and changed options have none.
            QueueItem::Item(..) => {}
        }
    }

    fn event(&mut self, session: &Handle, event: &Event) {
        let Some(stream) = self.streams.get_mut(session) else {
            return;
        };
        if let Event::MessageStart { message } = event
            && let Message::Assistant(message) = message.as_ref()
        {
            stream.began = message.timestamp;
        }
        if let Event::MessageUpdate {
            usage,
            assistant_message_event,
        } = event
        {
            let text = update(stream, assistant_message_event, usage);
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
        stream.encoder.event(event, Instant::now(), &mut out);
        let lines = lines(&mut stream.encoder, out);
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
        if let Event::ExtensionUiRequest { request, .. } = event {
            let is_question = matches!(
                request.method,
                UiMethod::Select | UiMethod::Confirm | UiMethod::Input | UiMethod::Editor
            );
            if let (true, Some(frame)) = (is_question, frame) {
                self.clients.asked(&request.id, session.clone(), frame);
            } else if let (UiMethod::Cancel, Some(target)) = (request.method, &request.target_id) {
                self.clients.settled(target);
            }
        }
        self.publish();
    }

    fn push(&self, session: &Handle, name: &'static str, text: Text) {
        let session = session.clone();
        self.clients.push(Entry {
            subject: Subject { name, session },
            text,
        });
    }

    fn respond(&mut self, session: &Handle, client: ClientId, response: &Response) {
        self.publish();
        let Some(stream) = self.streams.get_mut(session) else {
            return;
        };
        let mut out = Vec::new();
        stream.encoder.response(response, Instant::now(), &mut out);
        for line in lines(&mut stream.encoder, out) {
            self.clients.tell(client, whole(line, session));
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
        let Some(options) = self.clients.options(client) else {
            return;
        };
        let (outcome, follow_up) = self.rules.answer(command, &options, &self.clients, snapshot);
        let response = Response {
            id: origin.id,
            command: Some(origin.command.into()),
            outcome,
        };
        self.respond(session, client, &response);
        match follow_up {
            FollowUp::None => {}
            FollowUp::Use(negotiated) => self.clients.agree(client, negotiated.options),
            FollowUp::SendAgain(place) => self.clients.send_back(client, place),
        }
    }
}

/// What connections to a web server promise.
pub(crate) fn rules(clients: &Clients, version: &str) -> ConnectionRules {
    ConnectionRules {
        version: version.to_owned(),
        instance: Some(Arc::clone(clients.instance())),
        fixed: FIXED,
        unknown_number: UnknownNumber::Snapshot,
    }
}

/// The options of a new client: events have numbers, and updates are linear.
pub(crate) fn first_options() -> NegotiatedOptions {
    let spoken = Spoken::new(Dialect::Web);
    spoken.choose_delta(Some(true));
    NegotiatedOptions::new(spoken.manner()).with_numbers()
}

/// A `message_update` without its closing brace.
fn update(stream: &mut SessionStream, event: &StreamEvent, usage: &Usage) -> Text {
    let message = json!({"role": "assistant", "content": [], "timestamp": stream.began});
    let head = format!("{{\"type\":\"message_update\",\"message\":{message},\"assistantMessageEvent\":");
    let usage = serde_json::to_string(usage).unwrap_or_else(|_| "{}".to_owned());
    let (kind, index, delta) = match event {
        StreamEvent::TextDelta { content_index, delta } => ("text_delta", content_index, delta),
        StreamEvent::ThinkingDelta { content_index, delta } => ("thinking_delta", content_index, delta),
        StreamEvent::ToolcallDelta { content_index, delta } => ("toolcall_delta", content_index, delta),
        other => {
            let mut out = head.into_bytes();
            stream.encoder.step(other, &mut out);
            out.extend_from_slice(format!(",\"usage\":{usage}}}\n").as_bytes());
            let line = lines(&mut stream.encoder, out).pop();
            return Text::Line(line.unwrap_or_default());
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
/// `extension_error` (web.md 1.8, R3).
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

/// The objects of an encoder's lines, without their closing braces.
fn lines(encoder: &mut Encoder, out: Vec<u8>) -> Vec<OpenObject> {
    let lines = encoder.take_lines(out).into_iter();
    lines.filter_map(OpenObject::of_line).collect()
}

/// A whole object that has no number.
fn whole(mut line: OpenObject, session: &Handle) -> FrameText {
    line.add_session(session.as_deref());
    line.close()
}

#[cfg(test)]
mod tests {
    use wire::ui::UiRequest;

    use super::*;
    use crate::clients::Resume;
    use crate::memory::Memory;

    #[test]
    fn closed_session_leaves_no_open_dialogs() {
        let clients = Clients::new(Memory::default());
        let mut broadcaster = Broadcaster::new(clients.clone(), "1");
        let sessions: [Arc<str>; 2] = ["s1".into(), "s2".into()];
        for session in &sessions {
            broadcaster.take(QueueItem::Joined(Arc::clone(session)));
            let request = Box::new(UiRequest::new(format!("asked by {session}"), UiMethod::Confirm));
            let event = Outgoing::Event(Arc::new(Event::ExtensionUiRequest { request }));
            broadcaster.take(QueueItem::Item(Some(Arc::clone(session)), event));
        }
        let [closed, _] = sessions;
        broadcaster.take(QueueItem::Left(closed));
        let client = clients.join(&Resume::default()).unwrap();
        let mut frames = Vec::new();
        client.take(&mut frames).unwrap();
        let texts: Vec<String> = frames.iter().map(FrameText::text).collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts[0].contains("asked by s2"));
    }
}
