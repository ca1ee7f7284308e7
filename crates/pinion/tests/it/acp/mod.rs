//! `--mode acp` from outside: an editor that speaks the Agent Client Protocol.

mod capabilities;
mod editor_files;
mod schema;
mod sessions;
mod updates;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use serve::limits::CLOSE_WAIT;
use testkit::driver::Agent;
use testkit::llm::Reply;

use crate::kit::{LONG, PROGRAM, World, bash, memory_kb, until};
use crate::{mcp, permissions};

/// A client of one program.
struct Editor {
    agent: Agent,
    /// What it has sent.
    sent: Mutex<Vec<Value>>,
}

impl Editor {
    /// Starts the program and calls `initialize`.
    fn start(world: &World) -> Self {
        Self::able(world, json!({}))
    }

    /// Starts the program for a client with these capabilities.
    fn able(world: &World, capabilities: Value) -> Self {
        Self::with(world, &[], capabilities)
    }

    fn with(world: &World, args: &[&str], capabilities: Value) -> Self {
        let model = ["--provider", "mock-anthropic", "--model", "claude-mock"];
        let config = world
            .dir
            .agent(PROGRAM)
            .args(["--mode", "acp"])
            .args(model)
            .args(args)
            // Logins listen at a fixed port, which the test of `auth login` needs at 127.0.0.1 (`logins`). Here an address can be
            // pasted, so nothing fails if this host does not exist.
            .env("PI_OAUTH_CALLBACK_HOST", "127.0.0.2");
        let editor = Self {
            agent: Agent::spawn(config).unwrap(),
            sent: Mutex::default(),
        };
        let reply = editor.call(
            "i",
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
        );
        assert_eq!(reply["result"]["protocolVersion"], 1, "{reply}");
        editor
    }

    fn send(&self, message: Value) {
        self.send_together([message]);
    }

    /// Sends messages in one write.
    fn send_together(&self, messages: impl IntoIterator<Item = Value>) {
        let mut bytes = String::new();
        for mut message in messages {
            message["jsonrpc"] = "2.0".into();
            bytes.push_str(&format!("{message}\n"));
            self.sent.lock().unwrap().push(message);
        }
        self.agent.send_raw(bytes.as_bytes()).unwrap();
    }

    fn call(&self, id: &str, method: &str, params: Value) -> Value {
        self.send(json!({"id": id, "method": method, "params": params}));
        self.response(id)
    }

    fn response(&self, id: &str) -> Value {
        let is_answer = |line: &Value| line["id"] == id && line.get("method").is_none();
        self.agent.wait_for(id, true, 1, LONG, is_answer).unwrap()
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
        self.asked("session/request_permission")
    }

    /// Waits for a request of the agent.
    fn asked(&self, method: &str) -> Value {
        let asks = |line: &Value| line["method"] == method;
        self.agent.wait(asks, LONG).unwrap()
    }

