//! Going about in a session's tree: `navigate_tree` with and without summaries, labels, the older `branch`.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::kit::{Pi, World, of_type, text};

/// A session of three exchanges.
fn three_exchanges(more: impl IntoIterator<Item = Reply>) -> (World, Pi) {
    let answers = ["One.", "Two.", "Three."].map(|answer| Reply::text([answer]));
    let world = World::new(answers.into_iter().chain(more));
    world.settings(json!({"retry": {"baseDelayMs": 1}}));
    let pi = world.start();
    for prompt in ["First", "Second", "Third"] {
        pi.say(prompt);
    }
    (world, pi)
}

fn entry_saying(pi: &Pi, words: &str) -> Value {
    let entries = pi.get("get_entries")["entries"].clone();
    let found = entries.as_array().unwrap().iter().find(|entry| {
        entry["message"]["content"]
            .as_array()
            .is_some_and(|blocks| blocks.iter().any(|block| block["text"] == words))
    });
    found.unwrap().clone()
}

fn id_of(pi: &Pi, words: &str) -> String {
    entry_saying(pi, words)["id"].as_str().unwrap().to_owned()
}

fn texts(pi: &Pi) -> Vec<String> {
    let messages = pi.messages();
    messages
        .iter()
        .map(|message| match message["summary"].as_str() {
            Some(summary) => format!("({}) {summary}", message["role"].as_str().unwrap()),
            None => text(message),
        })
        .collect()
}

#[test]
fn navigate_to_user_message_selects_its_parent() {
    let (world, pi) = three_exchanges([Reply::text(["Second answer to two."])]);
    let target = id_of(&pi, "Second");
    let data = pi.data(json!({"type": "navigate_tree", "targetId": target}));
    assert_eq!(data, json!({"cancelled": false, "editorText": "Second"}));
    assert_eq!(texts(&pi), ["First", "One."]);
    pi.say("Another second");
    assert_eq!(
        texts(&pi),
        ["First", "One.", "Another second", "Second answer to two."]
    );
    let body = world.server.requests()[3].body.to_string();
    assert!(
        body.contains("Another second") && !body.contains("Third"),
        "{body}"
    );
    let file = pi.file();
    pi.finish();
    // The new branch is where the file goes on.
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(texts(&pi).last().unwrap(), "Second answer to two.");
    pi.finish();
}

#[test]
fn navigate_to_answer_selects_that_answer() {
    let (_world, pi) = three_exchanges([]);
    let leaf = pi.get("get_entries")["leafId"].clone();
    let data = pi.data(json!({"type": "navigate_tree", "targetId": leaf}));
    assert_eq!(data, json!({"cancelled": false}));
    assert_eq!(texts(&pi).len(), 6);
    let data = pi.data(json!({"type": "navigate_tree", "targetId": id_of(&pi, "One.")}));
    assert_eq!(data, json!({"cancelled": false}));
    assert_eq!(texts(&pi), ["First", "One."]);
    // And back again: nothing is lost.
    pi.data(json!({"type": "navigate_tree", "targetId": id_of(&pi, "Three.")}));
    assert_eq!(texts(&pi).len(), 6);
    let error = pi.error(json!({"type": "navigate_tree", "targetId": "nowhere"}));
    assert_eq!(error, "Entry not found: nowhere");
    pi.finish();
}

