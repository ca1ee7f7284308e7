//! `switch_session`, `new_session`, `fork` and `clone` replace the session of a process: what becomes of the old one, its run
//! above all, and what the new one begins with. What a fork copies is in `forks`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply, Usage};

use crate::check;
use crate::kit::{LONG, Pi, World, answered_at, answers, bash, kinds, of_type, text, until};

/// What the old session is doing when it has to go.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Busy {
    No,
    Streaming,
    Tool,
    RetryWait,
    Compacting,
}

const CHANGES: [&str; 4] = ["new_session", "switch_session", "fork", "clone"];

/// An answer that fills the context of the model of 200,000 tokens.
fn full(reply: Reply) -> Reply {
    reply.usage(Usage {
        input: 190_000,
        ..Usage::default()
    })
}

/// A finished session of another process.
fn other_session(world: &World) -> PathBuf {
    world.server.push(Reply::text(["other answer"]));
    let pi = world.start();
    pi.say("Other question");
    let file = pi.file();
    pi.finish();
    file
}

/// A world where every retry and every summary takes forever.
fn slow_world() -> World {
    let world = World::new([]);
    world.settings(json!({
        "retry": {"baseDelayMs": 600_000, "maxAgentDelayMs": 600_000, "provider": {"maxRetries": 0}},
        "compaction": {"keepRecentTokens": 3},
    }));
    world
}

/// Brings a session with one exchange into the state.
fn keep_busy(world: &World, pi: &Pi, busy: Busy) {
    let first = match busy {
        Busy::No => return,
        Busy::Streaming => Reply::text(["half"]).gate("never").then_text([" LATE"]),
        Busy::Tool => bash("c1", "touch begun; sleep 600"),
        Busy::RetryWait => Reply::error(ErrorKind::Overloaded),
        Busy::Compacting => full(Reply::text(["a long answer for the file"])),
    };
    world.server.push(first);
    if busy == Busy::Compacting {
        world
            .server
            .push(Reply::new().gate("never").then_text(["LATE summary"]));
    }
    pi.agent.skip();
    pi.prompt("Busy question");
    match busy {
        Busy::No => {}
        Busy::Streaming => drop(pi.wait_update("text_delta")),
        Busy::Tool => until("the tool", || world.dir.cwd().join("begun").exists()),
        Busy::RetryWait => drop(pi.wait("auto_retry_start")),
        Busy::Compacting => {
            pi.wait("compaction_start");
            world.server.wait_gate("never", LONG).unwrap();
        }
    }
    pi.data(json!({"type": "steer", "message": "STEER"}));
    pi.data(json!({"type": "follow_up", "message": "FOLLOW"}));
    assert_eq!(pi.state()["pendingMessageCount"], 2);
}

/// The command, fit for the session.
fn command(kind: &str, pi: &Pi, other: &Path) -> Value {
    match kind {
        "switch_session" => json!({"type": kind, "sessionPath": other}),
        "fork" => {
            let entry = pi.get("get_fork_messages")["messages"][0]["entryId"].clone();
            json!({"type": kind, "entryId": entry})
        }
        _ => json!({ "type": kind }),
    }
}

