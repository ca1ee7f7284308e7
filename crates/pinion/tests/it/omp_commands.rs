//! Commands of today's oh-my-pi (dialects.md 14), as its RpcClient uses them. `.ci/interop/omp-methods.ts` calls every method of
//! the real client.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::extensions::{can_run, extended};
use crate::kit::{LONG, PROGRAM, Pi, World, bash, kinds, of_type, text};
use crate::permissions::{choose, ends, question};

/// A client of protocol version 2.
fn start(world: &World, args: &[&str]) -> Pi {
    let pi = world.start_with(args);
    pi.data(json!({"type": "negotiate_protocol", "protocolVersion": 2}));
    pi
}

/// Prompts, and returns the lines up to the end of the run. A client with a filter may not see the end itself.
fn say(pi: &Pi, text: &str) -> Vec<Value> {
    let before = pi.lines().len();
    pi.data(json!({"type": "prompt", "message": text}));
    pi.wait("session_settled");
    pi.lines().split_off(before)
}

/// Ends a process whose output lacks events, so that it cannot be checked as a whole.
fn end(pi: &Pi) {
    pi.agent.close_stdin();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
}

#[test]
fn lines_of_message_share_an_id() {
    let world = World::new([Reply::text(["One ", "answer."]), Reply::text(["Another."])]);
    let pi = start(&world, &[]);
    let ids = |lines: &[Value], kind: &str| -> Vec<String> {
        let lines = of_type(lines, kind);
        let ids = lines
            .iter()
            .map(|line| line["messageId"].as_str().unwrap().to_owned());
        ids.collect()
    };
    let lines = say(&pi, "Hello");
    assert_eq!(ids(&lines, "message_start"), ["msg-1", "msg-2"]);
    assert_eq!(ids(&lines, "message_end"), ["msg-1", "msg-2"]);
    let updates = ids(&lines, "message_update");
    assert!(
        updates.len() > 2 && updates.iter().all(|id| id == "msg-2"),
        "{updates:?}"
    );
    let lines = say(&pi, "Again");
    assert_eq!(ids(&lines, "message_start"), ["msg-3", "msg-4"]);
    pi.finish();
}

#[test]
fn event_filter_spares_outcomes_of_prompts() {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."])]);
    let pi = start(&world, &[]);
    let filter = json!({"type": "set_event_filter", "events": ["agent_end", "no_such_event"]});
    assert_eq!(pi.data(filter), json!({"events": ["agent_end", "no_such_event"]}));
    let lines = say(&pi, "Hello");
    let seen: Vec<_> = kinds(&lines)
        .into_iter()
        .filter(|kind| kind.starts_with("agent_") || kind.starts_with("message_"))
        .collect();
    assert_eq!(seen, ["agent_end"]);
    let result = &of_type(&lines, "prompt_result")[0];
    assert_eq!(result["status"], "completed");
    let wrong = pi.error(json!({"type": "set_event_filter", "events": [""]}));
    assert_eq!(
        wrong,
        "events must be null or an array of non-empty event type strings"
    );
    assert_eq!(
        pi.data(json!({"type": "set_event_filter", "events": null})),
        json!({"events": null})
    );
    let lines = say(&pi, "Again");
    assert_eq!(of_type(&lines, "message_start").len(), 2);
    end(&pi);
}

#[test]
fn handoff_replaces_conversation_by_document() {
    let world = World::new([
        Reply::text(["One."]),
        Reply::text(["Two."]),
        Reply::text(["The plan, and what is left of it."]),
    ]);
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = start(&world, &[]);
    assert_eq!(
        pi.error(json!({"type": "handoff"})),
        "Nothing to hand off (no messages yet)"
    );
    say(&pi, &"Remember the word elephant. ".repeat(40));
    say(&pi, "And this one, too.");
    let wishes = json!({"type": "handoff", "customInstructions": "Name the animals."});
    assert_eq!(pi.data(wishes), json!({}));
    let asked = world.server.requests()[2].body.to_string();
    assert!(asked.contains("The summary is a handoff") && asked.contains("Name the animals."));
    assert_eq!(pi.messages()[0]["summary"], "The plan, and what is left of it.");
    assert_eq!(
        pi.error(json!({"type": "handoff"})),
        "Nothing to hand off (already compacted)"
    );
    pi.finish();
}

