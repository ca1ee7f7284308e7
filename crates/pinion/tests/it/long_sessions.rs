//! Long conversations where several things meet: compaction and forks, overflow and other providers, small windows, commands
//! sent in one breath. Each alone is tested in its own file.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply, Usage};
use testkit::workspace::default_models;

use crate::check;
use crate::kit::{Pi, World, answers, bash, kinds, of_type, text};

fn used(reply: Reply, input: u64, output: u64) -> Reply {
    reply.usage(Usage {
        input,
        output,
        ..Usage::default()
    })
}

fn world(replies: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new(replies);
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    world
}

/// Three exchanges, a compaction, one more.
fn compacted(world: &World) -> Pi {
    for reply in ["One.", "Two.", "Three.", "THE SUMMARY", "Four."] {
        world.server.push(Reply::text([reply]));
    }
    let pi = world.start();
    for question in [
        "First question, rather long",
        "Second question, rather long",
        "Third question, rather long",
    ] {
        pi.say(question);
    }
    pi.get("compact");
    pi.say("Fourth question, rather long");
    pi
}

fn fork_at(pi: &Pi, question: &str) {
    let points = pi.get("get_fork_messages")["messages"].clone();
    let point = points
        .as_array()
        .unwrap()
        .iter()
        .find(|point| point["text"] == question)
        .unwrap()
        .clone();
    pi.data(json!({"type": "fork", "entryId": point["entryId"]}));
}

#[test]
fn fork_after_compaction_keeps_summary() {
    let world = world([]);
    let pi = compacted(&world);
    fork_at(&pi, "Fourth question, rather long");
    let texts: Vec<String> = pi.messages().iter().map(text).collect();
    assert_eq!(texts, ["THE SUMMARY", "Third question, rather long", "Three."]);
    assert_eq!(pi.get("get_context_usage")["usage"]["tokens"], Value::Null);
    world.server.push(Reply::text(["Another."]));
    pi.say("Another way");
    let request = world.server.requests().last().unwrap().body["messages"].to_string();
    assert!(
        request.contains("THE SUMMARY") && !request.contains("First question"),
        "{request}"
    );
    let (file, messages) = (pi.file(), pi.messages());
    pi.finish();
    let again = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(again.messages(), messages);
    again.finish();
}

#[test]
fn fork_before_compaction_excludes_summary() {
    let world = world([]);
    let pi = compacted(&world);
    fork_at(&pi, "Second question, rather long");
    let texts: Vec<String> = pi.messages().iter().map(text).collect();
    assert_eq!(texts, ["First question, rather long", "One."]);
    assert_eq!(pi.get("get_context_usage")["usage"]["tokens"], 120);
    pi.finish();
}

#[test]
fn clone_and_switch_keep_compaction() {
    let world = world([]);
    let pi = compacted(&world);
    let (old, messages) = (pi.file(), pi.messages());
    pi.data(json!({"type": "clone"}));
    assert_eq!(pi.messages(), messages);
    pi.data(json!({"type": "switch_session", "sessionPath": old}));
    assert_eq!(pi.messages(), messages);
    pi.finish();
}

#[test]
fn restart_does_not_repeat_compaction() {
    let world = world([
        used(Reply::text(["a long enough answer"]), 190_000, 20),
        Reply::text(["THE SUMMARY"]),
        Reply::text(["next"]),
    ]);
    let pi = world.start();
    pi.say("A question that is long enough");
    let file = pi.file();
    pi.finish();
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(pi.get("get_context_usage")["usage"]["tokens"], Value::Null);
    let lines = pi.say("Next");
    assert!(of_type(&lines, "compaction_start").is_empty());
    assert_eq!(text(answers(&lines)[0]), "next");
    pi.finish();
}

#[test]
fn silent_overflow_is_compacted_without_retry() {
    let world = world([
        used(Reply::text(["a long enough answer"]), 250_000, 20),
        Reply::text(["THE SUMMARY"]),
    ]);
    let pi = world.start();
    let lines = pi.say("A question that is long enough");
    assert_eq!(of_type(&lines, "compaction_end").len(), 1);
    assert_eq!(answers(&lines).len(), 1);
    assert_eq!(of_type(&lines, "compaction_end")[0]["willRetry"], false);
    assert_eq!(text(pi.messages().last().unwrap()), "a long enough answer");
    pi.finish();
}

