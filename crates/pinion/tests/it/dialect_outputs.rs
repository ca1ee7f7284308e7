//! The conflicts of dialects.md 5 about output, one test for each row, from outside. Conflicts about input are in
//! `dialect_inputs`.

use std::fs;

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply, Usage};

use crate::auto_compaction::{full, summary, world as small_world};
use crate::kit::{LONG, Pi, World, answered_at, bash, kinds, of_type};

/// All dialects.
const DIALECTS: [&str; 9] = [
    "auto", "early", "web", "hooks", "omp", "omp-now", "xcsh", "pi", "pi-delta",
];

/// Starts in a dialect.
pub(crate) fn speaking(world: &World, dialect: &str) -> Pi {
    world.start_with(&["--rpc-dialect", dialect])
}

/// Sends a line without an id.
pub(crate) fn tell(pi: &Pi, command: Value) {
    pi.agent.send(&command).unwrap();
}

/// Ends a process that may not answer.
pub(crate) fn end(pi: &Pi) -> Vec<Value> {
    pi.agent.close_stdin();
    assert_eq!(
        pi.agent.wait_exit(LONG).unwrap().code(),
        Some(0),
        "{}",
        pi.agent.stderr()
    );
    pi.wait_ended();
    pi.lines()
}

/// The compaction events among the lines.
fn compactions(lines: &[Value]) -> Vec<Value> {
    let about = lines.iter().filter(|line| {
        let kind = line["type"].as_str().unwrap();
        kind.contains("compaction")
    });
    about.cloned().collect()
}

#[test]
fn row_01_each_dialect_has_its_compaction_events() {
    for dialect in DIALECTS {
        let world = small_world([full(Reply::text(["a long enough answer"])), summary()]);
        let pi = speaking(&world, dialect);
        pi.send(json!({"type": "prompt", "message": "A question that is long enough"}));
        pi.settled();
        let lines = compactions(&end(&pi));
        let (first, last) = (&lines[0], &lines[lines.len() - 1]);
        match dialect {
            "early" => {
                assert_eq!(kinds(&lines), ["compaction"]);
                let tokens = &last["tokensBefore"];
                assert!(tokens.as_u64().unwrap() > 190_000, "{last}");
                assert_eq!(
                    *last,
                    json!({"type": "compaction", "summary": last["summary"], "tokensBefore": tokens, "auto": true})
                );
            }
            "auto" | "pi" | "pi-delta" => {
                assert_eq!(kinds(&lines), ["compaction_start", "compaction_end"], "{dialect}");
                assert_eq!(first["reason"], "threshold");
            }
            _ => {
                assert_eq!(
                    kinds(&lines),
                    ["auto_compaction_start", "auto_compaction_end"],
                    "{dialect}"
                );
                assert_eq!(
                    (&first["reason"], &first["action"]),
                    (&json!("threshold"), &json!("context-full"))
                );
                assert!(
                    last["result"]["summary"]
                        .as_str()
                        .unwrap()
                        .contains("THE SUMMARY")
                );
                assert_eq!(
                    (&last["aborted"], &last["willRetry"]),
                    (&json!(false), &json!(false))
                );
            }
        }
    }
}

#[test]
fn row_01_undecided_clients_get_all_compaction_events() {
    let world = small_world([full(Reply::text(["a long enough answer"])), summary()]);
    let pi = world.start();
    tell(
        &pi,
        json!({"type": "prompt", "message": "A question that is long enough"}),
    );
    pi.settled();
    let all = [
        "compaction_start",
        "auto_compaction_start",
        "compaction_end",
        "auto_compaction_end",
        "compaction",
    ];
    assert_eq!(kinds(&compactions(&end(&pi))), all);
}

#[test]
fn row_01_manual_compaction_is_not_automatic() {
    for (dialect, expected) in [
        ("xcsh", vec![]),
        ("early", vec!["compaction"]),
        ("pi", vec!["compaction_start", "compaction_end"]),
    ] {
        let world = small_world([Reply::text(["One."]), Reply::text(["Two."]), summary()]);
        let pi = speaking(&world, dialect);
        for text in [
            "Remember the word elephant. ".repeat(40),
            "And this one, too.".to_owned(),
        ] {
            pi.send(json!({"type": "prompt", "message": text}));
            pi.settled();
        }
        pi.send(json!({"type": "compact"}));
        let over = |line: &Value| {
            line["command"] == "compact" || line["type"] == "compaction" || line["type"] == "compaction_end"
        };
        pi.agent.wait(over, LONG).unwrap();
        let lines = compactions(&end(&pi));
        assert_eq!(kinds(&lines), expected, "{dialect}");
        assert!(lines.iter().all(|line| line.get("auto").is_none()));
    }
}

