//! Files that are odd in some way, opened from the command line, switched to or forked: torn, old, empty, without their model
//! or directory. What a healthy file looks like is in `sessions`, and how the session before it ends in `session_change`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::llm::Reply;
use testkit::workspace::default_models;

use crate::check;
use crate::kit::{LONG, Pi, World, answered_at, answers, bash, of_type, text, until};

/// A finished session of one exchange.
fn made(world: &World) -> PathBuf {
    world.server.push(Reply::text(["remembered"]));
    let pi = world.start();
    pi.say("Remember this");
    let file = pi.file();
    pi.finish();
    file
}

/// A process with a session of its own.
fn begun(world: &World) -> (Pi, PathBuf) {
    world.server.push(Reply::text(["first answer"]));
    let pi = world.start();
    pi.say("First question");
    let file = pi.file();
    (pi, file)
}

fn switch(pi: &Pi, path: &Path) -> Value {
    pi.data(json!({"type": "switch_session", "sessionPath": path}))
}

fn texts(pi: &Pi) -> Vec<String> {
    pi.messages().iter().map(text).collect()
}

/// A session file as another version wrote it.
fn version(world: &World, version: u32) -> PathBuf {
    let path = world.dir.root().join(format!("v{version}.jsonl"));
    let mut header = json!({"type": "session", "id": "11111111-2222-4333-8444-555555555555", "cwd": world.dir.cwd(),
                            "timestamp": "2025-11-01T10:00:00.000Z"});
    let message = json!({"role": "user", "content": "Old question", "timestamp": 1_761_991_201_000_u64});
    let mut entry = json!({"type": "message", "timestamp": "2025-11-01T10:00:01.000Z", "message": message});
    if version > 1 {
        header["version"] = json!(version);
        entry["id"] = json!("aaaaaaaa");
        entry["parentId"] = json!(null);
    }
    fs::write(&path, format!("{header}\n{entry}\n")).unwrap();
    path
}

#[test]
fn switching_to_damaged_file_reports_damage_once() {
    let world = World::new([]);
    let torn = made(&world);
    let mut content = fs::read_to_string(&torn).unwrap();
    content.push_str("{\"type\":\"message\",\"id\":\"torn");
    fs::write(&torn, content).unwrap();
    let (pi, _) = begun(&world);
    let id = pi.send(json!({"type": "switch_session", "sessionPath": torn}));
    assert_eq!(pi.response(&id)["success"], true);
    world.server.push(Reply::text(["more"]));
    pi.say("On");
    let lines = pi.lines();
    let damage = of_type(&lines, "session_damage");
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0]["path"], torn.to_str().unwrap());
    assert!(
        lines
            .iter()
            .position(|line| line["type"] == "session_damage")
            .unwrap()
            < answered_at(&lines, &id)
    );
    assert_eq!(texts(&pi), ["Remember this", "remembered", "On", "more"]);
    pi.finish();
}

#[test]
fn sessions_in_directory_of_omp_are_found() {
    let world = World::new([]);
    let file = made(&world);
    let id = check::header(&file)["id"].as_str().unwrap().to_owned();
    // As oh-my-pi names it for a directory `cwd` in the home directory.
    let dir = world.dir.agent_dir().join("sessions/-cwd");
    fs::create_dir_all(&dir).unwrap();
    let moved = dir.join(file.file_name().unwrap());
    fs::rename(&file, &moved).unwrap();
    for args in [&["--continue"][..], &["--session-id", id.as_str()]] {
        let config = world.config().env("HOME", world.dir.root());
        let pi = Pi::spawn(config.args(args.iter().copied()));
        assert_eq!(pi.file(), moved);
        assert_eq!(texts(&pi), ["Remember this", "remembered"]);
        pi.finish();
    }
}

#[test]
fn fork_leaves_torn_source_unchanged() {
    let world = World::new([]);
    let torn = made(&world);
    let mut content = fs::read_to_string(&torn).unwrap();
    content.push_str("{\"type\":\"message\",\"id\":\"torn");
    fs::write(&torn, &content).unwrap();
    let pi = world.start_with(&["--fork", torn.to_str().unwrap()]);
    assert_eq!(texts(&pi), ["Remember this", "remembered"]);
    assert_eq!(fs::read_to_string(&torn).unwrap(), content);
    pi.finish();
    assert_eq!(fs::read_to_string(&torn).unwrap(), content);
}

