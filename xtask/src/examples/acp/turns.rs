//! Transcripts about prompts: answers, permissions, content, cancelling, slash commands, usage, notices, compactions.

use anyhow::Result;
use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply, Usage};

use super::Stage;
use super::client::Client;

/// The answer of a user to a permission request.
fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

pub(super) fn prompt(stage: &Stage<'_>) -> Result<Client> {
    stage.settings(json!({"permissions": {"mode": "ask"}}))?;
    let (mut client, session) = stage.session()?;
    // Each block comes in one piece: pieces that arrive together would be merged, now so, now so.
    let arguments = json!({"path": "hello.txt", "content": "Hello\n"});
    let write = Reply::new()
        .thinking(["A small file."], "c2lnbmVk")
        .then_text(["I write the file."]);
    stage.reply(write.tool_chunks("toolu_01", "write", [arguments.to_string()]));
    stage.reply(Reply::tool(
        "toolu_02",
        "bash",
        json!({"command": "rm hello.txt"}),
    ));
    stage.reply(Reply::text(["hello.txt contains a greeting."]));
    let turn = client.begin_prompt(&session, "Write a greeting to hello.txt, then remove it")?;
    client.serve("session/request_permission", selected("allow-once"))?;
    client.serve("session/request_permission", selected("reject"))?;
    client.result(turn)?;
    Ok(client)
}

/// A white pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII=";

pub(super) fn content(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session) = stage.session()?;
    stage.reply(Reply::text(["A pixel, a note and a link."]));
    let prompt = json!([
        {"type": "text", "text": "What is this?"},
        {"type": "image", "mimeType": "image/png", "data": PIXEL},
        {"type": "resource", "resource": {"uri": "file:///home/user/note.txt", "text": "Buy milk.", "mimeType": "text/plain"}},
        {"type": "resource_link", "uri": "file:///home/user/project/README.md", "name": "README.md"},
    ]);
    client.call("session/prompt", json!({"sessionId": session, "prompt": prompt}))?;
    Ok(client)
}

/// A session in which a prompt hangs after its first words.
fn hanging(stage: &Stage<'_>) -> Result<(Client, String, u64)> {
    let (mut client, session) = stage.session()?;
    stage.reply(Reply::text(["I begin."]).gate("never"));
    let prompt = client.begin_prompt(&session, "Write a long story")?;
    client.updated("agent_message_chunk")?;
    Ok((client, session, prompt))
}

pub(super) fn cancel(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session, prompt) = hanging(stage)?;
    client.notify("session/cancel", json!({"sessionId": session}))?;
    client.result(prompt)?;
    Ok(client)
}

pub(super) fn cancel_request(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, _, prompt) = hanging(stage)?;
    client.notify("$/cancel_request", json!({"requestId": prompt}))?;
    client.response(&prompt.into())?;
    Ok(client)
}

pub(super) fn commands(stage: &Stage<'_>) -> Result<Client> {
    let file = stage.workspace.agent_dir().join("prompts/greet.md");
    let text = "---\ndescription: Greet a person\n---\nSay hello to $1.\n";
    stage.workspace.write(file, text)?;
    let (mut client, session) = stage.session()?;
    stage.reply(Reply::text(["Hello, Ada."]));
    client.prompt(&session, "/greet Ada")?;
    Ok(client)
}

pub(super) fn usage(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session) = stage.session()?;
    for (prompt, answer) in [("Count to two", "1, 2"), ("Count on", "3, 4")] {
        let usage = Usage {
            input: 1_000,
            output: 50,
            ..Usage::default()
        };
        stage.reply(Reply::text([answer]).usage(usage));
        client.prompt(&session, prompt)?;
    }
    Ok(client)
}

pub(super) fn notice(stage: &Stage<'_>) -> Result<Client> {
    let (mut client, session) = stage.session_of(&json!({"session": {"notices": {}}}))?;
    stage.reply(Reply::error(ErrorKind::Overloaded));
    stage.reply(Reply::text(["Here I am."]));
    client.prompt(&session, "Hello")?;
    Ok(client)
}

pub(super) fn compaction(stage: &Stage<'_>) -> Result<Client> {
    stage.settings(json!({"compaction": {"keepRecentTokens": 5}}))?;
    let (mut client, session) = stage.session_of(&json!({"session": {"compaction": {}}}))?;
    let full = Usage {
        input: 190_000,
        ..Usage::default()
    };
    stage.reply(Reply::text(["The answer is long enough."]).usage(full));
    stage.reply(Reply::text(["The user asked a question."]));
    client.prompt(&session, "A question that is long enough")?;
    Ok(client)
}
