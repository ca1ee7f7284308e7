//! Updates that are no messages: diffs, usage, commands, titles, plans.

use std::fs;

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use super::{Editor, stop_reason};
use crate::extensions::{can_run, extended};
use crate::kit::{LONG, World, until};
use crate::permissions;

#[test]
fn edits_show_their_diffs() {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]});
    let world = permissions::world(json!({"mode": "ask"}), [Reply::tool("c1", "edit", edit)]);
    let file = world.dir.cwd().join("a.txt");
    fs::write(&file, "one\n").unwrap();
    let path = file.to_string_lossy().into_owned();
    let diff = json!({"type": "diff", "path": path, "oldText": "one", "newText": "two"});
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let question = editor.question();
    let call = &question["params"]["toolCall"];
    assert_eq!(call["content"], json!([diff]), "{question}");
    assert_eq!(call["kind"], "edit");
    assert_eq!(call["locations"], json!([{"path": path}]));
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}});
    editor.send(json!({"id": question["id"], "result": outcome}));
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let started = editor.updates("tool_call").pop().unwrap();
    assert_eq!(started["content"], json!([diff]), "{started}");
    assert_eq!(started["rawInput"]["path"], "a.txt");
    let ended = editor.updates("tool_call_update").pop().unwrap();
    assert_eq!(ended["status"], "completed");
    assert_eq!(ended["content"][0], diff, "{ended}");
    editor.finish();
    assert_eq!(fs::read_to_string(file).unwrap(), "two\n");
}

