//! ACP gateways: an editor whose sessions are on workers.

use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::helpers::always;
use crate::place::{Client, Place, is};

/// An editor with a connection to a gateway.
struct Editor {
    client: Client,
    last: u64,
}

impl Editor {
    fn start(place: &Place) -> Result<Self> {
        let client = Client::start(
            Command::new(&place.pinion)
                .args(["acp", "--nats", &place.url()])
                .env("PI_CODING_AGENT_DIR", place.path("agent")),
        )?;
        let mut editor = Self { client, last: 0 };
        let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": false}});
        let about = editor.ask(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
        )?;
        ensure!(
            about.pointer("/result/agentCapabilities/loadSession") == Some(&json!(true)),
            "{about}"
        );
        Ok(editor)
    }

    fn send(&mut self, method: &str, params: Value) -> Result<u64> {
        self.last += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.client.send(&request)?;
        Ok(self.last)
    }

    /// Waits for the response to a request.
    fn response(&mut self, id: u64) -> Result<Value> {
        let fits = |line: &Value| line["id"] == id && line.get("method").is_none();
        self.client.find(&format!("response to {id}"), fits)
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.send(method, params)?;
        self.response(id)
    }

    /// Begins a session in the directory of the project.
    fn new_session(&mut self, place: &Place) -> Result<String> {
        let opened = self.ask(
            "session/new",
            json!({"cwd": place.path("project"), "mcpServers": []}),
        )?;
        let session = opened.pointer("/result/sessionId").and_then(Value::as_str);
        let session = session.unwrap_or_default();
        ensure!(!session.is_empty(), "{opened}");
        Ok(session.to_owned())
    }

    fn prompt(&mut self, session: &str, text: &str) -> Result<u64> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Waits for an update of a session, and returns it.
    fn update(&mut self, kind: &str) -> Result<Value> {
        let found = self.client.find(kind, |line| {
            let update = line.pointer("/params/update");
            is(line, "method", "session/update")
                && update.is_some_and(|update| is(update, "sessionUpdate", kind))
        })?;
        Ok(found.pointer("/params/update").cloned().unwrap_or_default())
    }

    /// Waits for a permission request. Returns its id and the tool call.
    fn permission(&mut self) -> Result<(Value, Value)> {
        let asked = self.client.find("permission request", |line| {
            is(line, "method", "session/request_permission")
        })?;
        let part = |at: &str| asked.pointer(at).cloned().unwrap_or_default();
        Ok((part("/id"), part("/params/toolCall")))
    }

    fn permit(&mut self, id: &Value, option: &str) -> Result<()> {
        let outcome = json!({"outcome": "selected", "optionId": option});
        self.client
            .send(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}))
    }
}

#[test]
fn editor_continues_session_at_another_gateway() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let worker = place.worker("a", &always("blue"), &[])?;
    let mut editor = Editor::start(&place)?;
    let session = editor.new_session(&place)?;
    let prompt = editor.prompt(&session, "Which?")?;
    ensure!(editor.update("agent_message_chunk")?["content"]["text"] == "blue");
    let ended = editor.response(prompt)?;
    ensure!(ended["result"]["stopReason"] == "end_turn", "{ended}");
    let header = place.log(&session)?.swap_remove(0);
    ensure!(header["cwd"] == json!(place.path("project")), "{header}");
    // The same session is there for a client of another protocol.
    let mut lines = place.attach(&session)?;
    let messages = lines.ask(json!({"id": 1, "type": "get_messages"}))?;
    ensure!(
        messages["data"]["messages"][1]["content"][0]["text"] == "blue",
        "{messages}"
    );
    drop(editor);
    worker.signal("-KILL")?;
    let _other = place.worker("b", &always("green"), &[])?;
    let mut editor = Editor::start(&place)?;
    let params = json!({"sessionId": session, "cwd": place.path("project"), "mcpServers": []});
    let load = editor.send("session/load", params)?;
    ensure!(editor.update("user_message_chunk")?["content"]["text"] == "Which?");
    ensure!(editor.update("agent_message_chunk")?["content"]["text"] == "blue");
    let loaded = editor.response(load)?;
    ensure!(loaded["result"]["modes"]["currentModeId"].is_string(), "{loaded}");
    let prompt = editor.prompt(&session, "And now?")?;
    ensure!(editor.update("agent_message_chunk")?["content"]["text"] == "green");
    let ended = editor.response(prompt)?;
    ensure!(ended["result"]["stopReason"] == "end_turn", "{ended}");
    Ok(())
}