/// How the run was told to end, between its last sign of life and the response.
fn check_ending(busy: Busy, tail: &[Value], old: &Path) {
    let mut ends = kinds(tail);
    let told = ends.remove(ends.len().saturating_sub(2));
    assert_eq!(told, "session_changed", "right before the response");
    let held = check::messages(old);
    let last = held.last().unwrap();
    match busy {
        Busy::No => assert_eq!(ends, ["response"]),
        Busy::Streaming => {
            assert_eq!(
                ends,
                [
                    "message_end",
                    "turn_end",
                    "agent_end",
                    "agent_settled",
                    "response"
                ]
            );
            assert_eq!(
                (text(last), &last["stopReason"]),
                ("half".to_owned(), &json!("aborted"))
            );
        }
        Busy::Tool => {
            assert_eq!(
                ends[..4],
                ["tool_execution_end", "message_start", "message_end", "turn_end"]
            );
            assert_eq!(ends[ends.len() - 3..], ["agent_end", "agent_settled", "response"]);
            let result = held
                .iter()
                .rfind(|message| message["role"] == "toolResult")
                .unwrap();
            assert_eq!(
                (&result["toolCallId"], &result["isError"]),
                (&json!("c1"), &json!(true))
            );
        }
        Busy::RetryWait => {
            assert_eq!(ends, ["auto_retry_end", "agent_settled", "response"]);
            let end = of_type(tail, "auto_retry_end")[0];
            assert_eq!(
                (&end["success"], &end["finalError"]),
                (&json!(false), &json!("Retry cancelled"))
            );
            assert_eq!(last["stopReason"], "error");
        }
        Busy::Compacting => {
            assert_eq!(ends, ["compaction_end", "agent_settled", "response"]);
            let end = of_type(tail, "compaction_end")[0];
            assert_eq!((&end["aborted"], &end["result"]), (&json!(true), &json!(null)));
            assert!(
                check::entries(old)
                    .iter()
                    .all(|entry| entry["type"] != "compaction")
            );
        }
    }
    for settled in of_type(tail, "agent_settled") {
        assert_eq!(settled["aborted"], true);
    }
    let told: Vec<&Value> = of_type(tail, "message_end")
        .iter()
        .map(|line| &line["message"])
        .collect();
    assert!(
        told.iter().all(|message| held.contains(message)),
        "not on disk in {}",
        old.display()
    );
}

/// One change in one state.
fn leaves(busy: Busy, kind: &str) {
    let world = slow_world();
    let other = other_session(&world);
    world.server.push(Reply::text(["first answer"]));
    let pi = world.start();
    pi.say("First question");
    keep_busy(&world, &pi, busy);
    let old = pi.file();
    let before = pi.messages();
    let command = command(kind, &pi, &other);
    let so_far = pi.lines().len();
    let id = pi.send(command);
    let response = pi.response(&id);
    assert_eq!(
        (&response["success"], &response["data"]["cancelled"]),
        (&json!(true), &json!(false))
    );
    let lines = pi.lines();
    let at = answered_at(&lines, &id);
    let tail: Vec<Value> = lines[so_far..=at]
        .iter()
        .filter(|line| line["type"] != "queue_update")
        .cloned()
        .collect();
    check_ending(busy, &tail, &old);

    let state = pi.state();
    assert_ne!(state["sessionFile"], old.to_str().unwrap());
    assert_eq!(
        (
            &state["isStreaming"],
            &state["isRetrying"],
            &state["isCompacting"],
            &state["pendingMessageCount"]
        ),
        (&json!(false), &json!(false), &json!(false), &json!(0)),
        "{state}"
    );
    let messages = pi.messages();
    match kind {
        "new_session" | "fork" => assert_eq!(messages, [] as [Value; 0]),
        "switch_session" => assert_eq!(text(&messages[1]), "other answer"),
        _ => assert_eq!(messages[..2], before[..2]),
    }
    // Nothing that the old run still does may show up in the new session.
    let held = std::fs::read(&old).unwrap();
    world.server.release("never");
    world.server.push(Reply::text(["new answer"]));
    // A clone of a full session would be compacted before the prompt.
    pi.data(json!({"type": "set_auto_compaction", "enabled": false}));
    pi.agent.skip();
    let lines = pi.say("New question");
    let expected = [
        "response",
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
    ];
    assert_eq!(kinds(&lines)[..5], expected, "{:?}", kinds(&lines));
    assert_eq!(text(answers(&lines)[0]), "new answer");
    let request = world.server.requests().last().unwrap().body.to_string();
    for word in ["STEER", "FOLLOW", "LATE"] {
        assert!(!request.contains(word), "{request}");
    }
    assert!(request.contains("New question"));
    if kind != "clone" {
        assert!(!request.contains("Busy question"), "{request}");
    }
    assert_eq!(std::fs::read(&old).unwrap(), held, "the old file is left alone");
    until("the end of the tool", || pi.agent.processes().len() <= 2);
    pi.finish();
}

#[test]
fn switching_leaves_idle_session() {
    CHANGES.iter().for_each(|kind| leaves(Busy::No, kind));
}

#[test]
fn switching_ends_streaming_answer_first() {
    CHANGES.iter().for_each(|kind| leaves(Busy::Streaming, kind));
}

