//! Members of messages that pi 1.5.2 writes and pi 0.74 did not (pi-1.5-delta.md 3): on the wire, in the session file, and
//! after the session is opened again.

use serde_json::{Value, json};
use testkit::llm::{FAMILIES, Reply, Usage};

use crate::families;
use crate::kit::{World, answers, bash, of_type};

/// The entries of a session file with a message of this role.
fn stored(file: &std::path::Path, role: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let entries = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let messages = entries.map(|mut entry| entry["message"].take());
    messages.filter(|message| message["role"] == role).collect()
}

#[test]
fn answer_has_duration_reason_and_level() {
    let world = World::new([bash("c1", "true"), Reply::text(["x"])]);
    let pi = world.start();
    pi.data(json!({"type": "set_thinking_level", "level": "low"}));
    let level = pi.state()["thinkingLevel"].clone();
    let lines = pi.say("go");
    let (ends, file) = (answers(&lines), pi.file());
    let reasons: Vec<&Value> = ends.iter().map(|answer| &answer["rawStopReason"]).collect();
    assert_eq!(reasons, ["tool_use", "end_turn"]);
    for answer in &ends {
        assert!(answer["durationMs"].is_u64(), "{answer}");
        assert_eq!(answer["thinkingLevel"], level, "{answer}");
        assert_eq!(answer["usage"]["cost"].get("totalFromProvider"), None, "{answer}");
    }
    let start = of_type(&lines, "message_start").into_iter();
    for start in start.filter(|line| line["message"]["role"] == "assistant") {
        // The answer is not over, so nothing is known yet.
        for member in ["durationMs", "rawStopReason", "thinkingLevel"] {
            assert!(start["message"].get(member).is_none(), "{member}: {start}");
        }
    }
    let messages = pi.messages();
    assert_eq!(stored(&file, "assistant").iter().collect::<Vec<_>>(), ends);
    pi.finish();

    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(pi.messages(), messages, "the members survive loading");
    pi.finish();
}

#[test]
fn failed_answer_has_duration_and_level() {
    let world = World::new([Reply::error(testkit::llm::ErrorKind::Server)]).without_retries();
    let pi = world.start();
    let lines = pi.say("go");
    let answer = answers(&lines)[0];
    assert_eq!(answer["stopReason"], "error");
    assert!(answer["durationMs"].is_u64(), "{answer}");
    assert_eq!(answer["thinkingLevel"], pi.state()["thinkingLevel"]);
    assert!(answer.get("rawStopReason").is_none(), "{answer}");
    pi.finish();
}

#[test]
fn tool_result_message_has_duration_if_it_ran() {
    let calls = bash("c1", "sleep 0.05").then_tool("c2", "unknown-tool", json!({}));
    let world = World::new([calls, Reply::text(["x"])]);
    let pi = world.start();
    let lines = pi.say("go");
    let results: Vec<&Value> = of_type(&lines, "message_end")
        .into_iter()
        .map(|line| &line["message"])
        .filter(|message| message["role"] == "toolResult")
        .collect();
    let ends = of_type(&lines, "tool_execution_end");
    for result in &results {
        let end = ends.iter().find(|end| end["toolCallId"] == result["toolCallId"]);
        assert_eq!(
            result.get("durationMs"),
            end.unwrap().get("durationMs"),
            "{result}"
        );
    }
    assert!(results[0]["durationMs"].as_u64().unwrap() >= 50, "{}", results[0]);
    assert!(results[1].get("durationMs").is_none(), "{}", results[1]);
    assert_eq!(
        stored(&pi.file(), "toolResult").iter().collect::<Vec<_>>(),
        results
    );
    pi.finish();
}

#[test]
fn each_family_reports_raw_reason_and_reasoning() {
    for (api, path) in FAMILIES {
        let thinking = Usage {
            output: 40,
            thinking: 30,
            ..Usage::default()
        };
        let world = World::new([Reply::text(["x"]), Reply::text(["x"]).usage(thinking)]);
        let pi = families::start(&world, api, path);
        let first = pi.say("one");
        let second = pi.say("two");
        let answers = [answers(&first)[0], answers(&second)[0]];
        let (reason, counts) = match api {
            "anthropic-messages" | "bedrock-converse-stream" => ("end_turn", false),
            "google-generative-ai" | "google-vertex" => ("STOP", true),
            "openai-completions" => ("stop", true),
            "mistral-conversations" => ("stop", false),
            _ => ("completed", true),
        };
        let reasoning = answers.map(|answer| answer["usage"].get("reasoning").and_then(Value::as_u64));
        for answer in answers {
            assert_eq!(answer["rawStopReason"], reason, "{api}: {answer}");
        }
        match counts {
            // The dialect of today's pi counts none, too.
            true => assert_eq!(reasoning, [Some(0), Some(30)], "{api}"),
            false => assert_eq!(reasoning[0], None, "{api}"),
        }
        pi.finish();
    }
}

