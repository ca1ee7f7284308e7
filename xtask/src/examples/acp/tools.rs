//! Transcripts about tools that involve the client: its files, its terminals, its MCP servers and their forms, the plan.

use anyhow::Result;
use serde_json::{Value, json};
use testkit::llm::Reply;

use super::Stage;
use super::client::Client;

/// An MCP server over stdio with one tool, which asks the user for a name.
const SERVER: &str = include_str!("mcp_server.py");

pub(super) fn files(stage: &Stage<'_>) -> Result<Client> {
    stage.workspace.write("note.txt", "Buy milk.\n")?;
    let able = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
    let (mut client, session) = stage.session_of(&able)?;
    stage.reply(Reply::tool("toolu_01", "read", json!({"path": "note.txt"})));
    let edits = json!([{"oldText": "bread", "newText": "cheese"}]);
    stage.reply(Reply::tool(
        "toolu_02",
        "edit",
        json!({"path": "note.txt", "edits": edits}),
    ));
    stage.reply(Reply::text(["The note says cheese now."]));
    let turn = client.begin_prompt(&session, "Replace bread with cheese in note.txt")?;
    let unsaved = json!({"content": "Buy bread.\n"});
    client.serve("fs/read_text_file", unsaved.clone())?;
    client.serve("fs/read_text_file", unsaved)?;
    client.serve("fs/write_text_file", json!({}))?;
    client.result(turn)?;
    Ok(client)
}

/// Two commands: one ends, the prompt of the other is cancelled.
pub(super) fn terminal(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session) = stage.session_of(&json!({"terminal": true}))?;
    stage.reply(Reply::tool("toolu_01", "bash", json!({"command": "cargo test"})));
    let answer = Reply::new().gate("released");
    stage.reply(answer.then_text(["All tests pass."]));
    let turn = client.begin_prompt(&session, "Run the tests")?;
    client.serve("terminal/create", json!({"terminalId": "term-1"}))?;
    client.serve("terminal/wait_for_exit", json!({"exitCode": 0, "signal": null}))?;
    let output =
        json!({"output": "2 passed\n", "truncated": false, "exitStatus": {"exitCode": 0, "signal": null}});
    client.serve("terminal/output", output)?;
    let release = client.asked("terminal/release")?;
    client.updated("usage_update")?;
    client.answer(&release, json!({}))?;
    stage.server.release("released");
    client.result(turn)?;

    stage.reply(Reply::tool("toolu_02", "bash", json!({"command": "sleep 600"})));
    let turn = client.begin_prompt(&session, "Wait ten minutes")?;
    client.serve("terminal/create", json!({"terminalId": "term-2"}))?;
    let waiting = client.asked("terminal/wait_for_exit")?;
    client.notify("session/cancel", json!({"sessionId": session}))?;
    client.serve("terminal/kill", json!({}))?;
    let killed = json!({"exitCode": null, "signal": "SIGKILL"});
    let last = client.asked("terminal/wait_for_exit")?;
    client.answer(&waiting, killed.clone())?;
    client.answer(&last, killed.clone())?;
    let output = json!({"output": "", "truncated": false, "exitStatus": killed});
    client.serve("terminal/output", output)?;
    let release = client.asked("terminal/release")?;
    client.result(turn)?;
    client.answer(&release, json!({}))?;
    Ok(client)
}

pub(super) fn plan(stage: &Stage<'_>) -> Result<Client> {
    stage.settings(json!({"defaultTools": ["+todo_write"], "tasks": {"todoReminders": false}}))?;
    let (mut client, session) = stage.session()?;
    let tasks =
        |done: &str| json!([{"content": "Read the code", "status": done}, {"content": "Write a test"}]);
    for (id, status) in [("toolu_01", "in_progress"), ("toolu_02", "completed")] {
        let phases = json!([{"name": "Work", "tasks": tasks(status)}]);
        let arguments = json!({"ops": [{"op": "replace", "phases": phases}]});
        stage.reply(Reply::tool(id, "todo_write", arguments));
    }
    stage.reply(Reply::text(["The code is read."]));
    client.prompt(&session, "Plan the work and begin")?;
    Ok(client)
}

/// Servers of the client over stdio and HTTP. Nothing listens at the address of the second.
pub(super) fn mcp(stage: &Stage<'_>) -> Result<Client> {
    let program = stage.workspace.cwd().join("mcp_server.py");
    stage.workspace.write(&program, SERVER)?;
    let mut client = stage.client(&json!({"elicitation": {"form": {}}}))?;
    let servers = json!([
        {"name": "names", "command": "python3", "args": [program], "env": [{"name": "LANG", "value": "C.UTF-8"}]},
        {"type": "http", "name": "absent", "url": "http://127.0.0.1:9/mcp", "headers": []},
    ]);
    let session = client.new_session(&stage.cwd(), servers)?;
    stage.reply(Reply::tool("toolu_01", "mcp__names__ask", json!({})));
    stage.reply(Reply::text(["Hello, Ada."]));
    let turn = client.begin_prompt(&session, "Greet me by name")?;
    let answer: Value = json!({"action": "accept", "content": {"value": "Ada"}});
    client.serve("elicitation/create", answer)?;
    client.result(turn)?;
    Ok(client)
}
