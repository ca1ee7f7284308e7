//! Files and terminals of the client: what tools read, write and run there, and what stays local.

use std::fs;

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{Editor, stop_reason};
use crate::kit::{LONG, World, bash};
use crate::permissions;

fn files() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}})
}

fn terminals() -> Value {
    json!({"terminal": true})
}

/// Answers a request of the agent.
fn answer(editor: &Editor, request: &Value, result: Value) {
    let mut message = result;
    message["id"] = request["id"].clone();
    editor.send(message);
}

fn methods(editor: &Editor) -> Vec<String> {
    let lines = editor.agent.lines();
    let methods = lines.iter().filter_map(|line| line.value["method"].as_str());
    methods
        .filter(|method| *method != "session/update")
        .map(str::to_owned)
        .collect()
}

/// The text of the last result of a tool that the model got.
fn last_result(world: &World) -> String {
    world.server.requests().last().unwrap().body.to_string()
}

#[test]
fn unsaved_text_is_read_and_edited() {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "unsaved", "newText": "edited"}]});
    let world = World::new([
        Reply::tool("c1", "read", json!({"path": "a.txt"})),
        Reply::tool("c2", "edit", edit),
        Reply::text(["done"]),
    ]);
    let file = world.dir.cwd().join("a.txt");
    fs::write(&file, "on disk\n").unwrap();
    let editor = Editor::able(&world, files());
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    for _ in 0..2 {
        let read = editor.asked("fs/read_text_file");
        assert_eq!(read["params"]["path"], json!(file), "{read}");
        assert_eq!(read["params"]["sessionId"], session.as_str());
        answer(&editor, &read, json!({"result": {"content": "unsaved text\n"}}));
    }
    let write = editor.asked("fs/write_text_file");
    assert_eq!(write["params"]["content"], "edited text\n");
    answer(&editor, &write, json!({"result": null}));
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.finish();
    assert_eq!(fs::read_to_string(file).unwrap(), "on disk\n");
    let bodies = last_result(&world);
    assert!(bodies.contains("unsaved text"), "{bodies}");
    assert!(bodies.contains("Successfully replaced 1 block"), "{bodies}");
}

#[test]
fn refused_read_falls_back_to_disk() {
    let world = World::new([
        Reply::tool("c1", "read", json!({"path": "a.txt"})),
        Reply::text(["done"]),
    ]);
    fs::write(world.dir.cwd().join("a.txt"), "on disk\n").unwrap();
    let editor = Editor::able(&world, files());
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let read = editor.asked("fs/read_text_file");
    let error = json!({"error": {"code": -32002, "message": "No such buffer"}});
    answer(&editor, &read, error);
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.finish();
    assert!(last_result(&world).contains("on disk"));
}

#[test]
fn refused_write_fails_the_call() {
    let world = World::new([
        Reply::tool("c1", "write", json!({"path": "new.txt", "content": "text"})),
        Reply::text(["done"]),
    ]);
    let editor = Editor::able(&world, files());
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let write = editor.asked("fs/write_text_file");
    answer(
        &editor,
        &write,
        json!({"error": {"code": -32603, "message": "The buffer is locked"}}),
    );
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let end = editor.updates("tool_call_update").pop().unwrap();
    assert_eq!(end["status"], "failed", "{end}");
    assert!(
        end["content"].to_string().contains("The buffer is locked"),
        "{end}"
    );
    editor.finish();
    assert!(!world.dir.cwd().join("new.txt").exists());
}

#[test]
fn files_elsewhere_and_images_stay_local() {
    let world = World::new([
        Reply::tool("c1", "read", json!({"path": "../outside.txt"})),
        Reply::tool("c2", "read", json!({"path": "dot.gif"})),
        Reply::text(["done"]),
    ]);
    fs::write(world.dir.cwd().join("../outside.txt"), "outside\n").unwrap();
    fs::write(world.dir.cwd().join("dot.gif"), b"GIF89a\x01\0\x01\0\0\0\0;").unwrap();
    let editor = Editor::able(&world, files());
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    assert_eq!(methods(&editor), Vec::<String>::new());
    editor.finish();
    assert!(last_result(&world).contains("outside"));
}

#[test]
fn denied_calls_ask_client_for_nothing() {
    let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    let world = permissions::world(
        json!({"mode": "read-only"}),
        [
            Reply::tool("c1", "write", json!({"path": "a.txt", "content": "x"})).then_tool(
                "c2",
                "bash",
                json!({"command": "touch b.txt"}),
            ),
            Reply::text(["done"]),
        ],
    );
    let editor = Editor::able(&world, capabilities);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    assert_eq!(methods(&editor), Vec::<String>::new());
    editor.finish();
}

