//! `--mode acp` from outside: an editor that speaks the Agent Client Protocol.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::driver::Agent;
use testkit::llm::Reply;

use crate::kit::{LONG, PROGRAM, World, bash};
use crate::permissions;

/// A client of one program.
struct Editor {
    agent: Agent,
}

impl Editor {
    /// Starts the program and calls `initialize`.
    fn start(world: &World) -> Self {
        let model = ["--provider", "mock-anthropic", "--model", "claude-mock"];
        let config = world.dir.agent(PROGRAM).args(["--mode", "acp"]).args(model);
        let editor = Self {
            agent: Agent::spawn(config).unwrap(),
        };
        let reply = editor.call(
            "i",
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {}}),
        );
        assert_eq!(reply["result"]["protocolVersion"], 1, "{reply}");
        editor
    }

    fn send(&self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.agent.send(&message).unwrap();
    }

    fn call(&self, id: &str, method: &str, params: Value) -> Value {
        self.send(json!({"id": id, "method": method, "params": params}));
        self.response(id)
    }

    fn response(&self, id: &str) -> Value {
        let is_answer = |line: &Value| line["id"] == id && line.get("method").is_none();
        self.agent.wait(is_answer, LONG).unwrap()
    }

    /// Opens a session and returns its id.
    fn session(&self, id: &str, world: &World) -> String {
        let reply = self.call(
            id,
            "session/new",
            json!({"cwd": world.dir.cwd(), "mcpServers": []}),
        );
        reply["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&self, id: &str, session: &str, text: &str) {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        self.send(json!({"id": id, "method": "session/prompt", "params": params}));
    }

    fn question(&self) -> Value {
        let asks = |line: &Value| line["method"] == "session/request_permission";
        self.agent.wait(asks, LONG).unwrap()
    }

    /// All updates so far of one kind.
    fn updates(&self, kind: &str) -> Vec<Value> {
        let lines = self.agent.lines();
        let updates = lines.iter().map(|line| line.value["params"]["update"].clone());
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    fn finish(self) {
        self.agent.close_stdin();
        let status = self.agent.wait_exit(LONG).unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.agent.stderr());
    }
}

fn stop_reason(reply: &Value) -> &str {
    reply["result"]["stopReason"].as_str().unwrap_or_default()
}

#[test]
fn prompt_streams_chunks_and_ends_turn() {
    let world = World::new([Reply::text(["Hello ", "editor"])]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Hi");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let chunks = editor.updates("agent_message_chunk");
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk["content"]["text"].as_str())
        .collect();
    assert_eq!(text, "Hello editor");
    editor.finish();
}

/// Runs one command that needs permission. Returns whether it ran, the question and the status of the call.
fn answered(outcome: Value) -> (bool, Value, Value) {
    let world = permissions::world(json!({"mode": "ask"}), [bash("c1", "touch made.txt")]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let question = editor.question();
    assert!(!world.dir.cwd().join("made.txt").exists());
    let mut answer = outcome;
    answer["id"] = question["id"].clone();
    editor.send(answer);
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let status = editor.updates("tool_call_update").pop().unwrap()["status"].clone();
    editor.finish();
    (world.dir.cwd().join("made.txt").exists(), question, status)
}

#[test]
fn permitted_command_runs_after_question() {
    let selected = json!({"result": {"outcome": {"outcome": "selected", "optionId": "allow-once"}}});
    let (ran, question, status) = answered(selected);
    assert!(ran);
    assert_eq!(status, "completed");
    assert_eq!(question["params"]["toolCall"]["toolCallId"], "c1");
    assert!(question.to_string().contains("touch made.txt"), "{question}");
}

#[test]
fn command_without_usable_permission_never_runs() {
    for outcome in [
        json!({"result": {"outcome": {"outcome": "selected", "optionId": "reject"}}}),
        json!({"result": {"outcome": {"outcome": "cancelled"}}}),
        json!({"error": {"code": -32601, "message": "Method not found"}}),
    ] {
        let (ran, _, status) = answered(outcome.clone());
        assert!(!ran, "{outcome}");
        assert_eq!(status, "failed", "{outcome}");
    }
}

#[test]
fn cancel_ends_prompt_with_reason_cancelled() {
    let world = World::new([bash("c1", "sleep 600")]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let starts = |line: &Value| line["params"]["update"]["sessionUpdate"] == "tool_call";
    editor.agent.wait(starts, LONG).unwrap();
    editor.send(json!({"method": "session/cancel", "params": {"sessionId": session}}));
    assert_eq!(stop_reason(&editor.response("p")), "cancelled");
    editor.finish();
}

#[test]
fn hundred_sessions_share_one_connection() {
    let world = World::new((0..2).map(|_| Reply::text(["Done"])));
    let editor = Editor::start(&world);
    let sessions: Vec<String> = (0..100)
        .map(|n| editor.session(&format!("n{n}"), &world))
        .collect();
    for session in [&sessions[0], &sessions[99]] {
        editor.prompt(session, session, "Hi");
        assert_eq!(stop_reason(&editor.response(session)), "end_turn");
    }
    editor.finish();
}

#[test]
fn invalid_lines_leave_the_process_running() {
    let world = World::new([Reply::text(["Still here"])]);
    let editor = Editor::start(&world);
    editor
        .agent
        .send_raw(b"{\n\xff\xfe\n[]\n{\"jsonrpc\":\"2.0\"}\n\n")
        .unwrap();
    assert_eq!(
        editor.call("x", "session/dance", json!({}))["error"]["code"],
        -32601
    );
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Hi");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    assert!(editor.agent.wait_quiet(Duration::from_millis(50), LONG));
    editor.finish();
}