#[test]
fn truncated_answer_without_room_is_overflow() {
    let world = world([
        Reply::text(["a long enough answer"]),
        used(Reply::new(), 199_500, 0).stop("length"),
        Reply::text(["THE SUMMARY"]),
        Reply::text(["with room"]),
    ]);
    let pi = world.start();
    pi.say("A question that is long enough");
    let lines = pi.say("Too much");
    assert_eq!(
        of_type(&lines, "compaction_start")[0]["reason"],
        "overflow",
        "{:?}",
        kinds(&lines)
    );
    assert_eq!(text(answers(&lines).last().unwrap()), "with room");
    pi.finish();
}

#[test]
fn overflow_of_first_prompt_cannot_compact() {
    let world = world([Reply::error(ErrorKind::ContextOverflow), Reply::text(["ok"])]);
    let pi = world.start();
    let lines = pi.say("Far too much");
    let end = of_type(&lines, "compaction_end");
    assert_eq!(end.len(), 1);
    assert_eq!(
        (&end[0]["result"], &end[0]["willRetry"]),
        (&json!(null), &json!(false))
    );
    assert_eq!(
        world.server.requests().len(),
        1,
        "nothing to summarise, nothing to ask again"
    );
    assert_eq!(text(answers(&pi.say("Less"))[0]), "ok");
    pi.finish();
}

#[test]
fn overflow_of_chat_completions_is_compacted() {
    let world = world([
        Reply::text(["a long enough answer"]),
        Reply::error(ErrorKind::ContextOverflow),
        Reply::text(["THE SUMMARY"]),
        Reply::text(["now it fits"]),
    ]);
    let pi = world.start_openai();
    pi.say("A question that is long enough");
    let lines = pi.say("Too much");
    assert_eq!(of_type(&lines, "compaction_start")[0]["reason"], "overflow");
    assert_eq!(text(answers(&lines)[1]), "now it fits");
    assert!(
        world
            .server
            .requests()
            .iter()
            .all(|request| request.path.starts_with("/openai/"))
    );
    assert!(world.server.requests()[2].body.get("tools").is_none());
    pi.finish();
}