#[test]
fn fork_leaves_old_source_unchanged() {
    for number in [1, 2] {
        let world = World::new([]);
        let old = version(&world, number);
        let content = fs::read_to_string(&old).unwrap();
        let pi = world.start_with(&["--fork", old.to_str().unwrap()]);
        assert_eq!(texts(&pi), ["Old question"]);
        assert_eq!(fs::read_to_string(&old).unwrap(), content, "version {number}");
        let file = pi.file();
        pi.finish();
        assert_eq!(check::header(&file)["version"], 3);
        let beside: Vec<String> = fs::read_dir(world.dir.root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with('v'))
            .collect();
        assert_eq!(beside, [format!("v{number}.jsonl")], "nothing beside it either");
    }
}

#[test]
fn sessions_of_old_versions_can_be_opened() {
    for number in [1, 2] {
        let world = World::new([]);
        let old = version(&world, number);
        let (pi, _) = begun(&world);
        switch(&pi, &old);
        assert_eq!(texts(&pi), ["Old question"]);
        world.server.push(Reply::text(["new answer"]));
        pi.say("New question");
        assert_eq!(check::roles(&old), ["user", "user", "assistant"]);
        pi.finish();
    }
}

#[test]
fn session_of_newer_version_is_not_damaged() {
    let world = World::new([]);
    let future = version(&world, 9);
    let content = fs::read_to_string(&future).unwrap();
    let (pi, file) = begun(&world);
    let response = pi.ask(json!({"type": "switch_session", "sessionPath": future}));
    if response["success"] == true {
        assert_eq!(texts(&pi), ["Old question"]);
    } else {
        assert_eq!(pi.file(), file);
    }
    pi.agent.close_stdin();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
    assert!(fs::read_to_string(&future).unwrap().starts_with(&content));
}

/// As in pi, when the user names it on the command line. A client that names one is refused, see `storage`.
#[test]
fn empty_file_becomes_session() {
    let world = World::new([Reply::text(["here"])]);
    let empty = world.dir.cwd().join("empty.jsonl");
    fs::write(&empty, "").unwrap();
    let pi = world.start_with(&["--session", "./empty.jsonl"]);
    assert_eq!((pi.file(), pi.messages().len()), (empty.clone(), 0));
    pi.say("Hi");
    assert_eq!(check::roles(&empty), ["user", "assistant"]);
    let headers = fs::read_to_string(&empty)
        .unwrap()
        .matches("\"type\":\"session\"")
        .count();
    assert_eq!(headers, 1);
    pi.finish();
}

#[test]
fn session_with_missing_model_uses_another() {
    let world = World::new([Reply::text(["by gpt"])]);
    let pi = world.start();
    pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    pi.say("Hi");
    let file = pi.file();
    pi.finish();
    let mut models = default_models(&world.server.url());
    models["providers"].as_object_mut().unwrap().remove("mock-openai");
    world.dir.write_models(&models).unwrap();
    let (pi, _) = begun(&world);
    switch(&pi, &file);
    let state = pi.state();
    assert_ne!(state["model"]["id"], "gpt-mock", "{state}");
    world.server.push(Reply::text(["by another"]));
    assert_eq!(text(answers(&pi.say("On"))[0]), "by another");
    pi.finish();
}

#[test]
fn left_session_is_unlocked() {
    let world = World::new([]);
    let other = made(&world);
    for kind in ["switch_session", "fork", "clone"] {
        let (pi, old) = begun(&world);
        let point = pi.get("get_fork_messages")["messages"][0]["entryId"].clone();
        pi.data(json!({"type": kind, "sessionPath": other, "entryId": point}));
        let second = world.start_with(&["--session", old.to_str().unwrap()]);
        assert_eq!(second.messages().len(), 2, "{kind}");
        second.finish();
        let done = world.run(&["--mode", "rpc", "--session", pi.file().to_str().unwrap()], "");
        if kind != "fork" {
            assert!(
                done.err.contains("open in another process"),
                "{kind}: {}",
                done.err
            );
        }
        pi.finish();
    }
}

#[test]
fn abort_ends_wait_for_session_of_another_process() {
    let world = World::new([]);
    let other = made(&world);
    let holder = world.start_with(&["--session", other.to_str().unwrap()]);
    holder.state();
    let (pi, file) = begun(&world);
    // In one write, since the wait has an end. Without ids, which the program would check.
    let switch = json!({"type": "switch_session", "sessionPath": other});
    let abort = json!({"type": "abort"});
    pi.agent
        .send_raw(format!("{switch}\n{abort}\n").as_bytes())
        .unwrap();
    let is_answer = |line: &Value| line["command"] == "switch_session";
    let answer = pi.agent.wait(is_answer, LONG).unwrap();
    assert_eq!(answer["error"], "Operation aborted");
    assert_eq!(pi.file(), file);
    pi.finish();
    holder.finish();
}

