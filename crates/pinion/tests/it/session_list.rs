//! `list_sessions`: which sessions it shows, what it says of them, and what it does not stumble over.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{Pi, World, bash};

fn list(pi: &Pi, scope: &str) -> Vec<Value> {
    let data = pi.data(json!({"type": "list_sessions", "scope": scope}));
    data["sessions"].as_array().unwrap().clone()
}

fn paths(sessions: &[Value]) -> Vec<PathBuf> {
    sessions
        .iter()
        .map(|session| session["path"].as_str().unwrap().into())
        .collect()
}

/// A session file in the folder of a working directory, with one question at a time (Unix seconds).
fn put(world: &World, cwd: &Path, id: &str, seconds: u64, question: &str) -> PathBuf {
    let folder = world
        .dir
        .agent_dir()
        .join("sessions")
        .join(format!("--{}--", cwd.to_str().unwrap()[1..].replace('/', "-")));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl"));
    let at = "2026-01-01T00:00:00.000Z";
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": at, "cwd": cwd});
    let message = json!({"role": "user", "content": question, "timestamp": seconds * 1000});
    let entry =
        json!({"type": "message", "id": "aaaa0001", "parentId": null, "timestamp": at, "message": message});
    fs::write(&path, format!("{header}\n{entry}\n")).unwrap();
    path
}

const DAY: u64 = 86_400;

#[test]
fn session_summary_has_expected_members() {
    let world = World::new([bash("c1", "true"), Reply::text(["done"])]);
    let pi = world.start();
    pi.data(json!({"type": "new_session", "parentSession": "/some/parent.jsonl"}));
    pi.say("First question");
    pi.data(json!({"type": "set_session_name", "name": "Draft"}));
    pi.data(json!({"type": "set_session_name", "name": "Final"}));
    let (state, header) = (pi.state(), crate::check::header(&pi.file()));
    for scope in ["cwd", "all"] {
        let sessions = list(&pi, scope);
        assert_eq!(sessions.len(), 1, "{scope}: {sessions:?}");
        let session = &sessions[0];
        assert_eq!(session["path"], state["sessionFile"]);
        assert_eq!(session["id"], state["sessionId"]);
        assert_eq!(session["cwd"], world.dir.cwd().to_str().unwrap());
        assert_eq!(session["name"], "Final");
        assert_eq!(session["parentSessionPath"], "/some/parent.jsonl");
        assert_eq!(session["messageCount"], 4);
        assert_eq!(session["firstMessage"], "First question");
        assert_eq!(session["created"], header["timestamp"]);
        assert!(
            session["modified"].as_str().unwrap() >= header["timestamp"].as_str().unwrap(),
            "{session}"
        );
    }
    assert_eq!(list(&pi, "cwd")[0]["allMessagesText"], "", "only when asked for");
    let asked = pi.data(json!({"type": "list_sessions", "scope": "cwd", "texts": true}));
    let texts = asked["sessions"][0]["allMessagesText"].as_str().unwrap();
    assert!(
        texts.contains("First question") && texts.contains("done"),
        "{texts}"
    );
    pi.finish();
}

#[test]
fn session_list_is_newest_first() {
    let world = World::new([Reply::text(["ok"])]);
    let cwd = world.dir.cwd();
    let middle = put(&world, &cwd, "middle", 200 * DAY, "Middle");
    let oldest = put(&world, &cwd, "oldest", 100 * DAY, "Oldest");
    let newest = put(&world, &cwd, "newest", 300 * DAY, "Newest");
    let pi = world.start();
    assert_eq!(
        paths(&list(&pi, "cwd")),
        [newest.clone(), middle.clone(), oldest.clone()]
    );
    assert_eq!(list(&pi, "all").len(), 3);
    assert_eq!(list(&pi, "cwd")[0]["modified"], "1970-10-28T00:00:00.000Z");
    // Going on with the oldest brings it to the front.
    pi.data(json!({"type": "switch_session", "sessionPath": oldest}));
    pi.say("Again");
    let sessions = list(&pi, "cwd");
    assert_eq!(paths(&sessions), [oldest, newest, middle]);
    assert_eq!(
        (&sessions[0]["messageCount"], &sessions[0]["firstMessage"]),
        (&json!(3), &json!("Oldest"))
    );
    pi.finish();
}

