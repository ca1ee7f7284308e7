//! Tools that the client carries out (dialects.md 7).

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{LONG, Pi, World, kinds, of_type, text};

/// A tool that takes a text.
fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "parameters": {
        "type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"],
        "additionalProperties": false,
    }})
}

fn lend(pi: &Pi, tools: Value) -> Value {
    pi.data(json!({"type": "set_host_tools", "tools": tools}))["toolNames"].clone()
}

fn refused(pi: &Pi, tools: Value) -> String {
    pi.error(json!({"type": "set_host_tools", "tools": tools}))
}

/// A world in which the model calls a tool with a message and says something afterwards.
fn calling(names: &[&str]) -> World {
    let mut reply = Reply::new();
    for (n, name) in names.iter().enumerate() {
        reply = reply.then_tool(format!("c{n}"), *name, json!({"message": format!("m{n}")}));
    }
    World::new([reply, Reply::text(["done"])])
}

fn frame(pi: &Pi, frame: Value) {
    pi.agent.send(&frame).unwrap();
}

fn answer(pi: &Pi, call: &Value, said: &str) {
    let result = json!({"content": [{"type": "text", "text": said}]});
    frame(
        pi,
        json!({"type": "host_tool_result", "id": call["id"], "result": result}),
    );
}

/// Names of the tools that a request told the model of.
fn told(world: &World, request: usize) -> Vec<String> {
    let body = &world.server.requests()[request].body;
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The ends of the calls: name, error or not, text.
fn ends(pi: &Pi) -> Vec<(String, bool, String)> {
    let lines = pi.lines();
    of_type(&lines, "tool_execution_end")
        .into_iter()
        .map(|end| {
            let name = end["toolName"].as_str().unwrap().to_owned();
            (name, end["isError"].as_bool().unwrap(), text(&end["result"]))
        })
        .collect()
}

fn end(name: &str, is_error: bool, said: &str) -> (String, bool, String) {
    (name.to_owned(), is_error, said.to_owned())
}

#[test]
fn host_tool_definitions_are_validated_before_any_change() {
    let world = World::new([Reply::text(["hi"])]);
    let pi = world.start();
    assert_eq!(lend(&pi, json!([tool("kept")])), json!(["kept"]));
    let with = |key: &str, value: Value| {
        let mut tool = tool("x");
        tool[key] = value;
        json!([tool])
    };
    let nameless = "Host tool at index 0 must provide a non-empty name";
    let mute = "Host tool \"x\" must provide a non-empty description";
    let shapeless = "Host tool \"x\" must provide a JSON Schema object";
    let clash = "RPC host tool \"grep\" conflicts with an existing tool";
    for (tools, error) in [
        (with("name", json!(" ")), nameless),
        (with("name", json!(7)), nameless),
        (json!([5]), nameless),
        (json!([{}]), nameless),
        (with("description", json!("")), mute),
        (json!([{"name": " x "}]), mute),
        (with("parameters", json!([])), shapeless),
        (with("parameters", json!("{}")), shapeless),
        (json!([{"name": "x", "description": "d"}]), shapeless),
        (
            json!([tool("a"), {"name": ""}]),
            "Host tool at index 1 must provide a non-empty name",
        ),
        (
            json!([tool("a"), tool(" a")]),
            "RPC host tool names must be unique",
        ),
        (
            json!([tool("read"), tool("read")]),
            "RPC host tool names must be unique",
        ),
        (json!([tool("a"), tool("grep")]), clash),
    ] {
        assert_eq!(refused(&pi, tools.clone()), error, "{tools}");
    }
    let error = refused(&pi, json!("none"));
    assert!(error.starts_with("Invalid set_host_tools command: "), "{error}");
    pi.say("Hello");
    assert_eq!(told(&world, 0), ["read", "bash", "edit", "write", "kept"]);
    // The same name again is no conflict.
    assert_eq!(lend(&pi, json!([tool("kept")])), json!(["kept"]));
    pi.finish();
}

#[test]
fn host_tool_count_and_size_are_limited() {
    let world = World::new([]);
    let pi = world.start();
    let many: Vec<Value> = (0..513).map(|n| tool(&format!("t{n}"))).collect();
    assert_eq!(
        refused(&pi, json!(many)),
        "513 host tools are too many; the limit is 512"
    );
    let mut large = tool("large");
    large["description"] = "x".repeat(300 << 10).into();
    assert_eq!(
        refused(&pi, json!([large])),
        "Host tool \"large\" is larger than 262144 bytes"
    );
    let several = (0..20).map(|n| {
        let mut tool = tool(&format!("t{n}"));
        tool["description"] = "x".repeat(250 << 10).into();
        tool
    });
    assert_eq!(
        refused(&pi, several.collect()),
        "The host tools together are larger than 4194304 bytes"
    );
    let names = lend(&pi, json!(many[..512]));
    assert_eq!(names.as_array().unwrap().len(), 512);
    assert_eq!(lend(&pi, json!([])), json!([]));
    pi.finish();
}

#[test]
fn host_tool_call_returns_result_to_model() {
    let world = World::new([
        Reply::tool("c1", "echo", json!({"message": "hello"})),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    let mut echo = tool(" echo ");
    echo["label"] = " Echo ".into();
    assert_eq!(lend(&pi, json!([echo])), json!(["echo"]));
    pi.prompt("Go");
    let call = pi.wait("host_tool_call");
    let id = call["id"].as_str().unwrap();
    assert_eq!(
        call,
        json!({"type": "host_tool_call", "id": id, "toolCallId": "c1", "toolName": "echo", "arguments": {"message": "hello"}})
    );
    for n in ["one", "two"] {
        let partial = json!({"content": [{"type": "text", "text": n}], "details": {"n": n}});
        frame(
            &pi,
            json!({"type": "host_tool_update", "id": id, "partialResult": partial}),
        );
        let update = pi.wait("tool_execution_update");
        assert_eq!(update["partialResult"], partial);
        assert_eq!(
            (&update["toolCallId"], &update["toolName"]),
            (&json!("c1"), &json!("echo"))
        );
    }
    let result = json!({"content": [{"type": "text", "text": "heard"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}],
        "details": {"took": 3}});
    frame(
        &pi,
        json!({"type": "host_tool_result", "id": id, "result": result}),
    );
    pi.settled();
    let lines = pi.lines();
    let end = of_type(&lines, "tool_execution_end")[0].clone();
    assert_eq!((&end["result"], &end["isError"]), (&result, &json!(false)));
    let message = &pi.messages()[2];
    assert_eq!(message["role"], "toolResult");
    assert_eq!(
        (&message["content"], &message["details"]),
        (&result["content"], &result["details"])
    );
    let seen = kinds(&lines);
    let at = |kind: &str| seen.iter().position(|one| *one == kind).unwrap();
    assert!(at("tool_execution_start") < at("host_tool_call"), "{seen:?}");
    assert!(at("host_tool_call") < at("tool_execution_end"), "{seen:?}");
    let body = world.server.requests()[1].body.to_string();
    assert!(body.contains("heard") && body.contains("aGk="), "{body}");
    pi.finish();
}

#[test]
fn unknown_host_result_blocks_become_text() {
    let world = calling(&["echo"]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    let call = pi.wait("host_tool_call");
    let content = json!(["plain", {"type": "text", "text": "t"}, {"type": "sound", "data": "x"}]);
    frame(
        &pi,
        json!({"type": "host_tool_result", "id": call["id"], "result": {"content": content, "details": null}}),
    );
    pi.settled();
    let message = &pi.messages()[2];
    let texts: Vec<&str> = message["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["plain", "t", "{\"type\":\"sound\",\"data\":\"x\"}"]);
    assert!(message.get("details").is_none(), "{message}");
    pi.finish();
}

#[test]
fn host_tools_appear_in_request_and_system_prompt() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.say("Hello");
    let request = world.server.requests()[0].body.clone();
    let told = request["tools"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&told["name"], &told["description"]),
        (&json!("echo"), &json!("Does echo"))
    );
    let (schema, given) = (&told["input_schema"], &tool("echo")["parameters"]);
    assert_eq!(
        (&schema["properties"], &schema["required"]),
        (&given["properties"], &given["required"])
    );
    assert!(request["system"].to_string().contains("- echo: Does echo"));
    lend(&pi, json!([]));
    pi.say("Again");
    let request = world.server.requests()[1].body.clone();
    assert!(!request["system"].to_string().contains("echo"));
    assert!(!request["tools"].to_string().contains("echo"));
    pi.finish();
}

#[test]
fn host_tool_arguments_are_coerced_to_schema() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {
        "n": {"type": "number"}, "list": {"type": "array"}, "flag": {"type": "boolean"}, "note": {"type": "string"},
        "part": {"$ref": "#/$defs/part"}}, "$defs": {"part": {"type": "object"}}});
    let given = json!({"n": "5", "list": "[1]", "flag": "true", "note": "null", "part": "{\"a\": null}"});
    let world = World::new([Reply::tool("c1", "echo", given.clone()), Reply::text(["done"])]);
    let pi = world.start();
    lend(
        &pi,
        json!([{"name": "echo", "description": "d", "parameters": schema}]),
    );
    pi.prompt("Go");
    let call = pi.wait("host_tool_call");
    assert_eq!(
        call["arguments"],
        json!({"n": 5, "list": [1], "flag": true, "part": {"a": null}})
    );
    answer(&pi, &call, "ok");
    pi.settled();
    // Everybody else sees what the model wrote.
    assert_eq!(of_type(&pi.lines(), "tool_execution_start")[0]["args"], given);
    pi.finish();
}