#[test]
fn row_03_either_dialog_response_type_is_accepted() {
    for dialect in ["hooks", "pi", "xcsh"] {
        let world = World::new([]);
        let pi = speaking(&world, dialect);
        for kind in ["hook_ui_response", "extension_ui_response"] {
            tell(&pi, json!({"type": kind, "id": "nobody-asked", "value": "x"}));
            tell(
                &pi,
                json!({"type": kind, "id": "nobody-asked", "cancelled": true}),
            );
        }
        pi.state();
        let lines = pi.lines();
        assert_eq!(kinds(&lines), ["response"], "{dialect}: {lines:?}");
        pi.finish();
    }
}

#[test]
fn row_04_early_dialect_has_errors_without_responses() {
    let world = World::new([Reply::text(["Hi."])]);
    let pi = speaking(&world, "early");
    pi.agent.send_raw(b"no json\n").unwrap();
    tell(&pi, json!({"type": "dance"}));
    tell(&pi, json!({"type": "compact"}));
    tell(&pi, json!({"id": 7, "type": "prompt", "message": "Hello"}));
    pi.settled();
    let lines = end(&pi);
    let errors: Vec<&str> = of_type(&lines, "error")
        .iter()
        .map(|line| line["error"].as_str().unwrap())
        .collect();
    assert!(errors[0].starts_with("Failed to parse command: "), "{errors:?}");
    assert_eq!(errors[1], "Unknown command: dance");
    assert!(errors[2].starts_with("Compaction failed: "), "{errors:?}");
    assert_eq!(errors.len(), 3);
    assert!(of_type(&lines, "response").is_empty(), "{lines:?}");
}

#[test]
fn row_04_undecided_early_clients_get_both_errors() {
    let world = World::new([]);
    let pi = world.start();
    tell(&pi, json!({"type": "compact"}));
    pi.wait("response");
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "response")[0]["success"], false);
    assert_eq!(of_type(&lines, "error").len(), 1, "{lines:?}");
    // An id shows that it is another.
    assert_eq!(pi.ask(json!({"type": "compact"}))["success"], false);
    assert_eq!(of_type(&pi.lines(), "error").len(), 1);
    end(&pi);
}

#[test]
fn row_07_state_has_every_alias() {
    let world = World::new([]);
    let pi = world.start_with(&["--no-session"]);
    let state = pi.state();
    assert_eq!(state["queueMode"], state["steeringMode"]);
    assert_eq!(state["queuedMessageCount"], state["pendingMessageCount"]);
    for name in ["thinkingLevel", "sessionId", "followUpMode", "interruptMode"] {
        assert!(state[name].is_string(), "{name}: {state}");
    }
    for name in ["isStreaming", "isCompacting", "autoCompactionEnabled"] {
        assert!(state[name].is_boolean(), "{name}: {state}");
    }
    assert_eq!(state["messageCount"], 0);
    assert_eq!(state["todoPhases"], json!([]));
    assert_eq!(state.get("sessionFile"), Some(&Value::Null), "{state}");
    pi.finish();
}

#[test]
fn row_08_model_is_always_complete() {
    let world = World::new([]);
    for dialect in ["early", "hooks", "omp", "xcsh", "pi"] {
        if dialect == "early" {
            continue;
        }
        let pi = speaking(&world, dialect);
        let model = pi.state()["model"].clone();
        for name in [
            "id",
            "name",
            "api",
            "provider",
            "baseUrl",
            "reasoning",
            "input",
            "contextWindow",
            "maxTokens",
            "cost",
        ] {
            assert!(model.get(name).is_some(), "{dialect}: {name}: {model}");
        }
        let set = json!({"type": "set_model", "provider": model["provider"], "modelId": model["id"]});
        assert_eq!(pi.data(set), model);
        pi.finish();
    }
}

