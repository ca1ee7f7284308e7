//! Against a stand-in at the other end of a pipe: host tools, dialogs, many sessions, and an agent that misbehaves.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test is meant to stop at once"
)]

use std::sync::Arc;
use std::time::Duration;

use pinion_client::wire::ToolResult;
use pinion_client::{Answer, Client, Error, Event, HostTool, OpenSession, Options, Times};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Longest wait for a line.
const WAIT: Duration = Duration::from_secs(30);

/// The agent's end of the pipe.
struct Fake {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    out: WriteHalf<DuplexStream>,
}

impl Fake {
    async fn say(&mut self, line: Value) {
        self.out.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// The next line, which must be of this type.
    async fn expect(&mut self, kind: &str) -> Value {
        let line = timeout(WAIT, self.lines.next_line())
            .await
            .unwrap_or_else(|_| panic!("no {kind} in time"))
            .unwrap()
            .unwrap_or_else(|| panic!("no {kind}"));
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["type"], kind);
        line
    }

    /// Answers the next line, which must be of this type, and gives it.
    async fn answer(&mut self, kind: &str, data: Value) -> Value {
        let line = self.expect(kind).await;
        self.say(
            json!({"id": line["id"], "type": "response", "command": kind, "success": true, "data": data}),
        )
        .await;
        line
    }

    async fn settle(&mut self, text: &str, session: Option<&str>) {
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}], "api": "a", "provider": "p",
            "model": "m", "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}, "stopReason": "stop",
            "timestamp": 1});
        for mut line in [
            json!({"type": "message_end", "message": message}),
            json!({"type": "agent_settled", "aborted": false}),
        ] {
            if let Some(session) = session {
                line["session"] = session.into();
            }
            self.say(line).await;
        }
    }
}

fn options() -> Options {
    Options::new("unused")
}

/// A client and the agent that it talks to, after their greeting.
async fn pair(options: Options, tools: usize) -> (Client, Fake) {
    pair_with_dialogs(options, tools, false).await
}

async fn pair_with_dialogs(options: Options, tools: usize, dialogs: bool) -> (Client, Fake) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let (input, out) = tokio::io::split(theirs);
    let mut fake = Fake {
        lines: BufReader::new(input).lines(),
        out,
    };
    let greeting = async {
        fake.answer("get_state", json!({})).await;
        if dialogs {
            // An agent that does not know the command is no reason to stop.
            let line = fake.expect("hello").await;
            assert!(line["ui"].as_array().unwrap().contains(&json!("cancel")));
            let error = "Unknown command: hello";
            fake.say(json!({"id": line["id"], "type": "response", "command": "hello", "success": false, "error": error}))
                .await;
        }
        if tools > 0 {
            let line = fake.answer("set_host_tools", json!({"toolNames": ["x"]})).await;
            assert_eq!(line["tools"].as_array().unwrap().len(), tools);
        }
    };
    let (client, ()) = tokio::join!(Client::over(reader, writer, options), greeting);
    (client.unwrap(), fake)
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "host_tool_call", "id": id, "toolCallId": "t", "toolName": name, "arguments": arguments})
}

#[tokio::test]
async fn host_tools_answer_with_updates_results_and_errors() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let double = HostTool::new("double", "Doubles.", schema, |call| async move {
        #[derive(serde::Deserialize)]
        struct Arguments {
            n: i64,
        }
        let Arguments { n } = call.parse()?;
        call.update(&ToolResult::text("half")).await?;
        Ok(ToolResult::text((n * 2).to_string()))
    });
    let (_client, mut fake) = pair(options().tools([double]), 1).await;
    fake.say(call("h1", "double", json!({"n": 4}))).await;
    let update = fake.expect("host_tool_update").await;
    assert_eq!(
        (&update["id"], &update["partialResult"]["content"][0]["text"]),
        (&json!("h1"), &json!("half"))
    );
    let result = fake.expect("host_tool_result").await;
    assert_eq!(
        (&result["result"]["content"][0]["text"], result.get("isError")),
        (&json!("8"), None)
    );
    fake.say(call("h2", "double", json!({"n": "four"}))).await;
    let result = fake.expect("host_tool_result").await;
    assert_eq!((&result["id"], &result["isError"]), (&json!("h2"), &json!(true)));
    fake.say(call("h3", "triple", json!({}))).await;
    let result = fake.expect("host_tool_result").await;
    assert_eq!(result["result"]["content"][0]["text"], "Tool triple not found");
}

