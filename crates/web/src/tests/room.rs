//! Sessions of workers in a gateway. The test takes the place of the worker.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::clients::{Clients, Resume, Subscription};
use crate::guard::Guard;
use crate::http;
use crate::memory::Memory;
use crate::page::Page;
use crate::room::Room;
use crate::state::{Slot, WebState};

/// The worker of a room.
struct Worker {
    room: Arc<Room>,
    server: WebState,
    commands: mpsc::Receiver<String>,
}

impl Worker {
    /// Opens a room of a session without events. Its next command looks up the open dialogs.
    fn start() -> Self {
        let (sender, commands) = mpsc::channel(16);
        let clients = Clients::of_instance(Memory::default(), "s".into());
        let room = Arc::new(Room::new("s".into(), clients.clone(), "1", sender));
        let bound = "127.0.0.1:4781".parse().unwrap();
        let guard = Guard::new(bound, "127.0.0.1", false, None, Vec::new());
        let slot = Slot::Room(Arc::clone(&room));
        let server = WebState::new(clients, Arc::new(guard), Arc::new(Page::Own), Some(slot));
        room.open();
        let mut worker = Self {
            room,
            server,
            commands,
        };
        for kind in ["hello", "replay"] {
            let command = worker.command(kind);
            worker.grant(&command, &json!({"lastSeq": 0, "events": 0}));
        }
        worker
    }

    /// The next command, which must be of this type.
    fn command(&mut self, kind: &str) -> Value {
        let command: Value = serde_json::from_str(&self.commands.try_recv().unwrap()).unwrap();
        assert_eq!(command["type"], kind, "{command}");
        command
    }

    fn say(&self, line: Value) {
        self.room.take(serde_json::from_value(line).unwrap());
    }

    fn grant(&self, command: &Value, data: &Value) {
        self.say(json!({"type": "response", "id": command["id"], "success": true, "data": data}));
    }

    fn refuse(&self, command: &Value) {
        let error = "Too many commands of this session wait; send it again later";
        self.say(json!({"type": "response", "id": command["id"], "success": false, "error": error}));
    }

    /// A client that gets all events.
    fn join(&self) -> Subscription {
        self.server.clients.join(&Resume::default()).unwrap()
    }

    /// Sends a line of a client.
    async fn send(&self, client: &Subscription, line: &Value) {
        let held = client.account().empty();
        let line = Bytes::from(line.to_string());
        assert!(self.server.deliver(line, held, client.id()).await);
    }
}

/// The frames that a client has not read.
fn unread(client: &Subscription) -> Vec<Value> {
    let mut frames = Vec::new();
    client.take(&mut frames).unwrap();
    let frames = frames.iter();
    frames
        .map(|frame| serde_json::from_str(&frame.text()).unwrap())
        .collect()
}

fn types(frames: &[Value]) -> Vec<&str> {
    frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap())
        .collect()
}

/// The data of a look-up that finds an open dialog.
fn one_dialog() -> Value {
    json!({"snapshot": {"dialogs": [{"id": "q", "method": "confirm", "title": "?"}]}})
}

#[tokio::test]
async fn frames_for_all_respect_event_filters() {
    let mut worker = Worker::start();
    let lookup = worker.command("replay");
    let (tab, filtered) = (worker.join(), worker.join());
    let clients = worker.server.clients.clone();
    let poster = clients.join_for_answer(clients.account()).unwrap();
    let hello = json!({"id": 1, "type": "hello", "events": ["agent_end"]});
    worker.send(&filtered, &hello).await;
    assert_eq!(types(&unread(&filtered)), ["response"]);
    let bash = json!({"id": 2, "type": "bash", "command": "sleep 9"});
    worker.send(&poster, &bash).await;
    let bash = worker.command("bash");
    // While the command runs, a dialog is found, a run fails, and another client answers the dialog.
    worker.grant(&lookup, &one_dialog());
    let failed = json!({"role": "assistant", "stopReason": "error"});
    worker.say(json!({"type": "agent_end", "seq": 1, "willRetry": false, "messages": [failed]}));
    let answer = json!({"type": "extension_ui_response", "id": "q", "confirmed": true});
    worker.send(&tab, &answer).await;
    worker.command("extension_ui_response");
    assert_eq!(
        types(&unread(&tab)),
        [
            "extension_ui_request",
            "agent_end",
            "extension_error",
            "extension_ui_request"
        ]
    );
    assert_eq!(types(&unread(&filtered)), ["agent_end"]);
    assert!(unread(&poster).is_empty());
    worker.grant(&bash, &json!({"exitCode": 0}));
    let frames = unread(&poster);
    assert_eq!(types(&frames), ["response"]);
    assert_eq!(frames[0]["id"], 2);
}