#[test]
fn row_16_error_has_id_and_command() {
    let world = World::new([]);
    for (dialect, id) in [
        ("hooks", "q"),
        ("omp", "q"),
        ("pi", "q"),
        ("auto", "q"),
        ("xcsh", ""),
    ] {
        let pi = speaking(&world, dialect);
        let failed = pi.ask(json!({"type": "set_model", "provider": "no", "modelId": "such"}));
        assert_eq!(
            (&failed["command"], &failed["success"]),
            (&json!("set_model"), &json!(false)),
            "{dialect}"
        );
        tell(&pi, json!({"id": "q", "type": "dance"}));
        let unknown = pi
            .agent
            .wait(|line| line["error"] == "Unknown command: dance", LONG)
            .unwrap();
        assert_eq!(
            unknown["id"].as_str().unwrap_or_default(),
            id,
            "{dialect}: {unknown}"
        );
        assert_eq!(unknown["command"], "dance");
        end(&pi);
    }
}

#[test]
fn row_16_detected_dialect_keeps_ids() {
    let world = World::new([]);
    let pi = world.start();
    assert_eq!(
        pi.ask(json!({"type": "set_interrupt_mode", "mode": "wait"}))["success"],
        true
    );
    assert_eq!(pi.ask(json!({"type": "dance"}))["command"], "dance");
    pi.finish();
}

#[test]
fn row_17_early_dialect_failed_result_is_text() {
    for dialect in ["early", "hooks", "pi"] {
        let world = World::new([
            bash("c1", "echo oops; exit 3"),
            bash("c2", "echo fine"),
            Reply::text(["done"]),
        ]);
        let pi = speaking(&world, dialect);
        pi.send(json!({"type": "prompt", "message": "go"}));
        pi.settled();
        let lines = end(&pi);
        let ends = of_type(&lines, "tool_execution_end");
        assert_eq!(
            (&ends[0]["isError"], &ends[1]["isError"]),
            (&json!(true), &json!(false))
        );
        if dialect == "early" {
            assert!(
                ends[0]["result"].as_str().unwrap().contains("oops"),
                "{}",
                ends[0]
            );
        } else {
            assert!(ends[0]["result"]["content"].is_array(), "{}", ends[0]);
        }
        assert!(ends[1]["result"]["content"].is_array(), "{}", ends[1]);
    }
}

#[test]
fn row_18_updates_are_cumulative_except_delta_dialect() {
    for dialect in DIALECTS {
        let world = World::new([
            Reply::text(["One ", "two."]).then_tool("c1", "bash", json!({"command": "true"})),
            Reply::text(["x"]),
        ]);
        let pi = speaking(&world, dialect);
        pi.send(json!({"type": "prompt", "message": "go"}));
        pi.settled();
        let lines = end(&pi);
        for update in of_type(&lines, "message_update") {
            let event = &update["assistantMessageEvent"];
            assert!(update["usage"].is_object(), "{update}");
            let whole = dialect != "pi-delta";
            assert_eq!(update["message"].is_object(), whole, "{dialect:?}");
            assert_eq!(event["partial"].is_object(), whole, "{dialect:?}");
            if event["type"] == "toolcall_start" {
                assert_eq!((&event["id"], &event["toolName"]), (&json!("c1"), &json!("bash")));
            }
        }
    }
}

#[test]
fn row_19_agent_end_announces_retry() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["Hi."])]);
    let pi = world.start();
    let lines = pi.say("Hello");
    let ends: Vec<&Value> = of_type(&lines, "agent_end")
        .iter()
        .map(|line| &line["willRetry"])
        .collect();
    assert_eq!(ends, [&json!(true), &json!(false)]);
    assert_eq!(kinds(&lines).last(), Some(&"agent_settled"));
    assert_eq!(lines.last().unwrap()["aborted"], false);
    pi.finish();
}

#[test]
fn row_20_ready_is_first_in_every_dialect() {
    let world = World::new([]);
    for dialect in DIALECTS {
        let pi = speaking(&world, dialect);
        let ready = pi.wait("ready");
        assert!(ready["version"].is_string(), "{ready}");
        // An undecided client may be one of today's oh-my-pi.
        let offers = dialect.starts_with("omp") || dialect == "auto";
        assert_eq!(
            ready["supportedProtocolVersions"] == json!([1, 2]),
            offers,
            "{ready}"
        );
        let lines = end(&pi);
        assert_eq!(lines[0], ready);
        assert_eq!(of_type(&lines, "ready").len(), 1);
    }
}