#[tokio::test]
async fn panicking_tools_and_dialogs_are_answered() {
    let schema = json!({"type": "object"});
    let late = HostTool::new("late", "Panics.", schema.clone(), |call| async move {
        Ok(ToolResult::text(call.arguments()["n"].to_string()))
    });
    let early = HostTool::new("early", "Panics.", schema, |call| {
        let n = call.arguments()["n"].to_string();
        async move { Ok(ToolResult::text(n)) }
    });
    let asked = |dialog: pinion_client::Dialog| async move {
        Answer::Value(dialog.options[0].as_str().unwrap().to_owned())
    };
    let options = options().tools([late, early]).on_dialog(asked);
    let (_client, mut fake) = pair_with_dialogs(options, 2, true).await;
    for name in ["late", "early"] {
        fake.say(call("h1", name, json!({}))).await;
        let result = fake.expect("host_tool_result").await;
        assert_eq!((&result["id"], &result["isError"]), (&json!("h1"), &json!(true)));
        assert_eq!(
            result["result"]["content"][0]["text"],
            format!("Tool {name} panicked")
        );
    }
    fake.say(json!({"type": "extension_ui_request", "id": "d", "method": "select", "title": "?"}))
        .await;
    let answer = fake.expect("extension_ui_response").await;
    assert_eq!(
        (&answer["id"], &answer["cancelled"], answer.get("timedOut")),
        (&json!("d"), &json!(true), None)
    );
}

