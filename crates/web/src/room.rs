//! One session of a worker in a web gateway: the clients that this gateway has of it, and the lines to and from the session. The log
//! has the numbers that the worker gave, so that a client continues by number at any gateway.
//!
//! Not here: which sessions there are, and their addresses (`rooms`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use serde_json::{Map, Value, json};
use serve::connection::{ConnectionRules, EventNumbers as _, FollowUp};
use serve::encode::escape;
use serve::{Inbound, Request, line_text};
use session::ClientId;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;
use wire::{Command, ConnectionCommand, EVENT_NAMES, Response};

use crate::broadcaster::{MODEL, rules};
use crate::clients::Clients;
use crate::frame_text::FrameText;
use crate::limits::WEB_GATEWAY_EVENTS;
use crate::log::{Delta, Entry, Place, Subject, Text};

/// A JSON object.
type Object = Map<String, Value>;

/// Ends of ids of commands of the room itself; those of clients are numbers.
const HELLO: &str = "hello";
/// The events before the room was opened.
const EARLIER: &str = "earlier";
/// The open dialogs.
const DIALOGS: &str = "dialogs";

/// Whether clients can join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoomState {
    /// The log does not have the earlier events yet.
    Opening,
    /// Clients can join.
    Open,
    /// The session cannot be reached, or the room is gone.
    Closed,
}

/// A session of a worker.
pub(crate) struct Room {
    session: Arc<str>,
    pub(crate) clients: Clients,
    rules: ConnectionRules,
    /// Ids of commands begin with it: responses to a room that was closed must not reach the next one.
    name: String,
    commands: mpsc::Sender<String>,
    state: watch::Sender<RoomState>,
    feed: Mutex<Feed>,
}

/// What has to be remembered from one line to the next.
#[derive(Default)]
struct Feed {
    /// Number of the last event; none before the log begins.
    last: Option<Place>,
    /// Events up to this one were sent before the room opened.
    earlier: Place,
    /// When the answer that streams in began, in milliseconds since 1970.
    began: Value,
    /// Commands that wait for a response: the client and its id.
    pending: HashMap<String, (ClientId, Option<Value>)>,
    /// Shell commands that run: the execution (`bashId`) by the id of the command.
    shells: HashMap<String, Value>,
    sent: u64,
    /// The session refused to list its open dialogs. The room asks again once the session carries out a command.
    lacks_dialogs: bool,
}

impl Room {
    pub(crate) fn new(
        session: Arc<str>,
        clients: Clients,
        version: &str,
        commands: mpsc::Sender<String>,
    ) -> Self {
        Self {
            rules: rules(&clients, version),
            session,
            clients,
            name: Uuid::new_v4().simple().to_string(),
            commands,
            state: watch::Sender::new(RoomState::Opening),
            feed: Mutex::default(),
        }
    }

    fn feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the numbers and the latest events of the session.
    pub(crate) fn open(&self) {
        self.ask(json!({"type": "hello", "sequence": true, "deltas": true}), HELLO);
    }

    /// Waits until clients can join. False if the session cannot be reached.
    pub(crate) async fn opened(&self) -> bool {
        let mut state = self.state.subscribe();
        let known = state.wait_for(|state| *state != RoomState::Opening).await;
        known.is_ok_and(|state| *state == RoomState::Open)
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.state.borrow() == RoomState::Closed
    }

    /// Disconnects all clients. They connect again and continue by number in a new room.
    pub(crate) fn close(&self) {
        self.state.send_replace(RoomState::Closed);
        self.clients.end();
    }

    /// Sends a command of the room itself. Does not wait: the lines of all rooms come one after the other.
    fn ask(&self, mut command: Value, name: &str) {
        if let Some(command) = command.as_object_mut() {
            command.insert("id".to_owned(), json!(format!("{} {name}", self.name)));
            command.insert("session".to_owned(), json!(&*self.session));
        }
        if self.commands.try_send(command.to_string()).is_err() {
            self.close();
        }
    }

    async fn send(&self, mut command: Object) -> bool {
        command.insert("session".to_owned(), json!(&*self.session));
        self.commands
            .send(Value::Object(command).to_string())
            .await
            .is_ok()
    }