#[test]
fn commands_behind_waiting_switch_survive_end_of_input() {
    let switches = || {
        let world = World::new([]);
        let other = made(&world);
        let (pi, _) = begun(&world);
        let holder = fs::File::open(&other).unwrap();
        holder.lock().unwrap();
        let asked = pi.send(json!({"type": "switch_session", "sessionPath": other}));
        let named = pi.send(json!({"type": "set_session_name", "name": "The other"}));
        pi.agent.close_stdin();
        std::thread::sleep(Duration::from_millis(300));
        drop(holder);
        let asked = pi.response(&asked);
        if asked["success"] == false {
            assert!(
                asked["error"]
                    .as_str()
                    .unwrap()
                    .contains("open in another process"),
                "{asked}"
            );
            return false;
        }
        assert_eq!(pi.response(&named)["success"], true);
        assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
        assert!(fs::read_to_string(&other).unwrap().contains("The other"));
        true
    };
    // The switch gives up after two seconds. A busy machine may need longer for the sleep.
    until("a session that is closed in time", switches);
}

#[test]
fn failed_fork_keeps_current_session() {
    let world = World::new([]);
    let (file, in_the_way) = (
        world.dir.root().join("mine.jsonl"),
        world.dir.root().join("in-the-way"),
    );
    fs::write(&in_the_way, "not a folder").unwrap();
    let pi = world.start_with(&[
        "--session",
        file.to_str().unwrap(),
        "--session-dir",
        in_the_way.to_str().unwrap(),
    ]);
    world.server.push(Reply::text(["first answer"]));
    pi.say("First question");
    world.server.push(Reply::text(["second answer"]));
    pi.say("Second question");
    let point = pi.get("get_fork_messages")["messages"][1]["entryId"].clone();
    for command in [
        json!({"type": "clone"}),
        json!({"type": "fork", "entryId": point}),
    ] {
        let error = pi.error(command);
        assert!(error.contains("in-the-way"), "{error}");
        assert_eq!((pi.file(), pi.messages().len()), (file.clone(), 4));
    }
    world.server.push(Reply::text(["more"]));
    pi.say("On");
    assert_eq!(check::roles(&file).len(), 6);
    pi.finish();
}

#[test]
fn unwritable_session_path_is_reported_and_recoverable() {
    let world = World::new([]);
    let (pi, file) = begun(&world);
    let path = Path::new("/proc/nowhere/at-all.jsonl");
    let response = pi.ask(json!({"type": "switch_session", "sessionPath": path}));
    if response["success"] == true {
        world.server.push(Reply::text(["not kept"]));
        let lines = pi.say("Is this kept?");
        let told = of_type(&lines, "notice");
        let clear = |notice: &Value| {
            notice["level"] == "error" && notice["message"].to_string().contains("/proc/nowhere")
        };
        assert!(!told.is_empty() && told.into_iter().all(clear), "{lines:?}");
        switch(&pi, &file);
    }
    assert_eq!(
        (pi.file(), texts(&pi)),
        (
            file.clone(),
            vec!["First question".to_owned(), "first answer".to_owned()]
        )
    );
    world.server.push(Reply::text(["kept"]));
    pi.say("And this?");
    assert_eq!(check::roles(&file).len(), 4);
    pi.finish();
}

#[test]
fn session_commands_without_parameters_are_refused() {
    let world = World::new([]);
    let (pi, file) = begun(&world);
    for command in [
        json!({"type": "switch_session"}),
        json!({"type": "switch_session", "sessionPath": ""}),
        json!({"type": "switch_session", "sessionPath": 7}),
        json!({"type": "fork"}),
        json!({"type": "fork", "entryId": null}),
        json!({"type": "list_sessions", "scope": "everything"}),
        json!({"type": "get_entries", "since": "ffffffff"}),
    ] {
        let response = pi.ask(command.clone());
        assert_eq!(
            (&response["success"], &response["command"]),
            (&json!(false), &command["type"]),
            "{response}"
        );
        assert!(!response["error"].as_str().unwrap().is_empty());
    }
    assert_eq!(
        (pi.file(), texts(&pi)),
        (file, vec!["First question".to_owned(), "first answer".to_owned()])
    );
    pi.finish();
}

