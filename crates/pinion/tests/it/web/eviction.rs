//! Many sessions in one server: idle ones are evicted and come back on demand; sessions are deleted.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{Tab, Web};
use crate::extensions::{can_run, extended};
use crate::kit::{LONG, PROGRAM, Pi, World};

fn open(tab: &mut Tab, handle: &str) -> Value {
    tab.data(json!({"type": "open_session", "session": handle}))
}

/// Says something to a session and waits for the end of its run.
fn say(tab: &mut Tab, handle: &str, text: &str) {
    tab.data(json!({"type": "prompt", "message": text, "session": handle}));
    tab.wait(|line| line["type"] == "agent_settled" && line["session"] == *handle);
}

fn evicted(tab: &mut Tab) -> Vec<String> {
    let listed = tab.data(json!({"type": "list_open_sessions"}));
    let sessions = listed["sessions"].as_array().unwrap().iter();
    sessions
        .filter(|session| session["evicted"] == true)
        .map(|session| session["session"].as_str().unwrap().to_owned())
        .collect()
}

fn refusal(tab: &mut Tab, command: Value) -> String {
    let answer = tab.ask(command);
    assert_eq!(answer["success"], false, "{answer}");
    answer["error"].as_str().unwrap().to_owned()
}

#[test]
fn least_recently_used_session_is_evicted_and_restored() {
    let world = World::new([
        Reply::text(["One."]),
        Reply::text(["Two."]),
        Reply::text(["Again."]),
    ]);
    let web = Web::start(&world, &["--max-open-sessions", "2"]);
    let (mut tab, mut other) = (web.tab(), web.tab());
    let first = open(&mut tab, "a");
    say(&mut tab, "a", "To a");
    for switch in [
        json!({"type": "set_auto_compaction", "enabled": false, "session": "a"}),
        json!({"type": "set_steering_mode", "mode": "all", "session": "a"}),
        json!({"type": "set_permission_mode", "mode": "ask", "session": "a"}),
        json!({"type": "set_session_name", "name": "The first", "session": "a"}),
        json!({"type": "set_active_tools", "toolNames": ["read"], "session": "a"}),
        json!({"type": "set_process_wakeups", "enabled": false, "session": "a"}),
        json!({"type": "set_fallback_models", "models": ["mock-openai/gpt-mock"], "session": "a"}),
        json!({"type": "set_limits", "limits": {"maxTurns": 9}, "session": "a"}),
        // The command line names another model.
        json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock", "session": "a"}),
        json!({"type": "set_thinking_level", "level": "high", "session": "a"}),
    ] {
        tab.data(switch);
    }
    let chosen = |tab: &mut Tab| {
        [
            "get_state",
            "get_tools",
            "list_processes",
            "get_fallback_models",
            "get_limits",
        ]
        .map(|command| tab.data(json!({"type": command, "session": "a"})))
    };
    let before = chosen(&mut tab);
    assert_eq!(
        (&before[0]["model"]["id"], &before[0]["thinkingLevel"]),
        (&json!("gpt-mock"), &json!("high"))
    );
    assert_eq!(before[1]["activeToolNames"], json!(["read"]));
    assert_eq!(before[2]["wakeups"], false);
    assert_eq!(before[4]["used"]["turns"], 1);
    open(&mut tab, "b");
    say(&mut tab, "b", "To b");
    assert!(evicted(&mut tab).is_empty());
    open(&mut tab, "c");
    let closed = other.wait_type("session_closed");
    assert_eq!(
        (
            &closed["session"],
            &closed["reason"],
            &closed["sessionId"],
            &closed["sessionFile"]
        ),
        (
            &json!("a"),
            &json!("evicted"),
            &first["sessionId"],
            &first["sessionFile"]
        )
    );
    assert_eq!(evicted(&mut tab), ["a"]);
    assert!(refusal(&mut tab, json!({"type": "open_session", "session": "a"})).contains("open already"));
    // Its file is complete. The next command reopens it with all its choices.
    let messages = tab.data(json!({"type": "get_messages", "session": "a"}));
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
    assert_eq!(chosen(&mut tab), before);
    say(&mut tab, "a", "Are you there?");
    let told = tab.seen.borrow();
    let last = told
        .iter()
        .rev()
        .find(|line| line["type"] == "message_end")
        .unwrap();
    assert!(last.to_string().contains("Again."), "{last}");
    drop(told);
    // Of the two others `b` was used longer ago.
    assert_eq!(evicted(&mut tab), ["b"]);
    web.finish();
}