#[test]
fn row_21_retry_succeeds_when_answer_is_complete() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["Hi."])]);
    let pi = speaking(&world, "hooks");
    let lines = pi.say("Hello");
    let at = |kind: &str| lines.iter().rposition(|line| line["type"] == kind).unwrap();
    assert!(at("message_end") < at("auto_retry_end") && at("auto_retry_end") < at("agent_end"));
    assert_eq!(lines[at("auto_retry_end")]["success"], true);
    pi.finish();
}

#[test]
fn row_22_compaction_response_has_all_members() {
    let world = small_world([Reply::text(["One."]), Reply::text(["Two."]), summary()]);
    let pi = speaking(&world, "hooks");
    pi.say(&"Remember the word elephant. ".repeat(40));
    pi.say("And this one, too.");
    let result = pi.data(json!({"type": "compact"}));
    assert!(
        result["tokensBefore"].is_u64() && result["summary"].is_string(),
        "{result}"
    );
    assert!(
        result["firstKeptEntryId"].is_string() && result["details"].is_object(),
        "{result}"
    );
    pi.finish();
}

#[test]
fn row_23_aborted_compaction_result_is_null() {
    for (dialect, kind) in [("omp", "auto_compaction_end"), ("pi", "compaction_end")] {
        let world = small_world([
            full(Reply::text(["a long enough answer"])),
            summary().gate("wait"),
        ]);
        let pi = speaking(&world, dialect);
        pi.prompt("A question that is long enough");
        pi.wait(&kind.replace("end", "start"));
        world.server.wait_requests(2, LONG).unwrap();
        pi.get("abort");
        let lines = pi.lines();
        let end = of_type(&lines, kind)[0];
        assert_eq!(
            (end.get("result"), &end["aborted"]),
            (Some(&Value::Null), &json!(true)),
            "{end}"
        );
        pi.finish();
    }
}

#[test]
fn row_26_bash_response_has_path_and_counts() {
    let world = World::new([]);
    let command = json!({"type": "bash", "command": "seq 1 3000"});
    let pi = speaking(&world, "xcsh");
    let result = pi.data(command.clone());
    assert!(result["fullOutputPath"].is_string(), "{result}");
    assert_eq!(
        (&result["totalLines"], &result["totalBytes"]),
        (&json!(3001), &json!(13893))
    );
    assert_eq!(
        result["outputBytes"].as_u64().unwrap(),
        result["output"].as_str().unwrap().len() as u64
    );
    pi.finish();
    // Clients of pi compare the members of this answer.
    let pi = speaking(&world, "pi");
    assert!(pi.data(command).get("totalLines").is_none());
    pi.finish();
}

#[test]
fn newest_omp_counts_no_line_in_empty_output() {
    let world = World::new([]);
    for (dialect, lines) in [("xcsh", 1), ("omp-now", 0)] {
        let pi = speaking(&world, dialect);
        let result = pi.data(json!({"type": "bash", "command": "true"}));
        assert_eq!(
            (&result["totalLines"], &result["outputLines"]),
            (&json!(lines), &json!(lines)),
            "{dialect}"
        );
        pi.finish();
    }
}

#[test]
fn newest_omp_marks_failed_results_and_sums_reasoning() {
    let thinking = Usage {
        output: 40,
        thinking: 30,
        ..Usage::default()
    };
    for (dialect, has) in [("omp-now", true), ("xcsh", false)] {
        let calls = bash("c1", "exit 3").then_tool("c2", "bash", json!({"command": "true"}));
        let world = World::new([calls, Reply::text(["x"]).usage(thinking)]);
        let pi = speaking(&world, dialect);
        let lines = pi.say("go");
        let ends = of_type(&lines, "tool_execution_end").into_iter();
        let marks: Vec<bool> = ends
            .map(|end| end["result"]["isError"] == true && end["isError"] == true)
            .collect();
        assert_eq!(
            marks.iter().filter(|is_marked| **is_marked).count(),
            usize::from(has)
        );
        let tokens = pi.data(json!({"type": "get_session_stats"}))["tokens"].clone();
        assert_eq!(tokens.get("reasoning").is_some(), has, "{dialect}: {tokens}");
        pi.finish();
    }
}

