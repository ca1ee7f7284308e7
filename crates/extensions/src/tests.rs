//! Connections to simulated children, over pipes in memory.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::{mpsc, oneshot};

use crate::line::{Era, Generation, Kind, Scope, Source};
use process::{Boxed, ChildProcess, Pipes};

use crate::{ExtensionProcess, Greeting, ProcessError, ProcessMessage, limits};

const GREETING: Greeting<'_> = Greeting {
    version: "1.2.3",
    agent_dir: "/agent",
    program: None,
    memory: limits::MEMORY,
    silence: limits::PONG_WAIT,
};

/// The child's side: the lines to it and from it.
pub(crate) struct Played {
    told: Lines<BufReader<ReadHalf<DuplexStream>>>,
    says: WriteHalf<DuplexStream>,
    errors: DuplexStream,
    /// Dropped or used when it dies.
    pub(crate) dies: Option<oneshot::Sender<String>>,
    killed: oneshot::Receiver<()>,
}

impl Played {
    pub(crate) async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(30), self.told.next_line());
        let line = line.await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) async fn say(&mut self, line: &Value) {
        let line = format!("{line}\n");
        self.says.write_all(line.as_bytes()).await.unwrap();
    }
}

/// The agent's hand on it.
struct Handle {
    died: Option<oneshot::Receiver<String>>,
    killed: Option<oneshot::Sender<()>>,
}

impl ChildProcess for Handle {
    fn ended(&mut self) -> Boxed<'_, String> {
        Box::pin(async {
            match &mut self.died {
                Some(died) => {
                    let how = died.await;
                    self.died = None;
                    how.unwrap_or_else(|_| "it vanished".to_owned())
                }
                None => std::future::pending().await,
            }
        })
    }

    fn kill(&mut self) -> Boxed<'_, ()> {
        if let Some(killed) = self.killed.take() {
            let _ = killed.send(());
        }
        Box::pin(async {})
    }
}

fn child() -> (Handle, Pipes, Played) {
    let (ours, theirs) = tokio::io::duplex(1024);
    let (read, write) = tokio::io::split(ours);
    let (their_read, their_write) = tokio::io::split(theirs);
    let (errors, their_errors) = tokio::io::duplex(1024);
    let (dies, died) = oneshot::channel();
    let (kill, killed) = oneshot::channel();
    let handle = Handle {
        died: Some(died),
        killed: Some(kill),
    };
    let pipes = Pipes {
        input: Box::new(write),
        output: Box::new(read),
        errors: Box::new(errors),
    };
    let played = Played {
        told: BufReader::new(their_read).lines(),
        says: their_write,
        errors: their_errors,
        dies: Some(dies),
        killed,
    };
    (handle, pipes, played)
}

/// An open connection, the lines without a session, and the child.
pub(crate) async fn open() -> (ExtensionProcess, mpsc::Receiver<ProcessMessage>, Played) {
    let (handle, pipes, mut played) = child();
    let opening = ExtensionProcess::open(handle, pipes, GREETING);
    let greeting = async {
        let hello = played.next().await;
        played.say(&json!({"type": "ready", "protocol": 1})).await;
        hello
    };
    let (opened, hello) = tokio::join!(opening, greeting);
    assert_eq!(
        hello,
        json!({"type": "hello", "protocol": 1, "agent": "pinion", "version": "1.2.3", "agentDir": "/agent"})
    );
    let (process, said) = opened.unwrap();
    (process, said, played)
}

#[tokio::test]
async fn answers_reach_their_request_in_any_order() {
    let (process, _said, mut played) = open().await;
    let first = process.event("s", "input", &json!({"text": "a"})).unwrap();
    let second = process.event("s", "input", &json!({"text": "b"})).unwrap();
    let (one, two) = (played.next().await, played.next().await);
    assert_eq!(
        (&one["name"], &one["event"]["text"], &two["event"]["text"]),
        (&json!("input"), &json!("a"), &json!("b"))
    );
    played
        .say(&json!({"type": "result", "id": two["id"], "value": "B"}))
        .await;
    played
        .say(&json!({"type": "result", "id": one["id"], "value": "A",
            "errors": [{"path": "x.ts", "event": "input", "error": "odd"}]}))
        .await;
    assert_eq!(second.await.unwrap().value, "B");
    let first = first.await.unwrap();
    assert_eq!((first.value, first.errors.len()), (json!("A"), 1));
    let third = process.call("s", "tool.execute", &json!({}), None).unwrap();
    let call = played.next().await;
    played
        .say(&json!({"type": "error", "id": call["id"], "message": "no such tool"}))
        .await;
    assert_eq!(third.await, Err(ProcessError::Failed("no such tool".to_owned())));
}

