//! Compacting on request, as a client sees it.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::check;
use crate::kit::{LONG, Pi, World, answered_at, answers, bash, kinds, of_type, text, until};

/// A session of two exchanges in its file, of which a compaction keeps the last.
fn two_exchanges(replies: impl IntoIterator<Item = Reply>) -> (World, String) {
    let world = World::new(
        [Reply::text(["One."]), Reply::text(["Two."])]
            .into_iter()
            .chain(replies),
    );
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = world.start();
    pi.say(&"Remember the word elephant. ".repeat(40));
    pi.say("And this one, too.");
    let file = pi.file().to_str().unwrap().to_owned();
    pi.finish();
    (world, file)
}

#[test]
fn compact_replaces_older_messages_with_summary() {
    let (world, file) = two_exchanges([Reply::text(["All about elephants."])]);
    let pi = world.start_with(&["--session", &file]);
    let result = pi.data(json!({"type": "compact", "customInstructions": "Mind the animals."}));
    assert_eq!(result["summary"], "All about elephants.");
    let messages = pi.messages();
    assert_eq!(messages[0]["role"], "compactionSummary");
    assert_eq!(messages[0]["summary"], "All about elephants.");
    assert!(
        !messages
            .iter()
            .any(|message| message.to_string().contains("Remember the word")),
        "{messages:?}"
    );
    assert!(
        world.server.requests()[2]
            .body
            .to_string()
            .contains("Mind the animals.")
    );
    assert_eq!(
        pi.state()["contextUsage"]["tokens"],
        json!(null),
        "nothing is known until the next answer"
    );
    pi.finish();
}

#[test]
fn steering_during_compaction_is_sent_afterwards() {
    let summary = Reply::text(["All about elephants."]).gate("summary");
    let (world, file) = two_exchanges([summary, Reply::text(["Heard."])]);
    let pi = world.start_with(&["--session", &file]);
    let asked = pi.send(json!({"type": "compact"}));
    pi.wait("compaction_start");
    pi.data(json!({"type": "steer", "message": "Do not forget me."}));
    world.server.release("summary");
    assert_eq!(pi.response(&asked)["success"], true);
    pi.agent
        .wait(|line| line["type"] == "agent_settled", LONG)
        .unwrap();
    let lines = pi.lines();
    assert!(kinds(&lines).contains(&"agent_end"), "{:?}", kinds(&lines));
    assert_eq!(text(pi.messages().last().unwrap()), "Heard.");
    pi.finish();
}

/// A process that has this session open.
fn open(world: &World, file: &str) -> Pi {
    world.start_with(&["--session", file])
}

/// What a request for a summary says.
fn asked(world: &World, request: usize) -> String {
    let body = world.server.requests()[request].body.clone();
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "one message: {body}");
    assert_eq!(messages[0]["role"], "user");
    text(&messages[0])
}

/// Ends the process and looks whether another one finds the same conversation.
fn same_after_restart(world: &World, pi: Pi) {
    let (file, messages) = (pi.file(), pi.messages());
    pi.finish();
    let again = open(world, file.to_str().unwrap());
    assert_eq!(again.messages(), messages);
    again.finish();
}

#[test]
fn compaction_events_response_and_entry_agree() {
    let (world, file) = two_exchanges([Reply::text(["All about elephants."])]);
    let pi = open(&world, &file);
    let id = pi.send(json!({"type": "compact"}));
    let response = pi.response(&id);
    pi.state();
    let lines = pi.lines();
    let at = answered_at(&lines, &id);
    let until_then: Vec<&str> = kinds(&lines[..at]);
    assert_eq!(until_then, ["compaction_start", "compaction_end"]);
    assert_eq!(of_type(&lines, "compaction_start")[0]["reason"], "manual");
    let end = of_type(&lines, "compaction_end")[0];
    assert_eq!(
        (
            &end["reason"],
            &end["aborted"],
            &end["willRetry"],
            end.get("errorMessage")
        ),
        (&json!("manual"), &json!(false), &json!(false), None)
    );
    assert_eq!(end["result"], response["data"]);
    let entries = check::entries(std::path::Path::new(&file));
    let entry = entries.last().unwrap();
    assert_eq!(entry["type"], "compaction");
    for key in ["summary", "firstKeptEntryId", "tokensBefore", "details"] {
        assert_eq!(entry[key], response["data"][key], "{key}");
    }
    let kept = entries
        .iter()
        .find(|found| found["id"] == entry["firstKeptEntryId"])
        .unwrap();
    assert_eq!(text(&kept["message"]), "And this one, too.");
    assert!(
        response["data"]["estimatedTokensAfter"].as_u64().unwrap() < 100,
        "{response}"
    );
    same_after_restart(&world, pi);
}

