//! What a fork, a clone and `--fork` copy, and what `--session-id` and `--name` give a new session. How the old session ends
//! is in `session_change`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::check;
use crate::kit::{Pi, World, text};

/// A process with `count` exchanges: "Question 1", "answer 1" and so on.
fn exchanges(world: &World, count: usize) -> Pi {
    let pi = world.start();
    for number in 1..=count {
        world.server.push(Reply::text([format!("answer {number}")]));
        pi.say(&format!("Question {number}"));
    }
    pi
}

/// Ids of the user messages.
fn fork_points(pi: &Pi) -> Vec<Value> {
    let messages = pi.get("get_fork_messages")["messages"].clone();
    let messages = messages.as_array().unwrap().iter();
    messages.map(|message| message["entryId"].clone()).collect()
}

fn texts(messages: &[Value]) -> Vec<String> {
    messages.iter().map(text).collect()
}

/// Writes a session file by hand; `entries` without timestamps.
fn handmade(world: &World, name: &str, entries: &[Value]) -> PathBuf {
    let path = world.dir.root().join(name);
    let mut file = fs::File::create(&path).unwrap();
    let header = json!({"type": "session", "version": 3, "id": format!("id-of-{name}"), "cwd": world.dir.cwd(),
                        "timestamp": "2026-01-01T10:00:00.000Z"});
    writeln!(file, "{header}").unwrap();
    for (second, entry) in entries.iter().enumerate() {
        let mut entry = entry.clone();
        entry["timestamp"] = json!(format!("2026-01-01T10:01:{second:02}.000Z"));
        writeln!(file, "{entry}").unwrap();
    }
    path
}

fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type": "message", "id": id, "parentId": parent,
           "message": {"role": "user", "content": text, "timestamp": 1_767_261_660_000_u64}})
}

