//! Transcripts about the connection and its sessions: what opens, lists, changes and closes them, logins, errors.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::llm::Reply;

use super::Stage;
use super::client::Client;

/// Every capability that changes what Pinion sends.
fn all() -> Value {
    json!({
        "fs": {"readTextFile": true, "writeTextFile": true},
        "terminal": true,
        "auth": {"terminal": true},
        "elicitation": {"form": {}, "url": {}},
        "session": {"notices": {}, "compaction": {}},
    })
}

pub(super) fn initialize(stage: &Stage<'_>) -> Result<Client> {
    stage.client(&all())
}

pub(super) fn new(stage: &Stage<'_>) -> Result<Client> {
    Ok(stage.session()?.0)
}

/// Parameters of a request about a stored session.
fn about(stage: &Stage<'_>, session: &str) -> Value {
    json!({"sessionId": session, "cwd": stage.cwd(), "mcpServers": []})
}

pub(super) fn load(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session) = stage.session()?;
    stage.workspace.write("note.txt", "Buy milk.\n")?;
    stage.reply(Reply::tool("toolu_01", "read", json!({"path": "note.txt"})));
    let answer = Reply::new().thinking(["A note about milk."], "c2lnbmVk");
    stage.reply(answer.then_text(["The note says: buy milk."]));
    client.prompt(&session, "What does note.txt say?")?;
    client.end()?;

    let mut client = stage.client(&json!({}))?;
    client.call("session/load", about(stage, &session))?;
    client.updated("available_commands_update")?;
    stage.reply(Reply::text(["Milk."]));
    client.prompt(&session, "In one word?")?;
    Ok(client)
}

pub(super) fn resume(stage: &Stage<'_>) -> Result<Client> {
    let session = stage.stored("Remember the number 7", "I remember 7.")?;
    let mut client = stage.client(&json!({}))?;
    client.call("session/resume", about(stage, &session))?;
    client.updated("available_commands_update")?;
    stage.reply(Reply::text(["7"]));
    client.prompt(&session, "Which number?")?;
    Ok(client)
}

pub(super) fn list(stage: &Stage<'_>) -> Result<Client> {
    stage.stored("Remember the number 7", "I remember 7.")?;
    let mut client = stage.client(&json!({}))?;
    client.call("session/list", json!({}))?;
    client.call("session/list", json!({"cwd": stage.cwd()}))?;
    client.call("session/list", json!({"cwd": "/elsewhere"}))?;
    Ok(client)
}

pub(super) fn delete(stage: &Stage<'_>) -> Result<Client> {
    let session = stage.stored("Remember the number 7", "I remember 7.")?;
    let mut client = stage.client(&json!({}))?;
    client.call("session/delete", json!({"sessionId": session}))?;
    client.call("session/list", json!({"cwd": stage.cwd()}))?;
    Ok(client)
}

pub(super) fn close(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session) = stage.session()?;
    stage.reply(Reply::text(["I begin."]).gate("never"));
    let prompt = client.begin_prompt(&session, "Write a long story")?;
    client.updated("agent_message_chunk")?;
    let closing = client.begin("session/close", json!({"sessionId": session}))?;
    client.result(prompt)?;
    client.result(closing)?;
    let late = json!({"sessionId": session, "prompt": [{"type": "text", "text": "More"}]});
    client.refused("session/prompt", late)?;
    Ok(client)
}

pub(super) fn fork(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session) = stage.session()?;
    stage.reply(Reply::text(["I remember 7."]));
    client.prompt(&session, "Remember the number 7")?;
    let copy = client.call("session/fork", about(stage, &session))?;
    client.updated("available_commands_update")?;
    let copy = copy.get("sessionId").and_then(Value::as_str);
    let copy = copy.context("a copy without id")?.to_owned();
    stage.reply(Reply::text(["7"]));
    client.prompt(&copy, "Which number?")?;
    Ok(client)
}

pub(super) fn options(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session) = stage.session()?;
    for (option, value) in [
        ("mode", "read-only"),
        ("thought_level", "high"),
        ("model", "mock-openai/gpt-mock"),
    ] {
        let params = json!({"sessionId": session, "configId": option, "value": value});
        client.call("session/set_config_option", params)?;
    }
    let params = json!({"sessionId": session, "configId": "mode", "value": "none"});
    client.refused("session/set_config_option", params)?;
    Ok(client)
}

pub(super) fn modes(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session) = stage.session()?;
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "ask"}))?;
    client.refused(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "none"}),
    )?;
    Ok(client)
}

pub(super) fn auth(stage: &Stage<'_>) -> Result<Client> {
    let mut client = stage.client(&json!({"auth": {"terminal": true}}))?;
    client.refused("authenticate", json!({"methodId": "none"}))?;
    client.refused("authenticate", json!({"methodId": "openai-codex-terminal"}))?;
    client.call("logout", json!({}))?;
    Ok(client)
}

/// A login that the user denies: only a provider could let it succeed.
pub(super) fn login(stage: &Stage<'_>) -> Result<Client> {
    let mut client = stage.client(&json!({"elicitation": {"form": {}, "url": {}}}))?;
    let login = client.begin("authenticate", json!({"methodId": "openai-codex"}))?;
    let page = client.asked("elicitation/create")?;
    let form = client.asked("elicitation/create")?;
    client.answer(&page, json!({"action": "accept"}))?;
    let denied = "http://localhost:1455/auth/callback?error=access_denied";
    client.answer(&form, json!({"action": "accept", "content": {"value": denied}}))?;
    client.error(&login.into())?;
    Ok(client)
}

pub(super) fn errors(stage: &Stage<'_>) -> Result<Client> {
    let mut client = stage.connect()?;
    let new = json!({"cwd": stage.cwd(), "mcpServers": []});
    client.refused("session/new", new)?;
    client.initialize(&json!({}))?;
    client.send_text("{\"jsonrpc\":")?;
    client.error(&Value::Null)?;
    client.refused("session/dance", json!({}))?;
    client.refused("session/new", json!({"cwd": "relative", "mcpServers": []}))?;
    let session = client.new_session(&stage.cwd(), json!([]))?;
    client.refused("session/prompt", json!({"sessionId": session, "prompt": "Hi"}))?;
    let unknown = "0190f000-0000-7000-8000-000000000000";
    client.refused("session/load", about(stage, unknown))?;
    client.refused("session/prompt", json!({"sessionId": unknown, "prompt": []}))?;
    stage.reply(Reply::text(["I begin."]).gate("end").then_text([" I end."]));
    let prompt = client.begin_prompt(&session, "Begin")?;
    client.updated("agent_message_chunk")?;
    let second = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Begin again"}]});
    client.refused("session/prompt", second)?;
    stage.server.release("end");
    client.result(prompt)?;
    client.notify("session/cancel", json!({"sessionId": session}))?;
    client.notify("$/cancel_request", json!({"requestId": 999}))?;
    client.call("session/list", json!({"cwd": "/elsewhere"}))?;
    Ok(client)
}