/// Starts a command in a terminal of the client. Returns the request that waits for its end.
fn start(editor: &Editor) -> (Value, Value) {
    let create = editor.asked("terminal/create");
    answer(editor, &create, json!({"result": {"terminalId": "t1"}}));
    (create, editor.asked("terminal/wait_for_exit"))
}

#[test]
fn command_runs_in_terminal_of_client() {
    let world = World::new([bash("c1", "echo one"), Reply::text(["done"])]);
    let editor = Editor::able(&world, terminals());
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let (create, wait) = start(&editor);
    assert_eq!(create["params"]["args"], json!(["-c", "echo one"]), "{create}");
    assert_eq!(create["params"]["cwd"], json!(world.dir.cwd()));
    assert_eq!(wait["params"]["terminalId"], "t1");
    answer(&editor, &wait, json!({"result": {"exitCode": 3, "signal": null}}));
    let output = editor.asked("terminal/output");
    answer(
        &editor,
        &output,
        json!({"result": {"output": "from the client\n", "truncated": false}}),
    );
    let release = editor.asked("terminal/release");
    answer(&editor, &release, json!({"result": {}}));
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let embedded = json!([{"type": "terminal", "terminalId": "t1"}]);
    let updates = editor.updates("tool_call_update");
    assert!(
        updates
            .iter()
            .any(|update| update["content"] == embedded && update["status"] == "in_progress")
    );
    let end = updates.last().unwrap();
    assert_eq!((&end["status"], &end["content"]), (&json!("failed"), &embedded));
    editor.finish();
    let result = last_result(&world);
    assert!(result.contains("from the client"), "{result}");
    assert!(result.contains("Command exited with code 3"), "{result}");
}

#[test]
fn cancel_kills_and_releases_terminal() {
    let world = World::new([bash("c1", "sleep 600")]);
    let editor = Editor::able(&world, terminals());
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let _started = start(&editor);
    editor.send(json!({"method": "session/cancel", "params": {"sessionId": session}}));
    let kill = editor.asked("terminal/kill");
    answer(&editor, &kill, json!({"result": {}}));
    let wait = editor.asked("terminal/wait_for_exit");
    answer(
        &editor,
        &wait,
        json!({"result": {"exitCode": null, "signal": "SIGKILL"}}),
    );
    let output = editor.asked("terminal/output");
    answer(
        &editor,
        &output,
        json!({"result": {"output": "", "truncated": false}}),
    );
    editor.asked("terminal/release");
    assert_eq!(stop_reason(&editor.response("p")), "cancelled");
    editor.finish();
}

#[test]
fn terminal_of_closed_session_is_released() {
    let world = World::new([bash("c1", "sleep 600")]);
    let editor = Editor::able(&world, terminals());
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let _started = start(&editor);
    editor.send(json!({"id": "close", "method": "session/close", "params": {"sessionId": session}}));
    let release = editor.asked("terminal/release");
    assert_eq!(
        release["params"],
        json!({"sessionId": session, "terminalId": "t1"})
    );
    assert_eq!(editor.response("close")["result"], json!({}));
    editor.finish();
}

#[test]
fn terminal_made_after_cancel_is_released() {
    let world = World::new([bash("c1", "sleep 600")]);
    let editor = Editor::able(&world, terminals());
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let create = editor.asked("terminal/create");
    editor.send(json!({"method": "session/cancel", "params": {"sessionId": session}}));
    assert_eq!(stop_reason(&editor.response("p")), "cancelled");
    let cancels =
        |line: &Value| line["method"] == "$/cancel_request" && line["params"]["requestId"] == create["id"];
    editor.agent.wait(cancels, LONG).unwrap();
    answer(&editor, &create, json!({"result": {"terminalId": "late"}}));
    let release = editor.asked("terminal/release");
    assert_eq!(release["params"]["terminalId"], "late");
    editor.finish();
}

#[test]
fn sandboxed_command_stays_local() {
    if crate::sandbox::offered().0 == 0 {
        return;
    }
    let world = World::new([
        bash("c1", "echo local"),
        Reply::tool("c2", "read", json!({"path": "a.txt"})),
        Reply::text(["done"]),
    ]);
    world.settings(json!({"sandbox": {"mode": "workspace-write"}}));
    fs::write(world.dir.cwd().join("a.txt"), "on disk\n").unwrap();
    let capabilities = json!({"fs": {"readTextFile": true}, "terminal": true});
    let editor = Editor::able(&world, capabilities);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    assert_eq!(methods(&editor), Vec::<String>::new());
    editor.finish();
    let result = last_result(&world);
    assert!(result.contains("local") && result.contains("on disk"), "{result}");
}
