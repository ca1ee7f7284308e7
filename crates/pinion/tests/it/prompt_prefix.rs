//! A provider's prompt cache covers the beginning of a request. Over 50 turns with tools, every API family sends the request
//! before unchanged at the beginning of the next one. Only the cache marks move, to the places that
//! `docs/internals/specifications/providers.md` (3, 4 and 8) names.

use serde_json::{Value, json};
use testkit::llm::{FAMILIES, Reply, Request};

use crate::families::start_with_model;
use crate::kit::World;

/// Requests of a run.
const TURNS: u64 = 50;

/// Requests of a prompt.
const TURNS_OF_PROMPT: u64 = 10;

/// A PNG of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Answers request `n`: reasoning, texts, single and parallel calls, failing calls, an image.
fn reply(request: &Request) -> Reply {
    let n = request.n;
    // Nine letters and digits, which every family takes.
    let id = |call: u64| format!("call{n:04}{call}");
    let bash = |command: &str| json!({ "command": command });
    match n % TURNS_OF_PROMPT {
        0 => Reply::new()
            .thinking(["Let me ", "see."], "c2ln")
            .then_text(["I list the files."])
            .then_tool(id(0), "bash", bash("ls")),
        1 => Reply::tool(
            id(0),
            "write",
            json!({"path": "notes.txt", "content": format!("line {n}\nnext line\n")}),
        ),
        2 => Reply::tool(id(0), "read", json!({"path": "notes.txt"})),
        3 => Reply::tool(
            id(0),
            "edit",
            json!({"path": "notes.txt", "edits": [{"oldText": "next", "newText": "Nächste\t"}]}),
        ),
        4 => Reply::tool(id(0), "read", json!({"path": "pixel.png"}))
            .then_tool(id(1), "bash", bash("echo 1.50 1e3"))
            .then_tool(id(2), "bash", bash("echo wrong >&2; exit 3")),
        5 => Reply::tool(id(0), "edit", json!({"path": "notes.txt"})),
        6 => Reply::tool(id(0), "no_such_tool", json!({"b": 1.0, "a": [1e3, null]})),
        7 => Reply::new()
            .thinking(["Without a text."], "c2ln")
            .then_tool(id(0), "bash", bash("true")),
        8 => Reply::text(["  "]).then_tool(id(0), "bash", bash("printf '\\342\\200\\250'")),
        _ => Reply::new()
            .thinking(["Done."], "c2ln")
            .then_text(["It is ", "done."]),
    }
}

/// The member with the conversation.
fn conversation_name(body: &Value) -> &'static str {
    let names = ["messages", "input", "contents"];
    names.into_iter().find(|name| body.get(name).is_some()).unwrap()
}

/// Removes cache marks from a value and adds their places to `places`.
fn without_marks(value: &Value, place: &str, places: &mut Vec<String>) -> Value {
    match value {
        Value::Object(members) => {
            let marked = members.contains_key("cache_control");
            places.extend(marked.then(|| place.to_owned()));
            let members = members.iter().filter(|(name, _)| *name != "cache_control");
            let plain: serde_json::Map<String, Value> = members
                .map(|(name, member)| {
                    (
                        name.clone(),
                        without_marks(member, &format!("{place}/{name}"), places),
                    )
                })
                .collect();
            Value::Object(plain)
        }
        Value::Array(items) => {
            let mut plain = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let place = format!("{place}/{index}");
                if item.get("cachePoint").is_some() {
                    places.push(place);
                } else {
                    plain.push(without_marks(item, &place, places));
                }
            }
            Value::Array(plain)
        }
        other => other.clone(),
    }
}

/// Writes texts that are alone in a message of chat completions as strings: only a text in an array can have a mark.
fn with_strings(body: &mut Value) {
    for message in body["messages"].as_array_mut().unwrap() {
        if let Some([only]) = message["content"].as_array().map(Vec::as_slice)
            && only["type"] == "text"
        {
            message["content"] = only["text"].clone();
        }
    }
}

/// The place of the last item of an array below `place`.
fn last(body: &Value, place: &str) -> String {
    let items = body.pointer(place).and_then(Value::as_array);
    format!("{place}/{}", items.unwrap().len() - 1)
}