#[test]
fn compaction_request_contains_conversation() {
    let (world, file) = two_exchanges([Reply::text(["All about elephants."])]);
    let pi = open(&world, &file);
    pi.get("compact");
    let request = world.server.requests()[2].clone();
    let body = &request.body;
    assert!(
        body.get("tools").is_none_or(|tools| tools == &json!([])),
        "no tools: {body}"
    );
    assert!(body.get("tool_choice").is_none());
    assert!(
        !body.to_string().contains("cache_control"),
        "nothing is to be cached: {body}"
    );
    assert_ne!(body["system"], world.server.requests()[1].body["system"]);
    let said = asked(&world, 2);
    let conversation = said.split("</conversation>").next().unwrap();
    assert!(
        conversation.starts_with("<conversation>\n[User]: Remember the word elephant."),
        "{said}"
    );
    assert!(conversation.contains("[Assistant]: One."), "{said}");
    assert!(
        !said.contains("And this one, too."),
        "what is kept is not summarised: {said}"
    );
    assert!(
        !said.contains("<previous-summary>") && !said.contains("Additional focus"),
        "{said}"
    );
    pi.finish();
}

#[test]
fn request_after_compaction_contains_summary() {
    let (world, file) = two_exchanges([Reply::text(["All about elephants."]), Reply::text(["Yes."])]);
    let pi = open(&world, &file);
    pi.get("compact");
    let unknown = json!({"tokens": null, "contextWindow": 200_000, "percent": null});
    assert_eq!(pi.get("get_session_stats")["contextUsage"], unknown);
    assert_eq!(pi.get("get_context_usage")["usage"], unknown);
    pi.say("Do you remember?");
    assert_eq!(pi.get("get_context_usage")["usage"]["tokens"], 120);
    let body = world.server.requests()[3].body["messages"].clone();
    let texts: Vec<String> = body.as_array().unwrap().iter().map(text).collect();
    assert!(
        texts[0].contains("<summary>\nAll about elephants.\n</summary>"),
        "{texts:?}"
    );
    let all = texts.join("|");
    assert!(
        all.contains("And this one, too.") && all.contains("Two.") && !all.contains("Remember the word"),
        "{all}"
    );
    same_after_restart(&world, pi);
}

#[test]
fn compact_without_older_messages_is_refused() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    assert_eq!(
        pi.error(json!({"type": "compact"})),
        "Nothing to compact (session too small)"
    );
    pi.say("Hi");
    assert_eq!(
        pi.error(json!({"type": "compact"})),
        "Nothing to compact (session too small)"
    );
    assert_eq!(world.server.requests().len(), 1, "nobody was asked");
    let lines = pi.lines();
    let (starts, ends) = (
        of_type(&lines, "compaction_start"),
        of_type(&lines, "compaction_end"),
    );
    assert_eq!(starts.len(), ends.len());
    assert_eq!(pi.roles(), ["user", "assistant"]);
    pi.finish();
}

#[test]
fn repeated_compact_is_refused() {
    let (world, file) = two_exchanges([Reply::text(["All about elephants."])]);
    let pi = open(&world, &file);
    pi.get("compact");
    let messages = pi.messages();
    assert_eq!(pi.error(json!({"type": "compact"})), "Already compacted");
    assert_eq!(pi.messages(), messages);
    pi.finish();
}

#[test]
fn later_summary_carries_earlier_one() {
    let (world, file) = two_exchanges([
        Reply::text(["FIRST SUMMARY"]),
        Reply::text(["Three."]),
        Reply::text(["Four."]),
        Reply::text(["SECOND SUMMARY"]),
    ]);
    let pi = open(&world, &file);
    pi.get("compact");
    pi.say(&"Now the word is giraffe. ".repeat(10));
    pi.say("And that one, too.");
    let data = pi.data(json!({"type": "compact"}));
    assert_eq!(data["summary"], "SECOND SUMMARY");
    let said = asked(&world, 5);
    assert!(
        said.contains("<previous-summary>\nFIRST SUMMARY\n</previous-summary>"),
        "{said}"
    );
    let conversation = said.split("</conversation>").next().unwrap();
    assert!(
        conversation.contains("And this one, too.") && conversation.contains("giraffe"),
        "{said}"
    );
    assert!(
        !conversation.contains("elephant") && !conversation.contains("FIRST SUMMARY"),
        "{said}"
    );
    let summaries = pi
        .roles()
        .iter()
        .filter(|role| *role == "compactionSummary")
        .count();
    assert_eq!(summaries, 1);
    same_after_restart(&world, pi);
}