#[test]
fn failed_edit_shows_no_diff() {
    let edit = json!({"path": "gone.txt", "edits": [{"oldText": "one", "newText": "two"}]});
    let world = World::new([Reply::tool("c1", "edit", edit), Reply::text(["done"])]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let ended = editor.updates("tool_call_update").pop().unwrap();
    assert_eq!(ended["status"], "failed");
    assert!(!ended["content"].to_string().contains("diff"), "{ended}");
    editor.finish();
}

#[test]
fn prompt_ends_after_usage_and_title() {
    let world = World::new([Reply::text(["Hello"])]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "\nName this\nsession");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    // Both came before the response.
    let usage = editor.updates("usage_update").pop().unwrap();
    assert_eq!(usage["size"], 200_000, "{usage}");
    assert!(usage["used"].as_u64().unwrap() > 0, "{usage}");
    assert_eq!(usage["cost"]["currency"], "USD");
    let titles = editor.updates("session_info_update");
    assert_eq!(titles.len(), 1, "{titles:?}");
    assert_eq!(titles[0]["title"], "Name this");
    editor.finish();
}

#[test]
fn commands_are_announced() {
    let world = World::new([Reply::text(["Hello"])]);
    let dir = world.dir.agent_dir().join("prompts");
    fs::create_dir_all(&dir).unwrap();
    fs::write(
        dir.join("greet.md"),
        "---\ndescription: Greet a person\n---\nSay hello to $1",
    )
    .unwrap();
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    let tells = |line: &Value| line["params"]["update"]["sessionUpdate"] == "available_commands_update";
    let update = editor.agent.wait(tells, LONG).unwrap();
    let commands = &update["params"]["update"]["availableCommands"];
    let expected = json!({"name": "greet", "description": "Greet a person"});
    assert!(commands.as_array().unwrap().contains(&expected), "{commands}");
    editor.prompt("p", &session, "/greet Ada");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.finish();
    let request = world.server.requests()[0].body.to_string();
    assert!(request.contains("Say hello to Ada"), "{request}");
}

#[test]
fn todos_become_a_plan() {
    let plan = json!([{"op": "replace", "phases": [{"name": "Work", "tasks": [{"content": "one"}, {"content": "two"}]}]}]);
    let call = Reply::tool("c1", "todo_write", json!({"ops": plan}));
    let world = World::new([call, Reply::text(["done"])]);
    world.settings(json!({"defaultTools": ["+todo_write"], "tasks": {"todoReminders": false}}));
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let is_plan = |line: &Value| line["params"]["update"]["sessionUpdate"] == "plan";
    let update = editor.agent.wait(is_plan, LONG).unwrap();
    let entries = update["params"]["update"]["entries"].as_array().unwrap();
    let contents: Vec<&Value> = entries.iter().map(|entry| &entry["content"]).collect();
    assert_eq!(contents, ["one", "two"], "{update}");
    assert!(entries.iter().all(|entry| entry["priority"] == "medium"));
    editor.send(json!({"method": "session/cancel", "params": {"sessionId": session}}));
    editor.response("p");
    editor.finish();
}

#[test]
fn loaded_session_has_plan_and_usage() {
    let plan = json!([{"op": "replace", "phases": [{"name": "Work", "tasks": [{"content": "one"}]}]}]);
    let call = Reply::tool("c1", "todo_write", json!({"ops": plan}));
    let world = World::new([call, Reply::text(["done"])]);
    world.settings(json!({"defaultTools": ["+todo_write"], "tasks": {"todoReminders": false}}));
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let known = editor.updates("usage_update");
    // Equal usage is sent once.
    assert!(known.windows(2).all(|pair| pair[0] != pair[1]), "{known:?}");
    editor.finish();
    for method in ["session/load", "session/resume"] {
        let editor = Editor::start(&world);
        let params = json!({"sessionId": session, "cwd": world.dir.cwd(), "mcpServers": []});
        let reply = editor.call("o", method, params);
        assert!(reply["result"].is_object(), "{reply}");
        let plan = editor.updates("plan").pop().unwrap();
        assert_eq!(plan["entries"][0]["content"], "one", "{plan}");
        assert_eq!(editor.updates("usage_update"), known[known.len() - 1..]);
        editor.finish();
    }
}

/// The models that updates of the options name.
fn told_models(editor: &Editor) -> Vec<Value> {
    let updates = editor.updates("config_option_update");
    let model = |update: &Value| {
        let options = update["configOptions"].as_array().unwrap();
        let model = options.iter().find(|option| option["id"] == "model").unwrap();
        model["currentValue"].clone()
    };
    updates.iter().map(model).collect()
}

#[test]
fn fallback_model_is_shown_until_run_ends() {
    let world = World::new([Reply::error(ErrorKind::Auth), Reply::text(["from the other"])]);
    world.settings(json!({"fallbackModels": ["mock-openai/gpt-mock"]}));
    let editor = Editor::able(&world, json!({"session": {"notices": {}}}));
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Hi");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let told = told_models(&editor);
    let last = &told[told.len() - 2..];
    assert_eq!(last, ["mock-openai/gpt-mock", "mock-anthropic/claude-mock"]);
    let notice = editor.updates("notice").pop().unwrap();
    let title = "mock-anthropic/claude-mock failed, mock-openai/gpt-mock answers";
    assert_eq!(notice["title"], title, "{notice}");
    editor.finish();
}

#[test]
fn model_set_by_extension_is_shown() {
    if !can_run() {
        return;
    }
    let switching = r#"
        pi.registerCommand("switch", { handler: async (_args, ctx) => {
          await pi.setModel(ctx.modelRegistry.find("mock-openai", "gpt-mock"));
        } });"#;
    let world = extended([], switching);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "/switch");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    until("the options", || {
        told_models(&editor)
            .last()
            .is_some_and(|model| model == "mock-openai/gpt-mock")
    });
    editor.finish();
}

#[test]
fn overwritten_file_shows_its_old_text() {
    let write = |id: &str, path: &str| Reply::tool(id, "write", json!({"path": path, "content": "new\n"}));
    let world = World::new([write("c1", "a.txt"), write("c2", "b.txt"), Reply::text(["done"])]);
    fs::write(world.dir.cwd().join("a.txt"), "old\n").unwrap();
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let calls = editor.updates("tool_call");
    let ends = editor.updates("tool_call_update");
    editor.finish();
    for (id, old) in [("c1", json!("old\n")), ("c2", Value::Null)] {
        let of_call = |update: &&Value| update["toolCallId"] == id;
        let call = calls.iter().find(of_call).unwrap();
        let end = ends.iter().rfind(of_call).unwrap();
        for update in [call, end] {
            assert_eq!(update["content"][0]["oldText"], old, "{update}");
            assert_eq!(update["content"][0]["newText"], "new\n");
        }
    }
}