#[test]
fn overflow_inside_tool_loop_is_recovered() {
    let world = world([
        bash("c1", "echo tool-output; echo x >> count"),
        Reply::error(ErrorKind::ContextOverflow),
        Reply::text(["THE SUMMARY"]),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    let lines = pi.say("A question that is long enough");
    assert_eq!(text(answers(&lines).last().unwrap()), "done");
    assert_eq!(
        std::fs::read_to_string(world.dir.cwd().join("count")).unwrap(),
        "x\n",
        "run once"
    );
    let request = world.server.requests()[3].body["messages"].to_string();
    let (calls, results) = (
        request.matches("\"tool_use\"").count(),
        request.matches("\"tool_result\"").count(),
    );
    assert_eq!(calls, results, "{request}");
    pi.finish();
}

/// A world whose Anthropic model has a window of 2,000 tokens.
fn small(replies: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new(replies);
    let mut models = default_models(&world.server.url());
    models["providers"]["mock-anthropic"]["models"][0]["contextWindow"] = json!(2_000);
    world.dir.write_models(&models).unwrap();
    world
}

#[test]
fn provider_without_usage_counts_is_compacted() {
    let world = small([]);
    world.server.set_rule(|request| {
        let tools = request.body.get("tools").is_some();
        used(
            Reply::text([if tools {
                "answer ".repeat(100)
            } else {
                "THE SUMMARY".to_owned()
            }]),
            0,
            0,
        )
    });
    let pi = world.start();
    for round in 0..8 {
        pi.say(&format!("Question {round} {}", "word ".repeat(50)));
    }
    let lines = pi.lines();
    let made = of_type(&lines, "compaction_end")
        .iter()
        .filter(|end| end["result"].is_object())
        .count();
    assert!((1..=6).contains(&made), "{made} compactions");
    for request in world.server.requests() {
        let size = request.body["messages"].to_string().len();
        assert!(size < 4 * 2_500, "{size} bytes in a request");
    }
    pi.finish();
}

#[test]
fn huge_tool_result_triggers_compaction_before_next_request() {
    let world = small([]);
    world
        .server
        .push(used(Reply::text(["earlier answer ".repeat(20)]), 100, 20));
    let pi = world.start();
    pi.say(&"An earlier question. ".repeat(20));
    world.server.push(used(bash("c1", "seq 1 1200"), 300, 20));
    world.server.push(Reply::text(["THE SUMMARY"]).repeat());
    let lines = pi.say("Go");
    let order: Vec<&str> = kinds(&lines)
        .into_iter()
        .filter(|kind| ["tool_execution_end", "compaction_start", "agent_end"].contains(kind))
        .collect();
    assert_eq!(
        order[..2],
        ["tool_execution_end", "compaction_start"],
        "{order:?}"
    );
    pi.finish();
}

#[test]
fn message_queued_before_compaction_stays_queued_after_it() {
    let world = world([
        Reply::text(["One."]),
        Reply::text(["Two."]),
        Reply::text(["THE SUMMARY"]),
        Reply::text(["to both"]),
    ]);
    let pi = world.start();
    pi.say(&"First question. ".repeat(10));
    pi.say("Second question, long enough");
    pi.data(json!({"type": "steer", "message": "STEER"}));
    pi.get("compact");
    let state = pi.state();
    assert_eq!(
        (&state["pendingMessageCount"], &state["isStreaming"]),
        (&json!(1), &json!(false))
    );
    pi.say("Third");
    let request = world.server.requests()[3].body["messages"].to_string();
    assert!(
        request.contains("STEER") && request.contains("Third"),
        "{request}"
    );
    pi.finish();
}

/// Sends commands in one write.
fn at_once(pi: &Pi, commands: &[Value]) {
    let lines: String = commands.iter().map(|command| format!("{command}\n")).collect();
    pi.agent.send_raw(lines.as_bytes()).unwrap();
}

#[test]
fn pipelined_commands_run_in_order_across_sessions() {
    let world = world([Reply::text(["old answer"])]);
    let pi = world.start();
    pi.say("Old question");
    let old = pi.file();
    let point = pi.get("get_fork_messages")["messages"][0]["entryId"].clone();
    world.server.push(Reply::text(["half"]).gate("never"));
    pi.agent.skip();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    world.server.push(Reply::text(["new answer"]));
    let other = world.dir.root().join("other.jsonl");
    at_once(
        &pi,
        &[
            json!({"id": "a", "type": "new_session"}),
            json!({"id": "b", "type": "fork", "entryId": point}),
            json!({"id": "c", "type": "switch_session", "sessionPath": other}),
            json!({"id": "d", "type": "prompt", "message": "New question"}),
            json!({"id": "e", "type": "set_session_name", "name": "New"}),
        ],
    );
    assert_eq!(pi.response("a")["success"], true);
    assert_eq!(
        pi.response("b")["error"],
        "Invalid entry ID for forking",
        "there is no such entry in the new session"
    );
    assert_eq!(pi.response("c")["success"], true);
    assert_eq!(pi.response("d")["data"]["disposition"], "started");
    assert_eq!(pi.response("e")["success"], true);
    crate::kit::until("the answer", || {
        pi.get("get_last_assistant_text")["text"] == "new answer"
    });
    crate::kit::until("its end", || pi.state()["isStreaming"] == false);
    assert_eq!(pi.state()["sessionName"], "New");
    assert_eq!(
        check::messages(&other).iter().map(text).collect::<Vec<_>>(),
        ["New question", "new answer"]
    );
    assert_eq!(
        check::messages(&old).iter().map(text).collect::<Vec<_>>(),
        ["Old question", "old answer", "Go", "half"]
    );
    pi.agent.close_stdin();
}

#[test]
fn concurrent_session_changes_and_abort_are_answered() {
    let world = world([Reply::text(["half"]).gate("never")]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    let first = pi.file();
    at_once(
        &pi,
        &[
            json!({"id": "a", "type": "clone"}),
            json!({"id": "b", "type": "abort"}),
            json!({"id": "c", "type": "clone"}),
            json!({"id": "d", "type": "compact"}),
            json!({"id": "e", "type": "switch_session", "sessionPath": first}),
            json!({"id": "f", "type": "get_messages"}),
        ],
    );
    for (id, success) in [
        ("a", true),
        ("b", true),
        ("c", true),
        ("d", false),
        ("e", true),
        ("f", true),
    ] {
        let response = pi.response(id);
        assert_eq!(response["success"], success, "{response}");
    }
    assert_eq!(pi.response("f")["data"]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(world.session_files().len(), 3);
    for file in world.session_files() {
        assert_eq!(
            check::messages(&file).iter().map(text).collect::<Vec<_>>(),
            ["Go", "half"]
        );
    }
    pi.agent.close_stdin();
}

#[test]
fn overflow_in_print_mode_is_compacted() {
    let world = world([Reply::text(["a long enough answer"])]);
    let pi = world.start();
    pi.say("A question that is long enough");
    let file = pi.file();
    pi.finish();
    for reply in [
        Reply::error(ErrorKind::ContextOverflow),
        Reply::text(["THE SUMMARY"]),
        Reply::text(["now it fits"]),
    ] {
        world.server.push(reply);
    }
    let model = [
        "--provider",
        "mock-anthropic",
        "--model",
        "claude-mock",
        "--session",
        file.to_str().unwrap(),
    ];
    let done = world.run(&[&model[..], &["-p", "Too much"]].concat(), "");
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "now it fits\n"),
        "{}",
        done.err
    );
    // A compaction after the run does not hide the answer, and is on disk.
    world
        .server
        .push(used(Reply::text(["a full answer, long enough"]), 190_000, 20));
    world.server.push(Reply::text(["SECOND SUMMARY"]).repeat());
    let done = world.run(&[&model[..], &["-p", "More"]].concat(), "");
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "a full answer, long enough\n"),
        "{}",
        done.err
    );
    let summaries = check::entries(&file)
        .iter()
        .filter(|entry| entry["type"] == "compaction")
        .count();
    assert_eq!(summaries, 2);
}