#[tokio::test]
async fn session_messages_arrive_before_following_result() {
    let (process, _said, mut played) = open().await;
    let mut said = process.attach("s");
    let source = Source {
        path: "x.ts".to_owned(),
        scope: Scope::User,
        kind: Kind::Extension,
    };
    let era = Era {
        generation: Generation::Hooks,
        hook_timeout: Some(30_000),
    };
    let opening = process
        .open_session("s", &[source], &Map::new(), &json!({"cwd": "/"}), era)
        .unwrap();
    let open = played.next().await;
    assert_eq!(
        open["extensions"],
        json!([{"path": "x.ts", "scope": "user", "kind": "extension"}])
    );
    assert_eq!(
        (&open["generation"], &open["hookTimeout"]),
        (&json!("hooks"), &json!(30_000))
    );
    let call = |method: &str| json!({"type": "call", "session": "s", "method": method, "params": {}});
    played.say(&call("ui.setStatus")).await;
    played.say(&call("sendMessage")).await;
    played
        .say(&json!({"type": "call", "session": "unknown", "method": "lost"}))
        .await;
    played
        .say(&json!({"type": "result", "id": open["id"], "value": {"extensions": []}}))
        .await;
    opening.await.unwrap();
    let mut methods = Vec::new();
    while let Ok(ProcessMessage::Call { method, .. }) = said.try_recv() {
        methods.push(method);
    }
    assert_eq!(methods, ["ui.setStatus", "sendMessage"]);
}

#[tokio::test]
async fn dropped_request_is_cancelled() {
    let (process, _said, mut played) = open().await;
    let asking = process.event("s", "context", &json!({})).unwrap();
    let event = played.next().await;
    drop(asking);
    assert_eq!(played.next().await, json!({"type": "cancel", "id": event["id"]}));
    // A late answer arrives anyway and is ignored.
    played
        .say(&json!({"type": "result", "id": event["id"], "value": 1}))
        .await;
    let next = process.event("s", "context", &json!({})).unwrap();
    let event = played.next().await;
    played
        .say(&json!({"type": "result", "id": event["id"], "value": 2}))
        .await;
    assert_eq!(next.await.unwrap().value, 2);
}

#[tokio::test]
async fn state_is_flattened_and_withdrawn_calls_are_broadcast() {
    let (process, _said, mut played) = open().await;
    let (mut one, mut two) = (process.attach("one"), process.attach("two"));
    let state = Map::from_iter([("isIdle".to_owned(), json!(true))]);
    process.state("one", &state);
    assert_eq!(
        played.next().await,
        json!({"type": "state", "session": "one", "isIdle": true})
    );
    played.say(&json!({"type": "cancel", "id": 7})).await;
    for heard in [&mut one, &mut two] {
        assert!(matches!(heard.recv().await, Some(ProcessMessage::Withdrawn(7))));
    }
}

#[tokio::test]
async fn call_updates_arrive_before_result() {
    let (process, _said, mut played) = open().await;
    let (updates, mut news) = mpsc::channel(limits::UPDATES);
    let asking = process
        .call("s", "tool.execute", &json!({}), Some(updates))
        .unwrap();
    let call = played.next().await;
    played
        .say(&json!({"type": "update", "id": call["id"], "value": "half"}))
        .await;
    played
        .say(&json!({"type": "result", "id": call["id"], "value": "whole"}))
        .await;
    assert_eq!(asking.await.unwrap().value, "whole");
    assert_eq!(news.recv().await.unwrap(), "half");
    assert!(news.recv().await.is_none());
}

