//! What follows what in a run without trouble.

use serde_json::{Value, json};
use testkit::llm::{Before, Reply, Usage};

use crate::kit::{LONG, World, answers, bash, kinds, of_type, text};

#[test]
fn prompt_emits_events_in_order() {
    let world = World::new([Reply::text(["Hel", "lo"])]);
    let pi = world.start();
    let lines = pi.say("Hi");
    assert_eq!(
        kinds(&lines),
        [
            "response",
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
    assert_eq!(
        lines[4]["message"]["content"],
        json!([{"type": "text", "text": "Hi"}])
    );
    let answer = answers(&lines)[0];
    assert_eq!(text(answer), "Hello");
    assert_eq!(answer["stopReason"], "stop");
    assert_eq!(answer["usage"]["totalTokens"], 120);
    let cost = answer["usage"]["cost"]["total"].as_f64().unwrap();
    assert!((cost - 0.0006).abs() < 1e-9, "{cost}");
    let end = of_type(&lines, "agent_end")[0];
    assert_eq!(end["messages"], json!(pi.messages()));
    assert_eq!(end["willRetry"], false);
    pi.finish();
}

#[test]
fn cumulative_updates_contain_whole_message() {
    let world = World::new([Reply::new()
        .thinking(["a", "b"], "sig")
        .then_text(["one ", "two ", "three"])]);
    let pi = world.start();
    let lines = pi.say("Hi");
    let mut texts: Vec<String> = Vec::new();
    for line in of_type(&lines, "message_update") {
        let event = &line["assistantMessageEvent"];
        assert_eq!(event["partial"]["content"], line["message"]["content"]);
        if event["type"] == "text_delta" {
            texts.push(line["message"]["content"][1]["text"].as_str().unwrap().to_owned());
        }
    }
    assert!(
        texts.iter().all(|text| "one two three".starts_with(text)),
        "{texts:?}"
    );
    assert_eq!(texts.last().unwrap(), "one two three");
    assert_eq!(answers(&lines)[0]["content"][0]["thinkingSignature"], "sig");
    pi.finish();
}

#[test]
fn delta_updates_contain_only_new_text() {
    let world = World::new([Reply::text_deltas(50, 20)]);
    let pi = world.start_with(&["--rpc-dialect", "pi-delta"]);
    let lines = pi.say("Hi");
    let updates = of_type(&lines, "message_update");
    assert!(!updates.is_empty());
    assert!(
        updates
            .iter()
            .all(|line| line["assistantMessageEvent"].get("partial").is_none())
    );
    let deltas: String = updates
        .iter()
        .filter_map(|line| line["assistantMessageEvent"]["delta"].as_str())
        .collect();
    assert_eq!(deltas, text(answers(&lines)[0]));
    pi.finish();
}

#[test]
fn tool_turn_emits_events_in_order() {
    let world = World::new([
        Reply::text(["I look."]).then_tool("call_1", "bash", json!({"command": "echo out; exit 3"})),
        Reply::text(["Done."]),
    ]);
    let pi = world.start();
    let lines = pi.say("Do");
    assert_eq!(
        kinds(&lines)[5..],
        [
            "message_start",
            "message_end",
            "tool_execution_start",
            "tool_execution_end",
            "message_start",
            "message_end",
            "turn_end",
            "turn_start",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
    let end = of_type(&lines, "tool_execution_end")[0];
    assert_eq!(end["isError"], true);
    assert!(
        end["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("out"),
        "{end}"
    );
    assert!(
        end["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("exited with code 3"),
        "{end}"
    );
    assert_eq!(
        of_type(&lines, "turn_end")[0]["toolResults"][0]["toolCallId"],
        "call_1"
    );
    let told = world.server.requests()[1].body.to_string();
    assert!(
        told.contains("tool_result") && told.contains("exited with code 3"),
        "{told}"
    );
    pi.finish();
}

#[test]
fn parallel_tools_end_independently_with_ordered_results() {
    let slow = "while [ ! -e go ]; do sleep 0.01; done";
    let world = World::new([
        Reply::tool("slow", "bash", json!({ "command": slow }))
            .then_tool("unknown", "no_such_tool", json!({}))
            .then_tool("fast", "bash", json!({"command": "true"})),
        Reply::text(["Done."]),
    ]);
    let pi = world.start();
    pi.prompt("Do");
    pi.agent
        .wait(
            |line| line["type"] == "tool_execution_end" && line["toolCallId"] == "fast",
            LONG,
        )
        .unwrap();
    world.dir.write("go", "").unwrap();
    pi.settled();
    let lines = pi.lines();
    let ids = |kind| {
        of_type(&lines, kind)
            .into_iter()
            .map(|line| line["toolCallId"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("tool_execution_start"), ["slow", "unknown", "fast"]);
    assert_eq!(ids("tool_execution_end"), ["unknown", "fast", "slow"]);
    let results = of_type(&lines, "turn_end")[0]["toolResults"].clone();
    let order: Vec<&Value> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| &result["toolCallId"])
        .collect();
    assert_eq!(order, ["slow", "unknown", "fast"]);
    pi.finish();
}

#[test]
fn newest_omp_gets_results_as_calls_end() {
    let slow = "while [ ! -e go ]; do sleep 0.01; done";
    let world = World::new([
        Reply::tool("slow", "bash", json!({ "command": slow }))
            .then_tool("unknown", "no_such_tool", json!({}))
            .then_tool("fast", "bash", json!({"command": "true"})),
        Reply::text(["Done."]),
    ]);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    pi.data(json!({"type": "prompt", "message": "Do"}));
    // The slow call still runs.
    pi.agent
        .wait(
            |line| line["type"] == "message_end" && line["message"]["toolCallId"] == "fast",
            LONG,
        )
        .unwrap();
    world.dir.write("go", "").unwrap();
    pi.wait("session_settled");
    let ids = |messages: &[Value], member: &str| -> Vec<Value> {
        let ids = messages.iter().map(|message| message[member].clone());
        ids.filter(|id| !id.is_null()).collect()
    };
    let order = ["unknown", "fast", "slow"];
    let lines = pi.lines();
    let told = of_type(&lines, "message_end");
    let told: Vec<Value> = told.iter().map(|line| line["message"].clone()).collect();
    assert_eq!(ids(&told, "toolCallId"), order);
    let of_turn = of_type(&lines, "turn_end")[0]["toolResults"].clone();
    assert_eq!(ids(of_turn.as_array().unwrap(), "toolCallId"), order);
    assert_eq!(ids(&pi.messages(), "toolCallId"), order);
    let sent = world.server.requests()[1].body["messages"][2]["content"].clone();
    assert_eq!(
        ids(sent.as_array().unwrap(), "tool_use_id"),
        ["slow", "unknown", "fast"],
        "the provider gets them in the order of the calls"
    );
    pi.finish();
}

#[test]
fn prompt_is_acknowledged_before_provider_responds() {
    let gate = Before {
        gate: Some("head".into()),
        ..Before::default()
    };
    let world = World::new([Reply::text(["ok"]).before(gate)]);
    let pi = world.start();
    pi.prompt("Hi");
    pi.wait("turn_start");
    assert_eq!(pi.state()["isStreaming"], true);
    let kinds_so_far = pi.lines();
    let at = |kind: &str| kinds(&kinds_so_far).iter().position(|k| *k == kind).unwrap();
    assert!(at("response") < at("agent_start"));
    world.server.wait_gate("head", LONG).unwrap();
    world.server.release("head");
    pi.settled();
    pi.finish();
}

#[test]
fn prompt_images_reach_the_model() {
    let world = World::new([Reply::text(["nice"]), Reply::text(["nice"])]);
    let pi = world.start();
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    pi.data(json!({"type": "prompt", "message": "Look", "images": [image]}));
    pi.settled();
    let sent = &world.server.requests()[0].body["messages"][0]["content"];
    assert_eq!(sent[0]["text"], "Look");
    assert_eq!(sent[1]["source"]["data"], PIXEL);
    assert_eq!(sent[1]["source"]["media_type"], "image/png");
    assert_eq!(pi.messages()[0]["content"][1], image);
    let nested =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}});
    pi.data(json!({"type": "prompt", "message": "Look", "images": [nested]}));
    pi.settled();
    assert_eq!(
        world.server.requests()[1].body["messages"][2]["content"][1]["source"]["data"],
        PIXEL
    );
    let refused = pi
        .error(json!({"type": "prompt", "message": "Look", "images": [{"url": "http://example.com/a.png"}]}));
    assert!(refused.contains("prompt"), "{refused}");
    pi.finish();
}

#[test]
fn model_without_vision_gets_no_images() {
    let world = World::new([Reply::text(["?"])]);
    let pi = world.start_with(&["--model", "claude-plain"]);
    pi.data(json!({"type": "prompt", "message": "Look", "images": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}));
    pi.settled();
    let body = world.server.requests()[0].body.to_string();
    assert!(!body.contains(PIXEL) && body.contains("image omitted"), "{body}");
    pi.finish();
}

#[test]
fn conversation_accumulates_messages_and_usage() {
    let usage = Usage {
        input: 10,
        output: 5,
        cache_read: 7,
        cache_write: 3,
        thinking: 0,
    };
    let world = World::new([
        Reply::text(["one"]).usage(usage),
        bash("c", "true"),
        Reply::text(["two"]),
    ]);
    let pi = world.start();
    pi.say("First");
    pi.say("Second");
    let roles: Vec<Value> = pi
        .messages()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "user",
            "assistant",
            "toolResult",
            "assistant"
        ]
    );
    let told = world.server.requests()[2].body["messages"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(told, 5);
    let stats = pi.get("get_session_stats");
    assert_eq!(stats["userMessages"], 2);
    assert_eq!(stats["assistantMessages"], 3);
    assert_eq!(stats["toolCalls"], 1);
    assert_eq!(stats["toolResults"], 1);
    assert_eq!(stats["totalMessages"], 6);
    assert_eq!(stats["tokens"]["input"], 210);
    assert_eq!(stats["tokens"]["cacheRead"], 7);
    assert_eq!(stats["tokens"]["cacheWrite"], 3);
    assert_eq!(stats["tokens"]["total"], 265);
    assert_eq!(pi.get("get_last_assistant_text")["text"], "two");
    pi.finish();
}

#[test]
fn chat_completions_turns_have_same_events() {
    let world = World::new([
        Reply::text(["I look."]).then_tool("call_1", "read", json!({"path": "a.txt"})),
        Reply::text(["It says ", "hello."]),
    ]);
    world.dir.write("a.txt", "hello").unwrap();
    let pi = world.start_openai();
    let lines = pi.say("Read a.txt");
    assert_eq!(
        of_type(&lines, "tool_execution_end")[0]["result"]["content"][0]["text"],
        "hello"
    );
    assert_eq!(text(answers(&lines)[1]), "It says hello.");
    let told = &world.server.requests()[1].body["messages"];
    assert!(
        told.as_array()
            .unwrap()
            .iter()
            .any(|message| message["role"] == "tool" && message["content"] == "hello")
    );
    pi.finish();
}

/// A PNG of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn failing_bash_reports_its_output_first() {
    let world = World::new([
        bash("toolu_1", "echo out; exit 3"),
        bash("toolu_2", "exit 4"),
        Reply::text(["Done."]),
    ]);
    let pi = world.start();
    let lines = pi.say("Run");
    let shown = |kind: &str, member: &str, id: &str| -> Vec<Value> {
        let lines = of_type(&lines, kind).into_iter();
        let own = lines.filter(|line| line["toolCallId"] == id);
        own.map(|line| line[member].clone()).collect()
    };
    // As recorded from pi 0.74.2: an empty update at the start, and the output before the result.
    let updates = shown("tool_execution_update", "partialResult", "toolu_1");
    assert_eq!(updates[0], json!({"content": []}));
    assert_eq!(
        updates.last().unwrap()["content"],
        json!([{"type": "text", "text": "out\n"}])
    );
    let updates = shown("tool_execution_update", "partialResult", "toolu_2");
    assert_eq!(updates, [json!({"content": []})], "a command without output");
    let results = [
        ("toolu_1", "out\n\n\nCommand exited with code 3"),
        ("toolu_2", "(no output)\n\nCommand exited with code 4"),
    ];
    for (id, expected) in results {
        assert_eq!(shown("tool_execution_end", "isError", id), [json!(true)]);
        let content = json!([{"type": "text", "text": expected}]);
        assert_eq!(shown("tool_execution_end", "result", id)[0]["content"], content);
    }
    pi.finish();
}