#[test]
fn session_with_missing_directory_stops_command_line() {
    let world = World::new([]);
    let file = made(&world);
    let content = fs::read_to_string(&file).unwrap();
    let content = content.replacen(world.dir.cwd().to_str().unwrap(), "/nowhere/at/all", 1);
    fs::write(&file, &content).unwrap();
    let done = world.run(&["--mode", "rpc", "--session", file.to_str().unwrap()], "");
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""));
    assert!(
        done.err
            .contains("Stored session working directory does not exist: /nowhere/at/all"),
        "{}",
        done.err
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
}

#[test]
fn continue_ignores_sessions_of_other_directories() {
    let world = World::new([Reply::text(["mine"])]);
    let folder = world.dir.root().join("shared");
    let folder = folder.to_str().unwrap();
    let pi = world.start_with(&["--session-dir", folder]);
    pi.say("Mine");
    let mine = pi.file();
    pi.finish();
    let foreign = Path::new(folder).join("2099-01-01T00-00-00-000Z_foreign.jsonl");
    let content = fs::read_to_string(&mine).unwrap();
    fs::write(
        &foreign,
        content.replacen(world.dir.cwd().to_str().unwrap(), "/another/place", 1),
    )
    .unwrap();
    let pi = world.start_with(&["--session-dir", folder, "--continue"]);
    assert_eq!(pi.file(), mine);
    pi.finish();
}

#[test]
fn session_id_excludes_session_continue_and_resume() {
    let world = World::new([]);
    let file = made(&world);
    for other in [
        &["--session", file.to_str().unwrap()][..],
        &["--continue"],
        &["--resume"],
    ] {
        let done = world.run(&[&["--mode", "rpc", "--session-id", "mine"], other].concat(), "");
        assert_eq!(
            (done.code, done.out.as_str()),
            (Some(1), ""),
            "{other:?}: {}",
            done.err
        );
        assert!(done.err.contains("--session-id"), "{}", done.err);
    }
}

#[test]
fn continued_session_can_be_renamed() {
    let world = World::new([]);
    let file = made(&world);
    let pi = world.start_with(&["--continue", "--name", "Renamed"]);
    assert_eq!(
        (pi.file(), pi.state()["sessionName"].clone()),
        (file.clone(), json!("Renamed"))
    );
    pi.data(json!({"type": "new_session"}));
    assert!(
        pi.state().get("sessionName").is_none(),
        "the name is not the new session's"
    );
    switch(&pi, &file);
    assert_eq!(pi.state()["sessionName"], "Renamed");
    pi.finish();
}

#[test]
fn fork_at_running_prompt_ends_run() {
    let world = World::new([]);
    let (pi, old) = begun(&world);
    world.server.push(bash("c1", "touch begun; sleep 600"));
    pi.agent.skip();
    pi.prompt("Running question");
    until("the tool", || world.dir.cwd().join("begun").exists());
    let points = pi.get("get_fork_messages")["messages"].clone();
    let data = pi.data(json!({"type": "fork", "entryId": points[1]["entryId"]}));
    assert_eq!(data["text"], "Running question");
    assert_eq!(texts(&pi), ["First question", "first answer"]);
    let held = check::roles(&old);
    assert_eq!(
        held[..5],
        ["user", "assistant", "user", "assistant", "toolResult"]
    );
    assert_eq!(check::roles(&pi.file()), ["user", "assistant"]);
    pi.finish();
}

#[test]
fn end_of_input_after_session_change_completes_it() {
    let world = World::new([]);
    let other = made(&world);
    let (pi, old) = begun(&world);
    world.server.push(Reply::text(["half"]).gate("never"));
    pi.agent.skip();
    pi.prompt("Running question");
    pi.wait_update("text_delta");
    let id = pi.send(json!({"type": "switch_session", "sessionPath": other}));
    pi.agent.close_stdin();
    assert_eq!(
        pi.agent.wait_exit(LONG).unwrap().code(),
        Some(0),
        "{}",
        pi.agent.stderr()
    );
    pi.wait_ended();
    let lines = pi.lines();
    // The agent may end before the response. A response guarantees the switch.
    if lines.iter().any(|line| line["id"] == id.as_str()) {
        assert_eq!(lines[answered_at(&lines, &id)]["success"], true);
        let last = check::messages(&old).last().unwrap().clone();
        assert_eq!(
            (text(&last), &last["stopReason"]),
            ("half".to_owned(), &json!("aborted"))
        );
    }
    for file in [&old, &other] {
        check::file(file, &[]);
    }
    let again = world.start_with(&["--session", other.to_str().unwrap()]);
    assert_eq!(texts(&again), ["Remember this", "remembered"]);
    again.finish();
}