/// A session with one long turn of several tool calls.
fn long_turn(world: &World) -> Pi {
    std::fs::write(world.dir.cwd().join("read.txt"), "x".repeat(400)).unwrap();
    for reply in [
        Reply::text(["Before."]),
        Reply::tool("c1", "read", json!({"path": "read.txt"})),
        Reply::tool(
            "c2",
            "write",
            json!({"path": "out/written.txt", "content": "y".repeat(400)}),
        ),
        Reply::tool("c3", "read", json!({"path": "out/written.txt"})),
        Reply::text(["All done now."]),
    ] {
        world.server.push(reply);
    }
    let pi = world.start();
    pi.say("An earlier question");
    pi.say("A question with a long turn");
    pi
}

#[test]
fn split_turn_takes_two_summary_requests() {
    let world = World::new([]);
    world.settings(json!({"compaction": {"keepRecentTokens": 3}}));
    let pi = long_turn(&world);
    // The order of the two requests is not specified.
    world
        .server
        .push(Reply::text(["OF HISTORY"]).when_contains("An earlier question"));
    world
        .server
        .push(Reply::text(["OF PREFIX"]).when_contains("A question with a long turn"));
    let data = pi.data(json!({"type": "compact", "customInstructions": "Mind the files."}));
    let summary = data["summary"].as_str().unwrap();
    let start = "OF HISTORY\n\n---\n\n**Turn Context (split turn):**\n\nOF PREFIX";
    assert!(summary.starts_with(start), "{summary}");
    let requests = world.server.requests();
    assert_eq!(requests.len(), 7);
    let (history, prefix) = (asked(&world, 5), asked(&world, 6));
    assert!(!history.contains("A question with a long turn") && !prefix.contains("An earlier question"));
    for said in [&history, &prefix] {
        assert!(said.contains("Additional focus: Mind the files."), "{said}");
    }
    assert!(
        prefix.contains("[Assistant tool calls]: read(path=\"read.txt\")"),
        "{prefix}"
    );
    assert_eq!(pi.roles(), ["compactionSummary", "assistant"]);
    same_after_restart(&world, pi);
}

#[test]
fn compaction_summary_lists_files() {
    let world = World::new([]);
    world.settings(json!({"compaction": {"keepRecentTokens": 3}}));
    let pi = long_turn(&world);
    world.server.push(Reply::text(["OF HISTORY"]));
    world.server.push(Reply::text(["OF PREFIX"]));
    let data = pi.get("compact");
    let files = json!({"readFiles": ["read.txt"], "modifiedFiles": ["out/written.txt"]});
    assert_eq!(data["details"], files);
    let summary = data["summary"].as_str().unwrap();
    let lists =
        "<read-files>\nread.txt\n</read-files>\n\n<modified-files>\nout/written.txt\n</modified-files>";
    assert!(summary.ends_with(lists), "{summary}");
    // The next one adds to them.
    world.server.push(Reply::tool(
        "c4",
        "edit",
        json!({"path": "read.txt", "edits": [{"oldText": "x", "newText": "z"}]}),
    ));
    world
        .server
        .push(Reply::tool("c5", "read", json!({"path": "b.txt"})));
    world
        .server
        .push(Reply::text(["Really done, and this is long enough to be kept."]));
    pi.say("Edit");
    world.server.push(Reply::text(["SECOND"]).repeat());
    let data = pi.get("compact");
    assert_eq!(
        data["details"],
        json!({"readFiles": ["b.txt"], "modifiedFiles": ["out/written.txt", "read.txt"]})
    );
    assert_eq!(
        data["summary"]
            .as_str()
            .unwrap()
            .matches("<modified-files>")
            .count(),
        1,
        "{data}"
    );
    same_after_restart(&world, pi);
}