#[test]
fn messages_are_not_paged_during_run() {
    let world = World::new([Reply::text(["Slow."]).gate("answer")]);
    let pi = start(&world, &[]);
    let asked = pi.send(json!({"type": "prompt", "message": "Hello"}));
    assert_eq!(pi.response(&asked)["success"], true);
    let response = pi.ask(json!({"type": "get_messages_page"}));
    assert_eq!(
        response["error"],
        "Cannot page messages while the session is changing"
    );
    assert_eq!(response["code"], "session_busy");
    world.server.release("answer");
    pi.wait("session_settled");
    let page = pi.data(json!({"type": "get_messages_page", "limit": 1}));
    assert_eq!(
        (page["messages"].as_array().unwrap().len(), &page["totalMessages"]),
        (1, &json!(2))
    );
    pi.finish();
}

#[test]
fn open_session_continues_newest_of_directory() {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."])]);
    let pi = start(&world, &[]);
    let first = pi.state()["sessionId"].clone();
    say(&pi, "In the first place");
    let dir = world.dir.root().join("elsewhere");
    let open = json!({"type": "open_session", "sessionDir": dir});
    let fresh = pi.data(open.clone());
    assert_eq!(
        (&fresh["cancelled"], &fresh["resumed"]),
        (&json!(false), &json!(false))
    );
    assert!(
        fresh["sessionFile"]
            .as_str()
            .unwrap()
            .starts_with(dir.to_str().unwrap())
    );
    assert_ne!(fresh["sessionId"], first);
    // Nothing happens to a session that is open already.
    assert_eq!(pi.data(open.clone()), fresh);
    say(&pi, "In the second place");
    let state = pi.state();
    assert_eq!(
        (&state["sessionId"], &state["messageCount"]),
        (&fresh["sessionId"], &json!(2))
    );
    pi.get("new_session");
    let again = pi.data(open);
    assert_eq!(
        (&again["resumed"], &again["sessionId"]),
        (&json!(true), &fresh["sessionId"])
    );
    assert_eq!(
        pi.error(json!({"type": "open_session"})),
        "open_session requires sessionDir"
    );
    pi.finish();

    let pi = start(&world, &["--no-session"]);
    assert_eq!(
        pi.error(json!({"type": "open_session", "sessionDir": "x"})),
        "open_session requires session persistence (omit --no-session)"
    );
    pi.finish();
}

#[test]
fn prompt_with_retries_has_one_end() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["One."])]);
    world.settings(json!({"retry": {"baseDelayMs": 1, "maxRetries": 1}}));
    let pi = start(&world, &[]);
    let lines = say(&pi, "Hello");
    let ends = of_type(&lines, "agent_end");
    assert_eq!(ends.len(), 1);
    assert_eq!(of_type(&lines, "agent_start").len(), 2);
    assert_eq!(
        ends[0]["messages"].as_array().unwrap().len(),
        1,
        "of the last run"
    );
    assert_eq!(
        (&ends[0]["isTerminal"], &ends[0]["yielded"]),
        (&json!(true), &json!(true))
    );
    end(&pi);
}

#[test]
fn state_in_delay_of_retry_is_streaming() {
    let world = World::new([Reply::error(ErrorKind::Overloaded)]);
    world.settings(json!({"retry": {"baseDelayMs": 60_000}}));
    let pi = start(&world, &[]);
    pi.data(json!({"type": "prompt", "message": "Hello"}));
    pi.wait("auto_retry_start");
    let state = pi.state();
    let shown = [
        "isStreaming",
        "isSettled",
        "hasPendingAsyncWork",
        "fastModeEnabled",
        "fastModeActive",
    ];
    assert_eq!(
        shown.map(|name| state[name] == true),
        [true, false, false, false, false]
    );
    let page = pi.error(json!({"type": "get_messages_page"}));
    assert_eq!(page, "Cannot page messages while the session is changing");
    pi.data(json!({"type": "abort"}));
    end(&pi);
}

#[test]
fn failed_answer_has_http_status() {
    let world = World::new([Reply::error(ErrorKind::Auth)]);
    let pi = start(&world, &[]);
    let lines = say(&pi, "Hello");
    let error = &of_type(&lines, "prompt_result")[0]["error"];
    assert_eq!(
        (&error["httpStatus"], &error["retryable"]),
        (&json!(401), &json!(false))
    );
    assert_eq!(of_type(&lines, "agent_end")[0]["messages"][1]["errorStatus"], 401);
    assert_eq!(of_type(&lines, "turn_end")[0]["message"]["errorStatus"], 401);
    assert_eq!(pi.messages()[1]["errorStatus"], 401);
    end(&pi);
}

