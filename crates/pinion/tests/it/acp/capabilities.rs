//! What only some clients can do: forms, notices, compactions, forks, logins.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};
use testkit::driver::Agent;
use testkit::llm::Reply;

use super::{Editor, stop_reason};
use crate::auto_compaction::{full, summary, world as compacting};
use crate::extensions::{can_run, extended};
use crate::kit::{PROGRAM, World};
use crate::mcp;

/// An extension whose command asks a question and reports the answer.
const ASKING: &str = r#"
pi.registerCommand("ask", { handler: async (_args, ctx) => {
  const choice = await ctx.ui.select("Which colour?", ["red", "blue"]);
  ctx.ui.notify("You chose " + choice + "\nThank you", "warning");
} });
"#;

#[test]
fn dialogs_become_forms() {
    if !can_run() {
        return;
    }
    let world = extended([], ASKING);
    let capabilities = json!({"elicitation": {"form": {}}, "session": {"notices": {}}});
    let editor = Editor::able(&world, capabilities);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "/ask");
    let question = editor.asked("elicitation/create");
    assert_eq!(question["params"]["sessionId"], session.as_str());
    assert_eq!(question["params"]["mode"], "form");
    let field = &question["params"]["requestedSchema"]["properties"]["value"];
    assert_eq!(field["enum"], json!(["red", "blue"]), "{question}");
    let result = json!({"action": "accept", "content": {"value": "blue"}});
    editor.send(json!({"id": question["id"], "result": result}));
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let notice = editor.updates("notice").pop().unwrap();
    let expected = json!({"sessionUpdate": "notice", "severity": "warning", "title": "You chose blue", "description": "Thank you"});
    assert_eq!(notice, expected);
    editor.finish();
}

#[test]
fn dialogs_without_forms_return_defaults() {
    if !can_run() {
        return;
    }
    let world = extended([], ASKING);
    let editor = Editor::able(&world, json!({"session": {"notices": {}}}));
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "/ask");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let notice = editor.updates("notice").pop().unwrap();
    assert_eq!(notice["title"], "You chose undefined");
    editor.finish();
}

#[test]
fn mcp_elicitation_becomes_forms() {
    let call = Reply::tool("c1", "mcp__kit__ask", json!({}));
    let world = World::new([call, Reply::text(["done"])]);
    mcp::configure(&world, &[("kit", "")]);
    let editor = Editor::able(&world, json!({"elicitation": {"form": {}}}));
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    for answer in ["Ann", "Large"] {
        let question = editor.asked("elicitation/create");
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.starts_with("MCP server kit asks"), "{question}");
        let result = json!({"action": "accept", "content": {"value": answer}});
        editor.send(json!({"id": question["id"], "result": result}));
    }
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let end = editor.updates("tool_call_update").pop().unwrap();
    let answered = end["content"].to_string();
    assert!(answered.contains("Ann") && answered.contains("accept"), "{end}");
    editor.finish();
}

#[test]
fn compaction_is_followed_by_client() {
    let world = compacting([full(Reply::text(["a long enough answer"])), summary()]);
    let editor = Editor::able(&world, json!({"session": {"compaction": {}}}));
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "A question that is long enough");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let updates = editor.updates("compaction_update");
    let statuses: Vec<&Value> = updates.iter().map(|update| &update["status"]).collect();
    assert_eq!(statuses, ["in_progress", "completed"]);
    assert!(
        updates
            .iter()
            .all(|update| update["compactionId"] == "compaction-1")
    );
    let shown = updates[1]["summary"][0]["text"].as_str().unwrap();
    assert!(shown.contains("THE SUMMARY"), "{shown}");
    editor.finish();
}

#[test]
fn compaction_is_hidden_from_other_clients() {
    let world = compacting([full(Reply::text(["a long enough answer"])), summary()]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "A question that is long enough");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    assert_eq!(editor.updates("compaction_update"), Vec::<Value>::new());
    editor.finish();
    assert_eq!(world.server.requests().len(), 2);
}