#[test]
fn compaction_during_run_ends_and_keeps_it() {
    let (world, file) = two_exchanges([
        Reply::text(["half an answer"]).gate("never").then_text([" LATE"]),
        Reply::text(["All about elephants."]),
    ]);
    let pi = open(&world, &file);
    pi.prompt("A third question, long enough to be kept alone");
    pi.wait_update("text_delta");
    let before = pi.lines().len();
    let id = pi.send(json!({"type": "compact"}));
    assert_eq!(pi.response(&id)["success"], true);
    let lines = pi.lines();
    let tail = kinds(&lines[before..answered_at(&lines, &id)]);
    let (run, rest) = tail.split_at(4);
    assert_eq!(run, ["message_end", "turn_end", "agent_end", "agent_settled"]);
    assert_eq!(
        rest,
        ["compaction_start", "compaction_end"],
        "a compaction is no run, so nothing has settled"
    );
    let entries = check::entries(std::path::Path::new(&file));
    let (last, earlier) = entries.split_last().unwrap();
    assert_eq!(last["type"], "compaction");
    let aborted = &earlier.last().unwrap()["message"];
    assert_eq!(
        (text(aborted), &aborted["stopReason"]),
        ("half an answer".to_owned(), &json!("aborted"))
    );
    assert_eq!(last["parentId"], earlier.last().unwrap()["id"]);
    let texts: Vec<String> = pi.messages().iter().map(text).collect();
    assert!(
        texts.contains(&"A third question, long enough to be kept alone".to_owned()),
        "{texts:?}"
    );
    world.server.release("never");
    same_after_restart(&world, pi);
}

#[test]
fn compact_ends_running_tool_with_its_run() {
    let (world, file) = two_exchanges([
        bash("c1", "touch begun; sleep 600"),
        Reply::text(["All about elephants."]).repeat(),
    ]);
    let pi = open(&world, &file);
    pi.prompt("Third question");
    until("the tool", || world.dir.cwd().join("begun").exists());
    pi.get("compact");
    let held = check::messages(std::path::Path::new(&file));
    let result = held
        .iter()
        .find(|message| message["role"] == "toolResult")
        .unwrap();
    assert_eq!(
        (&result["toolCallId"], &result["isError"]),
        (&json!("c1"), &json!(true))
    );
    let lines = pi.lines();
    let ends = of_type(&lines, "tool_execution_end");
    assert_eq!((ends.len(), &ends[0]["isError"]), (1, &json!(true)));
    until("the end of the tool", || pi.agent.processes().len() <= 2);
    same_after_restart(&world, pi);
}

#[test]
fn failed_summary_leaves_session_unchanged() {
    let cut_off = Reply::text(["half a summ"]).stop("length");
    for (reply, error) in [
        (Reply::error(ErrorKind::Auth), "401"),
        (cut_off, "hit the token cap"),
        (Reply::new(), "empty"),
        (Reply::error(ErrorKind::ContextOverflow), "prompt is too long"),
    ] {
        let (world, file) = two_exchanges([reply]);
        let pi = open(&world, &file);
        let messages = pi.messages();
        let told = pi.error(json!({"type": "compact"}));
        assert!(told.contains(error), "{told}");
        let lines = pi.lines();
        let end = of_type(&lines, "compaction_end")[0];
        assert_eq!(
            (
                &end["reason"],
                &end["result"],
                &end["aborted"],
                &end["errorMessage"]
            ),
            (
                &json!("manual"),
                &json!(null),
                &json!(false),
                &json!(format!("Compaction failed: {told}"))
            )
        );
        assert_eq!(world.server.requests().len(), 3, "asked once");
        assert_eq!(pi.messages(), messages);
        assert!(!std::fs::read_to_string(&file).unwrap().contains("\"compaction\""));
        world.server.push(Reply::text(["All about elephants."]));
        assert_eq!(
            pi.get("compact")["summary"],
            "All about elephants.",
            "it can be tried again"
        );
        pi.finish();
    }
}

#[test]
fn transient_summary_failure_is_retried() {
    let (world, file) = two_exchanges([
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::RateLimit),
        Reply::text(["All about elephants."]),
    ]);
    let pi = open(&world, &file);
    assert_eq!(pi.get("compact")["summary"], "All about elephants.");
    assert_eq!(world.server.requests().len(), 5);
    pi.finish();
}