#[test]
fn replaced_failed_answer_keeps_http_status() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::error(ErrorKind::Auth)],
        r#"
        pi.on("message_end", ({ message }) => {
          if (message.role === "assistant") return { message: { ...message, errorMessage: "refused" } };
        });
        "#,
    );
    let pi = start(&world, &[]);
    let lines = say(&pi, "Hello");
    let error = &of_type(&lines, "prompt_result")[0]["error"];
    assert_eq!(
        (&error["message"], &error["httpStatus"]),
        (&json!("refused"), &json!(401))
    );
    end(&pi);
}

#[test]
fn answer_with_reasoning_only_is_followed_by_text() {
    let world = World::new([Reply::new().thinking(["hm"], "c2ln"), Reply::text(["Done."])]);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    let lines = say(&pi, "Hello");
    assert_eq!(of_type(&lines, "agent_end").len(), 1);
    assert_eq!(
        pi.data(json!({"type": "get_last_assistant_text"}))["text"],
        "Done."
    );
    let asked = world.server.requests()[1].body["messages"].to_string();
    assert!(asked.contains("reasoning only"), "{asked}");
    end(&pi);

    let world = World::new([Reply::new().thinking(["hm"], "c2ln")]);
    let pi = world.start();
    pi.say("Hello");
    assert_eq!(world.server.requests().len(), 1, "other dialects end the run");
    pi.finish();
}

#[test]
fn slash_command_whose_message_begins_no_run_has_result() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.on("input", async () => ({ action: "handled" }));
        pi.registerCommand("talk", { handler: async () => { pi.sendUserMessage("x"); } });
        "#,
    );
    let pi = start(&world, &["--rpc-dialect", "omp-now"]);
    let asked = pi.send(json!({"type": "prompt", "message": "/talk"}));
    pi.wait("prompt_result");
    let lines = pi.lines();
    let result = of_type(&lines, "prompt_result")[0];
    assert_eq!(result["id"], asked);
    assert_eq!(
        (&result["agentInvoked"], &result["status"]),
        (&json!(false), &json!("completed"))
    );
    assert_eq!(pi.state()["isSettled"], true);
    end(&pi);
}

#[test]
fn empty_answer_is_followed_by_text() {
    let world = World::new([Reply::new(), Reply::text(["Done."])]);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    let lines = say(&pi, "Hello");
    assert_eq!(of_type(&lines, "agent_end").len(), 1);
    let messages = pi.messages();
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "developer", "assistant"]);
    let asked = world.server.requests()[1].body["messages"].to_string();
    assert!(asked.contains("was empty"), "{asked}");
    end(&pi);

    let world = World::new([Reply::new()]);
    let pi = world.start();
    pi.say("Hello");
    assert_eq!(world.server.requests().len(), 1, "other dialects end the run");
    pi.finish();
}

#[test]
fn state_has_prompt_and_tools_of_request() {
    let world = World::new([Reply::text(["Hello."])]);
    let pi = world.start_with(&["--rpc-dialect", "omp-now", "--tools", "read,bash"]);
    let state = pi.data(json!({"type": "get_state"}));
    say(&pi, "Hello");
    let prompt = state["systemPrompt"][0].as_str().unwrap();
    let request = &world.server.requests()[0].body;
    let sent = request["system"].as_array().unwrap().iter();
    let sent: Vec<&str> = sent.filter_map(|part| part["text"].as_str()).collect();
    assert!(sent.contains(&prompt), "{prompt}\n{sent:?}");
    let tools = state["dumpTools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read", "bash"]);
    assert!(tools.iter().all(|tool| tool["parameters"]["type"] == "object"));
    end(&pi);
    let pi = world.start();
    let state = pi.data(json!({"type": "get_state"}));
    assert!(state["systemPrompt"].is_null() && state["dumpTools"].is_null());
    pi.finish();
}

#[test]
fn slash_commands_are_sent_when_they_change() {
    let world = World::new([]);
    let prompts = world.dir.agent_dir().join("prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    std::fs::write(prompts.join("polish.md"), "Polish the $1 now.").unwrap();
    let names = |update: &Value| -> Vec<String> {
        let commands = update["commands"].as_array().unwrap();
        let files = commands.iter().filter(|command| command["source"] == "file");
        files
            .map(|command| command["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    assert_eq!(names(&pi.wait("available_commands_update")), ["polish"]);
    // Without a change there is no second line.
    pi.state();
    std::fs::write(prompts.join("shine.md"), "Shine.").unwrap();
    pi.data(json!({"type": "reload_resources"}));
    assert_eq!(names(&pi.wait("available_commands_update")), ["polish", "shine"]);
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "available_commands_update").len(), 2);
    end(&pi);
    let pi = world.start();
    pi.state();
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "available_commands_update").len(), 0);
    end(&pi);
}