#[test]
fn switching_ends_running_tool_first() {
    CHANGES.iter().for_each(|kind| leaves(Busy::Tool, kind));
}

#[test]
fn switching_ends_retry_wait_first() {
    CHANGES.iter().for_each(|kind| leaves(Busy::RetryWait, kind));
}

#[test]
fn switching_ends_compaction_first() {
    CHANGES.iter().for_each(|kind| leaves(Busy::Compacting, kind));
}

#[test]
fn switching_reports_emptied_queues() {
    let world = slow_world();
    let pi = world.start();
    keep_busy(&world, &pi, Busy::Streaming);
    pi.data(json!({"type": "new_session"}));
    let lines = pi.lines();
    let update = of_type(&lines, "queue_update").last().unwrap().to_owned();
    assert_eq!(
        (&update["steering"], &update["followUp"]),
        (&json!([]), &json!([]))
    );
    pi.finish();
}

#[test]
fn switching_restores_model_and_level() {
    let world = World::new([Reply::text(["by gpt"]), Reply::text(["by claude"])]);
    let pi = world.start();
    pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    pi.data(json!({"type": "set_thinking_level", "level": "high"}));
    pi.say("Hi");
    let gpt = pi.file();
    pi.data(json!({"type": "new_session"}));
    pi.data(json!({"type": "set_model", "provider": "mock-anthropic", "modelId": "claude-mock"}));
    pi.data(json!({"type": "set_thinking_level", "level": "low"}));
    pi.say("Hi");
    let claude = pi.file();
    for (file, model, level, path) in [
        (&gpt, "gpt-mock", "high", "/openai/"),
        (&claude, "claude-mock", "low", "/anthropic/"),
    ] {
        pi.data(json!({"type": "switch_session", "sessionPath": file}));
        let state = pi.state();
        assert_eq!(
            (&state["model"]["id"], &state["thinkingLevel"]),
            (&json!(model), &json!(level))
        );
        let before = check::entries(file).len();
        world.server.push(Reply::text(["again"]));
        pi.say("Again");
        let request = world.server.requests().last().unwrap().clone();
        assert!(request.path.starts_with(path), "{}", request.path);
        assert_eq!(check::entries(file).len(), before + 2, "opening writes nothing");
    }
    pi.finish();
}

/// A process with one exchange, and the line of its session file.
fn begun(world: &World) -> (Pi, PathBuf) {
    world.server.push(Reply::text(["first answer"]));
    let pi = world.start();
    pi.say("First question");
    let file = pi.file();
    (pi, file)
}

/// The old session is still there and writes to its file.
fn goes_on(world: &World, pi: Pi, file: &Path) {
    let state = pi.state();
    assert_eq!(state["sessionFile"], file.to_str().unwrap(), "{state}");
    assert_eq!(text(&pi.messages()[0]), "First question");
    let before = check::roles(file).len();
    world.server.push(Reply::text(["further"]));
    pi.say("Further");
    assert_eq!(check::roles(file).len(), before + 2);
    pi.finish();
}

#[test]
fn switching_to_session_with_missing_directory_is_refused() {
    let world = World::new([]);
    let other = other_session(&world);
    let gone = world.dir.root().join("gone");
    let content = std::fs::read_to_string(&other).unwrap();
    let cwd = world.dir.cwd().to_str().unwrap().to_owned();
    std::fs::write(&other, content.replacen(&cwd, gone.to_str().unwrap(), 1)).unwrap();
    let (pi, file) = begun(&world);
    let error = pi.error(json!({"type": "switch_session", "sessionPath": other}));
    assert_eq!(
        error,
        format!(
            "Stored session working directory does not exist: {}\nSession file: {}\nCurrent working directory: {cwd}",
            gone.display(),
            other.display()
        )
    );
    goes_on(&world, pi, &file);
}

#[test]
fn switching_to_non_session_file_is_refused() {
    for content in [
        "These are my notes.\n",
        "{\"a\":1}\n",
        "{\"type\":\"session\",\"version\":3}\n",
    ] {
        let world = World::new([]);
        let notes = world.dir.cwd().join("notes.jsonl");
        std::fs::write(&notes, content).unwrap();
        let (pi, file) = begun(&world);
        let error = pi.error(json!({"type": "switch_session", "sessionPath": "notes.jsonl"}));
        assert!(error.contains("notes.jsonl"), "{error}");
        let error = pi.error(json!({"type": "switch_session", "sessionPath": world.dir.cwd()}));
        assert!(!error.is_empty());
        goes_on(&world, pi, &file);
        assert_eq!(std::fs::read_to_string(&notes).unwrap(), content);
    }
}