    /// Takes a command of a client. `line` is its text. False when the gateway ends.
    pub(crate) async fn pass(&self, inbound: Inbound, line: Bytes, client: ClientId) -> bool {
        match inbound {
            Inbound::Request(Request {
                id,
                name,
                command: Command::Connection(command),
                ..
            }) if self.knows(&command) => {
                self.answer(id, name, command, client);
                true
            }
            Inbound::Request(request) => {
                let Ok(Value::Object(mut command)) = serde_json::from_str(&line_text(&line)) else {
                    self.tell(
                        client,
                        &request.respond(Err("Failed to parse command".to_owned())),
                    );
                    return true;
                };
                drop(line);
                if let Command::Connection(ConnectionCommand::Replay(_)) = request.command {
                    // The worker answers with a snapshot.
                    command.shift_remove("after");
                    command.shift_remove("instance");
                }
                let key = {
                    let mut feed = self.feed();
                    feed.sent += 1;
                    let key = format!("{} {}", self.name, feed.sent);
                    feed.pending
                        .insert(key.clone(), (client, command.shift_remove("id")));
                    key
                };
                command.insert("id".to_owned(), json!(key));
                self.send(command).await
            }
            Inbound::Frame(_, text) => {
                if let Some(id) = answered(&text)
                    && self.clients.settled(&id)
                {
                    self.withdraw(&id);
                }
                match serde_json::from_str(&text) {
                    Ok(Value::Object(frame)) => self.send(frame).await,
                    _ => true,
                }
            }
            Inbound::Rejected(response) => {
                self.tell(client, &response);
                true
            }
            Inbound::Eof => true,
        }
    }

    /// True for commands of the connection, unless only the worker can answer.
    fn knows(&self, command: &ConnectionCommand) -> bool {
        let ConnectionCommand::Replay(replay) = command else {
            return true;
        };
        let is_ours = replay.instance.as_deref().is_none_or(|id| *id == *self.session);
        let after = replay.after.filter(|_| is_ours);
        after.is_some_and(|after| self.clients.count_after(after).is_some())
    }

    /// Carries out a command of the connection.
    fn answer(
        &self,
        id: Option<Box<serde_json::value::RawValue>>,
        name: String,
        command: ConnectionCommand,
        client: ClientId,
    ) {
        let Some(options) = self.clients.options(client) else {
            return;
        };
        let (outcome, follow_up) = self.rules.answer(command, &options, &self.clients, None);
        let response = Response {
            id,
            command: Some(name.into()),
            outcome,
        };
        self.tell(client, &response);
        match follow_up {
            FollowUp::None => {}
            FollowUp::Use(negotiated) => self.clients.agree(client, negotiated.options),
            FollowUp::SendAgain(place) => self.clients.send_back(client, place),
        }
    }

    fn tell(&self, client: ClientId, response: &Response) {
        if let Ok(line) = serde_json::to_string(response) {
            self.clients.tell(client, line.into());
        }
    }

    /// Takes a dialog away from all clients. The frame has no number, since the session did not send it.
    fn withdraw(&self, id: &str) {
        let frame = json!({"type": "extension_ui_request", "id": id, "method": "cancel", "targetId": id});
        self.tell_all("extension_ui_request", &frame.to_string().into());
    }

    /// Sends a frame without a number to all clients that get events of this name.
    fn tell_all(&self, name: &'static str, frame: &FrameText) {
        self.clients.tell_all(&Subject { name, session: None }, frame);
    }

    /// Takes a line of the session.
    pub(crate) fn take(&self, mut line: Object) {
        line.shift_remove("session");
        match line.get("type").and_then(Value::as_str) {
            Some("response") => self.response(line),
            Some("ready") => {}
            Some("detached") => self.close(),
            _ => {
                let Some(seq) = line.shift_remove("seq").and_then(|seq| seq.as_u64()) else {
                    return;
                };
                let asks_again = self.event(seq, line);
                if asks_again {
                    self.ask(json!({"type": "replay"}), DIALOGS);
                }
            }
        }
    }