#[test]
fn row_29_unknown_roles_become_hidden_custom_messages() {
    let world = World::new([Reply::text(["Hi."])]);
    let at = "2026-01-01T00:00:00.000Z";
    let lines = [
        json!({"type": "session", "version": 3, "id": "s1", "timestamp": at, "cwd": world.dir.cwd()}),
        json!({"type": "message", "id": "a0000001", "parentId": null, "timestamp": at,
            "message": {"role": "user", "content": "Hello", "timestamp": 1}}),
        json!({"type": "custom_message", "id": "a0000002", "parentId": "a0000001", "timestamp": at,
            "customType": "hint", "content": "Mind the gap.", "display": true}),
        json!({"type": "message", "id": "a0000003", "parentId": "a0000002", "timestamp": at,
            "message": {"role": "system", "content": "Later.", "timestamp": 2}}),
        json!({"type": "message", "id": "a0000004", "parentId": "a0000003", "timestamp": at,
            "message": {"role": "developer", "content": "Go on.", "timestamp": 3}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = world.dir.root().join("roles.jsonl");
    for (dialect, roles) in [
        ("pi", ["user", "custom", "system", "developer"]),
        ("xcsh", ["user", "custom", "custom", "developer"]),
        ("hooks", ["user", "custom", "custom", "custom"]),
        ("omp", ["user", "hookMessage", "hookMessage", "hookMessage"]),
    ] {
        fs::write(&file, &text).unwrap();
        let pi = world.start_with(&["--rpc-dialect", dialect, "--session", file.to_str().unwrap()]);
        let messages = pi.messages();
        assert_eq!(pi.roles(), roles, "{dialect}");
        assert_eq!(
            (&messages[1]["customType"], &messages[1]["display"]),
            (&json!("hint"), &json!(true))
        );
        if dialect == "omp" {
            assert_eq!(
                (&messages[2]["customType"], &messages[2]["display"]),
                (&json!("system"), &json!(false))
            );
            assert_eq!(messages[2]["content"], "Later.");
        }
        pi.finish();
    }
}

#[test]
fn row_30_thinking_level_is_always_string() {
    let world = World::new([]);
    for dialect in ["hooks", "omp", "xcsh", "pi"] {
        let pi = speaking(&world, dialect);
        assert!(pi.state()["thinkingLevel"].is_string());
        pi.finish();
    }
}

#[test]
fn row_33_aborted_run_ends_before_response() {
    for command in ["new_session", "reset", "compact"] {
        let world = World::new([Reply::text(["One ", "two."]).gate("more")]);
        let pi = world.start();
        pi.prompt("Hello");
        pi.wait("message_update");
        let id = pi.send(json!({"type": command}));
        pi.response(&id);
        let lines = pi.lines();
        let before = &lines[..answered_at(&lines, &id)];
        let aborted = of_type(before, "message_end");
        assert_eq!(
            aborted.last().unwrap()["message"]["stopReason"],
            "aborted",
            "{command}"
        );
        for kind in ["turn_end", "agent_end"] {
            assert_eq!(of_type(before, kind).len(), 1, "{command}: {kind}");
        }
        pi.finish();
    }
}

#[test]
fn row_34_results_follow_last_call_in_order() {
    let calls = Reply::new()
        .then_tool(
            "slow",
            "bash",
            json!({"command": "while [ ! -e go ]; do sleep 0.01; done"}),
        )
        .then_tool("fast", "bash", json!({"command": "true"}));
    let world = World::new([calls, Reply::text(["done"])]);
    let pi = speaking(&world, "hooks");
    pi.prompt("go");
    let is_end = |line: &Value| line["type"] == "tool_execution_end";
    assert_eq!(pi.agent.wait(is_end, LONG).unwrap()["toolCallId"], "fast");
    world.dir.write("go", "").unwrap();
    pi.settled();
    let lines = pi.lines();
    let at = |kind: &str, id: &str| {
        let place = lines.iter().position(|line| {
            line["type"] == kind && (line["toolCallId"] == id || line["message"]["toolCallId"] == id)
        });
        place.unwrap()
    };
    assert!(at("tool_execution_start", "slow") < at("tool_execution_start", "fast"));
    assert!(at("tool_execution_end", "fast") < at("tool_execution_end", "slow"));
    assert!(at("tool_execution_end", "slow") < at("message_start", "slow"));
    assert!(at("message_end", "slow") < at("message_start", "fast"));
    pi.finish();
}
