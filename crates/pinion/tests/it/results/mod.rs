//! Results for programs: schemas of all shapes, models that fail to follow them, and the tool that exists only for such a run.

mod schemas;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{Pi, World, kinds, of_type};

const TOOL: &str = "submit_result";
const MODEL: [&str; 4] = ["--provider", "mock-anthropic", "--model", "claude-mock"];

fn numbers() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

/// A call that gives the value, in the form that the schema asks for.
fn submit(schema: &Value, value: &Value) -> Reply {
    let args = if schema["type"] == "object" {
        value.clone()
    } else {
        json!({"result": value})
    };
    // Providers take objects only.
    let args = if args.is_object() { args } else { json!({}) };
    Reply::tool("call", TOOL, args)
}

/// The end of the run that a prompt with a schema starts.
fn ask(pi: &Pi, schema: &Value) -> Value {
    pi.data(json!({"type": "prompt", "message": "Go", "outputSchema": schema}));
    let end = pi.wait("agent_end");
    pi.settled();
    end
}

/// Names of the tools of each request.
fn offered(world: &World) -> Vec<Vec<String>> {
    let names = |body: &Value| {
        let tools = body["tools"].as_array().into_iter().flatten();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let requests = world.server.requests();
    requests.iter().map(|request| names(&request.body)).collect()
}

#[test]
fn two_hundred_schemas_hold_for_every_model() {
    let cases: Vec<_> = (0..200).map(schemas::numbered).collect();
    let mut replies = Vec::new();
    for case in &cases {
        let wrong = || submit(&case.schema, &case.wrong);
        // A correct model, a mistaken one, and a stubborn one.
        replies.push(submit(&case.schema, &case.right));
        replies.extend([wrong(), submit(&case.schema, &case.right)]);
        replies.extend([wrong(), Reply::text(["Done."]), wrong(), wrong()]);
    }
    let world = World::new(replies);
    let pi = world.start();
    for (number, case) in cases.iter().enumerate() {
        pi.data(json!({"type": "new_session"}));
        for model in ["correct", "mistaken"] {
            let end = ask(&pi, &case.schema);
            assert_eq!(
                end["result"], case.right,
                "{number} {model} {}: {end}",
                case.schema
            );
            assert!(end.get("resultError").is_none(), "{end}");
        }
        let end = ask(&pi, &case.schema);
        assert!(end.get("result").is_none(), "{number} {}: {end}", case.schema);
        let error = end["resultError"].as_str().unwrap();
        assert!(error.contains(TOOL), "{number}: {error}");
    }
    assert_eq!(world.server.requests().len(), 200 * 7);
    pi.finish();
}

#[test]
fn tool_exists_only_for_its_run() {
    let world = World::new([
        Reply::text(["before"]),
        submit(&numbers(), &json!({"n": 1})),
        Reply::text(["after"]),
    ]);
    let pi = world.start();
    let listed = pi.get("get_tools");
    pi.say("Hi");
    assert_eq!(ask(&pi, &numbers())["result"], json!({"n": 1}));
    pi.say("Hi");
    assert_eq!(pi.get("get_tools"), listed);
    let offered = offered(&world);
    let [before, during, after] = &offered[..] else {
        panic!("{offered:?}")
    };
    assert_eq!(before, after);
    let (last, others) = during.split_last().unwrap();
    assert_eq!((last.as_str(), others), (TOOL, &before[..]));
    let tools = world.server.requests()[1].body["tools"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(
        tools.last().unwrap()["input_schema"]["properties"],
        numbers()["properties"]
    );
    pi.finish();
}

#[test]
fn every_wire_shows_the_schema() {
    let world = World::new([submit(&numbers(), &json!({"n": 1}))]);
    let pi = world.start_openai();
    assert_eq!(ask(&pi, &numbers())["result"], json!({"n": 1}));
    let body = world.server.requests()[0].body.to_string();
    assert!(
        body.contains(TOOL) && body.contains(r#""n":{"type":"integer"}"#),
        "{body}"
    );
    pi.finish();
}

#[test]
fn run_uses_other_tools_first_and_keeps_result() {
    let world = World::new([
        Reply::tool("l", "ls", json!({})),
        Reply::tool("b", "bash", json!({"command": "echo side"})).then_tool("r", TOOL, json!({"n": 5})),
    ]);
    let pi = world.start();
    pi.data(json!({"type": "prompt", "message": "Go", "outputSchema": numbers()}));
    pi.settled();
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "agent_end")[0]["result"], json!({"n": 5}));
    assert_eq!(of_type(&lines, "tool_execution_end").len(), 3);
    assert_eq!(world.server.requests().len(), 2);
    // The next prompt continues the conversation, which has the call and its result.
    assert_eq!(pi.roles().last().unwrap(), "toolResult");
    pi.finish();
}

#[test]
fn wrong_schemas_and_queued_prompts_are_refused() {
    let world = World::new([Reply::text(["one"]).gate("go"), Reply::text(["two"])]);
    let pi = world.start();
    for (schema, reason) in [
        (
            json!({"type": "strnig"}),
            "outputSchema is not a valid JSON Schema",
        ),
        (json!([1]), "outputSchema must be an object"),
        (
            json!({"$ref": "file:///etc/passwd"}),
            "outputSchema refers to file:///etc/passwd",
        ),
    ] {
        let error = pi.error(json!({"type": "prompt", "message": "Go", "outputSchema": schema}));
        assert!(error.starts_with(reason), "{error}");
    }
    pi.prompt("Hi");
    let queued =
        json!({"type": "prompt", "message": "Go", "streamingBehavior": "steer", "outputSchema": numbers()});
    assert!(
        pi.error(queued)
            .contains("outputSchema belong to a prompt that starts a run")
    );
    world.server.release("go");
    assert_eq!(pi.settled()["aborted"], false);
    pi.say("Hi");
    pi.finish();
}

#[test]
fn permissions_do_not_ask_about_results() {
    for mode in ["ask", "read-only"] {
        let world = World::new([submit(&numbers(), &json!({"n": 1}))]);
        let pi = world.start_with(&["--permission-mode", mode, "--no-tools"]);
        assert_eq!(ask(&pi, &numbers())["result"], json!({"n": 1}));
        assert!(!kinds(&pi.lines()).contains(&"extension_ui_request"));
        pi.finish();
    }
}

#[test]
fn tool_of_same_name_refuses_schema() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    let tool = json!({"name": TOOL, "description": "mine", "parameters": {"type": "object"}});
    pi.data(json!({"type": "set_host_tools", "tools": [tool]}));
    let error = pi.error(json!({"type": "prompt", "message": "Go", "outputSchema": numbers()}));
    assert!(error.contains("another tool has that name"), "{error}");
    pi.say("Hi");
    pi.finish();
}