/// A session that streams until `go` is released.
fn keep_busy(tab: &mut Tab, handle: &str) {
    tab.data(json!({"type": "prompt", "message": "Hi", "session": handle}));
    tab.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta" && line["session"] == *handle);
}

/// The first such line of all. Each session has a queue of its own, so a line of one may come before an earlier line of another.
fn find(tab: &mut Tab, is_it: impl Fn(&Value) -> bool) -> Value {
    let seen = tab.seen.borrow().iter().find(|line| is_it(line)).cloned();
    seen.unwrap_or_else(|| tab.wait(is_it))
}

fn response(tab: &mut Tab, id: &str) -> Value {
    find(tab, |line| line["type"] == "response" && line["id"] == *id)
}

#[test]
fn open_without_idle_session_is_refused() {
    let world = World::new([Reply::text(["Long"]).gate("go").then_text(["."])]);
    let web = Web::start(&world, &["--max-open-sessions", "1"]);
    let mut tab = web.tab();
    open(&mut tab, "busy");
    keep_busy(&mut tab, "busy");
    let error = refusal(&mut tab, json!({"type": "open_session", "session": "more"}));
    assert!(error.contains("none of them is at rest"), "{error}");
    // The first session does not count towards the limit, and is never evicted.
    assert_eq!(tab.data(json!({"type": "get_state"}))["isStreaming"], false);
    world.server.release("go");
    tab.wait(|line| line["type"] == "agent_settled" && line["session"] == "busy");
    open(&mut tab, "more");
    assert_eq!(evicted(&mut tab), ["busy"]);
    web.finish();
}

#[test]
fn open_waits_for_busy_session() {
    let world = World::new([
        Reply::text(["Long"]).gate("go").then_text(["."]),
        Reply::text(["Here."]),
    ]);
    let web = Web::start(&world, &["--max-open-sessions", "1"]);
    let mut tab = web.tab();
    open(&mut tab, "busy");
    keep_busy(&mut tab, "busy");
    let opened = tab.send(json!({"type": "open_session", "session": "more"}));
    let prompted = tab.send(json!({"type": "prompt", "message": "Hi", "session": "more"}));
    assert!(refusal(&mut tab, json!({"type": "open_session", "session": "more"})).contains("open already"));
    // Others get their answers meanwhile, and the busy session too.
    let state = tab.data(json!({"type": "get_state", "session": "busy"}));
    assert_eq!(state["isStreaming"], true);
    assert_eq!(tab.data(json!({"type": "get_state"}))["isStreaming"], false);
    world.server.release("go");
    assert_eq!(response(&mut tab, &opened)["success"], true);
    assert_eq!(response(&mut tab, &prompted)["success"], true);
    find(&mut tab, |line| {
        line["type"] == "agent_settled" && line["session"] == "more"
    });
    assert_eq!(evicted(&mut tab), ["busy"]);
    web.finish();
}

#[test]
fn waiting_sessions_are_served_in_order() {
    let world = World::new([
        Reply::text(["One."]),
        Reply::text(["Long"]).gate("go").then_text(["."]),
        Reply::text(["Two"]).gate("end").then_text(["."]),
    ]);
    let web = Web::start(&world, &["--max-open-sessions", "1"]);
    let mut tab = web.tab();
    open(&mut tab, "a");
    say(&mut tab, "a", "Hi");
    open(&mut tab, "busy");
    keep_busy(&mut tab, "busy");
    tab.send(json!({"type": "prompt", "message": "Again", "session": "a"}));
    let opened = tab.send(json!({"type": "open_session", "session": "c"}));
    let state = tab.send(json!({"type": "get_state", "session": "a"}));
    assert_eq!(evicted(&mut tab), ["a"]);
    world.server.release("go");
    // The session that waited first works, and the other one still waits.
    tab.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta" && line["session"] == "a");
    assert_eq!(response(&mut tab, &state)["data"]["messageCount"], 3);
    assert!(tab.seen.borrow().iter().all(|line| line["id"] != *opened));
    world.server.release("end");
    assert_eq!(response(&mut tab, &opened)["success"], true);
    assert_eq!(evicted(&mut tab), ["a", "busy"]);
    web.finish();
}