#[test]
fn session_list_scope_is_directory_or_all() {
    let world = World::new([]);
    let elsewhere = world.dir.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let here = put(&world, &world.dir.cwd(), "here", 100 * DAY, "Here");
    let there = put(&world, &elsewhere, "there", 200 * DAY, "There");
    let pi = world.start();
    assert_eq!(paths(&list(&pi, "cwd")), std::slice::from_ref(&here));
    assert_eq!(paths(&list(&pi, "all")), [there.clone(), here.clone()]);
    let unsaid = pi.get("list_sessions")["sessions"].as_array().unwrap().len();
    assert_eq!(unsaid, 2, "all of them when nothing is said");
    pi.data(json!({"type": "switch_session", "sessionPath": there}));
    assert_eq!(
        paths(&list(&pi, "cwd")),
        [there],
        "the working directory of the session"
    );
    pi.finish();
}

#[test]
fn new_session_keeps_directory_of_previous_session() {
    let world = World::new([Reply::text(["ok"])]);
    let elsewhere = world.dir.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let there = put(&world, &elsewhere, "there", 200 * DAY, "There");
    let pi = world.start();
    pi.data(json!({"type": "switch_session", "sessionPath": there}));
    pi.data(json!({"type": "new_session"}));
    pi.say("New one");
    let file = pi.file();
    assert_eq!(crate::check::header(&file)["cwd"], elsewhere.to_str().unwrap());
    assert_eq!(
        file.parent(),
        there.parent(),
        "next to the others of that directory"
    );
    assert_eq!(paths(&list(&pi, "cwd")), [file, there]);
    pi.finish();
}

#[test]
fn session_dir_lists_only_sessions_of_cwd() {
    let world = World::new([Reply::text(["ok"])]);
    let folder = world.dir.root().join("mine");
    fs::create_dir(&folder).unwrap();
    let usual = put(&world, &world.dir.cwd(), "usual", 100 * DAY, "In the usual place");
    let foreign = folder.join("2026-01-01T00-00-00-000Z_foreign.jsonl");
    let source = put(
        &world,
        Path::new("/another/place"),
        "foreign",
        50 * DAY,
        "Foreign",
    );
    fs::rename(source, &foreign).unwrap();
    let pi = world.start_with(&["--session-dir", folder.to_str().unwrap()]);
    pi.say("Mine");
    let mine = pi.file();
    assert_eq!(paths(&list(&pi, "cwd")), std::slice::from_ref(&mine));
    assert_eq!(paths(&list(&pi, "all")), [mine, usual, foreign]);
    pi.finish();
}

#[test]
fn session_without_messages_is_listed() {
    let world = World::new([]);
    let path = put(&world, &world.dir.cwd(), "empty", 0, "x");
    let content = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{}\n", content.lines().next().unwrap())).unwrap();
    let pi = world.start();
    let sessions = list(&pi, "cwd");
    assert_eq!(sessions.len(), 1);
    assert_eq!(
        (&sessions[0]["firstMessage"], &sessions[0]["messageCount"]),
        (&json!("(no messages)"), &json!(0))
    );
    assert_eq!(sessions[0]["modified"], sessions[0]["created"]);
    assert!(sessions[0].get("name").is_none());
    pi.finish();
}

