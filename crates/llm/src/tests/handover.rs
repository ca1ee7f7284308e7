//! Conversations that continue with another model: every family to every family (providers.md 2.2). A table of
//! conversations meets a table of targets; the result is read back from the target's request body.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wire::Message;

use super::families::voices::VOICES;
use super::requests::build;
use super::{model, request};
use crate::family::supports;

/// Words that must reach every target, or none.
const SECRET: &str = "SIGNATUREzzzz";
const REDACTED: &str = "UkVEQUNURUR6eno=";
const FAILED: &str = "FAILEDzzz";
const ORPHAN: &str = "ORPHANzzz";
const IMAGE: &str = "SU1BR0V6eno=";

/// A part of a request, in the form of any family.
#[derive(Debug, Clone, PartialEq)]
enum Item {
    /// Who, and what.
    Text(&'static str, String),
    Image,
    /// Reasoning that goes back as such.
    Thought(String),
    /// Id (empty where the family has none) and name.
    Call(String, String),
    /// Id, text.
    Result(String, String),
}

/// Ids as the families make them, and odd ones.
fn id_of(api: &str, number: usize) -> String {
    match api {
        "openai-responses" | "azure-openai-responses" | "openai-codex-responses" => {
            format!("call_{number}|fc_item_{number}")
        }
        "google-generative-ai" | "google-vertex" => format!("read_1700000000000_{number}"),
        "mistral-conversations" => format!("abcdefgh{number}"),
        "anthropic-messages" | "bedrock-converse-stream" => format!("toolu_01{number}"),
        "odd" => format!("{}|{}/é {number}", "x".repeat(90), "y".repeat(400)),
        _ => format!("call_{number}"),
    }
}

/// What a model of a family left behind: everything it can, and everything that can go wrong.
fn history(api: &str, named: &str) -> Value {
    let id = |number| id_of(api, number);
    let signature = if api.contains("responses") {
        format!(
            "{{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"{SECRET}\",\"summary\":[]}}"
        )
    } else if api.starts_with("google") {
        "U0lHTkFUVVJFenp6eg==".to_owned()
    } else if api == "openai-completions" {
        "reasoning_content".to_owned()
    } else {
        SECRET.to_owned()
    };
    let answer = |stop: &str, content: Value| json!({"role": "assistant", "content": content, "api": api, "provider": "p", "model": named, "stopReason": stop});
    let call = |number: usize| json!({"type": "toolCall", "id": id(number), "name": "read", "arguments": {"path": "a.txt"}, "thoughtSignature": signature});
    let result = |number: usize, text: &str| {
        json!({"role": "toolResult", "toolCallId": id(number), "toolName": "read", "isError": false,
            "content": [{"type": "text", "text": text}]})
    };
    let image = json!({"type": "image", "data": IMAGE, "mimeType": "image/png"});
    let text_signature = json!({"v": 1, "id": format!("msg_{SECRET}")}).to_string();
    json!([
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
        answer("toolUse", json!([
            {"type": "thinking", "thinking": "signed thought", "thinkingSignature": signature},
            {"type": "thinking", "thinking": "plain thought"},
            {"type": "thinking", "thinking": "", "thinkingSignature": signature},
            {"type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": REDACTED, "redacted": true},
            {"type": "text", "text": "text one", "textSignature": text_signature},
            {"type": "text", "text": "  "},
            {"type": "text", "text": "text two"},
            call(1), call(2), call(3),
        ])),
        // In another order, one twice, one missing.
        result(2, "result two"), result(1, "result one"), result(1, "again"),
        {"role": "user", "content": "go on"},
        answer("error", json!([{"type": "text", "text": FAILED}, call(4)])),
        result(4, ORPHAN),
        {"role": "user", "content": "and on"},
        answer("aborted", json!([{"type": "thinking", "thinking": FAILED, "thinkingSignature": SECRET}, call(5)])),
        result(5, ORPHAN),
        result(9, ORPHAN),
        answer("toolUse", json!([call(6)])),
        {"role": "toolResult", "toolCallId": id(6), "toolName": "read", "isError": true, "content": [image]},
        answer("stop", json!([{"type": "text", "text": "fine"}])),
        {"role": "user", "content": "the end"},
    ])
}

fn word<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value
        .pointer(path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Reads a request body back.
fn read(api: &str, body: &Value) -> Vec<Item> {
    let mut out = Vec::new();
    match api {
        "anthropic-messages" => list(body, "/messages")
            .iter()
            .for_each(|turn| anthropic(turn, &mut out)),
        "bedrock-converse-stream" => list(body, "/messages")
            .iter()
            .for_each(|turn| bedrock(turn, &mut out)),
        "openai-completions" | "mistral-conversations" => {
            list(body, "/messages")
                .iter()
                .for_each(|turn| chat(turn, &mut out));
        }
        "google-generative-ai" | "google-vertex" => {
            list(body, "/contents")
                .iter()
                .for_each(|turn| google(turn, &mut out));
        }
        _ => list(body, "/input")
            .iter()
            .for_each(|item| responses(item, &mut out)),
    }
    out
}

fn who(turn: &Value) -> &'static str {
    match word(turn, "/role") {
        "user" => "user",
        "assistant" | "model" => "model",
        _ => "other",
    }
}

fn anthropic(turn: &Value, out: &mut Vec<Item>) {
    for block in list(turn, "/content") {
        out.push(match word(block, "/type") {
            "text" => Item::Text(who(turn), word(block, "/text").to_owned()),
            "thinking" => Item::Thought(word(block, "/thinking").to_owned()),
            "redacted_thinking" => Item::Thought("redacted".to_owned()),
            "tool_use" => Item::Call(word(block, "/id").to_owned(), word(block, "/name").to_owned()),
            "tool_result" => {
                let text = block["content"].to_string();
                Item::Result(word(block, "/tool_use_id").to_owned(), text)
            }
            _ => Item::Image,
        });
    }
}

fn bedrock(turn: &Value, out: &mut Vec<Item>) {
    for block in list(turn, "/content") {
        if block.get("text").is_some() {
            out.push(Item::Text(who(turn), word(block, "/text").to_owned()));
        } else if block.get("toolUse").is_some() {
            out.push(Item::Call(
                word(block, "/toolUse/toolUseId").to_owned(),
                word(block, "/toolUse/name").to_owned(),
            ));
        } else if block.get("toolResult").is_some() {
            let text = block["toolResult"]["content"].to_string();
            out.push(Item::Result(
                word(block, "/toolResult/toolUseId").to_owned(),
                text,
            ));
        } else if block.get("reasoningContent").is_some() {
            out.push(Item::Thought(
                word(block, "/reasoningContent/reasoningText/text").to_owned(),
            ));
        } else if block.get("image").is_some() {
            out.push(Item::Image);
        }
    }
}

fn chat(turn: &Value, out: &mut Vec<Item>) {
    if word(turn, "/role") == "tool" {
        out.push(Item::Result(
            word(turn, "/tool_call_id").to_owned(),
            turn["content"].to_string(),
        ));
        return;
    }
    if turn.get("reasoning_content").is_some_and(|text| text != "") {
        out.push(Item::Thought(word(turn, "/reasoning_content").to_owned()));
    }
    if let Some(text) = turn["content"].as_str() {
        out.push(Item::Text(who(turn), text.to_owned()));
    }
    for part in list(turn, "/content") {
        out.push(match word(part, "/type") {
            "text" => Item::Text(who(turn), word(part, "/text").to_owned()),
            "thinking" => Item::Thought(word(part, "/thinking/0/text").to_owned()),
            _ => Item::Image,
        });
    }
    for call in list(turn, "/tool_calls") {
        out.push(Item::Call(
            word(call, "/id").to_owned(),
            word(call, "/function/name").to_owned(),
        ));
    }
}

fn responses(item: &Value, out: &mut Vec<Item>) {
    match word(item, "/type") {
        "reasoning" => out.push(Item::Thought(word(item, "/id").to_owned())),
        "function_call" => out.push(Item::Call(
            word(item, "/call_id").to_owned(),
            word(item, "/name").to_owned(),
        )),
        "function_call_output" => {
            out.push(Item::Result(
                word(item, "/call_id").to_owned(),
                item["output"].to_string(),
            ));
        }
        _ => {
            for part in list(item, "/content") {
                out.push(match word(part, "/type") {
                    "input_image" => Item::Image,
                    _ => Item::Text(who(item), word(part, "/text").to_owned()),
                });
            }
        }
    }
}

fn google(turn: &Value, out: &mut Vec<Item>) {
    for part in list(turn, "/parts") {
        if part.get("functionCall").is_some() {
            out.push(Item::Call(
                word(part, "/functionCall/id").to_owned(),
                word(part, "/functionCall/name").to_owned(),
            ));
        } else if part.get("functionResponse").is_some() {
            let text = part["functionResponse"].to_string();
            out.push(Item::Result(word(part, "/functionResponse/id").to_owned(), text));
        } else if part["thought"] == true {
            out.push(Item::Thought(word(part, "/text").to_owned()));
        } else if part.get("inlineData").is_some() {
            out.push(Item::Image);
        } else {
            out.push(Item::Text(who(turn), word(part, "/text").to_owned()));
        }
    }
}

/// Returns true if a target accepts such an id.
fn takes(api: &str, id: &str) -> bool {
    let plain = |id: &str| {
        id.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    match api {
        "openai-completions" => plain(id) && id.len() <= 40,
        "mistral-conversations" => id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
        "google-generative-ai" | "google-vertex" => id.is_empty(),
        _ => plain(id) && !id.is_empty() && id.len() <= 64,
    }
}

/// Every call is answered once, right behind its answer, under its own id, and nothing else is.
fn pairs(items: &[Item]) -> Result<(), String> {
    let mut open: Vec<(String, String)> = Vec::new();
    let mut answered = 0;
    for item in items {
        match item {
            Item::Call(id, name) => open.push((id.clone(), name.clone())),
            Item::Result(id, text) => {
                let Some(at) = open.iter().position(|(call, _)| call == id) else {
                    return Err(format!("{id} answers nothing: {text}"));
                };
                open.remove(at);
                answered += 1;
            }
            Item::Image => {}
            // The images of results follow in a message of their own.
            Item::Text(_, text)
                if text.starts_with("Attached image") || text.starts_with("Tool result image") => {}
            Item::Text(..) | Item::Thought(_) if open.is_empty() => {}
            Item::Text("model", _) | Item::Thought(_) => {}
            Item::Text(..) => return Err(format!("{open:?} are open when the user speaks")),
        }
    }
    match (open.len(), answered) {
        (0, 4) => Ok(()),
        other => Err(format!("open and answered calls: {other:?}")),
    }
}

/// Returns the errors of one field of the table: a request to `api` with a conversation of `from`.
fn faults(from: &str, api: &str, home: bool, sighted: bool) -> Vec<String> {
    let mut target = model(api);
    if !sighted {
        target.input.truncate(1);
    }
    let mut request = request(target);
    let named = if home { "m" } else { "another" };
    request.messages = serde_json::from_value::<Vec<Arc<Message>>>(history(from, named)).unwrap();
    let body = build(&request).1;
    let text = body.to_string();
    let items = read(api, &body);
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    let texts: String = items
        .iter()
        .map(|item| match item {
            Item::Text(_, text) => format!("[{text}]"),
            _ => String::new(),
        })
        .collect();
    for said in ["look", "go on", "and on", "the end", "fine"] {
        check(
            texts.contains(&format!("[{said}]")),
            &format!("{said} is missing"),
        );
    }
    check(
        texts.contains("text one") && texts.contains("text two"),
        "the text is missing",
    );
    check(!text.contains(FAILED), "a failed answer is sent");
    check(!text.contains(ORPHAN), "a result without a call is sent");
    for result in ["result one", "result two", "No result provided"] {
        let count = items
            .iter()
            .filter(|item| matches!(item, Item::Result(_, text) if text.contains(result)))
            .count();
        check(count == 1, &format!("{result} comes {count} times"));
    }
    check(!text.contains("again"), "a second result is sent");
    if let Err(why) = pairs(&items) {
        check(false, &why);
    }
    for item in &items {
        if let Item::Call(id, name) = item {
            check(home || takes(api, id), &format!("the id {id} is not taken"));
            check(name == "read", "the name is another");
        }
    }
    let thoughts: Vec<&Item> = items
        .iter()
        .filter(|item| matches!(item, Item::Thought(_)))
        .collect();
    if home {
        check(
            api.contains("responses") || text.contains("signed thought"),
            "its own reasoning is missing",
        );
        check(
            api.starts_with("anthropic") == text.contains(REDACTED) || !api.starts_with("anthropic"),
            "redacted",
        );
        check(
            !thoughts.is_empty(),
            "its own reasoning is not reasoning any more",
        );
    } else {
        check(
            thoughts.is_empty(),
            &format!("foreign reasoning as reasoning: {thoughts:?}"),
        );
        check(
            texts.contains("signed thought") && texts.contains("plain thought"),
            "foreign reasoning is no text",
        );
        check(
            !text.contains("Reasoning redacted") && !text.contains(REDACTED),
            "redacted reasoning is sent",
        );
        check(
            !text.contains(SECRET) && !text.contains("U0lHTkFUVVJF"),
            "a foreign signature is sent",
        );
    }
    check(text.contains(IMAGE) == sighted, "images");
    check(
        text.contains("image omitted: model does not support images") != sighted,
        "placeholder of an image",
    );
    check(
        text.contains("(tool image omitted: model does not support images)") != sighted,
        "placeholder of a tool's image",
    );
    wrong
}

/// Returns the errors of conversations of every family that continue with one: the fields of its column, by name.
pub(super) fn wrong_at(api: &str) -> BTreeMap<String, Vec<String>> {
    let sources = VOICES.iter().map(|voice| voice.api).chain(["odd"]);
    let mut table = BTreeMap::new();
    for from in sources {
        for (how, home, sighted) in [
            ("another model", false, true),
            ("blind", false, false),
            ("at home", true, true),
        ] {
            if home && from != api {
                continue;
            }
            let wrong = faults(from, api, home, sighted);
            if !wrong.is_empty() {
                table.insert(format!("{from} -> {api} ({how})"), wrong);
            }
        }
    }
    table
}

/// Rows: who had the conversation. Columns: who goes on with it.
#[test]
fn every_family_continues_conversations_of_others() {
    let targets = VOICES.iter().map(|voice| voice.api).filter(|api| supports(api));
    let shown: Vec<String> = targets
        .flat_map(wrong_at)
        .map(|(field, wrong)| format!("{field}:\n    {}", wrong.join("\n    ")))
        .collect();
    assert!(shown.is_empty(), "\n{}\n", shown.join("\n"));
}