#[test]
fn abort_or_close_ends_waiting() {
    let world = World::new([
        Reply::text(["One."]),
        Reply::text(["Long"]).gate("go").then_text(["."]),
    ]);
    let web = Web::start(&world, &["--max-open-sessions", "1"]);
    let mut tab = web.tab();
    open(&mut tab, "a");
    say(&mut tab, "a", "Hi");
    open(&mut tab, "busy");
    keep_busy(&mut tab, "busy");
    let error = |tab: &mut Tab, id: &str| response(tab, id)["error"].as_str().unwrap().to_owned();
    let prompted = tab.send(json!({"type": "prompt", "message": "Again", "session": "a"}));
    tab.data(json!({"type": "abort", "session": "a"}));
    assert_eq!(error(&mut tab, &prompted), "Operation aborted");
    let prompted = tab.send(json!({"type": "prompt", "message": "Again", "session": "a"}));
    let opened = tab.send(json!({"type": "open_session", "session": "new"}));
    let behind = tab.send(json!({"type": "prompt", "message": "Hi", "session": "new"}));
    tab.data(json!({"type": "close_session", "session": "a"}));
    assert_eq!(error(&mut tab, &prompted), "The session was closed");
    tab.data(json!({"type": "close_session", "session": "new"}));
    assert_eq!(error(&mut tab, &opened), "The session was closed");
    assert!(error(&mut tab, &behind).contains("No open session"));
    // Nothing waits any more: the busy session keeps its place.
    world.server.release("go");
    tab.wait(|line| line["type"] == "agent_settled" && line["session"] == "busy");
    assert!(evicted(&mut tab).is_empty());
    web.finish();
}

#[test]
fn idle_session_behind_many_others_is_evicted() {
    let world = World::new([]);
    let pi = world.start_with(&["--max-open-sessions", "10"]);
    let tool = json!({"name": "look", "description": "Looks", "parameters": {"type": "object"}});
    for number in 0..9 {
        let handle = format!("lent{number}");
        pi.data(json!({"type": "open_session", "session": handle}));
        pi.data(json!({"type": "set_host_tools", "tools": [tool], "session": handle}));
    }
    pi.data(json!({"type": "open_session", "session": "idle"}));
    pi.data(json!({"type": "open_session", "session": "more"}));
    let listed = pi.data(json!({"type": "list_open_sessions"}));
    let sessions = listed["sessions"].as_array().unwrap().iter();
    let evicted: Vec<&Value> = sessions.filter(|session| session["evicted"] == true).collect();
    assert_eq!((evicted.len(), &evicted[0]["session"]), (1, &json!("idle")));
    pi.finish();
}

#[test]
fn waiting_session_does_not_outlive_input() {
    let world = World::new([Reply::text(["Long"]).gate("go").then_text(["."])]);
    let pi = world.start_with(&["--max-open-sessions", "1"]);
    pi.data(json!({"type": "open_session", "session": "busy"}));
    pi.data(json!({"type": "prompt", "message": "Hi", "session": "busy"}));
    pi.send(json!({"id": "more", "type": "open_session"}));
    pi.agent.close_stdin();
    assert_eq!(pi.response("more")["success"], false);
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
}

#[test]
fn empty_evicted_session_returns_under_its_id() {
    let world = World::new([Reply::text(["Fine."])]);
    let web = Web::start(&world, &["--max-open-sessions", "1"]);
    let mut tab = web.tab();
    let empty = open(&mut tab, "empty");
    open(&mut tab, "other");
    assert_eq!(evicted(&mut tab), ["empty"]);
    say(&mut tab, "empty", "Hi");
    let state = tab.data(json!({"type": "get_state", "session": "empty"}));
    assert_eq!(state["sessionId"], empty["sessionId"]);
    assert_eq!(state["messageCount"], 2);
    web.finish();
}