#[test]
fn bash_result_has_structured_content_for_newest_pi() {
    for (dialect, has) in [
        ("auto", false),
        ("pi", false),
        ("pi-delta", true),
        ("xcsh", false),
    ] {
        let calls = bash("c1", "printf out; exit 3").then_tool("c2", "bash", json!({"command": "true"}));
        let world = World::new([calls, Reply::text(["x"])]);
        let pi = world.start_with(&["--rpc-dialect", dialect]);
        let lines = pi.say("go");
        // Calls of one answer end in any order.
        let mut ends = of_type(&lines, "tool_execution_end");
        ends.sort_by_key(|end| end["toolCallId"].to_string());
        let content = ends
            .iter()
            .map(|end| end["result"].get("structuredContent").cloned());
        let content: Vec<Option<Value>> = content.collect();
        if has {
            let mut first = content[0].clone().unwrap();
            let seconds = first
                .as_object_mut()
                .unwrap()
                .remove("wall_time_seconds")
                .unwrap();
            assert!(
                seconds.as_f64().is_some_and(|seconds| seconds < 60.0),
                "{seconds}"
            );
            assert_eq!(
                first,
                json!({"output": "out", "truncated": false, "exit_code": 3})
            );
            assert_eq!(content[1].as_ref().unwrap()["exit_code"], 0);
        } else {
            assert_eq!(content, [None, None], "{dialect}");
            let details = if dialect == "xcsh" { json!({}) } else { Value::Null };
            assert_eq!(ends[1]["result"]["details"], details, "{dialect}");
        }
        let file = std::fs::read_to_string(pi.file()).unwrap();
        assert!(!file.contains("structuredContent"), "{dialect}: {file}");
        pi.finish();
    }
}

#[test]
fn long_bash_output_is_whole_in_structured_content() {
    let world = World::new([
        bash("c1", "seq 1 30000"),
        bash("c2", "seq 1 400000"),
        Reply::text(["x"]),
    ]);
    let pi = world.start_with(&["--rpc-dialect", "pi-delta"]);
    let lines = pi.say("go");
    let content =
        |at: usize| of_type(&lines, "tool_execution_end")[at]["result"]["structuredContent"].clone();
    let all: String = (1..=30_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(content(0)["output"], all);
    assert_eq!(
        (&content(0)["truncated"], content(0).get("full_output_path")),
        (&json!(false), None)
    );
    let cut = content(1);
    let output = cut["output"].as_str().unwrap();
    assert!(output.starts_with("1\n2\n") && output.ends_with("399999\n400000\n"));
    assert!(output.contains(" bytes omitted ...]") && output.len() < (1 << 20) + 100);
    assert_eq!(cut["truncated"], true);
    let log = std::fs::metadata(cut["full_output_path"].as_str().unwrap()).unwrap();
    assert!(log.len() > 2 << 20);
    pi.finish();
}

#[test]
fn newest_pi_session_begins_with_system_message() {
    for (dialect, has) in [("pi-delta", true), ("pi", false), ("auto", false)] {
        let world = World::new([Reply::text(["x"]), Reply::text(["y"])]);
        let pi = world.start_with(&["--rpc-dialect", dialect]);
        let lines = pi.say("go");
        pi.say("on");
        let system = stored(&pi.file(), "system");
        let told = of_type(&lines, "message_end")
            .iter()
            .filter(|line| line["message"]["role"] == "system")
            .count();
        assert_eq!(
            (system.len(), told),
            (usize::from(has), usize::from(has)),
            "{dialect}"
        );
        if let Some(message) = system.first() {
            let prompt = world.server.requests()[0].body["system"].to_string();
            let section = message["sections"]["prompt"].as_str().unwrap();
            assert!(prompt.contains(&section[..40]), "{section}");
            assert!(!section.contains("Current date"), "{section}");
            assert_eq!(message["toolsAdded"][0]["name"], "read");
        }
        let requests = world.server.requests();
        let roles: Vec<&Value> = requests[1].body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| &m["role"])
            .collect();
        assert_eq!(roles, ["user", "assistant", "user"], "{dialect}");
        pi.finish();
    }
}