#[test]
fn switching_to_locked_session_is_refused() {
    let world = World::new([]);
    let other = other_session(&world);
    let holder = world.start_with(&["--session", other.to_str().unwrap()]);
    holder.state();
    let (pi, file) = begun(&world);
    let error = pi.error(json!({"type": "switch_session", "sessionPath": other}));
    assert!(error.contains("open in another process"), "{error}");
    goes_on(&world, pi, &file);
    holder.finish();
}

#[test]
fn failed_switch_during_run_keeps_session_usable() {
    let world = slow_world();
    std::fs::write(world.dir.cwd().join("notes.jsonl"), "notes\n").unwrap();
    let (pi, file) = begun(&world);
    keep_busy(&world, &pi, Busy::Streaming);
    pi.error(json!({"type": "switch_session", "sessionPath": "notes.jsonl"}));
    world.server.release("never");
    pi.settled();
    world.server.push(Reply::text(["more"]).repeat());
    pi.data(json!({"type": "clear_queue"}));
    goes_on(&world, pi, &file);
}

#[test]
fn switching_to_current_session_changes_nothing() {
    let world = World::new([]);
    let (pi, file) = begun(&world);
    let (state, messages) = (pi.state(), pi.messages());
    let held = std::fs::read(&file).unwrap();
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!((pi.state(), pi.messages()), (state, messages));
    assert_eq!(std::fs::read(&file).unwrap(), held);
    goes_on(&world, pi, &file);
}

#[test]
fn switching_before_first_prompt_to_itself_keeps_file() {
    let world = World::new([Reply::text(["first answer"])]);
    let pi = world.start();
    let file = pi.file();
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(pi.file(), file);
    pi.say("First question");
    assert_eq!(check::roles(&file), ["user", "assistant"]);
    pi.finish();
}

#[test]
fn failed_switch_to_current_session_keeps_it() {
    let world = World::new([]);
    let (pi, file) = begun(&world);
    std::fs::remove_dir_all(world.dir.cwd()).unwrap();
    pi.error(json!({"type": "switch_session", "sessionPath": file}));
    goes_on(&world, pi, &file);
}

#[test]
fn switching_to_missing_file_creates_session_there() {
    let world = World::new([]);
    let (pi, old) = begun(&world);
    pi.data(json!({"type": "switch_session", "sessionPath": "kept/here.jsonl"}));
    let path = world.dir.cwd().join("kept/here.jsonl");
    let state = pi.state();
    assert_eq!(
        (&state["sessionFile"], &state["messageCount"]),
        (&json!(path), &json!(0))
    );
    assert_eq!(state["model"]["id"], "claude-mock");
    world.server.push(Reply::text(["here"]));
    pi.say("Where?");
    assert_eq!(check::header(&path)["id"], state["sessionId"]);
    assert_eq!(check::roles(&path), ["user", "assistant"]);
    let first = &check::entries(&path)[0];
    assert_eq!(
        first["type"], "model_change",
        "a new session says what model it begins with: {first}"
    );
    assert_eq!(check::roles(&old), ["user", "assistant"]);
    pi.finish();
}

#[test]
fn unsaved_session_can_be_forked_and_left() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"]), Reply::text(["three"])]);
    let pi = world.start_with(&["--no-session"]);
    pi.say("One");
    pi.say("Two");
    let second = pi.get("get_fork_messages")["messages"][1]["entryId"].clone();
    assert_eq!(pi.data(json!({"type": "fork", "entryId": second}))["text"], "Two");
    assert_eq!(pi.messages().len(), 2);
    pi.data(json!({"type": "clone"}));
    assert_eq!(pi.messages().len(), 2);
    pi.say("Three");
    pi.data(json!({"type": "new_session"}));
    assert_eq!(
        (pi.state()["sessionFile"].clone(), pi.messages().len()),
        (Value::Null, 0)
    );
    pi.finish();
    assert!(world.session_files().is_empty());
}