#[test]
fn empty_evicted_session_notes_its_model_once() {
    let world = World::new([]);
    let web = Web::start(&world, &["--max-open-sessions", "1"]);
    let mut tab = web.tab();
    let file = world.dir.cwd().join("stored.jsonl");
    let header = json!({"type": "session", "version": 3, "id": "stored", "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": world.dir.cwd()});
    fs::write(&file, format!("{header}\n")).unwrap();
    tab.data(json!({"type": "open_session", "session": "empty", "sessionPath": file}));
    let before = fs::read_to_string(&file).unwrap();
    assert!(before.contains("model_change"), "{before}");
    open(&mut tab, "other");
    assert_eq!(evicted(&mut tab), ["empty"]);
    tab.data(json!({"type": "get_state", "session": "empty"}));
    assert_eq!(evicted(&mut tab), ["other"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    web.finish();
}

#[test]
fn named_session_without_file_is_not_evicted() {
    if !can_run() {
        return;
    }
    // The extension could bring the model, so the sessions begin without an entry about it.
    let world = extended([], "");
    let args = ["--mode", "rpc", "--model", "ext/late", "--max-open-sessions", "2"];
    let pi = Pi::spawn(world.dir.agent(PROGRAM).args(args));
    pi.data(json!({"type": "open_session", "session": "a"}));
    pi.data(json!({"type": "set_session_name", "name": "Kept", "session": "a"}));
    pi.data(json!({"type": "open_session", "session": "b"}));
    // A session is not at rest while its extensions start.
    pi.data(json!({"type": "get_commands", "session": "b"}));
    pi.data(json!({"type": "open_session", "session": "c"}));
    let listed = pi.get("list_open_sessions");
    let sessions = listed["sessions"].as_array().unwrap().iter();
    let evicted: Vec<&Value> = sessions.filter(|session| session["evicted"] == true).collect();
    assert_eq!((evicted.len(), &evicted[0]["session"]), (1, &json!("b")));
    let state = pi.data(json!({"type": "get_state", "session": "a"}));
    assert_eq!(state["sessionName"], "Kept");
    pi.finish();
}

#[test]
fn idle_session_is_evicted() {
    let world = World::new([
        Reply::text(["Long"]).gate("go").then_text(["."]),
        Reply::text(["Hi."]),
    ]);
    world.settings(json!({"sessionIdleMs": 300}));
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    open(&mut tab, "runs");
    tab.data(json!({"type": "prompt", "message": "Hi", "session": "runs"}));
    tab.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    let rests = open(&mut tab, "rests");
    say(&mut tab, "rests", "Hi");
    let closed = tab.wait_type("session_closed");
    assert_eq!(
        (&closed["session"], &closed["reason"]),
        (&json!("rests"), &json!("evicted"))
    );
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert_eq!(
        evicted(&mut tab),
        ["rests"],
        "a run goes on, and the first session stays"
    );
    world.server.release("go");
    let closed = tab.wait_type("session_closed");
    assert_eq!(closed["session"], "runs");
    // Closing it for good opens nothing again.
    tab.data(json!({"type": "close_session", "session": "runs"}));
    assert!(refusal(&mut tab, json!({"type": "get_state", "session": "runs"})).contains("No open session"));
    // A file that is gone is named.
    let file = rests["sessionFile"].as_str().unwrap();
    fs::remove_file(file).unwrap();
    let error = refusal(&mut tab, json!({"type": "get_state", "session": "rests"}));
    assert!(error.contains(file), "{error}");
    assert!(refusal(&mut tab, json!({"type": "get_state", "session": "rests"})).contains("No open session"));
    web.finish();
}

#[test]
fn closed_session_is_announced_to_other_clients() {
    let world = World::new([]);
    let web = Web::start(&world, &[]);
    let (mut tab, mut other) = (web.tab(), web.tab());
    open(&mut tab, "a");
    tab.data(json!({"type": "close_session", "session": "a"}));
    let closed = other.wait_type("session_closed");
    assert_eq!(
        (&closed["session"], &closed["reason"]),
        (&json!("a"), &json!("closed"))
    );
    // The handle is free.
    open(&mut tab, "a");
    web.finish();
}

#[test]
fn shutdown_by_extension_closes_its_session() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.registerCommand("end", { handler: async (_args, ctx) => ctx.shutdown() });
        pi.on("session_shutdown", () => new Promise((done) => setTimeout(done, 500)));
        "#,
    );
    let web = Web::start(&world, &[]);
    let (mut tab, mut other) = (web.tab(), web.tab());
    open(&mut tab, "a");
    tab.data(json!({"type": "prompt", "message": "/end", "session": "a"}));
    // It comes while the session waits for the handler of its end.
    refusal(&mut tab, json!({"type": "get_state", "session": "a"}));
    let closed = other.wait_type("session_closed");
    assert_eq!(
        (&closed["session"], &closed["reason"]),
        (&json!("a"), &json!("closed"))
    );
    // The program goes on, and the handle is free.
    open(&mut tab, "a");
    web.finish();
}