#[test]
fn fork_has_history_and_own_file() {
    let world = World::new(["One", "Two", "Three"].map(|text| Reply::text([text])));
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    let empty = json!({"sessionId": session, "cwd": world.dir.cwd()});
    let unknown = json!({"sessionId": "nobody", "cwd": world.dir.cwd()});
    let refused = editor.call("f0", "session/fork", unknown);
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    let copy = editor.call("f1", "session/fork", empty.clone());
    assert_ne!(copy["result"]["sessionId"], session.as_str(), "{copy}");
    assert!(copy["result"]["sessionId"].is_string(), "{copy}");
    editor.prompt("p", &session, "First");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let forked = editor.call("f", "session/fork", empty);
    let fork = forked["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(fork, session);
    assert!(forked["result"]["configOptions"].is_array(), "{forked}");
    editor.prompt("q", &fork, "In the fork");
    assert_eq!(stop_reason(&editor.response("q")), "end_turn");
    editor.prompt("r", &session, "In the original");
    assert_eq!(stop_reason(&editor.response("r")), "end_turn");
    editor.finish();
    let bodies: Vec<String> = (world.server.requests().iter())
        .map(|request| request.body.to_string())
        .collect();
    assert!(bodies[1].contains("First") && bodies[1].contains("In the fork"));
    assert!(bodies[2].contains("First") && !bodies[2].contains("In the fork"));
    // The copy of the empty session has a file, too.
    assert_eq!(world.session_files().len(), 3);
}

#[test]
fn logout_removes_logins_and_keeps_keys() {
    let world = World::new([]);
    let path = world.dir.agent_dir().join("auth.json");
    let login = json!({"type": "oauth", "access": "a", "refresh": "r", "expires": 4_000_000_000_000_u64});
    let key = json!({"type": "api_key", "key": "k"});
    // A key of a provider with a login was no login.
    let auth = json!({"openai-codex": login, "github-copilot": key, "anthropic": key}).to_string();
    world.dir.write(&path, auth).unwrap();
    let editor = Editor::start(&world);
    let reply = editor.call("o", "logout", json!({}));
    assert_eq!(reply["result"], json!({}), "{reply}");
    let again = editor.call("o2", "logout", json!({}));
    assert_eq!(again["result"], json!({}), "{again}");
    editor.finish();
    let left: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(left, json!({"github-copilot": key, "anthropic": key}));
}

#[test]
fn cancelled_login_makes_room_for_another() {
    let world = World::new([]);
    let editor = Editor::able(&world, json!({"elicitation": {"url": {}}}));
    for id in ["a1", "a2"] {
        editor.send(json!({"id": id, "method": "authenticate", "params": {"methodId": "openai-codex"}}));
        let page = editor.asked("elicitation/create");
        assert_eq!(page["params"]["mode"], "url", "{page}");
        editor.send(json!({"method": "$/cancel_request", "params": {"requestId": id}}));
        let withdrawn = editor.asked("$/cancel_request");
        assert_eq!(withdrawn["params"]["requestId"], page["id"]);
        let reply = editor.response(id);
        assert_eq!(reply["error"]["code"], -32800, "{reply}");
    }
    editor.finish();
}

#[test]
fn login_replaces_one_that_is_open() {
    let world = World::new([]);
    let editor = Editor::able(&world, json!({"elicitation": {"url": {}}}));
    let begin = |id: &str, method: &str| {
        editor.send(json!({"id": id, "method": "authenticate", "params": {"methodId": method}}));
    };
    begin("a1", "openai-codex");
    let first = editor.asked("elicitation/create");
    begin("a2", "openrouter");
    let withdrawn = editor.asked("$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], first["id"]);
    let replaced = editor.response("a1");
    assert_eq!(replaced["error"]["message"], "Another login has begun");
    let second = editor.asked("elicitation/create");
    assert_ne!(first["params"]["url"], second["params"]["url"]);
    editor.send(json!({"method": "$/cancel_request", "params": {"requestId": "a2"}}));
    assert_eq!(editor.response("a2")["error"]["code"], -32800);
    editor.finish();
}

#[test]
fn model_without_key_needs_login() {
    let world = World::new([]);
    let model = ["--mode", "acp", "--model", "anthropic/claude-sonnet-4-5"];
    let agent = Agent::spawn(world.dir.agent(PROGRAM).args(model)).unwrap();
    let editor = Editor {
        agent,
        sent: Mutex::default(),
    };
    editor.call("i", "initialize", json!({"protocolVersion": 1}));
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Hi");
    let reply = editor.response("p");
    assert_eq!(reply["error"]["code"], -32000, "{reply}");
    editor.finish();
}

#[test]
fn registry_entry_names_this_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/acp/agent.json");
    let entry: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(entry["version"], version);
    let npx = &entry["distribution"]["npx"];
    assert_eq!(npx["package"], format!("@pinion-agent/cli@{version}"));
    assert_eq!(npx["args"], json!(["acp"]));
    let uvx = &entry["distribution"]["uvx"];
    assert_eq!(uvx["package"], format!("pinion-agent-cli=={version}"));
}