    /// All updates so far of one kind.
    fn updates(&self, kind: &str) -> Vec<Value> {
        let lines = self.agent.lines();
        let updates = lines.iter().map(|line| line.value["params"]["update"].clone());
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    fn finish(self) {
        self.close();
    }

    /// Ends the program and checks its lines. Returns how long the end took.
    fn close(self) -> Duration {
        self.agent.close_stdin();
        let began = Instant::now();
        let status = self.agent.wait_exit(LONG).unwrap();
        let took = began.elapsed();
        assert_eq!(status.code(), Some(0), "{}", self.agent.stderr());
        until("the end of the output", || self.agent.ended());
        let lines = self.agent.lines();
        schema::assert_lines(
            &self.sent.lock().unwrap(),
            lines.iter().map(|line| line.value.as_ref()),
        );
        took
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

#[test]
fn end_of_input_ends_process_at_once() {
    let world = World::new((0..10).map(|_| Reply::text(["Hello"])));
    let ends_at_once = |_| {
        let editor = Editor::start(&world);
        let session = editor.session("n", &world);
        editor.prompt("p", &session, "Hi");
        assert_eq!(stop_reason(&editor.response("p")), "end_turn");
        // The time after which the process gives up output that the client does not read.
        editor.close() < CLOSE_WAIT
    };
    // A busy machine may delay one end, but hardly all of them.
    assert!((0..10).any(ends_at_once));
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
fn cancel_ends_prompt_that_has_not_begun() {
    let world = World::new([Reply::text(["late"])]);
    let editor = Editor::start(&world);
    // The prompt waits for this server, which never answers.
    let servers = json!([{"name": "mute", "command": "sleep", "args": ["600"], "env": []}]);
    let params = json!({"cwd": world.dir.cwd(), "mcpServers": servers});
    let reply = editor.call("n", "session/new", params);
    let session = reply["result"]["sessionId"].as_str().unwrap();
    editor.prompt("p", session, "Go");
    editor.send(json!({"method": "session/cancel", "params": {"sessionId": session}}));
    let reply = editor.response("p");
    assert_eq!(stop_reason(&reply), "cancelled", "{reply}");
    assert!(world.server.requests().is_empty());
    editor.finish();
}

#[test]
fn hundred_sessions_prompt_at_once() {
    let world = World::new((0..100).map(|_| Reply::text(["Done ", "and dusted"])));
    let editor = Editor::start(&world);
    let sessions: Vec<String> = (0..100)
        .map(|n| editor.session(&format!("n{n}"), &world))
        .collect();
    for session in &sessions {
        editor.prompt(session, session, "Hi");
    }
    for session in &sessions {
        assert_eq!(stop_reason(&editor.response(session)), "end_turn");
    }
    let lines = editor.agent.lines();
    for session in &sessions {
        let own = lines
            .iter()
            .filter(|line| line.value["params"]["sessionId"] == **session);
        let updates = own.map(|line| &line.value["params"]["update"]);
        let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        let text: String = chunks
            .filter_map(|chunk| chunk["content"]["text"].as_str())
            .collect();
        assert_eq!(text, "Done and dusted");
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

#[test]
fn parallel_calls_are_named_by_their_questions() {
    let calls = [("c1", "touch one.txt"), ("c2", "touch two.txt")];
    let reply = bash("c1", "touch one.txt").then_tool("c2", "bash", json!({"command": "touch two.txt"}));
    let world = permissions::world(json!({"mode": "ask"}), [reply]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    for (id, command) in calls {
        let asks = |line: &Value| {
            line["method"] == "session/request_permission" && line["params"]["toolCall"]["toolCallId"] == id
        };
        let question = editor.agent.wait(asks, LONG).unwrap();
        assert!(question["params"].to_string().contains(command), "{question}");
        let option = if id == "c1" { "reject" } else { "allow-once" };
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        editor.send(json!({"id": question["id"], "result": outcome}));
    }
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.finish();
    assert!(!world.dir.cwd().join("one.txt").exists());
    assert!(world.dir.cwd().join("two.txt").exists());
}

#[test]
fn sessions_ask_at_the_same_time() {
    let calls = [bash("c1", "touch one.txt"), bash("c2", "touch two.txt")];
    let replies = calls.into_iter().chain([Reply::text(["done"])]);
    let world = permissions::world(json!({"mode": "ask"}), replies);
    let editor = Editor::start(&world);
    let sessions = ["n1", "n2"].map(|id| editor.session(id, &world));
    let mut questions = Vec::new();
    for session in &sessions {
        editor.prompt(session, session, "Go");
        let asks = |line: &Value| {
            line["method"] == "session/request_permission" && line["params"]["sessionId"] == **session
        };
        questions.push(editor.agent.wait(asks, LONG).unwrap());
    }
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}});
    for question in questions {
        editor.send(json!({"id": question["id"], "result": outcome}));
    }
    for session in &sessions {
        assert_eq!(stop_reason(&editor.response(session)), "end_turn");
    }
    editor.finish();
    for file in ["one.txt", "two.txt"] {
        assert!(world.dir.cwd().join(file).exists(), "{file}");
    }
}

#[test]
fn unread_output_is_held_at_provider() {
    let world = World::new([
        Reply::text_deltas(60_000, 250).batch(65_536),
        Reply::text(["next"]),
    ]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.agent.pause_stdout();
    editor.prompt("p", &session, "Go");
    world.server.wait_requests(1, LONG).unwrap();
    assert!(world.server.wait_ended(1, Duration::from_millis(1_500)).is_err());
    let memory = memory_kb(editor.agent.pid(), "VmHWM");
    assert!(memory < 96 * 1024, "{memory} kB");
    editor.agent.resume_stdout();
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let chunks = editor.updates("agent_message_chunk");
    let text = chunks
        .iter()
        .filter_map(|chunk| chunk["content"]["text"].as_str());
    assert_eq!(text.map(str::len).sum::<usize>(), 15_000_000);
    editor.finish();
}

#[test]
fn client_mcp_servers_serve_their_session() {
    let call = Reply::tool("c1", "mcp__kit_one__echo", json!({"text": "hi"}));
    let world = World::new([call, Reply::text(["done"])]);
    let log = world.dir.root().join("kit.log");
    let entry = mcp::entry(&log, "");
    let env = entry["env"].as_object().unwrap().iter();
    let env: Vec<Value> = env
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let editor = Editor::start(&world);
    // The first server never answers: opening the session does not wait for it.
    let servers = json!([
        {"name": "mute", "command": "sleep", "args": ["600"], "env": []},
        {"type": "http", "name": "gone", "url": "http://127.0.0.1:1/mcp", "headers": []},
        {"name": "kit one", "command": entry["command"], "args": entry["args"], "env": env},
    ]);
    let reply = editor.call(
        "n",
        "session/new",
        json!({"cwd": world.dir.cwd(), "mcpServers": servers}),
    );
    let session = reply["result"]["sessionId"].as_str().unwrap();
    editor.prompt("p", session, "Go");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let end = editor.updates("tool_call_update").pop().unwrap();
    assert_eq!(end["status"], "completed", "{end}");
    assert!(end["content"].to_string().contains("hi"), "{end}");
    editor.finish();
}

#[test]
fn silent_servers_delay_no_other_request() {
    let world = World::new([]);
    let editor = Editor::start(&world);
    let server = |at: u32| json!({"name": format!("s{at}"), "command": "sleep", "args": ["600"], "env": []});
    let servers: Vec<Value> = (0..10).map(server).collect();
    let began = Instant::now();
    let params = json!({"cwd": world.dir.cwd(), "mcpServers": servers});
    let reply = editor.call("n", "session/new", params);
    let session = reply["result"]["sessionId"].as_str().unwrap().to_owned();
    let tells = |line: &Value| line["params"]["update"]["sessionUpdate"] == "available_commands_update";
    editor.agent.wait(tells, LONG).unwrap();
    let reply = editor.call(
        "m",
        "session/set_mode",
        json!({"sessionId": session, "modeId": "ask"}),
    );
    assert_eq!(reply["result"], json!({}), "{reply}");
    // A prompt would wait for the servers for so long.
    assert!(
        began.elapsed() < session::limits::MCP_WAIT,
        "{:?}",
        began.elapsed()
    );
    editor.finish();
}

#[test]
fn unusable_mcp_servers_are_refused() {
    let world = World::new([]);
    let editor = Editor::start(&world);
    for (at, server) in [
        json!({"type": "sse", "name": "old", "url": "http://127.0.0.1:1/sse", "headers": []}),
        json!({"name": "kit"}),
        json!({"name": "kit", "command": "true", "args": [], "env": {"A": "b"}}),
    ]
    .into_iter()
    .enumerate()
    {
        let params = json!({"cwd": world.dir.cwd(), "mcpServers": [server]});
        let reply = editor.call(&format!("n{at}"), "session/new", params);
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
    editor.finish();
}

#[test]
fn acp_command_serves_like_the_mode() {
    let world = World::new([]);
    let agent = Agent::spawn(world.dir.agent(PROGRAM).args(["acp", "--no-session"])).unwrap();
    let params = json!({"protocolVersion": 1});
    agent
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
        .unwrap();
    let reply = agent.wait(|line: &Value| line["id"] == 1, LONG).unwrap();
    assert_eq!(reply["result"]["agentInfo"]["name"], "pinion");
    agent.close_stdin();
    assert_eq!(agent.wait_exit(LONG).unwrap().code(), Some(0));
}

#[test]
fn sessions_open_in_dialect_of_omp() {
    let world = World::new([]);
    let editor = Editor::with(&world, &["--rpc-dialect", "omp-now"], json!({}));
    assert_ne!(editor.session("n", &world), "");
    editor.finish();
}