/// A client whose second prompt is being answered, in a conversation of which a compaction keeps that prompt.
fn answering(replies: impl IntoIterator<Item = Reply>) -> (World, Pi, usize) {
    let first = [
        Reply::text(["One."]),
        Reply::text(["half"]).gate("never").then_text([" LATE"]),
    ];
    let world = World::new(first.into_iter().chain(replies));
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    say(&pi, &"Remember the word elephant. ".repeat(40));
    let before = pi.lines().len();
    pi.data(json!({"type": "prompt", "message": "And this one, too."}));
    pi.wait_update("text_delta");
    (world, pi, before)
}

/// How often the outcomes of a run were written: `agent_start`, `agent_end`, `prompt_result`, `session_settled`.
fn outcomes(lines: &[Value]) -> [usize; 4] {
    ["agent_start", "agent_end", "prompt_result", "session_settled"].map(|kind| of_type(lines, kind).len())
}

#[test]
fn run_goes_on_after_compaction() {
    let replies = ["A summary.", "Short.", "The rest."].map(|text| Reply::text([text]));
    let (world, pi, before) = answering(replies);
    assert_eq!(pi.data(json!({"type": "compact"}))["summary"], "A summary.");
    pi.wait("session_settled");
    let lines = pi.lines().split_off(before);
    assert_eq!(outcomes(&lines), [2, 1, 1, 1]);
    assert_eq!(of_type(&lines, "prompt_result")[0]["status"], "completed");
    let request = world.server.requests()[4].body["messages"].to_string();
    assert!(
        request.contains("And this one, too.") && !request.contains("half"),
        "{request}"
    );
    assert_eq!(text(pi.messages().last().unwrap()), "The rest.");
    end(&pi);
}

#[test]
fn run_goes_on_if_nothing_is_to_be_compacted() {
    let world = World::new([
        Reply::text(["half"]).gate("never").then_text([" LATE"]),
        Reply::text(["All."]),
    ]);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    pi.data(json!({"type": "prompt", "message": "Hello"}));
    pi.wait_update("text_delta");
    let refusal = pi.error(json!({"type": "compact"}));
    assert_eq!(refusal, "Nothing to compact (session too small)");
    pi.wait("session_settled");
    assert_eq!(outcomes(&pi.lines()), [2, 1, 1, 1]);
    end(&pi);
}

#[test]
fn abort_of_compaction_ends_interrupted_run() {
    let (world, pi, before) = answering([Reply::text(["A summary."]).gate("summary")]);
    let asked = pi.send(json!({"type": "compact"}));
    world.server.wait_gate("summary", LONG).unwrap();
    // The second one is refused, so that it does not end the run.
    let second = pi.error(json!({"type": "compact"}));
    assert_eq!(second, "Compaction already in progress");
    assert_eq!(outcomes(&pi.lines().split_off(before)), [1, 0, 0, 0]);
    pi.data(json!({"type": "abort"}));
    assert_eq!(pi.response(&asked)["success"], false);
    pi.wait("session_settled");
    let lines = pi.lines().split_off(before);
    assert_eq!(outcomes(&lines), [1, 1, 1, 1]);
    assert_eq!(of_type(&lines, "prompt_result")[0]["status"], "aborted");
    assert_eq!(world.server.requests().len(), 3);
    end(&pi);
}

/// A process with two turns, the second of which a compaction splits. These replies are for the summaries.
fn splitting(replies: impl IntoIterator<Item = Reply>) -> (World, Pi) {
    let turns = [Reply::text(["One."]), Reply::text(["Two."])];
    let world = World::new(turns.into_iter().chain(replies));
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    say(&pi, &"Remember the word elephant. ".repeat(40));
    say(&pi, "And this one, too.");
    (world, pi)
}

#[test]
fn compaction_splits_turn_and_has_short_summary() {
    let (world, pi) = splitting(["HISTORY", "PREFIX", "SHORT"].map(|text| Reply::text([text])));
    let result = pi.data(json!({"type": "compact", "customInstructions": "Name the animals."}));
    assert_eq!(
        result["summary"],
        "HISTORY\n\n---\n\n**Turn Context (split turn):**\n\nPREFIX"
    );
    assert_eq!(
        (&result["shortSummary"], &result["tokensBefore"]),
        (&json!("SHORT"), &json!(120))
    );
    assert_eq!(result["usage"]["input"], 300, "that of all three requests");
    let asked = world.server.requests()[4].body["messages"].to_string();
    assert!(
        asked.contains("[Assistant]: Two.")
            && asked.contains("HISTORY")
            && !asked.contains("Name the animals."),
        "{asked}"
    );
    let (file, messages) = (pi.file(), pi.messages());
    assert_eq!(pi.roles(), ["compactionSummary", "assistant"]);
    assert_eq!(
        (&messages[0]["shortSummary"], &messages[0]["method"]),
        (&json!("SHORT"), &json!("soft"))
    );
    end(&pi);
    let again = world.start_with(&["--rpc-dialect", "omp-now", "--session", file.to_str().unwrap()]);
    assert_eq!(again.messages(), messages);
    end(&again);
}