/// Where the marks of a request belong.
fn documented_marks(body: &Value, api: &str) -> Vec<String> {
    let message = last(body, "/messages");
    match api {
        "anthropic-messages" => vec![
            last(body, &format!("{message}/content")),
            last(body, "/system"),
            last(body, "/tools"),
        ],
        "openai-completions" => {
            let messages = body["messages"].as_array().unwrap();
            let has_text = |message: &Value| {
                let markable = ["user", "assistant", "tool"].contains(&message["role"].as_str().unwrap());
                markable && message["content"].to_string().contains("\"text\"")
            };
            let spoken = messages.iter().rposition(has_text).unwrap();
            let parts = messages[spoken]["content"].as_array().unwrap();
            let text = parts.iter().rposition(|part| part["type"] == "text").unwrap();
            vec![
                format!("/messages/{spoken}/content/{text}"),
                last(body, "/messages/0/content"),
                last(body, "/tools"),
            ]
        }
        _ => vec![last(body, &format!("{message}/content")), last(body, "/system")],
    }
}

/// Runs the turns and returns the bodies of the requests.
fn bodies(api: &str, path: &str, model: &Value) -> Vec<Value> {
    let world = World::new([]);
    world.server.set_rule(reply);
    std::fs::write(world.dir.cwd().join("AGENTS.md"), "Be brief.\n").unwrap();
    let pi = start_with_model(&world, api, path, model);
    pi.data(json!({"type": "bash", "command": format!("echo {PIXEL} | base64 -d > pixel.png")}));
    for prompt in 0..TURNS / TURNS_OF_PROMPT {
        pi.say(&format!("Prompt {prompt}"));
        // The model gets its output with the next prompt.
        pi.data(json!({"type": "bash", "command": format!("echo {prompt}")}));
    }
    pi.finish();
    let requests = world.server.requests();
    requests.iter().map(|request| request.body.clone()).collect()
}

fn keeps_prefix(api: &str, fields: &Value, has_marks: bool) {
    let (_, path) = FAMILIES.iter().find(|(name, _)| *name == api).unwrap();
    let mut model = json!({"id": "mock", "name": "Mock", "reasoning": true, "input": ["text", "image"],
        "contextWindow": 2_000_000, "maxTokens": 32_000});
    for (name, value) in fields.as_object().unwrap() {
        model[name] = value.clone();
    }
    let mut before: Option<Value> = None;
    let bodies = bodies(api, path, &model);
    assert_eq!(u64::try_from(bodies.len()).unwrap(), TURNS, "{api}");
    for (n, body) in bodies.iter().enumerate() {
        let mut marks = Vec::new();
        let mut rest = without_marks(body, "", &mut marks);
        marks.sort();
        if has_marks && api == "openai-completions" {
            with_strings(&mut rest);
        }
        if has_marks {
            let mut documented = documented_marks(body, api);
            documented.sort();
            assert_eq!(marks, documented, "{api}: marks of request {n}");
        } else {
            assert_eq!(marks, [""; 0], "{api}: marks of request {n}");
        }
        if let Some(mut earlier) = before.replace(rest.clone()) {
            let name = conversation_name(body);
            let (now, then) = (rest[name].take(), earlier[name].take());
            assert_eq!(rest.to_string(), earlier.to_string(), "{api}: request {n}");
            let (now, then) = (now.as_array().unwrap(), then.as_array().unwrap());
            assert!(now.len() > then.len(), "{api}: request {n} adds nothing");
            for (index, (now, then)) in now.iter().zip(then).enumerate() {
                assert_eq!(
                    now.to_string(),
                    then.to_string(),
                    "{api}: request {n}, item {index}"
                );
            }
        }
    }
}

macro_rules! keeps_prefix {
    ($($name:ident $api:literal $fields:tt $marks:literal)*) => {$(
        #[test]
        fn $name() {
            keeps_prefix($api, &json!($fields), $marks);
        }
    )*};
}

keeps_prefix! {
    anthropic_keeps_prefix_over_fifty_turns "anthropic-messages" {} true
    completions_keeps_prefix_over_fifty_turns "openai-completions" {} false
    marked_completions_keep_prefix_over_fifty_turns "openai-completions" {"compat": {"cacheControlFormat": "anthropic"}} true
    responses_keeps_prefix_over_fifty_turns "openai-responses" {} false
    azure_keeps_prefix_over_fifty_turns "azure-openai-responses" {} false
    google_keeps_prefix_over_fifty_turns "google-generative-ai" {} false
    mistral_keeps_prefix_over_fifty_turns "mistral-conversations" {} false
    bedrock_keeps_prefix_over_fifty_turns "bedrock-converse-stream" {"id": "anthropic.claude-sonnet-4-5"} true
    vertex_keeps_prefix_over_fifty_turns "google-vertex" {} false
    codex_keeps_prefix_over_fifty_turns "openai-codex-responses" {} false
}
