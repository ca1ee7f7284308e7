//! Permission dialogs about tools of MCP servers: what they show, and how long a consent holds.

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::kit::{configure, of_method};
use super::{call, ends};
use crate::kit::{World, of_type, until};
use crate::permissions::{choose, question};

const ALWAYS: &str = "Allow for this session";

fn echo(id: &str, text: &str) -> Reply {
    call(id, "echo", json!({"text": text}))
}

fn title(asked: &Value) -> &str {
    asked["title"].as_str().unwrap()
}

#[test]
fn server_tool_consent_covers_same_arguments_and_definition() {
    let world = World::new([
        echo("c1", "a"),
        echo("c2", "a"),
        echo("c3", "b"),
        call("c4", "grow", json!({})),
        Reply::text(["done"]),
        echo("c5", "a"),
        Reply::text(["done"]),
    ]);
    let log = &configure(&world, &[("kit", "")])["kit"];
    world.settings(json!({"permissions": {"mode": "ask"}}));
    let pi = world.start();
    pi.prompt("Go");
    let asked = question(&pi);
    assert_eq!(
        title(&asked),
        "Allow mcp__kit__echo?\nTool echo of the MCP server kit\n{\n  \"text\": \"a\"\n}"
    );
    choose(&pi, &asked, ALWAYS);
    let other = question(&pi);
    assert!(title(&other).contains("\"text\": \"b\""), "{other}");
    choose(&pi, &other, "Deny");
    let grow = question(&pi);
    assert_eq!(
        title(&grow),
        "Allow mcp__kit__grow?\nTool grow of the MCP server kit\nNo arguments"
    );
    choose(&pi, &grow, "Allow once");
    pi.settled();
    // The server announces changed tools: the definition that the user allowed is gone.
    until("the list of tools", || of_method(log, "tools/list").len() > 1);
    until("the new tool", || {
        let tools = &pi.get("get_mcp_servers")["servers"][0]["tools"];
        tools.to_string().contains("late")
    });
    pi.prompt("Go on");
    let again = question(&pi);
    assert!(title(&again).contains("\"text\": \"a\""), "{again}");
    choose(&pi, &again, "Deny");
    pi.settled();
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "extension_ui_request").len(), 4);
    let errors: Vec<bool> = ends(&lines).into_iter().map(|(_, is_error)| is_error).collect();
    assert_eq!(errors, [false, false, true, false, true]);
    pi.finish();
}
