//! Our Rust client in front of the program, with scripted answers. The client's own tests talk to a stand-in.

use std::collections::BTreeMap;
use std::time::Duration;

use pinion_client::wire::changes::{ChangesParams, FileStatus, RewindParams, RewindTarget};
use pinion_client::wire::command::FallbackModelsParams;
use pinion_client::wire::process::{KillProcessParams, ReadProcessParams, WriteProcessParams};
use pinion_client::wire::run_limits::SetLimitsParams;
use pinion_client::wire::subagent::SubagentMessagesParams;
use pinion_client::wire::{RunLimits, StopReason, ToolResult};
use pinion_client::{Answer, Client, Error, Event, HostTool, OpenSession, Options, Prompt, Script};
use serde_json::{Value, json};

fn options(folder: &tempfile::TempDir, script: Script) -> Options {
    Options::new(env!("CARGO_BIN_EXE_pinion"))
        .cwd(folder.path())
        .env("HOME", folder.path())
        .env("PI_CODING_AGENT_DIR", folder.path().join("agent"))
        .script(script)
}

async fn start(folder: &tempfile::TempDir, script: Script) -> Client {
    Client::start(options(folder, script)).await.unwrap()
}

#[tokio::test]
async fn client_receives_text_tools_and_failures() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), "remember the milk").unwrap();
    let script = Script::new()
        .slow_reply(&["one ", "two"], 0.05)
        .tool_call("read", &json!({"path": "note.txt"}))
        .reply("done")
        .failure("auth");
    let client = start(&folder, script).await;
    let mut run = client.run("count").await.unwrap();
    let mut pieces = Vec::new();
    while let Some(piece) = run.next_text().await.unwrap() {
        pieces.push(piece);
    }
    assert_eq!(pieces.concat(), "one two");
    assert_eq!(run.finish().await.unwrap().stop_reason, Some(StopReason::Stop));

    let mut run = client.run("read it").await.unwrap();
    let mut read = String::new();
    while let Some(event) = run.next().await.unwrap() {
        assert!(!matches!(event, Event::Other(_)), "{event:?} has no form");
        if let Event::ToolExecutionEnd { result, .. } = event {
            read = result.joined_text();
        }
    }
    assert!(read.contains("milk"), "{read}");
    let outcome = run.finish().await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.messages.len()), ("done", 4));

    let error = client.ask("fail").await.unwrap_err();
    assert!(
        matches!(&error, Error::Failed(outcome) if outcome.stop_reason == Some(StopReason::Error)),
        "{error}"
    );
    assert!(error.to_string().contains("401"), "{error}");
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test]
async fn client_commands_and_refusals_are_typed() {
    let folder = tempfile::tempdir().unwrap();
    let client = start(&folder, Script::new().reply("hello")).await;
    client.ask("hi").await.unwrap();
    assert_eq!(client.last_text().await.unwrap().text.as_deref(), Some("hello"));
    // The client speaks the dialect of today's pi, whose sessions begin with the system prompt.
    let messages = client.messages().await.unwrap().messages;
    let roles: Vec<&str> = messages.iter().map(|message| message.role()).collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    assert_eq!(client.stats().await.unwrap().assistant_messages, 1);
    assert_eq!(client.bash("exit 3").await.unwrap().exit_code, Some(3));
    client.set_name("mine").await.unwrap();
    assert_eq!(
        client.state().await.unwrap().session_name.as_deref(),
        Some("mine")
    );
    assert_eq!(client.list_sessions().await.unwrap().sessions.len(), 1);
    assert!(!client.available_models().await.unwrap().models.is_empty());
    assert!(client.cycle_thinking_level().await.unwrap().is_none());
    assert!(!client.new_session().await.unwrap().cancelled);
    let error = client.set_model("nobody", "nothing").await.unwrap_err();
    assert_eq!(error.to_string(), "set_model: Model not found: nobody/nothing");
    let error = client
        .call::<()>("no_such_command", &json!({}))
        .await
        .unwrap_err();
    assert!(error.is_unknown_command());
}