#[test]
fn files_without_session_are_not_listed() {
    let world = World::new([]);
    let good = put(&world, &world.dir.cwd(), "good", 100 * DAY, "Good");
    let folder = good.parent().unwrap();
    fs::write(folder.join("notes.jsonl"), "These are my notes.\n").unwrap();
    fs::write(
        folder.join("other.jsonl"),
        "{\"type\":\"log\"}\n{\"type\":\"session\",\"id\":\"late\"}\n",
    )
    .unwrap();
    fs::write(folder.join("empty.jsonl"), "").unwrap();
    fs::write(folder.join("bytes.jsonl"), [0xff, 0xfe, 0x00, 0x0a]).unwrap();
    fs::write(folder.join("session.json"), fs::read(&good).unwrap()).unwrap();
    fs::create_dir(folder.join("folder.jsonl")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", folder.join("dangling.jsonl")).unwrap();
    std::os::unix::fs::symlink("loop.jsonl", folder.join("loop.jsonl")).unwrap();
    fs::write(folder.parent().unwrap().join("stray.txt"), "x").unwrap();
    let pi = world.start();
    for scope in ["cwd", "all"] {
        assert_eq!(paths(&list(&pi, scope)), std::slice::from_ref(&good));
    }
    pi.finish();
    let pi = world.start_with(&["--continue"]);
    assert_eq!(pi.file(), good);
    pi.finish();
}

#[test]
fn pipe_among_sessions_does_not_block_listing() {
    let world = World::new([]);
    let good = put(&world, &world.dir.cwd(), "good", 100 * DAY, "Good");
    let made = std::process::Command::new("mkfifo")
        .arg(good.parent().unwrap().join("pipe.jsonl"))
        .status()
        .unwrap();
    assert!(made.success());
    let pi = world.start();
    let id = pi.send(json!({"type": "list_sessions", "scope": "cwd"}));
    let response = pi.response(&id);
    assert_eq!(response["data"]["sessions"].as_array().unwrap().len(), 1);
    pi.finish();
}

#[test]
fn damaged_sessions_are_listed_with_readable_part() {
    let world = World::new([]);
    let path = put(&world, &world.dir.cwd(), "torn", 100 * DAY, "Still here");
    let mut content = fs::read_to_string(&path).unwrap();
    content.push_str("garbage\n{\"type\":\"message\",\"id\":\"torn");
    fs::write(&path, &content).unwrap();
    let pi = world.start();
    let sessions = list(&pi, "cwd");
    assert_eq!(sessions.len(), 1);
    assert_eq!(
        (&sessions[0]["firstMessage"], &sessions[0]["messageCount"]),
        (&json!("Still here"), &json!(1))
    );
    pi.finish();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        content,
        "looking changes nothing"
    );
}

#[test]
fn late_session_names_are_listed() {
    let world = World::new([]);
    world.server.set_rule(|_| Reply::text(["x".repeat(3_000)]));
    let pi = world.start();
    pi.data(json!({"type": "set_session_name", "name": "At the beginning"}));
    for round in 0..60 {
        pi.say(&format!("Question {round} {}", "y".repeat(3_000)));
    }
    assert_eq!(list(&pi, "cwd")[0]["name"], "At the beginning");
    let (message, count) = (
        list(&pi, "all")[0]["firstMessage"].clone(),
        list(&pi, "all")[0]["messageCount"].clone(),
    );
    assert!(message.as_str().unwrap().starts_with("Question 0 y"), "{message}");
    assert_eq!(count, 120);
    pi.data(json!({"type": "set_session_name", "name": "At the end"}));
    assert_eq!(list(&pi, "all")[0]["name"], "At the end");
    pi.finish();
}

#[test]
fn unsaved_session_lists_other_sessions() {
    let world = World::new([Reply::text(["ok"])]);
    let other = put(&world, &world.dir.cwd(), "other", 100 * DAY, "Other");
    let pi = world.start_with(&["--no-session"]);
    pi.say("Hi");
    for scope in ["cwd", "all"] {
        assert_eq!(paths(&list(&pi, scope)), std::slice::from_ref(&other));
    }
    pi.finish();
}