#[test]
fn navigation_summarises_abandoned_branch() {
    let summary = Reply::text(["They counted to three."]);
    let (world, pi) = three_exchanges([summary, Reply::text(["Four."])]);
    let old_leaf = pi.get("get_entries")["leafId"].clone();
    let data = pi.data(
        json!({"type": "navigate_tree", "targetId": id_of(&pi, "One."), "summarize": true,
        "customInstructions": "Mind the numbers.", "label": "counted"}),
    );
    let request = world.server.requests()[3].body.to_string();
    assert!(request.contains("Mind the numbers."), "{request}");
    assert!(
        request.contains("Third") && !request.contains("First"),
        "{request}"
    );
    let said = texts(&pi);
    assert_eq!(said[..2], ["First", "One."]);
    assert!(
        said[2].starts_with("(branchSummary) ") && said[2].contains("They counted to three."),
        "{said:?}"
    );
    let entries = pi.get("get_entries")["entries"].clone();
    let kinds: Vec<&Value> = entries.as_array().unwrap().iter().rev().take(2).collect();
    assert_eq!(kinds[0]["type"], "label");
    assert_eq!(kinds[0]["targetId"], data["summaryEntryId"]);
    assert_eq!(kinds[1]["type"], "branch_summary");
    assert_eq!(kinds[1]["id"], data["summaryEntryId"]);
    assert_eq!(kinds[1]["fromId"], old_leaf);
    assert!(kinds[1]["usage"]["output"].as_u64().unwrap() > 0);
    pi.say("Go on");
    let body = world.server.requests()[4].body.to_string();
    assert!(body.contains("They counted to three."), "{body}");
    pi.finish();
}

#[test]
fn aborted_or_failed_branch_summary_changes_nothing() {
    let gated = Reply::text(["Too late."]).gate("summary");
    let (world, pi) = three_exchanges([gated, Reply::error(ErrorKind::Auth)]);
    let command = json!({"type": "navigate_tree", "targetId": id_of(&pi, "One."), "summarize": true});
    let asked = pi.send(command.clone());
    world.server.wait_requests(4, crate::kit::LONG).unwrap();
    assert_eq!(pi.state()["isCompacting"], true);
    assert!(
        pi.error(json!({"type": "prompt", "message": "Now?"}))
            .contains("already processing")
    );
    pi.data(json!({"type": "abort"}));
    assert_eq!(pi.response(&asked)["data"], json!({"cancelled": true}));
    world.server.release("summary");
    assert_eq!(texts(&pi).len(), 6);
    let error = pi.error(command);
    assert!(error.starts_with("Branch summarization failed: "), "{error}");
    assert_eq!(texts(&pi).len(), 6);
    assert_eq!(pi.state()["isCompacting"], false);
    pi.finish();
}

#[test]
fn transient_branch_summary_failure_is_retried_and_reported() {
    let (_world, pi) = three_exchanges([Reply::error(ErrorKind::Overloaded), Reply::text(["Counted."])]);
    pi.data(json!({"type": "navigate_tree", "targetId": id_of(&pi, "One."), "summarize": true}));
    let lines = pi.lines();
    let told: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .filter(|kind| kind.starts_with("summarization_retry"))
        .collect();
    assert_eq!(
        told,
        [
            "summarization_retry_scheduled",
            "summarization_retry_attempt_start",
            "summarization_retry_finished"
        ]
    );
    let scheduled = of_type(&lines, "summarization_retry_scheduled")[0];
    assert_eq!(
        (&scheduled["attempt"], &scheduled["maxAttempts"]),
        (&json!(1), &json!(3))
    );
    assert!(
        scheduled["errorMessage"]
            .as_str()
            .unwrap()
            .to_lowercase()
            .contains("overloaded")
    );
    let start = of_type(&lines, "summarization_retry_attempt_start")[0];
    assert_eq!(
        *start,
        json!({"type": "summarization_retry_attempt_start", "source": "branchSummary"})
    );
    pi.finish();
}

#[test]
fn navigation_ends_running_run_first() {
    let (world, pi) = three_exchanges([Reply::text(["Never "]).gate("end").then_text(["said"])]);
    let target = id_of(&pi, "One.");
    pi.prompt("Fourth");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "navigate_tree", "targetId": target}));
    let lines = pi.lines();
    let end = lines
        .iter()
        .rposition(|line| line["type"] == "agent_end")
        .unwrap();
    let response = lines
        .iter()
        .rposition(|line| line["command"] == "navigate_tree")
        .unwrap();
    assert!(end < response);
    assert_eq!(texts(&pi), ["First", "One."]);
    let cut = entry_saying(&pi, "Never ");
    assert_eq!(cut["message"]["stopReason"], "aborted");
    world.server.release("end");
    pi.finish();
}