#[tokio::test]
async fn malformed_and_unknown_lines_are_logged() {
    let (process, mut said, mut played) = open().await;
    played
        .says
        .write_all(b"Debugger attached.\n\n{\"type\":\"later\"}\n\xff\xfe\n")
        .await
        .unwrap();
    played.errors.write_all(b"odd things\n").await.unwrap();
    let asking = process.event("s", "x", &json!({})).unwrap();
    let event = played.next().await;
    played.say(&json!({"type": "result", "id": event["id"]})).await;
    assert_eq!(asking.await.unwrap().value, Value::Null);
    let mut logged = Vec::new();
    for _ in 0..3 {
        match said.recv().await.unwrap() {
            ProcessMessage::Log(level, _) => logged.push(level),
            ProcessMessage::Printed(line) => logged.push(line),
            other => panic!("{other:?}"),
        }
    }
    logged.sort();
    assert_eq!(logged, ["odd things", "warn", "warn"]);
}

#[tokio::test]
async fn process_death_fails_requests_and_notifies_sessions() {
    let (process, mut said, mut played) = open().await;
    let mut session = process.attach("s");
    let asking = process.event("s", "x", &json!({})).unwrap();
    played.next().await;
    played
        .dies
        .take()
        .unwrap()
        .send("exit code 3".to_owned())
        .unwrap();
    assert_eq!(asking.await, Err(ProcessError::Gone("exit code 3".to_owned())));
    assert!(matches!(session.recv().await, Some(ProcessMessage::Gone(reason)) if reason == "exit code 3"));
    assert!(session.recv().await.is_none());
    assert!(matches!(said.recv().await, Some(ProcessMessage::Gone(_))));
    assert!(process.is_gone());
    let late = process.event("s", "x", &json!({})).unwrap();
    assert_eq!(late.await, Err(ProcessError::Gone("exit code 3".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn hanging_process_is_killed() {
    let (process, _said, mut played) = open().await;
    let asking = process.event("s", "x", &json!({})).unwrap();
    let error = asking.await.unwrap_err();
    assert!(error.to_string().contains("did not answer for 10 s"), "{error}");
    played.killed.try_recv().unwrap();
    // It was asked whether it lives.
    assert_eq!(played.next().await["type"], "event");
    assert_eq!(played.next().await["type"], "ping");
}

#[tokio::test(start_paused = true)]
async fn session_that_is_behind_does_not_end_process() {
    let (process, _said, mut played) = open().await;
    let mut behind = process.attach("behind");
    let asking = process.event("s", "x", &json!({})).unwrap();
    let event = played.next().await;
    // One more than there is room for: nothing after it is read.
    let call = json!({"type": "call", "session": "behind", "method": "m"});
    for _ in 0..=limits::SAID {
        played.say(&call).await;
    }
    for _ in 0..3 {
        let ping = played.next().await;
        assert_eq!(ping["type"], "ping");
        played.say(&json!({"type": "pong", "id": ping["id"]})).await;
    }
    assert!(!process.is_gone());
    for _ in 0..=limits::SAID {
        behind.recv().await.unwrap();
    }
    played
        .say(&json!({"type": "result", "id": event["id"], "value": true}))
        .await;
    assert_eq!(asking.await.unwrap().value, true);
    // A process that is silent now is ended all the same.
    let asking = process.event("s", "x", &json!({})).unwrap();
    let error = asking.await.unwrap_err();
    assert!(error.to_string().contains("did not answer for 10 s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn slow_handler_is_allowed_while_pings_are_answered() {
    let (process, _said, mut played) = open().await;
    let asking = process.event("s", "x", &json!({})).unwrap();
    let event = played.next().await;
    for _ in 0..20 {
        let ping = played.next().await;
        assert_eq!(ping["type"], "ping");
        played.say(&json!({"type": "pong", "id": ping["id"]})).await;
    }
    played
        .say(&json!({"type": "result", "id": event["id"], "value": true}))
        .await;
    assert_eq!(asking.await.unwrap().value, true);
}

#[tokio::test(start_paused = true)]
async fn process_that_never_becomes_ready_is_killed() {
    let (handle, pipes, mut played) = child();
    let opening = ExtensionProcess::open(handle, pipes, GREETING).await;
    assert!(matches!(opening, Err(ProcessError::NotReady(_))));
    tokio::time::sleep(Duration::from_secs(5)).await;
    played.killed.try_recv().unwrap();
    let (handle, pipes, mut played) = child();
    played.say(&json!({"type": "ready", "protocol": 9})).await;
    let opening = ExtensionProcess::open(handle, pipes, GREETING).await;
    assert!(opening.unwrap_err().to_string().contains("version 9"));
}

#[tokio::test]
async fn unread_input_beyond_limit_kills_extension_process() {
    let (process, _said, mut played) = open().await;
    let big = "x".repeat(1 << 20);
    for _ in 0..=(limits::UNREAD_BYTES >> 20) {
        process.tell("s", "x", &json!({ "text": big })).unwrap();
    }
    let asking = process.event("s", "x", &json!({})).unwrap();
    assert!(matches!(asking.await, Err(ProcessError::Gone(_))));
    (&mut played.killed).await.unwrap();
}

#[tokio::test]
async fn request_longer_than_a_line_fails_at_once() {
    let (process, mut said, mut played) = open().await;
    let event = json!({"text": "x".repeat(limits::MAX_LINE)});
    let (call, _updates) = process.stream("s", "provider.stream", &event).unwrap();
    for asking in [process.event("s", "context", &event).unwrap(), call] {
        let error = asking.await.unwrap_err();
        assert!(matches!(error, ProcessError::TooLong { size } if size > limits::MAX_LINE));
        let text = error.to_string();
        assert!(text.contains(&limits::MAX_LINE.to_string()), "{text}");
    }
    // The process learns that there is no answer to its own call.
    process.answer(7, &event).unwrap();
    let refused = played.next().await;
    assert_eq!(
        (&refused["type"], &refused["id"]),
        (&json!("error"), &json!(7)),
        "{refused}"
    );
    process.tell("s", "agent_end", &event).unwrap();
    assert!(matches!(said.recv().await, Some(ProcessMessage::Log(level, _)) if level == "warn"));
    // Other requests are answered.
    let asking = process.event("s", "input", &json!({})).unwrap();
    let id = played.next().await["id"].clone();
    played.say(&json!({"type": "result", "id": id, "value": 1})).await;
    assert_eq!(asking.await.unwrap().value, 1);
}

#[tokio::test]
async fn dropping_last_handle_kills_process() {
    let (process, _said, mut played) = open().await;
    let clone = process.clone();
    drop(process);
    assert!(played.killed.try_recv().is_err());
    drop(clone);
    (&mut played.killed).await.unwrap();
}

#[tokio::test]
async fn printed_text_does_not_lose_answers() {
    let (process, mut said, mut played) = open().await;
    let asking = process.event("s", "input", &json!({})).unwrap();
    let id = played.next().await["id"].clone();
    let line = format!(
        "loading... {{\"type\": 5}} \u{1b}[0m{}\n",
        json!({"type": "result", "id": id, "value": 1})
    );
    played.says.write_all(line.as_bytes()).await.unwrap();
    assert_eq!(asking.await.unwrap().value, 1);
    assert!(matches!(said.recv().await, Some(ProcessMessage::Log(..))));
}

#[tokio::test]
async fn line_with_too_many_values_ends_process() {
    let (process, _said, mut played) = open().await;
    let asking = process.event("s", "input", &json!({})).unwrap();
    let id = played.next().await["id"].clone();
    let line = format!(
        "{{\"type\":\"result\",\"id\":{id},\"value\":[0{}]}}\n",
        ",0".repeat(wire::limits::MAX_VALUES)
    );
    played.says.write_all(line.as_bytes()).await.unwrap();
    let error = asking.await.unwrap_err().to_string();
    assert!(error.contains("more than 500000 values"), "{error}");
    (&mut played.killed).await.unwrap();
}

#[tokio::test]
async fn process_that_floods_log_lines_is_killed() {
    let (process, mut said, mut played) = open().await;
    let drain = tokio::spawn(async move {
        loop {
            if let Some(ProcessMessage::Gone(why)) = said.recv().await {
                break why;
            }
        }
    });
    let mut line = json!({"type": "log", "message": "x"}).to_string();
    line.push('\n');
    let many = line.repeat(1000);
    while played.says.write_all(many.as_bytes()).await.is_ok() {
        if process.is_gone() {
            break;
        }
    }
    assert!(drain.await.unwrap().contains("things within"));
}