#[tokio::test]
async fn client_has_method_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new().reply("one").reply("two");
    let client = start(&folder, script).await;
    client.ask("hi").await.unwrap();
    let limits = RunLimits {
        max_turns: Some(1),
        ..RunLimits::default()
    };
    let params = SetLimitsParams { limits, reset: None };
    let known = client.set_limits(&params).await.unwrap();
    assert_eq!((known.used.turns, known.reached.unwrap().value), (1, 1.0));
    let error = client.continue_().await.unwrap_err();
    assert!(error.to_string().starts_with("continue: "), "{error}");
    client.set_limits(&SetLimitsParams::default()).await.unwrap();
    assert!(client.limits().await.unwrap().reached.is_none());
    assert_eq!(client.list_processes().await.unwrap().processes, []);
    let models = FallbackModelsParams {
        models: vec!["offline/echo".to_owned()],
    };
    client.set_fallback_models(&models).await.unwrap();
    assert_eq!(client.fallback_models().await.unwrap().models, models.models);
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test]
async fn client_runs_can_be_aborted_joined_and_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let of = |prompt: &str, item: Value| json!({"match": {"contains": prompt}, "stream": [item]});
    let endless = |prompt: &str| of(prompt, json!({"text": ["a", {"delay": 600.0}, "b"]}));
    let busy = json!({"command": "until [ -e go ]; do sleep 0.05; done"});
    // A request contains the earlier prompts, so the replies to the last prompt come first.
    let script = Script::new()
        .raw(of("prompt-4", json!({"text": "after"})))
        .raw(of("prompt-3", json!({"tool": {"name": "bash", "args": busy}})))
        .raw(of("prompt-3", json!({"text": "done"})))
        .raw(endless("prompt-2"))
        .raw(endless("prompt-1"));
    let client = start(&folder, script).await;
    let mut run = client.run("prompt-1").await.unwrap();
    assert_eq!(run.next_text().await.unwrap().as_deref(), Some("a"));
    run.abort().await.unwrap();
    assert!(run.finish().await.unwrap().aborted);
    let error = client
        .ask_within("prompt-2", Duration::from_secs(1))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    client.abort().await.unwrap();
    let mut run = client.run("prompt-3").await.unwrap();
    assert!(matches!(client.run("now").await, Err(Error::Refused { .. })));
    let mut joined = client.run(Prompt::new("prompt-4").follow_up()).await.unwrap();
    std::fs::write(folder.path().join("go"), "").unwrap();
    assert_eq!(joined.finish().await.unwrap().text, "after");
    assert_eq!(run.finish().await.unwrap().text, "after");
}

#[tokio::test]
async fn client_receives_results_as_types() {
    type Count = BTreeMap<String, u32>;
    let folder = tempfile::tempdir().unwrap();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let right = json!({"n": 4});
    let script = Script::new()
        .tool_call("submit_result", &json!({"n": "x"}))
        .tool_call("submit_result", &right)
        .tool_call("submit_result", &json!({"n": -1}))
        .tool_call("submit_result", &json!({"result": null}))
        .reply("no")
        .reply("never");
    let client = start(&folder, script).await;
    let count: Count = client.ask_json("count", schema.clone()).await.unwrap();
    assert_eq!(count, Count::from([("n".to_owned(), 4)]));
    // The schema allows what the type does not.
    let error = client
        .ask_json::<Count>("count", schema.clone())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Protocol(_)), "{error}");
    let nothing = client
        .ask_json::<Option<u8>>("count", json!({"type": "null"}))
        .await;
    assert_eq!(nothing.unwrap(), None);
    let limits = serde_json::from_value(json!({"maxTurns": 1})).unwrap();
    let prompt = Prompt::new("count").limits(limits);
    let error = client.ask_json::<Count>(prompt, schema).await.unwrap_err();
    assert_eq!(error.to_string(), "Limit reached: 1 turn");
}