#[test]
fn entry_labels_are_set_listed_and_removed() {
    let (world, pi) = three_exchanges([]);
    let target = id_of(&pi, "Two.");
    pi.data(json!({"type": "set_entry_label", "targetId": target, "label": " here "}));
    let label_of = |pi: &Pi| {
        let tree = pi.get("get_tree")["tree"].clone();
        let mut node = tree[0].clone();
        while node["entry"]["id"] != json!(target) {
            node = node["children"][0].clone();
        }
        node["label"].clone()
    };
    assert_eq!(label_of(&pi), "here");
    let file = pi.file();
    pi.finish();
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(label_of(&pi), "here");
    pi.data(json!({"type": "set_entry_label", "targetId": target}));
    assert_eq!(label_of(&pi), json!(null));
    let error = pi.error(json!({"type": "set_entry_label", "targetId": "x", "label": "l"}));
    assert_eq!(error, "Entry not found: x");
    assert_eq!(texts(&pi).len(), 6, "labels are no messages");
    pi.finish();
}

#[test]
fn branch_command_accepts_ids_and_line_numbers() {
    let (_world, pi) = three_exchanges([]);
    let file = pi.file();
    let listed = pi.get("get_branch_messages")["messages"].clone();
    let (index, id) = (listed[1]["entryIndex"].clone(), listed[1]["entryId"].clone());
    assert_eq!(listed[1]["text"], "Second");
    let line: Value = serde_json::from_str(
        std::fs::read_to_string(&file)
            .unwrap()
            .lines()
            .nth(index.as_u64().unwrap() as usize)
            .unwrap(),
    )
    .unwrap();
    assert_eq!(
        line["id"], id,
        "the index counts lines of the file, its header included"
    );
    let bad = |command: Value| pi.error(command);
    assert_eq!(
        bad(json!({"type": "branch", "entryIndex": 0})),
        "Invalid entry index for branching"
    );
    assert_eq!(
        bad(json!({"type": "branch", "entryIndex": "two"})),
        "Invalid entry index for branching"
    );
    assert_eq!(
        bad(json!({"type": "branch", "entryId": "x", "entryIndex": index})),
        "Invalid entry ID for branching"
    );
    assert_eq!(bad(json!({"type": "branch"})), "Invalid entry ID for branching");
    let data = pi.data(json!({"type": "branch", "entryIndex": index}));
    assert_eq!(data, json!({"text": "Second", "cancelled": false}));
    assert_eq!(texts(&pi), ["First", "One."]);
    assert_ne!(pi.file(), file);
    let id = id_of(&pi, "First");
    let data = pi.data(json!({"type": "branch", "entryId": id}));
    assert_eq!(data["text"], "First");
    assert!(texts(&pi).is_empty());
    pi.finish();
}

#[test]
fn costs_by_model_include_abandoned_branches() {
    let (_world, pi) = three_exchanges([]);
    let before = pi.data(json!({"type": "get_session_stats", "byModel": true}));
    assert_eq!(before["byModel"][0]["answers"], 3);
    assert_eq!(before["byModel"][0]["tokens"], before["tokens"]);
    pi.data(json!({"type": "navigate_tree", "targetId": id_of(&pi, "One.")}));
    let after = pi.data(json!({"type": "get_session_stats", "byModel": true}));
    assert_eq!(after["byModel"], before["byModel"]);
    assert_eq!(after["assistantMessages"], 1);
    assert!(
        pi.get("get_session_stats").get("byModel").is_none(),
        "only when asked for"
    );
    pi.finish();
}