#[tokio::test]
async fn refused_dialog_look_up_is_repeated() {
    let mut worker = Worker::start();
    let tab = worker.join();
    let get_state = json!({"id": 1, "type": "get_state"});
    let lookup = worker.command("replay");
    worker.refuse(&lookup);
    worker.send(&tab, &get_state).await;
    let command = worker.command("get_state");
    worker.grant(&command, &json!({}));
    let lookup = worker.command("replay");
    worker.grant(&lookup, &one_dialog());
    assert_eq!(types(&unread(&tab)), ["response", "extension_ui_request"]);
    // A refusal does not close a known dialog.
    worker.say(json!({"type": "agent_settled", "seq": 1}));
    let lookup = worker.command("replay");
    worker.refuse(&lookup);
    assert_eq!(types(&unread(&tab)), ["agent_settled"]);
    assert_eq!(types(&unread(&worker.join())), ["extension_ui_request"]);
    // A session that carries out nothing is not asked again.
    worker.send(&tab, &get_state).await;
    let command = worker.command("get_state");
    worker.refuse(&command);
    assert!(worker.commands.try_recv().is_err());
}

#[tokio::test]
async fn shell_events_have_id_of_their_client() {
    let mut worker = Worker::start();
    worker.command("replay");
    let tab = worker.join();
    let bash = json!({"id": "own", "type": "bash", "command": "make"});
    worker.send(&tab, &bash).await;
    let id = worker.command("bash")["id"].clone();
    assert_ne!(id, "own");
    for (seq, id) in [(1, &id), (4, &json!("of another gateway"))] {
        let bash = format!("b{seq}");
        worker.say(
            json!({"type": "bash_execution_start", "seq": seq, "id": id, "bashId": bash, "command": "make"}),
        );
        worker.say(json!({"type": "bash_execution_update", "seq": seq + 1, "id": id, "delta": "built"}));
        worker.say(json!({"type": "bash_execution_end", "seq": seq + 2, "id": id, "bashId": bash, "output": "built"}));
    }
    let frames = unread(&tab);
    let names: Vec<_> = frames
        .iter()
        .map(|frame| {
            let word = |name: &str| frame[name].as_str().unwrap();
            assert!(frame.get("id").is_none(), "{frame}");
            (word("commandId"), word("bashId"))
        })
        .collect();
    let expected = [("own", "b1"); 3].into_iter();
    let expected = expected.chain([("of another gateway", "b4"); 3]);
    assert_eq!(names, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn cut_text_of_javascript_reaches_the_session() {
    let mut worker = Worker::start();
    worker.command("replay");
    let tab = worker.join();
    // Half of a surrogate pair, as `JSON.stringify` writes it.
    let line = Bytes::from_static(br#"{"id":1,"type":"prompt","message":"cut \ud83d"}"#);
    let held = tab.account().empty();
    assert!(worker.server.deliver(line, held, tab.id()).await);
    assert_eq!(worker.command("prompt")["message"], "cut \u{fffd}");
    assert!(unread(&tab).is_empty());
}

#[tokio::test]
async fn command_of_lost_room_may_have_run() {
    let Worker {
        room,
        server,
        mut commands,
    } = Worker::start();
    let request = Request::post("/api/command").header("content-type", "application/json");
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let body = Body::from(json!({"id": 7, "type": "prompt", "message": "Go"}).to_string());
    let response = tokio::spawn(async move { http::command(Arc::new(server), &parts, body).await });
    // The worker has it.
    while !commands.recv().await.unwrap().contains("prompt") {}
    room.close();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 200);
    let body = to_bytes(response.into_body(), 1 << 16).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let lost = json!({"id": 7, "type": "response", "command": "prompt", "success": false, "error": http::MAY_HAVE_RUN});
    assert_eq!(body, lost);
}