#[test]
fn reload_after_result_goes_on() {
    let world = World::new([submit(&numbers(), &json!({"n": 1})), Reply::text(["later"])]);
    let pi = world.start();
    ask(&pi, &numbers());
    let file = pi.file();
    pi.finish();
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    pi.say("And now?");
    assert!(!offered(&world)[1].contains(&TOOL.to_owned()));
    pi.finish();
}

fn print(world: &World, more: &[&str]) -> crate::kit::Done {
    std::fs::write(world.dir.cwd().join("schema.json"), numbers().to_string()).unwrap();
    let args: Vec<&str> = MODEL.iter().chain(more).copied().collect();
    world.run(&args, "")
}

#[test]
fn print_mode_writes_only_the_result() {
    let world = World::new([
        Reply::text(["I count."]).then_tool("l", "ls", json!({})),
        Reply::text(["Here it is."]).then_tool("r", TOOL, json!({"n": 42})),
    ]);
    let done = print(&world, &["-p", "Count", "--output-schema", "schema.json"]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "{\"n\":42}\n"),
        "{}",
        done.err
    );
}

#[test]
fn print_mode_without_result_ends_with_3() {
    let world = World::new([Reply::text(["No."]).repeat()]);
    let done = print(&world, &["-p", "Count", "--output-schema", "schema.json"]);
    assert_eq!((done.code, done.out.as_str()), (Some(3), ""), "{}", done.err);
    assert!(done.err.contains("The model gave no result"), "{}", done.err);
    assert_eq!(world.server.requests().len(), 4);

    let done = print(
        &world,
        &["--mode", "json", "Count", "--output-schema", "schema.json"],
    );
    assert_eq!(done.code, Some(3));
    let lines: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let end = of_type(&lines, "agent_end");
    assert_eq!(end.last().unwrap()["resultError"], "The model gave no result");
}

#[test]
fn schema_files_are_checked_before_the_run() {
    let world = World::new([Reply::text(["never"])]);
    std::fs::write(world.dir.cwd().join("broken.json"), "{").unwrap();
    for (args, code, reason) in [
        (
            &["-p", "Go", "--output-schema", "absent.json"][..],
            1,
            "File not found",
        ),
        (
            &["-p", "Go", "--output-schema", "broken.json"],
            1,
            "broken.json is not JSON",
        ),
        (
            &["--mode", "rpc", "--output-schema", "schema.json"],
            1,
            "clients send outputSchema",
        ),
    ] {
        let done = print(&world, args);
        assert_eq!(done.code, Some(code), "{}", done.err);
        assert!(done.err.contains(reason), "{}", done.err);
    }
    assert!(world.server.requests().is_empty());
}