#[test]
fn compaction_without_short_summary_is_stored() {
    let refused = Reply::error(ErrorKind::Invalid);
    let (_world, pi) = splitting([Reply::text(["HISTORY"]), Reply::text(["PREFIX"]), refused]);
    let result = pi.data(json!({"type": "compact"}));
    assert_eq!(result.get("shortSummary"), None, "{result}");
    assert_eq!(pi.roles(), ["compactionSummary", "assistant"]);
    let lines = pi.lines();
    let notices = of_type(&lines, "notice");
    let reason = "The compaction is stored without a short summary: Short summary failed: 400";
    let is_told = |notice: &&Value| notice["message"].as_str().unwrap().starts_with(reason);
    assert_eq!(notices.into_iter().filter(is_told).count(), 1, "{lines:?}");
    end(&pi);
}

#[test]
fn abort_of_short_summary_changes_nothing() {
    let short = Reply::text(["SHORT"]).gate("short");
    let (world, pi) = splitting([Reply::text(["HISTORY"]), Reply::text(["PREFIX"]), short]);
    let before = pi.messages();
    let asked = pi.send(json!({"type": "compact"}));
    world.server.wait_gate("short", LONG).unwrap();
    pi.data(json!({"type": "abort"}));
    assert_eq!(pi.response(&asked)["success"], false);
    assert_eq!(pi.messages(), before);
    end(&pi);
}

#[test]
fn newest_client_negotiates_version_2_only() {
    let world = World::new([]);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    let refused = pi.error(json!({"type": "negotiate_protocol", "protocolVersion": 1}));
    assert_eq!(refused, "Unsupported RPC protocol version: 1");
    pi.data(json!({"type": "negotiate_protocol", "protocolVersion": 2}));
    end(&pi);
}

#[test]
fn empty_session_is_exported_into_new_directory() {
    let world = World::new([]);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    let path = "no/such/page.html";
    let exported = pi.data(json!({"type": "export_html", "outputPath": path}));
    assert_eq!(exported["path"], path);
    assert!(world.dir.cwd().join(path).exists());
    end(&pi);
}

#[test]
fn end_of_input_shows_end_of_aborted_answer() {
    let world = World::new([Reply::text(["half"]).gate("mid").then_text([" whole"])]);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    pi.data(json!({"type": "prompt", "message": "Hello"}));
    pi.wait_update("text_delta");
    pi.agent.close_stdin();
    let turn = pi.wait("turn_end");
    assert_eq!(turn["message"]["stopReason"], "aborted");
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
    assert_eq!(of_type(&pi.lines(), "agent_end").len(), 0, "as in oh-my-pi");
}

#[test]
fn config_yml_decides_model_and_approvals() {
    let config = "modelRoles: {default: mock-openai/gpt-mock}\ntools: {approval: {bash: prompt}}\n";
    for (args, end_of_run, counts) in [
        (vec!["--rpc-dialect", "omp-now"], "session_settled", true),
        (vec![], "agent_settled", false),
    ] {
        let world = World::new([bash("c1", "echo hi"), Reply::text(["done"])]);
        let file = world.dir.agent_dir().join("config.yml");
        world.dir.write(file, config).unwrap();
        // The model is not named, unlike in other tests.
        let pi = Pi::spawn(world.dir.agent(PROGRAM).args(["--mode", "rpc"]).args(args));
        assert_eq!(pi.state()["model"]["id"] == "gpt-mock", counts);
        pi.data(json!({"type": "prompt", "message": "Go"}));
        if counts {
            choose(&pi, &question(&pi), "Deny");
        }
        pi.wait(end_of_run);
        let lines = pi.lines();
        let asked = of_type(&lines, "extension_ui_request");
        assert_eq!(!asked.is_empty(), counts, "{asked:?}");
        assert_eq!(ends(&pi)[0].0, counts, "a denied call is an error");
        end(&pi);
    }
}