#[test]
fn host_sessions_are_evicted_only_by_setting() {
    let world = World::new([]);
    let count = |pi: &crate::kit::Pi| {
        for _ in 0..40 {
            pi.data(json!({"type": "open_session"}));
        }
        let listed = pi.data(json!({"type": "list_open_sessions"}));
        let sessions = listed["sessions"].as_array().unwrap().iter();
        sessions.filter(|session| session["evicted"] == true).count()
    };
    let pi = world.start();
    assert_eq!(count(&pi), 0);
    pi.finish();
    world.settings(json!({"maxOpenSessions": 10}));
    let pi = world.start();
    assert_eq!(count(&pi), 30);
    assert!(pi.lines().iter().all(|line| line["type"] != "session_closed"));
    pi.finish();
}

fn sessions(world: &World) -> PathBuf {
    world.dir.agent_dir().join("sessions")
}

fn header(dir: &Path, name: &str) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    let path = dir.join(name);
    let header = json!({"type": "session", "version": 3, "id": "0193", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/x"});
    fs::write(&path, format!("{header}\n")).unwrap();
    path
}

#[test]
fn deleted_session_moves_to_trash() {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."])]);
    let web = Web::start(&world, &["--max-open-sessions", "1"]);
    let mut tab = web.tab();
    let delete = |path: &Path| json!({"type": "delete_session", "sessionPath": path});
    tab.say("Hi");
    let current = tab.data(json!({"type": "get_state"}))["sessionFile"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(refusal(&mut tab, delete(Path::new(&current))).contains("is open"));
    let side = open(&mut tab, "side")["sessionFile"].as_str().unwrap().to_owned();
    say(&mut tab, "side", "Hi");
    assert!(refusal(&mut tab, delete(Path::new(&side))).contains("is open"));
    // An evicted session counts as open: its handle is.
    open(&mut tab, "more");
    assert_eq!(evicted(&mut tab), ["side"]);
    assert!(refusal(&mut tab, delete(Path::new(&side))).contains("is open"));
    tab.data(json!({"type": "close_session", "session": "side"}));
    let before = fs::read(&side).unwrap();
    let deleted = tab.data(delete(Path::new(&side)));
    let trash = Path::new(deleted["trashPath"].as_str().unwrap());
    assert_eq!(trash.parent().unwrap().file_name().unwrap(), ".trash");
    assert_eq!(fs::read(trash).unwrap(), before);
    assert!(!Path::new(&side).exists());
    let listed = tab.data(json!({"type": "list_sessions"}))["sessions"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(
        refusal(&mut tab, delete(Path::new(&side))),
        "Session file not found"
    );
    web.finish();
}

#[test]
fn delete_session_refuses_files_of_others() {
    let world = World::new([]);
    let own = sessions(&world).join("--x--");
    let outside = world.dir.cwd().join("outside");
    let foreign = [
        header(&outside, "session.jsonl"),
        header(&sessions(&world), "above.jsonl"),
        header(&own.join("deeper"), "below.jsonl"),
        header(&own.join(".trash"), "again.jsonl"),
        header(&own, "settings.json"),
    ];
    let kept = own.join("notes.jsonl");
    fs::write(&kept, "{\"type\":\"note\"}\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&foreign[0], own.join("link.jsonl")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&outside, sessions(&world).join("--out--")).unwrap();
    fs::create_dir(own.join("dir.jsonl")).unwrap();
    let good = header(&own, "good.jsonl");
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let mut paths: Vec<PathBuf> = foreign.to_vec();
    paths.extend([
        kept.clone(),
        own.join("link.jsonl"),
        own.join("dir.jsonl"),
        sessions(&world).join("--out--/session.jsonl"),
        own.join("../../settings.json"),
        own.join("../../../../../../etc/passwd"),
        PathBuf::from(""),
        PathBuf::from("/"),
    ]);
    for path in &paths {
        let error = refusal(&mut tab, json!({"type": "delete_session", "sessionPath": path}));
        assert!(!error.is_empty(), "{}", path.display());
    }
    for path in foreign.iter().chain([&kept]) {
        assert!(path.exists(), "{}", path.display());
    }
    tab.data(json!({"type": "delete_session", "sessionPath": good}));
    // Of two with the same name none is lost.
    header(&own, "good.jsonl");
    tab.data(json!({"type": "delete_session", "sessionPath": good}));
    let trashed = fs::read_dir(own.join(".trash")).unwrap().count();
    assert_eq!(trashed, 3);
    web.finish();
}

/// Waits for the status that a session's extension shows at its start.
fn wait_for_status(tab: &mut Tab, handle: &str) {
    find(tab, |line| {
        line["method"] == "setStatus" && line["session"] == *handle
    });
}

#[test]
fn extensions_of_evicted_session_end_and_restart() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["Hi."]), Reply::text(["Hi."])],
        r#"
        pi.on("session_start", (event, ctx) => ctx.ui.setStatus("at", "start " + event.reason));
        pi.on("session_shutdown", async () => { require("node:fs").appendFileSync("ended", "x"); });
        pi.registerCommand("hello", { description: "", handler: async (args, ctx) => ctx.ui.notify("hello " + args) });
        "#,
    );
    let web = Web::start(&world, &["--max-open-sessions", "1"]);
    let mut tab = web.tab();
    open(&mut tab, "a");
    wait_for_status(&mut tab, "a");
    say(&mut tab, "a", "Hi");
    open(&mut tab, "b");
    wait_for_status(&mut tab, "b");
    assert_eq!(evicted(&mut tab), ["a"]);
    // A session is not at rest while its extensions start.
    say(&mut tab, "b", "Hi");
    let answer = tab.data(json!({"type": "prompt", "message": "/hello you", "session": "a"}));
    assert_eq!(answer["disposition"], "handled");
    let seen = tab.seen.borrow();
    let of_a = |line: &&Value| line["session"] == "a";
    let at = |what: &dyn Fn(&Value) -> bool| seen.iter().filter(of_a).position(what).unwrap();
    let closed = at(&|line| line["type"] == "session_closed");
    let told = at(&|line| line["message"] == "hello you");
    assert!(closed < told);
    let starts = seen
        .iter()
        .filter(of_a)
        .filter(|line| line["method"] == "setStatus")
        .count();
    assert_eq!(starts, 2);
    drop(seen);
    assert!(world.dir.cwd().join("ended").exists(), "they were told");
    web.finish();
}

#[test]
fn host_tools_prevent_session_eviction() {
    let world = World::new([]);
    let pi = world.start_with(&["--max-open-sessions", "1"]);
    pi.data(json!({"type": "open_session", "session": "lent"}));
    let tool = json!({"name": "look", "description": "Looks", "parameters": {"type": "object"}});
    pi.data(json!({"type": "set_host_tools", "tools": [tool], "session": "lent"}));
    let answer = pi.ask(json!({"type": "open_session"}));
    assert_eq!(answer["success"], false, "{answer}");
    pi.data(json!({"type": "set_host_tools", "tools": [], "session": "lent"}));
    pi.data(json!({"type": "open_session"}));
    pi.finish();
}