    fn response(&self, mut response: Object) {
        let id = response
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let data = |name: &str| response.get("data").and_then(|data| data.get(name));
        let number = |name: &str| data(name).and_then(Value::as_u64);
        match id.strip_prefix(&self.name).unwrap_or_default().trim_start() {
            HELLO => match number("lastSeq") {
                Some(last) => {
                    let after = last.saturating_sub(WEB_GATEWAY_EVENTS);
                    self.ask(json!({"type": "replay", "after": after}), EARLIER);
                }
                None => self.close(),
            },
            EARLIER => match number("lastSeq") {
                Some(last) => {
                    let begin = last - number("events").unwrap_or(0).min(last);
                    self.clients.begin_after(begin);
                    {
                        let mut feed = self.feed();
                        feed.last = Some(begin);
                        feed.earlier = last;
                    }
                    self.open_at(begin);
                    self.ask(json!({"type": "replay"}), DIALOGS);
                }
                None => self.close(),
            },
            DIALOGS => {
                let snapshot = data("snapshot");
                // A refusal says nothing about dialogs, so the known ones stay. Closing the room would cost clients the
                // responses that they wait for, among them the reason why the session cannot be opened.
                self.feed().lacks_dialogs = snapshot.is_none();
                if let Some(snapshot) = snapshot {
                    self.dialogs(snapshot.get("dialogs").and_then(Value::as_array));
                }
            }
            _ => {
                let Some((client, own)) = self.feed().pending.remove(&id) else {
                    return;
                };
                let is_success = response.get("success") == Some(&json!(true));
                match own {
                    Some(own) => drop(response.insert("id".to_owned(), own)),
                    None => drop(response.shift_remove("id")),
                }
                self.clients
                    .tell(client, Value::Object(response).to_string().into());
                if is_success && std::mem::take(&mut self.feed().lacks_dialogs) {
                    self.ask(json!({"type": "replay"}), DIALOGS);
                }
            }
        }
    }

    /// Lets clients join once the log has all earlier events.
    fn open_at(&self, seq: Place) {
        let is_complete = self.feed().earlier <= seq;
        if is_complete {
            self.state.send_if_modified(|state| {
                let is_opening = *state == RoomState::Opening;
                if is_opening {
                    *state = RoomState::Open;
                }
                is_opening
            });
        }
    }

    /// Shows dialogs that this gateway did not see begin, and forgets closed ones.
    fn dialogs(&self, open: Option<&Vec<Value>>) {
        let frames = open.into_iter().flatten().filter_map(|dialog| {
            let mut frame = json!({"type": "extension_ui_request"});
            frame.as_object_mut()?.extend(dialog.as_object()?.clone());
            Some((dialog.get("id")?.as_str()?.to_owned(), frame.to_string().into()))
        });
        let (new, over) = self.clients.ask_instead(frames.collect());
        for frame in new {
            self.tell_all("extension_ui_request", &frame);
        }
        for id in over {
            self.withdraw(&id);
        }
    }

    /// Appends an event to the log. Returns true if the open dialogs should be looked up.
    fn event(&self, seq: Place, line: Object) -> bool {
        let is_new;
        {
            let mut feed = self.feed();
            match feed.last {
                Some(last) if seq == last + 1 => feed.last = Some(seq),
                // Before the log begins, or there already.
                None => return false,
                Some(last) if seq <= last => return false,
                Some(_) => {
                    drop(feed);
                    self.close();
                    return false;
                }
            }
            is_new = seq > feed.earlier;
        }
        let name = line.get("type").and_then(Value::as_str).unwrap_or_default();
        // Events of a newer version have no name here; filters do not choose them.
        let name = EVENT_NAMES
            .iter()
            .find(|known| **known == name)
            .copied()
            .unwrap_or("");
        if is_new {
            self.note(name, &line);
        }
        let failed = is_new.then(|| failed(&line)).flatten();
        let text = self.text(name, line);
        let subject = Subject { name, session: None };
        self.clients.push(Entry { subject, text });
        self.clients.publish();
        if let Some(failed) = failed {
            self.tell_all("extension_error", &failed.to_string().into());
        }
        self.open_at(seq);
        is_new && name == "agent_settled" && self.clients.has_questions()
    }