#[test]
fn follow_up_after_full_answer_waits_for_compaction() {
    let world = world([
        used(
            Reply::text(["a long enough "]).gate("mid").then_text(["answer"]),
            190_000,
            20,
        ),
        Reply::text(["THE SUMMARY"]),
        Reply::text(["to the follow-up"]),
    ]);
    let pi = world.start();
    pi.prompt("A question that is long enough");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "follow_up", "message": "FOLLOW"}));
    world.server.release("mid");
    pi.settled();
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "agent_end").len(), 1, "one run");
    assert_eq!(of_type(&lines, "compaction_end").len(), 1);
    let request = world.server.requests()[2].body["messages"].to_string();
    assert!(
        request.contains("THE SUMMARY") && request.contains("FOLLOW"),
        "{request}"
    );
    assert_eq!(text(pi.messages().last().unwrap()), "to the follow-up");
    pi.finish();
}

#[test]
fn prompt_is_acknowledged_after_its_compaction() {
    let world = world([
        used(Reply::text(["a long enough answer"]), 190_000, 20),
        Reply::text(["THE SUMMARY"]).gate("summary"),
        Reply::text(["next"]),
    ]);
    let pi = world.start();
    pi.data(json!({"type": "set_auto_compaction", "enabled": false}));
    pi.say("A question that is long enough");
    pi.data(json!({"type": "set_auto_compaction", "enabled": true}));
    let asked = pi.send(json!({"type": "prompt", "message": "Next"}));
    pi.wait("compaction_start");
    // Nothing of the prompt is stored yet, so nothing may say that it was accepted.
    pi.state();
    let is_answered = |lines: &[Value]| lines.iter().any(|line| line["id"] == asked.as_str());
    assert!(!is_answered(&pi.lines()));
    world.server.release("summary");
    pi.settled();
    let order: Vec<String> = (pi.lines().iter())
        .filter_map(|line| match line["type"].as_str() {
            Some("response") if line["id"] == asked.as_str() => Some("response".to_owned()),
            Some(kind @ ("compaction_end" | "agent_start")) => Some(kind.to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(
        order[order.len() - 3..],
        ["compaction_end", "response", "agent_start"],
        "{order:?}"
    );
    assert_eq!(text(pi.messages().last().unwrap()), "next");
    pi.finish();
}