#[test]
fn switching_changes_working_directory_of_tools() {
    let world = World::new([]);
    let elsewhere = world.dir.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let other = other_session(&world);
    let content = std::fs::read_to_string(&other).unwrap();
    let (here, there) = (world.dir.cwd(), elsewhere.to_str().unwrap());
    std::fs::write(&other, content.replacen(here.to_str().unwrap(), there, 1)).unwrap();
    let (pi, file) = begun(&world);
    pi.data(json!({"type": "switch_session", "sessionPath": other}));
    assert_eq!(
        pi.data(json!({"type": "bash", "command": "pwd"}))["output"],
        format!("{there}\n")
    );
    world.server.push(bash("c1", "pwd"));
    world.server.push(Reply::text(["there"]));
    let lines = pi.say("Where?");
    assert!(
        of_type(&lines, "tool_execution_end")[0]
            .to_string()
            .contains(there)
    );
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    let output = pi.data(json!({"type": "bash", "command": "pwd"}))["output"].clone();
    assert_eq!(output, format!("{}\n", here.display()));
    pi.finish();
}

#[test]
fn shell_command_of_old_session_stays_there() {
    let world = World::new([]);
    let (pi, _) = begun(&world);
    let command = pi.send(json!({"type": "bash", "command": "touch begun; sleep 600"}));
    until("the command", || world.dir.cwd().join("begun").exists());
    pi.data(json!({"type": "new_session"}));
    assert_eq!(pi.response(&command)["data"]["cancelled"], true);
    assert_eq!(pi.messages(), [] as [Value; 0]);
    world.server.push(Reply::text(["fresh"]));
    pi.say("Hello");
    let request = world.server.requests().last().unwrap().body.to_string();
    assert!(!request.contains("touch begun"), "{request}");
    pi.finish();
}

#[test]
fn switching_repeatedly_keeps_both_sessions() {
    let world = World::new([]);
    world
        .server
        .set_rule(|request| Reply::text([format!("answer {}", request.n)]));
    let pi = world.start();
    pi.say("A 0");
    let a = pi.file();
    pi.data(json!({"type": "new_session"}));
    pi.say("B 0");
    let b = pi.file();
    for round in 1..8 {
        for (file, name) in [(&a, "A"), (&b, "B")] {
            pi.data(json!({"type": "switch_session", "sessionPath": file}));
            pi.say(&format!("{name} {round}"));
            let messages = pi.messages();
            assert_eq!(messages.len(), 2 * (round + 1));
            let users = messages.iter().filter(|message| message["role"] == "user");
            assert!(
                users.clone().all(|message| text(message).starts_with(name)),
                "{messages:?}"
            );
        }
    }
    pi.finish();
    assert_eq!((check::roles(&a).len(), check::roles(&b).len()), (16, 16));
}

#[test]
fn sessions_without_messages_leave_no_file() {
    let world = World::new([]);
    let (pi, file) = begun(&world);
    for name in ["One", "Two", "Three"] {
        pi.data(json!({"type": "new_session"}));
        pi.data(json!({"type": "set_session_name", "name": name}));
        pi.data(json!({"type": "set_thinking_level", "level": "high"}));
    }
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(world.session_files(), std::slice::from_ref(&file));
    assert!(pi.state().get("sessionName").is_none());
    pi.finish();
}

#[test]
fn new_session_keeps_chosen_model_without_model_flag() {
    let world = World::new([]);
    let free = Pi::spawn(
        world
            .dir
            .agent(env!("CARGO_BIN_EXE_pinion"))
            .args(["--mode", "rpc"]),
    );
    for (pi, keeps) in [(free, true), (world.start(), false)] {
        let before = pi.state()["model"]["id"].clone();
        let models = pi.get("get_available_models")["models"].clone();
        let models = models.as_array().unwrap();
        let other = models.iter().find(|model| model["id"] != before).unwrap();
        pi.data(json!({"type": "set_model", "provider": other["provider"], "modelId": other["id"]}));
        pi.get("new_session");
        let expected = if keeps { &other["id"] } else { &before };
        assert_eq!(&pi.state()["model"]["id"], expected);
        pi.finish();
    }
}