    /// Remembers dialogs that begin and end.
    fn note(&self, name: &str, line: &Object) {
        let word = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
        if name != "extension_ui_request" {
            return;
        }
        match word("method") {
            "select" | "confirm" | "input" | "editor" => {
                let frame = serde_json::to_string(line).unwrap_or_default();
                self.clients.asked(word("id"), None, frame.into());
            }
            "cancel" => drop(self.clients.settled(word("targetId"))),
            _ => {}
        }
    }

    /// The event in the web dialect, without its closing brace.
    fn text(&self, name: &str, mut line: Object) -> Text {
        match name {
            "message_start" => {
                let message = line.get("message");
                if message.and_then(|message| message.get("role")) == Some(&json!("assistant")) {
                    let began = message.and_then(|message| message.get("timestamp"));
                    self.feed().began = began.cloned().unwrap_or_default();
                }
            }
            "message_update" => return self.update(&line),
            "bash_execution_start" | "bash_execution_update" | "bash_execution_end" => {
                self.shell(name, &mut line);
            }
            _ => {}
        }
        open_object(&Value::Object(line))
    }

    /// Names the shell command of an event as the web dialect does. All tabs get the event, and ids mean something else to each (web.md
    /// 1.4). The worker's agent has another dialect, in which only the start and the end of a command name the execution.
    fn shell(&self, name: &str, line: &mut Object) {
        let Some(id) = line.shift_remove("id") else {
            return;
        };
        let mut feed = self.feed();
        let key = id.to_string();
        match name {
            "bash_execution_start" => {
                let execution = line.get("bashId").cloned().unwrap_or_default();
                feed.shells.insert(key, execution);
            }
            "bash_execution_end" => drop(feed.shells.remove(&key)),
            _ => {
                if let Some(execution) = feed.shells.get(&key).cloned() {
                    line.insert("bashId".to_owned(), execution);
                }
            }
        }
        // The client gave another id, or none, to a command that came through this gateway.
        let own = match id.as_str().and_then(|id| feed.pending.get(id)) {
            Some((_, own)) => own.clone(),
            None => Some(id),
        };
        line.extend(own.map(|own| ("commandId".to_owned(), own)));
    }

    /// A `message_update` with the message, but without its content (web.md 1.6).
    fn update(&self, line: &Object) -> Text {
        let head = json!({
            "type": "message_update",
            "message": {"role": "assistant", "content": [], "timestamp": self.feed().began},
        });
        let mut head = head.to_string();
        head.pop();
        let event = line.get("assistantMessageEvent").cloned().unwrap_or_default();
        let usage = line
            .get("usage")
            .map(|usage| format!(",\"usage\":{usage}"))
            .unwrap_or_default();
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        match event.get("delta").and_then(Value::as_str) {
            Some(delta) if matches!(kind, "text_delta" | "thinking_delta" | "toolcall_delta") => {
                let index = event.get("contentIndex").cloned().unwrap_or_default();
                let mut text = Vec::new();
                escape(&mut text, delta);
                Text::Delta(Delta {
                    before: format!(
                        "{head},\"assistantMessageEvent\":{{\"type\":\"{kind}\",\"contentIndex\":{index},\"delta\":\""
                    ),
                    text: String::from_utf8(text).unwrap_or_default(),
                    after: format!("\"}}{usage}"),
                })
            }
            _ => Text::Line(format!("{head},\"assistantMessageEvent\":{event}{usage}").into()),
        }
    }
}

fn open_object(line: &Value) -> Text {
    let mut line = line.to_string();
    line.pop();
    Text::Line(line.into())
}

/// What says that a run has failed for good, as the pages of the family need it (web.md 1.8, R3).
fn failed(line: &Object) -> Option<Value> {
    let is_end =
        line.get("type") == Some(&json!("agent_end")) && line.get("willRetry") == Some(&json!(false));
    let answer = line.get("messages").filter(|_| is_end)?.as_array()?.last()?;
    let is_error = answer.get("stopReason") == Some(&json!("error"));
    let error = answer.get("errorMessage").and_then(Value::as_str);
    is_error.then(|| {
        json!({
            "type": "extension_error",
            "extensionPath": MODEL,
            "event": "agent_end",
            "error": error.unwrap_or("The provider failed"),
        })
    })
}

/// The question that a frame answers.
pub(crate) fn answered(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Head {
        id: String,
    }
    serde_json::from_str::<Head>(line).ok().map(|head| head.id)
}