fn answer(id: &str, parent: &str, text: &str) -> Value {
    let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
    let usage =
        json!({"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15, "cost": cost});
    json!({"type": "message", "id": id, "parentId": parent,
           "message": {"role": "assistant", "content": [{"type": "text", "text": text}], "api": "anthropic-messages",
                       "provider": "mock-anthropic", "model": "claude-mock", "usage": usage, "stopReason": "stop",
                       "timestamp": 1_767_261_661_000_u64}})
}

/// Two branches after the first answer; the second one is where the session stands. The answer of the first branch and the
/// first answer have labels.
fn two_branches(world: &World, name: &str) -> PathBuf {
    handmade(
        world,
        name,
        &[
            user("aaaa0001", None, "Root question"),
            answer("aaaa0002", "aaaa0001", "root answer"),
            user("bbbb0001", Some("aaaa0002"), "Left question"),
            answer("bbbb0002", "bbbb0001", "left answer"),
            user("cccc0001", Some("aaaa0002"), "Right question"),
            answer("cccc0002", "cccc0001", "right answer"),
            json!({"type": "label", "id": "dddd0001", "parentId": "cccc0002", "targetId": "bbbb0002", "label": "left"}),
            json!({"type": "label", "id": "dddd0002", "parentId": "dddd0001", "targetId": "aaaa0002", "label": "root"}),
        ],
    )
}

fn open(world: &World, path: &Path) -> Pi {
    world.start_with(&["--session", path.to_str().unwrap()])
}

#[test]
fn fork_messages_list_user_messages() {
    let world = World::new([]);
    let file = two_branches(&world, "tree.jsonl");
    let pi = open(&world, &file);
    let messages = pi.get("get_fork_messages")["messages"].clone();
    assert_eq!(
        messages,
        json!([
            {"entryId": "aaaa0001", "text": "Root question"},
            {"entryId": "bbbb0001", "text": "Left question"},
            {"entryId": "cccc0001", "text": "Right question"},
        ])
    );
    pi.finish();
}

#[test]
fn new_session_has_no_fork_messages() {
    let world = World::new([]);
    let pi = world.start();
    assert_eq!(pi.get("get_fork_messages")["messages"], json!([]));
    pi.finish();
}

#[test]
fn fork_contains_messages_before_fork_point() {
    let world = World::new([]);
    let pi = exchanges(&world, 3);
    let (old, points) = (pi.file(), fork_points(&pi));
    let before = fs::read(&old).unwrap();
    let data = pi.data(json!({"type": "fork", "entryId": points[1]}));
    assert_eq!(data, json!({"text": "Question 2", "cancelled": false}));
    assert_eq!(texts(&pi.messages()), ["Question 1", "answer 1"]);
    let new = pi.file();
    let header = check::header(&new);
    assert_eq!(header["parentSession"], old.to_str().unwrap());
    assert_eq!(header["id"], pi.state()["sessionId"]);
    assert!(new.to_str().unwrap().contains(header["id"].as_str().unwrap()));
    let (mine, theirs) = (check::entries(&new), check::entries(&old));
    assert_eq!(
        mine[..],
        theirs[..mine.len()],
        "the same entries under the same ids"
    );
    assert_eq!(mine.len(), 4);
    world.server.push(Reply::text(["another answer"]));
    pi.say("Another question");
    let request = world.server.requests().last().unwrap().body.clone();
    assert_eq!(request["messages"].as_array().unwrap().len(), 3);
    assert_eq!(fs::read(&old).unwrap(), before);
    let messages = pi.messages();
    pi.finish();
    let again = open(&world, &new);
    assert_eq!(again.messages(), messages);
    again.finish();
}

#[test]
fn fork_at_first_message_is_empty() {
    let world = World::new([]);
    let pi = exchanges(&world, 1);
    let (old, points) = (pi.file(), fork_points(&pi));
    let data = pi.data(json!({"type": "fork", "entryId": points[0]}));
    assert_eq!(data["text"], "Question 1");
    assert_eq!(pi.messages(), [] as [Value; 0]);
    // pi 0.74 names the file after another id than the one in `get_state` and in the header.
    let (state, new) = (pi.state(), pi.file());
    let id = state["sessionId"].as_str().unwrap();
    assert!(
        new.to_str().unwrap().ends_with(&format!("_{id}.jsonl")),
        "{state}"
    );
    assert_ne!(new, old);
    world.server.push(Reply::text(["new answer"]));
    pi.say("New question");
    assert_eq!(pi.file(), new);
    let header = check::header(&new);
    assert_eq!(header["parentSession"], old.to_str().unwrap());
    assert!(new.to_str().unwrap().contains(header["id"].as_str().unwrap()));
    let kinds: Vec<Value> = check::entries(&new)
        .iter()
        .map(|entry| entry["type"].clone())
        .collect();
    assert_eq!(
        kinds,
        ["model_change", "thinking_level_change", "message", "message"]
    );
    pi.finish();
}

#[test]
fn fork_at_non_user_entry_is_refused() {
    let world = World::new([Reply::text(["half"]).gate("mid")]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    let file = pi.file();
    let entries = pi.get("get_entries")["entries"].clone();
    let model_change = entries[0]["id"].clone();
    for id in [json!("ffffffff"), json!(""), model_change] {
        assert_eq!(
            pi.error(json!({"type": "fork", "entryId": id})),
            "Invalid entry ID for forking"
        );
    }
    assert_eq!(pi.state()["isStreaming"], true, "the run goes on");
    world.server.release("mid");
    pi.settled();
    let entries = pi.get("get_entries")["entries"].clone();
    let answer = entries.as_array().unwrap().last().unwrap()["id"].clone();
    assert_eq!(
        pi.error(json!({"type": "fork", "entryId": answer})),
        "Invalid entry ID for forking"
    );
    assert_eq!(
        (pi.file(), texts(&pi.messages())),
        (file, vec!["Go".to_owned(), "half".to_owned()])
    );
    pi.finish();
}

#[test]
fn fork_on_other_branch_follows_that_branch() {
    let world = World::new([]);
    let file = two_branches(&world, "tree.jsonl");
    let pi = open(&world, &file);
    assert_eq!(
        texts(&pi.messages())[1..],
        ["root answer", "Right question", "right answer"]
    );
    assert_eq!(
        pi.data(json!({"type": "fork", "entryId": "bbbb0001"}))["text"],
        "Left question"
    );
    assert_eq!(texts(&pi.messages())[1..], ["root answer"]);
    let entries = check::entries(&pi.file());
    let labels: Vec<&Value> = entries.iter().filter(|entry| entry["type"] == "label").collect();
    assert_eq!(labels.len(), 1, "only labels of what was copied: {labels:?}");
    assert_eq!(
        (&labels[0]["targetId"], &labels[0]["label"]),
        (&json!("aaaa0002"), &json!("root"))
    );
    let tree = pi.get("get_tree")["tree"].clone();
    assert!(tree.to_string().contains("\"label\":\"root\""), "{tree}");
    pi.finish();
}

#[test]
fn clone_copies_branch_and_diverges() {
    let world = World::new([]);
    let pi = exchanges(&world, 2);
    let (old, messages) = (pi.file(), pi.messages());
    let before = fs::read(&old).unwrap();
    assert_eq!(pi.data(json!({"type": "clone"})), json!({"cancelled": false}));
    let new = pi.file();
    assert_ne!(old, new);
    assert_eq!(pi.messages(), messages);
    assert_eq!(check::header(&new)["parentSession"], old.to_str().unwrap());
    assert_eq!(check::entries(&new), check::entries(&old), "on disk at once");
    world.server.push(Reply::text(["only here"]));
    pi.say("Only in the clone");
    assert_eq!(fs::read(&old).unwrap(), before);
    pi.data(json!({"type": "switch_session", "sessionPath": old}));
    assert_eq!(pi.messages(), messages);
    pi.finish();
}

/// As in pi, whose session manager keeps the directory of the file that it opened.
#[test]
fn sessions_after_opened_file_are_stored_beside_it() {
    let world = World::new([]);
    let pi = exchanges(&world, 2);
    let elsewhere = world.dir.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let copied = elsewhere.join("copied.jsonl");
    fs::copy(pi.file(), &copied).unwrap();
    pi.data(json!({"type": "switch_session", "sessionPath": copied}));
    let last = fork_points(&pi).pop().unwrap();
    for command in [
        json!({"type": "fork", "entryId": last}),
        json!({"type": "clone"}),
        json!({"type": "new_session"}),
    ] {
        pi.data(command.clone());
        let file = pi.file();
        assert_eq!(file.parent(), Some(&*elsewhere), "{command}");
        assert_ne!(file, copied, "{command}");
    }
    pi.finish();
}

#[test]
fn clone_excludes_other_branches() {
    let world = World::new([]);
    let file = two_branches(&world, "tree.jsonl");
    let pi = open(&world, &file);
    pi.data(json!({"type": "clone"}));
    let content = fs::read_to_string(pi.file()).unwrap();
    assert!(
        content.contains("right answer") && !content.contains("left answer"),
        "{content}"
    );
    pi.finish();
}

#[test]
fn clone_of_branch_ending_with_label_keeps_messages() {
    let world = World::new([Reply::text(["another answer"])]);
    let file = two_branches(&world, "tree.jsonl");
    let pi = open(&world, &file);
    let before = texts(&pi.messages());
    // The last entries of the file are labels. pi 0.74 leaves them out and loses the whole branch with them.
    pi.data(json!({"type": "clone"}));
    assert_eq!(texts(&pi.messages()), before);
    assert_ne!(pi.file(), file);
    pi.say("Next");
    let asked = world.server.requests()[0].body["messages"].to_string();
    assert!(
        asked.contains("Right question") && asked.contains("Next"),
        "{asked}"
    );
    let labels: Vec<Value> = check::entries(&pi.file())
        .iter()
        .filter(|entry| entry["type"] == "label")
        .map(|entry| entry["label"].clone())
        .collect();
    assert_eq!(labels, ["root"], "labels of entries of the branch");
    pi.finish();
}

#[test]
fn empty_session_cannot_be_cloned() {
    let world = World::new([]);
    let pi = world.start();
    let error = pi.error(json!({"type": "clone"}));
    assert_eq!(error, "Cannot clone session: no current entry selected");
    pi.finish();
}

#[test]
fn clone_keeps_name_model_and_level() {
    let world = World::new([Reply::text(["by gpt"])]);
    let pi = world.start();
    pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    pi.data(json!({"type": "set_thinking_level", "level": "low"}));
    pi.data(json!({"type": "set_session_name", "name": "Named"}));
    pi.say("Hi");
    pi.data(json!({"type": "clone"}));
    let state = pi.state();
    assert_eq!(
        (
            &state["model"]["id"],
            &state["thinkingLevel"],
            &state["sessionName"]
        ),
        (&json!("gpt-mock"), &json!("low"), &json!("Named"))
    );
    pi.finish();
}

#[test]
fn fork_flag_copies_all_branches() {
    let world = World::new([Reply::text(["further"])]);
    let source = two_branches(&world, "tree.jsonl");
    let before = fs::read(&source).unwrap();
    let pi = world.start_with(&["--fork", source.to_str().unwrap()]);
    let file = pi.file();
    assert_ne!(file, source);
    assert_eq!(
        texts(&pi.messages())[1..],
        ["root answer", "Right question", "right answer"]
    );
    let header = check::header(&file);
    assert_eq!(header["parentSession"], source.to_str().unwrap());
    assert_eq!(header["cwd"], world.dir.cwd().to_str().unwrap());
    assert_ne!(header["id"], "id-of-tree.jsonl");
    let ids = |path: &Path| -> Vec<Value> {
        let entries = check::entries(path);
        let held = entries.iter().filter(|entry| entry["type"] == "message");
        held.map(|entry| entry["id"].clone()).collect()
    };
    assert_eq!(ids(&file), ids(&source));
    assert_eq!(
        pi.get("get_fork_messages")["messages"].as_array().unwrap().len(),
        3
    );
    pi.say("On");
    assert_eq!(fs::read(&source).unwrap(), before);
    pi.finish();
}

#[test]
fn fork_flag_finds_source_by_id_prefix() {
    let world = World::new([]);
    let pi = exchanges(&world, 1);
    let (source, id) = (pi.file(), pi.state()["sessionId"].as_str().unwrap().to_owned());
    pi.finish();
    let pi = world.start_with(&["--fork", &id[..13], "--session-id", "my-own_id"]);
    assert_eq!(pi.state()["sessionId"], "my-own_id");
    let file = pi.file();
    assert!(
        file.to_str().unwrap().ends_with("_my-own_id.jsonl"),
        "{}",
        file.display()
    );
    assert_eq!(check::header(&file)["parentSession"], source.to_str().unwrap());
    assert_eq!(texts(&pi.messages()), ["Question 1", "answer 1"]);
    pi.finish();
}

/// pi 1.5.2 refuses the id of a session that is there; a copy would be a second session with this id.
#[test]
fn fork_flag_refuses_existing_session_id() {
    let world = World::new([]);
    let pi = exchanges(&world, 1);
    let id = pi.state()["sessionId"].as_str().unwrap().to_owned();
    pi.finish();
    let done = world.run(&["--mode", "rpc", "--fork", &id, "--session-id", &id], "");
    assert_eq!(done.code, Some(1), "{}", done.err);
    let wanted = format!("Session already exists with id '{id}'");
    assert!(done.err.contains(&wanted), "{}", done.err);
}

#[test]
fn session_flag_prefers_exact_id_to_prefix() {
    let world = World::new([]);
    for id in ["build", "build-2"] {
        world.server.push(Reply::text([format!("answer of {id}")]));
        let pi = world.start_with(&["--session-id", id]);
        pi.say("Question");
        pi.finish();
    }
    let pi = world.start_with(&["--session", "build"]);
    assert_eq!(pi.state()["sessionId"], "build");
    pi.finish();
}

#[test]
fn session_file_name_contains_session_id() {
    let world = World::new([]);
    let pi = world.start_with(&["--session-id", "v1.2"]);
    assert!(
        pi.file().to_str().unwrap().ends_with("_v1.2.jsonl"),
        "{}",
        pi.file().display()
    );
    pi.finish();
}

#[test]
fn fork_of_session_open_elsewhere_works() {
    let world = World::new([]);
    let pi = exchanges(&world, 1);
    let file = pi.file();
    let fork = world.start_with(&["--fork", file.to_str().unwrap()]);
    assert_eq!(texts(&fork.messages()), ["Question 1", "answer 1"]);
    fork.finish();
    pi.finish();
}

#[test]
fn invalid_fork_flags_are_refused() {
    let world = World::new([]);
    let pi = exchanges(&world, 1);
    let source = pi.file().to_str().unwrap().to_owned();
    pi.finish();
    let cases: [(&[&str], &str); 6] = [
        (
            &["--session", &source],
            "--fork cannot be combined with --session",
        ),
        (&["--continue"], "--fork cannot be combined with --continue"),
        (&["--resume"], "--fork cannot be combined with --resume"),
        (&["--no-session"], "--fork cannot be combined with --no-session"),
        (
            &["--fork", "ffffffff-none"],
            "No session found matching 'ffffffff-none'",
        ),
        (&["--fork", "/nowhere/at/all.jsonl"], "/nowhere/at/all.jsonl"),
    ];
    for (more, error) in cases {
        let mut args = vec!["--mode", "rpc", "--fork", source.as_str()];
        args.extend(more);
        let done = world.run(&args, "");
        assert_eq!(
            (done.code, done.out.as_str()),
            (Some(1), ""),
            "{more:?}: {}",
            done.err
        );
        assert!(done.err.contains(error), "{more:?}: {}", done.err);
    }
    assert_eq!(world.session_files().len(), 1, "nothing was made");
}

#[test]
fn session_id_flag_sets_id() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start_with(&["--session-id", "build-42"]);
    assert_eq!(pi.state()["sessionId"], "build-42");
    pi.say("Hi");
    let file = pi.file();
    pi.finish();
    assert_eq!(check::header(&file)["id"], "build-42");
    let found = world.start_with(&["--session", "build-42"]);
    assert_eq!((found.file(), found.messages().len()), (file, 2));
    found.finish();
}

#[test]
fn session_id_cannot_escape_session_directory() {
    let world = World::new([]);
    for id in ["../../evil", "a/b", "", ".hidden", "-x-", "a b", "ends."] {
        let arg = format!("--session-id={id}");
        let done = world.run(
            &[
                "--mode",
                "rpc",
                "--provider",
                "mock-anthropic",
                "--model",
                "claude-mock",
                &arg,
            ],
            "{\"id\":\"1\",\"type\":\"get_state\"}\n",
        );
        assert_eq!(done.code, Some(2), "{id:?}: {}", done.out);
    }
}

#[test]
fn existing_session_id_opens_that_session() {
    let world = World::new([Reply::text(["one"])]);
    let pi = world.start_with(&["--session-id", "build-42"]);
    pi.say("Hi");
    let file = pi.file();
    pi.finish();
    let again = world.start_with(&["--session-id", "build-42"]);
    assert_eq!((again.file(), again.messages().len()), (file, 2));
    again.finish();
}

#[test]
fn name_flag_sets_session_name() {
    for flag in ["--name", "-n"] {
        let world = World::new([Reply::text(["ok"])]);
        let pi = world.start_with(&[flag, "  Nightly build "]);
        assert_eq!(pi.state()["sessionName"], "Nightly build");
        pi.say("Hi");
        let file = pi.file();
        pi.finish();
        let entries = check::entries(&file);
        let named: Vec<&Value> = entries
            .iter()
            .filter(|entry| entry["type"] == "session_info")
            .collect();
        assert_eq!((named.len(), &named[0]["name"]), (1, &json!("Nightly build")));
        let again = open(&world, &file);
        assert_eq!(again.state()["sessionName"], "Nightly build");
        again.finish();
    }
}

#[test]
fn clone_without_answer_keeps_question() {
    let world = World::new([Reply::text(["answered"])]);
    let source = handmade(
        &world,
        "asked.jsonl",
        &[user("aaaa0001", None, "Unanswered question")],
    );
    let pi = open(&world, &source);
    pi.data(json!({"type": "clone"}));
    let file = pi.file();
    assert_eq!(texts(&pi.messages()), ["Unanswered question"]);
    pi.say("And now?");
    assert_eq!(
        texts(&check::messages(&file)),
        ["Unanswered question", "And now?", "answered"]
    );
    assert_eq!(check::header(&file)["parentSession"], source.to_str().unwrap());
    pi.finish();
}