#[test]
fn retried_answer_is_omitted_for_newest_pi() {
    for (dialect, has) in [("pi-delta", true), ("pi", false)] {
        let world = World::new([
            Reply::error(testkit::llm::ErrorKind::Overloaded),
            Reply::text(["x"]),
        ]);
        world.settings(json!({"retry": {"baseDelayMs": 10, "provider": {"maxRetries": 0}}}));
        let pi = world.start_with(&["--rpc-dialect", dialect]);
        pi.say("go");
        let file = std::fs::read_to_string(pi.file()).unwrap();
        let entries: Vec<Value> = file
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let edit = entries.iter().find(|entry| entry["type"] == "context_edit");
        assert_eq!(edit.is_some(), has, "{dialect}: {file}");
        if let Some(edit) = edit {
            let target = entries
                .iter()
                .find(|entry| entry["id"] == edit["targetId"])
                .unwrap();
            assert_eq!(target["message"]["stopReason"], "error");
            assert_eq!(edit["replacement"], Value::Null);
        }
        pi.finish();
    }
}

#[test]
fn newest_pi_usage_and_results_are_complete() {
    let world = World::new([
        bash("c1", "exit 3").then_tool("c2", "write", json!({"path": "n.txt", "content": "one\n"})),
        Reply::tool(
            "c3",
            "edit",
            json!({"path": "n.txt", "edits": [{"oldText": "one", "newText": "two"}]}),
        ),
        Reply::tool("c4", "read", json!({"path": "n.txt"})),
        Reply::text(["x"]),
    ]);
    let pi = world.start_with(&["--rpc-dialect", "pi-delta"]);
    let lines = pi.say("go");
    for answer in answers(&lines) {
        assert_eq!(answer["usage"]["cost"]["totalFromProvider"], false, "{answer}");
        assert_eq!(answer["usage"]["cacheWrite1h"], 0, "{answer}");
    }
    let starts = of_type(&lines, "message_start").into_iter();
    for start in starts.filter(|line| line["message"]["role"] == "assistant") {
        assert_eq!(start["message"]["stopReason"], "pending");
    }
    let ends = of_type(&lines, "tool_execution_end");
    let result = |id: &str| ends.iter().find(|end| end["toolCallId"] == id).unwrap()["result"].clone();
    assert_eq!(result("c1")["isError"], true);
    assert_eq!(result("c2")["content"][0]["text"], "Successfully wrote to n.txt");
    assert_eq!(
        result("c3")["details"]["patch"],
        "--- n.txt\n+++ n.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"
    );
    assert_eq!(result("c4")["structuredContent"], "two\n");
    pi.finish();
}

#[test]
fn edits_as_text_show_as_list_after_turn() {
    let edit = json!([{"oldText": "one", "newText": "two"}]);
    let written = json!({"path": "n.txt", "edits": edit.to_string()});
    let world = World::new([
        Reply::tool("c1", "write", json!({"path": "n.txt", "content": "one\n"})),
        Reply::tool("c2", "edit", written.clone()),
        Reply::text(["x"]),
    ]);
    let pi = world.start();
    let lines = pi.say("go");
    let shown = |message: &Value| message["content"][0]["arguments"].clone();
    let repaired = json!({"path": "n.txt", "edits": edit});
    let start = of_type(&lines, "tool_execution_start")[1];
    assert_eq!(start["args"], written);
    assert_eq!(shown(answers(&lines)[1]), written);
    assert_eq!(shown(&of_type(&lines, "turn_end")[1]["message"]), repaired);
    assert_eq!(shown(&of_type(&lines, "agent_end")[0]["messages"][3]), repaired);
    assert_eq!(shown(&pi.messages()[3]), repaired);
    assert_eq!(shown(&stored(&pi.file(), "assistant")[1]), written);
    let sent = world.server.requests()[2].body["messages"][3]["content"][0].clone();
    assert_eq!(sent["input"], repaired);
    pi.finish();
}