#[tokio::test]
async fn cancelled_call_is_dropped_and_not_answered() {
    struct Told(Arc<Notify>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let dropped = Arc::new(Notify::new());
    let told = Arc::clone(&dropped);
    let patient = HostTool::new("patient", "Waits.", json!({"type": "object"}), move |call| {
        let told = Told(Arc::clone(&told));
        async move {
            let _told = told;
            call.update(&ToolResult::text("waiting")).await?;
            std::future::pending().await
        }
    });
    let (client, mut fake) = pair(options().tools([patient]), 1).await;
    fake.say(call("h1", "patient", json!({}))).await;
    fake.expect("host_tool_update").await;
    fake.say(json!({"type": "host_tool_cancel", "id": "c", "targetId": "h1"}))
        .await;
    dropped.notified().await;
    // The next line is no late result.
    let (steered, _) = tokio::join!(
        client.steer("x"),
        fake.answer("steer", json!({"disposition": "queued"}))
    );
    steered.unwrap();
}

/// More than the pipe holds.
const LONG: usize = 1 << 20;

#[tokio::test]
async fn result_of_cancelled_call_is_written_whole() {
    let wordy = HostTool::new("wordy", "Says much.", json!({"type": "object"}), |_| async {
        Ok(ToolResult::text("x".repeat(LONG)))
    });
    let (client, mut fake) = pair(options().tools([wordy]), 1).await;
    let mut events = client.events();
    fake.say(call("h1", "wordy", json!({}))).await;
    assert!(!fake.lines.get_mut().fill_buf().await.unwrap().is_empty());
    fake.say(json!({"type": "host_tool_cancel", "id": "c", "targetId": "h1"}))
        .await;
    fake.say(json!({"type": "agent_settled"})).await;
    // With this event the client has read the cancellation, while half a line is written.
    while events.next().await.unwrap().unwrap() != (Event::AgentSettled { aborted: false }) {}
    assert_eq!(fake.expect("host_tool_result").await["id"], "h1");
    let (steered, _) = tokio::join!(
        client.steer("x"),
        fake.answer("steer", json!({"disposition": "queued"}))
    );
    steered.unwrap();
}

#[tokio::test]
async fn command_of_dropped_caller_is_written_whole() {
    let (client, mut fake) = pair(options(), 0).await;
    let long = "x".repeat(LONG);
    tokio::select! {
        _ = client.steer(&long) => panic!("nothing was answered"),
        begun = fake.lines.get_mut().fill_buf() => assert!(!begun.unwrap().is_empty()),
    }
    assert_eq!(fake.expect("steer").await["message"], long);
    let (steered, _) = tokio::join!(
        client.steer("x"),
        fake.answer("steer", json!({"disposition": "queued"}))
    );
    steered.unwrap();
}

#[tokio::test]
async fn dialogs_are_answered_or_cancelled() {
    let asked = |dialog: pinion_client::Dialog| async move {
        match dialog.method.as_str() {
            "select" => Answer::Value(dialog.options[0].as_str().unwrap().to_owned()),
            "confirm" => Answer::Confirmed(true),
            "editor" => Answer::Denied("too risky".to_owned()),
            _ => std::future::pending().await,
        }
    };
    let (_client, mut fake) = pair_with_dialogs(options().on_dialog(asked), 0, true).await;
    for (question, wanted) in [
        (
            json!({"method": "select", "title": "?", "options": ["a", "b"]}),
            json!({"value": "a"}),
        ),
        (
            json!({"method": "confirm", "title": "?", "message": ""}),
            json!({"confirmed": true}),
        ),
        (
            json!({"method": "editor", "title": "?"}),
            json!({"cancelled": true, "reason": "too risky"}),
        ),
        (
            json!({"method": "input", "title": "?", "timeout": 50}),
            json!({"cancelled": true, "timedOut": true}),
        ),
    ] {
        let mut line = question;
        line["type"] = "extension_ui_request".into();
        line["id"] = "d".into();
        fake.say(line).await;
        let mut answer = fake.expect("extension_ui_response").await;
        answer
            .as_object_mut()
            .unwrap()
            .retain(|name, _| !matches!(name.as_str(), "type" | "id"));
        assert_eq!(answer, wanted);
    }
    let (_client, mut fake) = pair(options(), 0).await;
    fake.say(json!({"type": "extension_ui_request", "id": "d", "method": "input", "title": "?"}))
        .await;
    assert_eq!(fake.expect("extension_ui_response").await["cancelled"], true);
}

#[tokio::test]
async fn events_are_routed_to_their_session() {
    let (client, mut fake) = pair(options(), 0).await;
    let opened = json!({"session": "s1", "sessionId": "x", "sessionFile": null, "cwd": "/"});
    let (second, line) = tokio::join!(
        client.open_session(OpenSession::default()),
        fake.answer("open_session", opened)
    );
    let second = second.unwrap();
    assert_eq!((second.handle(), line.get("session")), (Some("s1"), None));
    let agent = async {
        for session in [None, Some("s1")] {
            let line = fake.answer("prompt", json!({"disposition": "started"})).await;
            assert_eq!(line.get("session").and_then(Value::as_str), session);
        }
        fake.settle("blue", Some("s1")).await;
        fake.settle("red", None).await;
    };
    let prompts = async {
        let mut first = client.run("red").await.unwrap();
        let mut other = second.run("blue").await.unwrap();
        (
            first.finish().await.unwrap().text,
            other.finish().await.unwrap().text,
        )
    };
    let (texts, ()) = tokio::join!(prompts, agent);
    assert_eq!(texts, ("red".to_owned(), "blue".to_owned()));
}

#[tokio::test]
async fn unknown_events_pass_through_and_malformed_lines_disconnect() {
    let (client, mut fake) = pair(options(), 0).await;
    let mut events = client.events();
    fake.say(json!({"type": "of_tomorrow", "n": 1})).await;
    fake.say(json!({"type": "agent_settled"})).await;
    assert_eq!(
        events.next().await.unwrap(),
        Some(Event::Other(json!({"type": "of_tomorrow", "n": 1})))
    );
    assert_eq!(
        events.next().await.unwrap(),
        Some(Event::AgentSettled { aborted: false })
    );
    fake.out.write_all(b"this is not JSON\n").await.unwrap();
    assert!(matches!(events.next().await, Err(Error::Protocol(_))));
    assert!(matches!(client.state().await, Err(Error::Protocol(_))));
}

#[tokio::test]
async fn unreadable_answer_fails_one_call() {
    let (client, mut fake) = pair(options(), 0).await;
    let agent = async {
        for _ in 0..2 {
            let asked = fake.expect("get_tree").await;
            let torn = format!("{{\"id\":{},\"type\":\"response\",\"data\":[[[\n", asked["id"]);
            fake.out.write_all(torn.as_bytes()).await.unwrap();
        }
        let asked = fake.expect("get_tree").await;
        fake.say(json!({"id": asked["id"], "type": "response", "success": false, "error": {"a": [1]}}))
            .await;
        fake.answer("get_fine", json!(7)).await;
    };
    let calls = async {
        assert!(matches!(
            client.call::<Value>("get_tree", &json!({})).await,
            Err(Error::Protocol(_))
        ));
        assert!(matches!(client.tree().await, Err(Error::Protocol(_))));
        assert!(
            matches!(client.tree().await, Err(Error::Refused { message, .. }) if message == r#"{"a":[1]}"#)
        );
        assert_eq!(client.call::<Value>("get_fine", &json!({})).await.unwrap(), 7);
    };
    tokio::join!(agent, calls);
}

/// The answer to `get_tree` for a chain of so many entries.
fn chain(id: &Value, length: usize) -> String {
    let nodes: String = (0..length)
        .map(|at| format!("[{{\"entry\":{{\"id\":\"{at}\"}},\"children\":"))
        .collect();
    let ends = "}]".repeat(length);
    format!(
        "{{\"id\":{id},\"type\":\"response\",\"success\":true,\"data\":{{\"tree\":{nodes}[]{ends},\"leafId\":\"x\"}}}}\n"
    )
}

#[tokio::test]
async fn deeply_nested_answers_are_read_or_refused() {
    let (client, mut fake) = pair(options(), 0).await;
    let agent = async {
        for length in [100, 600, 600, 200_000] {
            let asked = fake.expect("get_tree").await;
            let line = chain(&asked["id"], length);
            fake.out.write_all(line.as_bytes()).await.unwrap();
        }
        fake.answer("get_fine", json!(7)).await;
    };
    let calls = async {
        let value = client.call::<Value>("get_tree", &json!({})).await.unwrap();
        let mut at = &value["tree"];
        for _ in 0..100 {
            at = &at[0]["children"];
        }
        assert_eq!(at, &json!([]));
        drop(value);
        let refused = client.call::<Value>("get_tree", &json!({})).await;
        assert!(matches!(refused, Err(Error::Protocol(text)) if text.contains("Session::tree")));
        for length in [600, 200_000] {
            let tree = client.tree().await.unwrap();
            assert_eq!((tree.nodes.len(), tree.roots.len()), (length, 1));
            assert_eq!(tree.nodes[length - 1].parent, Some(length - 2));
            assert_eq!(tree.nodes[length - 1].entry["id"], (length - 1).to_string());
            assert_eq!(tree.leaf_id.as_deref(), Some("x"));
        }
        assert_eq!(client.call::<Value>("get_fine", &json!({})).await.unwrap(), 7);
    };
    tokio::join!(agent, calls);
}

#[tokio::test]
async fn every_client_wait_times_out() {
    let times = Times {
        command: Duration::from_millis(100),
        idle: Duration::from_millis(100),
        ..Times::default()
    };
    let (client, mut fake) = pair(options().times(times), 0).await;
    assert!(matches!(client.state().await, Err(Error::TimedOut { .. })));
    fake.expect("get_state").await;
    assert!(matches!(
        client.events().next().await,
        Err(Error::TimedOut { .. })
    ));
    let mut events = client.events();
    drop(fake);
    assert!(matches!(events.next().await, Err(Error::Exited { .. })));
    assert!(matches!(client.ask("x").await, Err(Error::Exited { .. })));
}

#[tokio::test]
async fn refused_host_tools_keep_previous_ones() {
    let (client, mut fake) = pair(options(), 0).await;
    let refuse = async {
        let line = fake.expect("set_host_tools").await;
        fake.say(json!({"id": line["id"], "type": "response", "success": false, "error": "Unknown command: set_host_tools"}))
            .await;
    };
    let tool = HostTool::new("x", "X.", json!({"type": "object"}), |_| async {
        Ok(ToolResult::text("x"))
    });
    let (answer, ()) = tokio::join!(client.set_tools(vec![tool]), refuse);
    assert!(answer.unwrap_err().is_unknown_command());
    fake.say(call("h", "x", json!({}))).await;
    assert_eq!(fake.expect("host_tool_result").await["isError"], true);
}

#[tokio::test]
async fn unanswered_host_tools_can_be_called() {
    let times = Times {
        command: Duration::from_millis(100),
        ..Times::default()
    };
    let (client, mut fake) = pair(options().times(times), 0).await;
    let tool = HostTool::new("x", "X.", json!({"type": "object"}), |_| async {
        Ok(ToolResult::text("x"))
    });
    assert!(matches!(
        client.set_tools(vec![tool]).await,
        Err(Error::TimedOut { .. })
    ));
    // The agent takes them later.
    fake.expect("set_host_tools").await;
    fake.say(call("h", "x", json!({}))).await;
    assert_eq!(fake.expect("host_tool_result").await.get("isError"), None);
}

#[tokio::test]
async fn refused_greeting_ends_the_stream() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let (input, out) = tokio::io::split(theirs);
    let mut fake = Fake {
        lines: BufReader::new(input).lines(),
        out,
    };
    let refuse = async {
        let line = fake.expect("get_state").await;
        fake.say(json!({"id": line["id"], "type": "response", "success": false, "error": "no"}))
            .await;
        let rest = timeout(WAIT, fake.lines.next_line()).await;
        rest.unwrap().unwrap()
    };
    let (client, rest) = tokio::join!(Client::over(reader, writer, options()), refuse);
    assert!(matches!(client, Err(Error::Refused { .. })));
    assert_eq!(rest, None);
}

#[test]
fn readme_shows_hello_example() {
    let example = include_str!("../examples/hello.rs");
    let code = example.split_once("\n\n").unwrap().1;
    assert!(include_str!("../README.md").contains(code));
}