#[tokio::test]
async fn client_start_failure_has_reason() {
    let folder = tempfile::tempdir().unwrap();
    let error = Client::start(
        options(&folder, Script::new())
            .arg("--rpc-dialect")
            .arg("klingon"),
    )
    .await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Start(_)), "{error}");
    assert!(error.to_string().contains("pi-delta"), "{error}");
    let error = Client::start(Options::new(folder.path().join("nothing")))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Start(_)), "{error}");
}

/// Judges once the agent has host tools and many sessions; until then it only says so.
#[tokio::test]
async fn client_supports_host_tools_and_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new()
        .when("red", "RED")
        .when("blue", "BLUE")
        .tool_call("double", &json!({"n": 4}))
        .reply("done");
    let client = start(&folder, script).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let double = HostTool::new("double", "Doubles a number.", schema, |call| async move {
        let n = call
            .arguments()
            .get("n")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        Ok(ToolResult::text((n * 2).to_string()))
    });
    match client.set_tools(vec![double]).await {
        Ok(names) => {
            assert_eq!(names, ["double"]);
            let mut run = client.run("compute").await.unwrap();
            let mut results = Vec::new();
            while let Some(event) = run.next().await.unwrap() {
                if let Event::ToolExecutionEnd { result, .. } = event {
                    results.push(result.joined_text());
                }
            }
            assert_eq!(results, ["8"]);
        }
        Err(error) => assert!(error.is_unknown_command(), "{error}"),
    }
    let cwd = folder.path().join("other");
    std::fs::create_dir(&cwd).unwrap();
    let wanted = OpenSession {
        cwd: Some(cwd.display().to_string()),
        ..OpenSession::default()
    };
    match client.open_session(wanted).await {
        Ok(second) => {
            let (red, blue) = tokio::join!(client.ask("red"), second.ask("blue"));
            assert_eq!(
                (red.unwrap(), blue.unwrap()),
                ("RED".to_owned(), "BLUE".to_owned())
            );
            second.close_session().await.unwrap();
        }
        Err(error) => assert!(error.is_unknown_command(), "{error}"),
    }
}

#[tokio::test]
async fn client_dialogs_reach_handler() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new()
        .tool_call("bash", &json!({"command": "touch allowed"}))
        .reply("done")
        .tool_call("bash", &json!({"command": "touch refused"}))
        .reply("done");
    let with = |script| options(&folder, script).arg("--permission-mode").arg("ask");
    let options = with(script).on_dialog(|dialog| async move {
        assert_eq!((dialog.method.as_str(), dialog.options.len()), ("select", 3));
        match dialog.title.contains("allowed") {
            true => Answer::Value("Allow once".to_owned()),
            false => Answer::Cancelled,
        }
    });
    let client = Client::start(options).await.unwrap();
    client.ask("one").await.unwrap();
    client.ask("two").await.unwrap();
    assert!(folder.path().join("allowed").exists() && !folder.path().join("refused").exists());
    client.close().await;
    // Without a dialog handler the library answers, so that the agent does not wait.
    let script = Script::new()
        .tool_call("bash", &json!({"command": "touch refused"}))
        .reply("done");
    let client = Client::start(with(script)).await.unwrap();
    assert_eq!(client.ask("three").await.unwrap(), "done");
    assert!(!folder.path().join("refused").exists());
}

