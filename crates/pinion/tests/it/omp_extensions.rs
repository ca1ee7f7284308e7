//! Where extensions, hooks and commands of oh-my-pi are found, and what of theirs the agent itself takes part in. What they find on
//! their API object is tested with the host itself.

use std::fs;

use serde_json::json;
use testkit::llm::Reply;

use crate::dialect_outputs::{end, speaking};
use crate::extensions::can_run;
use crate::kit::{World, until};

/// An extension by its manifest, a hook in a folder of its own, a command whose text is the prompt.
#[test]
fn manifests_hooks_and_commands_of_omp_load() {
    if !can_run() {
        return;
    }
    let world = World::new([]);
    world.server.set_default(Reply::text(["a"]));
    let put = |name: &str, text: &str| {
        let path = world.dir.agent_dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(
        "extensions/own/package.json",
        r#"{"omp": {"extensions": ["./src/main.ts"]}}"#,
    );
    put(
        "extensions/own/src/main.ts",
        r#"export default (pi: any) => pi.registerTool({ name: "own", label: "Own", description: "Own", parameters: pi.zod.object({ a: pi.zod.string() }),
          async execute() { return { content: [{ type: "text", text: "own" }] }; } });"#,
    );
    put(
        "hooks/pre/first.ts",
        r#"export default (pi: any) => pi.on("before_agent_start", (event: any) => ({ systemPrompt: [...event.systemPrompt, "From the hook."] }));"#,
    );
    put(
        "commands/ask/index.ts",
        r#"export default () => ({ name: "ask", description: "Asks", execute: (args: string[]) => "Prompt of " + args.join("-") });"#,
    );
    let pi = speaking(&world, "omp-now");
    pi.ask(json!({"type": "prompt", "message": "/ask one two"}));
    until("the command has prompted", || !world.server.requests().is_empty());
    let body = world.server.requests()[0].body.clone();
    let text = body.to_string();
    assert!(text.contains("Prompt of one-two"), "{text}");
    assert!(text.contains("From the hook."), "{text}");
    let tools = body["tools"].as_array().unwrap();
    let own = tools.iter().find(|tool| tool["name"] == "own").unwrap();
    assert_eq!(own["input_schema"]["required"], json!(["a"]));
    end(&pi);
}

/// As in oh-my-pi: a sub-agent ends with its task.
#[test]
fn session_stop_continues_main_agent_only() {
    if !can_run() {
        return;
    }
    let world = World::new([
        Reply::tool("t", "task", json!({"description": "a task", "prompt": "Count"})),
        Reply::text(["Seven."]),
        Reply::text(["It says seven."]),
        Reply::text(["The end."]),
    ]);
    let dir = world.dir.agent_dir().join("extensions");
    fs::create_dir_all(&dir).unwrap();
    let source = r#"export default (pi: any) => pi.on("session_stop", (event: any) =>
      event.stop_hook_active ? undefined : { continue: true, additionalContext: "Go on." });"#;
    fs::write(dir.join("stop.ts"), source).unwrap();
    let pi = world.start_with(&["--rpc-dialect", "omp-now", "--tools", "read,task"]);
    pi.ask(json!({"type": "prompt", "message": "Count"}));
    pi.wait("session_settled");
    let requests = world.server.requests();
    let continued = requests
        .iter()
        .map(|request| request.body.to_string().contains("Go on."));
    assert_eq!(continued.collect::<Vec<_>>(), [false, false, false, true]);
    end(&pi);
}