#[test]
fn permanent_summary_failure_stops_after_retries() {
    let (world, file) = two_exchanges([Reply::error(ErrorKind::Overloaded).repeat()]);
    let pi = open(&world, &file);
    let told = pi.error(json!({"type": "compact"}));
    assert!(told.contains("529"), "{told}");
    assert_eq!(world.server.requests().len(), 2 + 4);
    pi.finish();
}

#[test]
fn abort_of_compaction_leaves_session_unchanged() {
    let (world, file) = two_exchanges([Reply::new().gate("never").then_text(["LATE"])]);
    let pi = open(&world, &file);
    let messages = pi.messages();
    let held = std::fs::read(&file).unwrap();
    let compact = pi.send(json!({"type": "compact"}));
    world.server.wait_gate("never", LONG).unwrap();
    let state = pi.state();
    assert_eq!(
        (&state["isCompacting"], &state["isStreaming"]),
        (&json!(true), &json!(false))
    );
    let abort = pi.send(json!({"type": "abort"}));
    let response = pi.response(&compact);
    assert_eq!(
        (&response["success"], &response["error"]),
        (&json!(false), &json!("Compaction cancelled"))
    );
    assert_eq!(pi.response(&abort)["success"], true);
    let lines = pi.lines();
    let end = of_type(&lines, "compaction_end")[0];
    assert_eq!(
        (&end["aborted"], &end["result"], end.get("errorMessage")),
        (&json!(true), &json!(null), None)
    );
    world.server.release("never");
    assert_eq!((pi.messages(), std::fs::read(&file).unwrap()), (messages, held));
    world.server.push(Reply::text(["Go on."]));
    assert_eq!(text(answers(&pi.say("On"))[0]), "Go on.");
    pi.finish();
}

#[test]
fn abort_during_summary_retry_wait_cancels_compaction() {
    let (world, file) = two_exchanges([Reply::error(ErrorKind::Overloaded)]);
    world.settings(json!({
        "retry": {"baseDelayMs": 600_000, "maxAgentDelayMs": 600_000, "provider": {"maxRetries": 0}},
        "compaction": {"keepRecentTokens": 5},
    }));
    let pi = open(&world, &file);
    let compact = pi.send(json!({"type": "compact"}));
    world.server.wait_ended(3, LONG).unwrap();
    pi.data(json!({"type": "abort"}));
    assert_eq!(pi.response(&compact)["error"], "Compaction cancelled");
    pi.finish();
}

#[test]
fn second_compact_during_compaction_is_answered() {
    let (world, file) = two_exchanges([
        Reply::new().gate("never").then_text(["LATE"]),
        Reply::text(["All about elephants."]),
    ]);
    let pi = open(&world, &file);
    let first = pi.send(json!({"type": "compact"}));
    world.server.wait_gate("never", LONG).unwrap();
    let second = pi.send(json!({"type": "compact"}));
    let (first, second) = (pi.response(&first), pi.response(&second));
    let good: Vec<&Value> = [&first, &second]
        .into_iter()
        .filter(|response| response["success"] == true)
        .collect();
    assert!(good.len() <= 1, "{first} {second}");
    let entries = check::entries(std::path::Path::new(&file));
    let count = entries
        .iter()
        .filter(|entry| entry["type"] == "compaction")
        .count();
    assert_eq!(count, good.len());
    same_after_restart(&world, pi);
}

#[test]
fn follow_ups_and_prompts_wait_for_compaction() {
    let (world, file) = two_exchanges([
        Reply::new().gate("summary").then_text(["All about elephants."]),
        Reply::text(["To the prompt."]),
        Reply::text(["To the follow-up."]),
    ]);
    let pi = open(&world, &file);
    let compact = pi.send(json!({"type": "compact"}));
    world.server.wait_gate("summary", LONG).unwrap();
    let refused = pi.error(json!({"type": "prompt", "message": "Refused"}));
    assert!(refused.contains("already processing"), "{refused}");
    pi.data(json!({"type": "prompt", "message": "Later", "streamingBehavior": "followUp"}));
    pi.data(json!({"type": "prompt", "message": "Sooner", "streamingBehavior": "steer"}));
    assert_eq!(pi.state()["pendingMessageCount"], 2);
    world.server.release("summary");
    assert_eq!(pi.response(&compact)["success"], true);
    pi.settled();
    let texts: Vec<String> = pi.messages().iter().map(text).collect();
    assert_eq!(
        texts[texts.len() - 4..],
        ["Sooner", "To the prompt.", "Later", "To the follow-up."]
    );
    same_after_restart(&world, pi);
}