#[tokio::test]
async fn cancelled_dialog_ends_client_handler() {
    struct Ended(tokio::sync::mpsc::UnboundedSender<&'static str>);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.send("ended").unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let script = Script::new().tool_call("bash", &json!({"command": "true"}));
    let options = options(&folder, script)
        .arg("--permission-mode")
        .arg("ask")
        .on_dialog(move |_| {
            let ended = Ended(sender.clone());
            async move {
                ended.0.send("asked").unwrap();
                std::future::pending().await
            }
        });
    let client = Client::start(options).await.unwrap();
    let _run = client.run("go").await.unwrap();
    let asked = tokio::time::timeout(Duration::from_secs(40), heard.recv()).await;
    assert_eq!(asked.unwrap(), Some("asked"));
    client.abort().await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(40), heard.recv()).await;
    assert_eq!(ended.unwrap(), Some("ended"));
}

#[tokio::test]
async fn client_rewinds_changed_files() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new()
        .tool_call("write", &json!({"path": "made.txt", "content": "one\n"}))
        .reply("done");
    let given = options(&folder, script).arg("--checkpoints").arg("files");
    let client = Client::start(given).await.unwrap();
    client.ask("make a file").await.unwrap();
    let changes = client.changes(ChangesParams::default()).await.unwrap();
    assert_eq!(changes.files.len(), 1);
    assert_eq!(changes.files[0].status, FileStatus::Added);
    let prompt = client.fork_messages().await.unwrap().messages[0].entry_id.clone();
    let target = RewindParams {
        entry_id: prompt,
        what: RewindTarget::Both,
        force: false,
    };
    let rewound = client.rewind(target).await.unwrap();
    assert_eq!((rewound.restored.len(), rewound.kept.len()), (1, 0));
    assert!(!folder.path().join("made.txt").exists());
    assert_eq!(client.unrewind(false).await.unwrap().restored.len(), 1);
    assert!(folder.path().join("made.txt").exists());
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test]
async fn client_controls_background_processes() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new()
        .tool_call("bash", &json!({"command": "echo ready; cat", "background": true}))
        .reply("started");
    let given = options(&folder, script).arg("--tools").arg("bash,process");
    let client = Client::start(given).await.unwrap();
    client.ask("start it").await.unwrap();
    let processes = client.list_processes().await.unwrap().processes;
    assert_eq!(processes.len(), 1);
    let process_id = processes[0].process_id.clone();
    let typed = WriteProcessParams {
        process_id: process_id.clone(),
        data: "typed\n".to_owned(),
    };
    client.write_process(&typed).await.unwrap();
    let read = ReadProcessParams {
        process_id: process_id.clone(),
        from_byte: None,
        max_bytes: None,
        notify: None,
    };
    let mut text = String::new();
    for _ in 0..1_500 {
        text = client.read_process(&read).await.unwrap().text;
        if text.contains("typed") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(text.contains("ready") && text.contains("typed"), "{text}");
    let killed = client
        .kill_process(&KillProcessParams { process_id })
        .await
        .unwrap();
    assert_eq!(killed.process_id, processes[0].process_id);
    assert_eq!(client.close().await, Some(0));
}

#[tokio::test]
async fn client_reads_messages_of_subagents() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::new()
        .tool_call(
            "task",
            &json!({"description": "Say one", "prompt": "Say one word."}),
        )
        .reply("one word")
        .reply("The answer came.");
    let given = options(&folder, script).arg("--tools").arg("task");
    let client = Client::start(given).await.unwrap();
    let mut run = client.run("delegate").await.unwrap();
    let mut session_file = None;
    while let Some(event) = run.next().await.unwrap() {
        if let Event::ToolExecutionEnd { result, .. } = event {
            let details = result.details.unwrap();
            session_file = details["sessionFile"].as_str().map(str::to_owned);
        }
    }
    let params = SubagentMessagesParams {
        subagent_id: None,
        session_file,
        from_byte: None,
    };
    let read = client.subagent_messages(&params).await.unwrap();
    let messages = serde_json::to_string(&read.messages).unwrap();
    assert!(messages.contains("one word"), "{messages}");
    assert!(client.subagents().await.unwrap().subagents.is_empty());
    assert_eq!(client.close().await, Some(0));
}