#[test]
fn editor_decides_about_calls_on_worker() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let call = |file: &str| json!({"stream": [{"tool": {"name": "bash", "args": {"command": format!("echo x >> {file}")}}}]});
    let done = json!({"stream": [{"text": "done"}]});
    let script = json!([
        call("allowed"),
        done,
        call("denied"),
        done,
        call("elsewhere"),
        done
    ]);
    let _worker = place.worker("a", &script, &[])?;
    let mut editor = Editor::start(&place)?;
    let session = editor.new_session(&place)?;
    let mode = editor.ask("session/set_mode", json!({"sessionId": session, "modeId": "ask"}))?;
    ensure!(mode["result"] == json!({}), "{mode}");

    let prompt = editor.prompt(&session, "Go")?;
    let begun = editor.update("tool_call")?;
    let (question, call) = editor.permission()?;
    ensure!(call["toolCallId"] == begun["toolCallId"], "{call}");
    editor.permit(&question, "allow-once")?;
    let ended = editor.response(prompt)?;
    ensure!(ended["result"]["stopReason"] == "end_turn", "{ended}");
    ensure!(std::fs::read_to_string(place.path("project").join("allowed"))? == "x\n");

    let prompt = editor.prompt(&session, "Again")?;
    let (question, _) = editor.permission()?;
    editor.permit(&question, "reject")?;
    let ended = editor.response(prompt)?;
    ensure!(ended["result"]["stopReason"] == "end_turn", "{ended}");
    ensure!(!place.path("project").join("denied").exists());

    // Another client answers: the editor withdraws its question.
    let mut other = place.attach(&session)?;
    let prompt = editor.prompt(&session, "Once more")?;
    let (question, call) = editor.permission()?;
    let dialog = other.until("extension_ui_request")?;
    ensure!(dialog["toolCallId"] == call["toolCallId"], "{dialog}");
    other.send(&json!({"type": "extension_ui_response", "id": dialog["id"], "value": "Allow once"}))?;
    editor.client.find("withdrawal", |line| {
        is(line, "method", "$/cancel_request") && line["params"]["requestId"] == question
    })?;
    let ended = editor.response(prompt)?;
    ensure!(ended["result"]["stopReason"] == "end_turn", "{ended}");
    ensure!(place.path("project").join("elsewhere").exists());
    Ok(())
}

#[test]
fn editor_cancels_run_on_worker() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let slow = json!([{"repeat": true, "stream": [{"text": ["a", {"delay": 60}, "b"]}]}]);
    let _worker = place.worker("a", &slow, &[])?;
    let mut editor = Editor::start(&place)?;
    let session = editor.new_session(&place)?;
    let prompt = editor.prompt(&session, "Go")?;
    editor.update("agent_message_chunk")?;
    editor
        .client
        .send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}))?;
    let ended = editor.response(prompt)?;
    ensure!(ended["result"]["stopReason"] == "cancelled", "{ended}");
    // `session/close` ends a run, too, and the session stays at its worker.
    let prompt = editor.prompt(&session, "Again")?;
    editor.update("agent_message_chunk")?;
    let closed = editor.send("session/close", json!({"sessionId": session}))?;
    let ended = editor.response(prompt)?;
    ensure!(ended["result"]["stopReason"] == "cancelled", "{ended}");
    ensure!(editor.response(closed)?["result"] == json!({}));
    let mut lines = place.attach(&session)?;
    let state = lines.ask(json!({"id": 1, "type": "get_messages"}))?;
    ensure!(
        state["data"]["messages"].as_array().map(Vec::len) == Some(4),
        "{state}"
    );
    Ok(())
}

#[test]
fn editor_gateway_refuses_what_workers_lack() -> Result<()> {
    let Some(place) = crate::place()? else {
        return Ok(());
    };
    let _worker = place.worker("a", &always("blue"), &[])?;
    let mut editor = Editor::start(&place)?;
    for session in ["missing", "not/../valid\n"] {
        let params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
        let loaded = editor.ask("session/load", params)?;
        let error = loaded["error"]["message"].as_str().unwrap_or_default();
        ensure!(error.contains("no stored session"), "{loaded}");
    }
    for method in ["session/list", "session/fork", "session/delete", "logout"] {
        let refused = editor.ask(method, json!({"sessionId": "missing"}))?;
        ensure!(refused["error"]["code"] == -32601, "{method}: {refused}");
    }
    ensure!(place.log("missing").is_err());
    Ok(())
}