#[test]
fn invalid_arguments_are_refused_without_host_call() {
    let world = World::new([
        Reply::tool("c1", "echo", json!({"mess": 1})),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    pi.settled();
    let said = &ends(&pi)[0].2;
    assert!(
        said.starts_with(
            "Validation failed for tool \"echo\":\n  - message: must have required properties message\n"
        ),
        "{said}"
    );
    assert!(
        said.ends_with("\n\nReceived arguments:\n{\n  \"mess\": 1\n}"),
        "{said}"
    );
    assert!(of_type(&pi.lines(), "host_tool_call").is_empty());
    pi.finish();
}

#[test]
fn unusable_host_tool_schema_passes_arguments_unchanged() {
    for schema in [
        json!({"$ref": "https://example.com/s.json"}),
        json!({"type": "nonsense"}),
        json!({}),
    ] {
        let given = json!({"a": "null", "b": null, "c": "5"});
        let world = World::new([Reply::tool("c1", "echo", given.clone()), Reply::text(["done"])]);
        let pi = world.start();
        lend(
            &pi,
            json!([{"name": "echo", "description": "d", "parameters": schema}]),
        );
        pi.prompt("Go");
        let call = pi.wait("host_tool_call");
        assert_eq!(call["arguments"], given);
        answer(&pi, &call, "ok");
        pi.settled();
        pi.finish();
    }
}

#[test]
fn host_error_result_shows_its_text() {
    let words = |texts: &[&str]| -> Value {
        texts
            .iter()
            .map(|text| json!({"type": "text", "text": text}))
            .collect()
    };
    let image =
        json!([{"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "text", "text": "lost"}]);
    for (content, error) in [
        (words(&[" no such", "thing \n"]), "no such\nthing"),
        (words(&["  "]), "Host tool execution failed"),
        (json!([]), "Host tool execution failed"),
        (image, "lost"),
    ] {
        let world = calling(&["echo"]);
        let pi = world.start();
        lend(&pi, json!([tool("echo")]));
        pi.prompt("Go");
        let call = pi.wait("host_tool_call");
        let result = json!({"content": content});
        frame(
            &pi,
            json!({"type": "host_tool_result", "id": call["id"], "result": result, "isError": true}),
        );
        pi.settled();
        let message = &pi.messages()[2];
        assert_eq!(message["isError"], true);
        assert_eq!(message["content"], json!([{"type": "text", "text": error}]));
        pi.finish();
    }
}

#[test]
fn host_tool_accepts_first_result_and_ignores_others() {
    let world = calling(&["echo"]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    let strangers = || {
        let result = json!({"content": [{"type": "text", "text": "stranger"}]});
        for id in [json!("nobody"), json!(5), json!(null)] {
            frame(
                &pi,
                json!({"type": "host_tool_result", "id": id, "result": result}),
            );
            frame(
                &pi,
                json!({"type": "host_tool_update", "id": id, "partialResult": result}),
            );
            frame(&pi, json!({"type": "host_tool_result", "id": id}));
            frame(&pi, json!({"type": "host_uri_result", "id": id, "content": 5}));
        }
        frame(&pi, json!({"type": "host_tool_result"}));
    };
    strangers();
    pi.prompt("Go");
    let call = pi.wait("host_tool_call");
    strangers();
    // An answer of the wrong kind.
    frame(
        &pi,
        json!({"type": "host_uri_result", "id": call["id"], "content": "stranger"}),
    );
    answer(&pi, &call, "first");
    answer(&pi, &call, "second");
    frame(
        &pi,
        json!({"type": "host_tool_update", "id": call["id"], "partialResult": {"content": []}}),
    );
    pi.settled();
    assert_eq!(ends(&pi), [end("echo", false, "first")]);
    let lines = pi.lines();
    assert!(of_type(&lines, "tool_execution_update").is_empty());
    let answers = of_type(&lines, "response");
    assert_eq!(answers.len(), 2, "frames are not answered: {answers:?}");
    pi.finish();
}

#[test]
fn malformed_host_tool_result_keeps_call_open() {
    let world = calling(&["echo"]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    let call = pi.wait("host_tool_call");
    for result in [json!("text"), json!({}), json!({"content": "text"}), json!(null)] {
        frame(
            &pi,
            json!({"type": "host_tool_result", "id": call["id"], "result": result}),
        );
        let response = pi.wait("response");
        assert_eq!(
            (&response["command"], &response["success"]),
            (&json!("parse"), &json!(false))
        );
        assert!(response.get("id").is_none(), "{response}");
        let error = response["error"].as_str().unwrap();
        assert!(
            error.starts_with("Failed to parse command: host_tool_result "),
            "{error}"
        );
    }
    frame(
        &pi,
        json!({"type": "host_tool_update", "id": call["id"], "partialResult": {"content": 1}}),
    );
    assert_eq!(pi.wait("response")["command"], "parse");
    answer(&pi, &call, "at last");
    pi.settled();
    assert_eq!(ends(&pi), [end("echo", false, "at last")]);
    pi.finish();
}

#[test]
fn host_calls_run_concurrently() {
    let wait = "while [ ! -e go ]; do sleep 0.01; done; echo shell";
    let world = World::new([
        Reply::tool("a", "echo", json!({"message": "1"}))
            .then_tool("b", "echo", json!({"message": "2"}))
            .then_tool("c", "bash", json!({"command": wait})),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    let (first, second) = (pi.wait("host_tool_call"), pi.wait("host_tool_call"));
    assert_ne!(first["id"], second["id"]);
    answer(&pi, &second, "two");
    pi.wait("tool_execution_end");
    world.dir.write("go", "").unwrap();
    pi.wait("tool_execution_end");
    answer(&pi, &first, "one");
    pi.settled();
    assert_eq!(
        ends(&pi),
        [
            end("echo", false, "two"),
            end("bash", false, "shell\n"),
            end("echo", false, "one")
        ]
    );
    let results = pi.messages()[2..5].iter().map(text).collect::<Vec<_>>();
    assert_eq!(
        results,
        ["one", "two", "shell\n"],
        "messages keep the order of the calls"
    );
    pi.finish();
}

#[test]
fn host_tool_calls_over_limit_are_queued() {
    let names = ["echo"; 20];
    let world = calling(&names);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    for n in 0..20 {
        let call = pi.wait("host_tool_call");
        assert_eq!(call["toolCallId"], format!("c{n}"));
        if n == 15 {
            pi.state();
            assert_eq!(of_type(&pi.lines(), "host_tool_call").len(), 16);
        }
        if n >= 15 {
            let calls = pi.lines();
            answer(&pi, of_type(&calls, "host_tool_call")[n - 15], "ok");
        }
    }
    let calls = pi.lines();
    for call in &of_type(&calls, "host_tool_call")[5..] {
        answer(&pi, call, "ok");
    }
    pi.settled();
    assert_eq!(ends(&pi).len(), 20);
    pi.finish();
}

#[test]
fn host_tool_changes_apply_to_next_request_only() {
    let world = World::new([
        Reply::tool("c1", "old", json!({"message": "1"})),
        Reply::tool("c2", "old", json!({"message": "2"})).then_tool("c3", "new", json!({"message": "3"})),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    lend(&pi, json!([tool("old")]));
    pi.prompt("Go");
    let open = pi.wait("host_tool_call");
    assert_eq!(lend(&pi, json!([tool("new")])), json!(["new"]));
    answer(&pi, &open, "still counts");
    let call = pi.wait("host_tool_call");
    assert_eq!(call["toolName"], "new");
    answer(&pi, &call, "fresh");
    pi.settled();
    assert_eq!(
        ends(&pi),
        [
            end("old", false, "still counts"),
            end("old", true, "Tool old not found"),
            end("new", false, "fresh")
        ]
    );
    assert_eq!(told(&world, 0).last().unwrap(), "old");
    assert_eq!(told(&world, 1).last().unwrap(), "new");
    assert!(!told(&world, 1).contains(&"old".to_owned()));
    let system = world.server.requests()[1].body["system"].to_string();
    assert!(
        system.contains("- new: Does new") && !system.contains("- old:"),
        "{system}"
    );
    pi.finish();
}

#[test]
fn hidden_host_tools_are_inactive_unless_named() {
    let hidden = || {
        let mut hidden = tool("secret");
        hidden["hidden"] = true.into();
        hidden
    };
    for (flags, on) in [
        (vec![], false),
        (vec!["--tools", "read,secret"], true),
        (vec!["--tools", "read"], false),
        (vec!["--tools", "sec*", "--exclude-tools", "secret"], false),
    ] {
        let world = calling(&["secret"]);
        let pi = world.start_with(&flags);
        assert_eq!(
            lend(&pi, json!([hidden(), tool("open")])),
            json!(["secret", "open"])
        );
        pi.prompt("Go");
        if on {
            answer(&pi, &pi.wait("host_tool_call"), "whisper");
        }
        pi.settled();
        let said = if on { "whisper" } else { "Tool secret not found" };
        assert_eq!(ends(&pi), [end("secret", !on, said)], "{flags:?}");
        assert_eq!(told(&world, 0).contains(&"secret".to_owned()), on, "{flags:?}");
        assert!(told(&world, 0).contains(&"open".to_owned()), "{flags:?}");
        pi.finish();
    }
}

#[test]
fn remaining_host_tools_keep_their_active_state() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"]), Reply::text(["three"])]);
    let pi = world.start();
    let mut hidden = tool("a");
    hidden["hidden"] = true.into();
    lend(&pi, json!([hidden, tool("b")]));
    pi.say("One");
    assert_eq!(told(&world, 0).split_off(4), ["b"]);
    // A change of a hidden tool affects neither list.
    hidden["name"] = "b".into();
    lend(&pi, json!([tool("a"), hidden]));
    pi.say("Two");
    assert_eq!(told(&world, 1).split_off(4), ["b"]);
    // Gone and back again is new.
    lend(&pi, json!([]));
    lend(&pi, json!([tool("a")]));
    pi.say("Three");
    assert_eq!(told(&world, 2).split_off(4), ["a"]);
    pi.finish();
}

/// Waits for the cancel of a call, checks it, and answers the call all the same.
fn cancelled(pi: &Pi, call: &Value) {
    let cancel = pi.wait("host_tool_cancel");
    assert_eq!(cancel["targetId"], call["id"]);
    assert!(cancel["id"].is_string() && cancel["id"] != call["id"], "{cancel}");
    answer(pi, call, "too late");
}

#[test]
fn abort_cancels_open_host_calls() {
    let world = calling(&["echo", "echo"]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    let calls = [pi.wait("host_tool_call"), pi.wait("host_tool_call")];
    let abort = pi.send(json!({"type": "abort"}));
    for call in &calls {
        cancelled(&pi, call);
    }
    assert_eq!(pi.response(&abort)["success"], true);
    assert_eq!(
        ends(&pi),
        [
            end("echo", true, "Host tool \"echo\" was aborted"),
            end("echo", true, "Host tool \"echo\" was aborted")
        ]
    );
    assert_eq!(world.server.requests().len(), 1);
    pi.finish();
}

#[test]
fn abort_and_prompt_cancels_host_calls() {
    let world = calling(&["echo"]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    let call = pi.wait("host_tool_call");
    let id = pi.send(json!({"type": "abort_and_prompt", "message": "Instead"}));
    cancelled(&pi, &call);
    assert_eq!(pi.response(&id)["success"], true);
    pi.wait("agent_start");
    pi.settled();
    assert_eq!(ends(&pi), [end("echo", true, "Host tool \"echo\" was aborted")]);
    assert!(told(&world, 1).contains(&"echo".to_owned()));
    pi.finish();
}

#[test]
fn session_change_cancels_host_calls_keeping_tools() {
    let world = World::new([
        Reply::tool("c1", "echo", json!({"message": "1"})),
        Reply::tool("c2", "echo", json!({"message": "2"})),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    let call = pi.wait("host_tool_call");
    let first = pi.file();
    let id = pi.send(json!({"type": "new_session"}));
    cancelled(&pi, &call);
    assert_eq!(pi.response(&id)["data"]["cancelled"], false);
    pi.prompt("Once more");
    let call = pi.wait("host_tool_call");
    let id = pi.send(json!({"type": "switch_session", "sessionPath": first}));
    cancelled(&pi, &call);
    assert_eq!(pi.response(&id)["success"], true);
    let messages = pi.messages();
    assert_eq!(text(&messages[2]), "Host tool \"echo\" was aborted");
    pi.say("And here");
    assert!(told(&world, 2).contains(&"echo".to_owned()));
    pi.finish();
}

#[test]
fn immediate_steering_cancels_remaining_host_calls() {
    let world = calling(&["echo", "echo"]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.data(json!({"type": "set_interrupt_mode", "mode": "immediate"}));
    pi.prompt("Go");
    let calls = [pi.wait("host_tool_call"), pi.wait("host_tool_call")];
    pi.data(json!({"type": "steer", "message": "Hurry"}));
    answer(&pi, &calls[0], "quick");
    cancelled(&pi, &calls[1]);
    pi.settled();
    assert_eq!(
        ends(&pi),
        [
            end("echo", false, "quick"),
            end("echo", true, "Skipped due to queued user message.")
        ]
    );
    assert!(world.server.requests()[1].body.to_string().contains("Hurry"));
    pi.finish();
}

#[test]
fn waiting_steering_lets_host_calls_finish() {
    let world = calling(&["echo", "echo"]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    let calls = [pi.wait("host_tool_call"), pi.wait("host_tool_call")];
    pi.data(json!({"type": "steer", "message": "Hurry"}));
    answer(&pi, &calls[0], "one");
    answer(&pi, &calls[1], "two");
    pi.settled();
    assert_eq!(ends(&pi), [end("echo", false, "one"), end("echo", false, "two")]);
    assert!(of_type(&pi.lines(), "host_tool_cancel").is_empty());
    pi.finish();
}

#[test]
fn end_of_input_fails_and_stores_host_calls() {
    let world = calling(&["echo", "echo"]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    pi.wait("host_tool_call");
    pi.wait("host_tool_call");
    let file = pi.file();
    pi.agent.close_stdin();
    assert_eq!(
        pi.agent.wait_exit(LONG).unwrap().code(),
        Some(0),
        "{}",
        pi.agent.stderr()
    );
    pi.wait_ended();
    let gone = "RPC client disconnected before host tool execution completed";
    assert_eq!(ends(&pi), [end("echo", true, gone), end("echo", true, gone)]);
    assert!(of_type(&pi.lines(), "host_tool_cancel").is_empty());
    let written = std::fs::read_to_string(file).unwrap();
    assert_eq!(written.matches(gone).count(), 2, "{written}");
    assert_eq!(world.server.requests().len(), 1);
}

#[test]
fn host_result_before_disconnect_is_stored() {
    let world = calling(&["echo"]);
    let pi = world.start();
    lend(&pi, json!([tool("echo")]));
    pi.prompt("Go");
    let call = pi.wait("host_tool_call");
    let file = pi.file();
    answer(&pi, &call, "last words");
    pi.agent.close_stdin();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
    pi.wait_ended();
    assert_eq!(ends(&pi), [end("echo", false, "last words")]);
    assert!(std::fs::read_to_string(file).unwrap().contains("last words"));
}
