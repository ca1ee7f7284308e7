//! Conversations that change models (providers.md 2.2).

use std::sync::Arc;

use serde_json::{Value, json};
use wire::{Message, Model};

use super::requests::{build, with};
use super::{model, request};
use crate::ids;
use crate::request::ForeignThinking;
use crate::transform::transform;

fn given(messages: Value, target: &Model) -> Vec<Value> {
    given_with(messages, target, ForeignThinking::Text)
}

fn given_with(messages: Value, target: &Model, thinking: ForeignThinking) -> Vec<Value> {
    let messages: Vec<Arc<Message>> = serde_json::from_value(messages).unwrap();
    transform(&messages, target, thinking, &|id, _| ids::anthropic(id))
        .iter()
        .map(|message| serde_json::to_value(&**message).unwrap())
        .collect()
}

fn answer(model: &str, stop: &str, content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "p", "model": model, "stopReason": stop})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}, "thoughtSignature": "s"})
}

fn result(id: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": [{"type": "text", "text": "ok"}], "isError": false})
}

fn user() -> Value {
    json!({"role": "user", "content": "u"})
}

#[test]
fn reasoning_is_kept_only_for_same_model() {
    let content = json!([
        {"type": "thinking", "thinking": "", "thinkingSignature": "sig"},
        {"type": "thinking", "thinking": " "},
        {"type": "thinking", "thinking": "hidden", "thinkingSignature": "d", "redacted": true},
        {"type": "thinking", "thinking": "open"},
        {"type": "text", "text": "t", "textSignature": "x"},
    ]);
    let target = model("anthropic-messages");
    let home = given(json!([answer("m", "stop", content.clone())]), &target);
    let kept: Vec<usize> = [0, 2, 3, 4].into();
    let expected: Vec<Value> = kept.into_iter().map(|index| content[index].clone()).collect();
    assert_eq!(home[0]["content"], json!(expected));
    let abroad = |thinking| {
        given_with(
            json!([answer("other", "stop", content.clone())]),
            &target,
            thinking,
        )
    };
    let (open, text) = (
        json!({"type": "text", "text": "open"}),
        json!({"type": "text", "text": "t"}),
    );
    assert_eq!(
        abroad(ForeignThinking::Text)[0]["content"],
        json!([open, text.clone()])
    );
    assert_eq!(abroad(ForeignThinking::Omit)[0]["content"], json!([text]));
}

#[test]
fn every_call_is_followed_by_one_result() {
    let target = model("anthropic-messages");
    let messages = json!([
        answer("m", "toolUse", json!([call("a"), call("b")])),
        result("b"),
        result("b"),
        user(),
        result("a"),
        answer("m", "toolUse", json!([call("c")])),
    ]);
    let given = given(messages, &target);
    let shape: Vec<(&str, &str, bool)> = given
        .iter()
        .map(|message| {
            let id = message["toolCallId"].as_str().unwrap_or_default();
            (message["role"].as_str().unwrap(), id, message["isError"] == true)
        })
        .collect();
    assert_eq!(
        shape,
        [
            ("assistant", "", false),
            ("toolResult", "b", false),
            ("toolResult", "a", true),
            ("user", "", false),
            ("assistant", "", false),
            ("toolResult", "c", true),
        ]
    );
    assert_eq!(given[2]["content"][0]["text"], "No result provided");
}

#[test]
fn failed_answers_and_their_results_are_removed() {
    let target = model("anthropic-messages");
    for stop in ["error", "aborted"] {
        let messages = json!([user(), answer("m", stop, json!([call("a")])), result("a"), user()]);
        let roles: Vec<Value> = given(messages, &target)
            .iter()
            .map(|message| message["role"].clone())
            .collect();
        assert_eq!(roles, ["user", "user"]);
    }
}

#[test]
fn foreign_call_ids_change_with_their_results() {
    let target = model("anthropic-messages");
    let messages = json!([answer("other", "toolUse", json!([call("c|1")])), result("c|1")]);
    let out = given(messages.clone(), &target);
    assert_eq!(out[0]["content"][0]["id"], "c_1");
    assert!(out[0]["content"][0].get("thoughtSignature").is_none());
    assert_eq!(out[1]["toolCallId"], "c_1");
    let mut own = messages;
    own[0]["model"] = json!("m");
    assert_eq!(given(own, &target)[0]["content"][0]["id"], "c|1");
}

#[test]
fn reused_foreign_call_ids_become_unique() {
    // Servers number the calls of each answer anew.
    let turn = || [answer("other", "toolUse", json!([call("ls:0")])), result("ls:0")];
    let messages = [turn(), turn(), turn()].concat();
    let out = given(json!(messages), &model("anthropic-messages"));
    let ids: Vec<&str> = out
        .iter()
        .step_by(2)
        .map(|answer| answer["content"][0]["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids[0], "ls_0");
    assert!(
        ids[1] != ids[0] && ids[2] != ids[0] && ids[1] != ids[2],
        "{ids:?}"
    );
    for (id, result) in ids.iter().zip(out.iter().skip(1).step_by(2)) {
        assert_eq!(result["toolCallId"], *id);
        assert_eq!(result["content"][0]["text"], "ok");
    }
}

#[test]
fn own_call_keeps_result_despite_foreign_namesake() {
    let messages = json!([
        answer("other", "toolUse", json!([call("ls:0")])),
        result("ls:0"),
        answer("m", "toolUse", json!([call("ls:0")])),
        result("ls:0"),
    ]);
    let out = given(messages, &model("anthropic-messages"));
    assert_eq!(out.len(), 4);
    assert_eq!(out[3]["toolCallId"], "ls:0");
    assert_eq!(out[3]["content"][0]["text"], "ok");
}

#[test]
fn models_without_vision_get_image_placeholders() {
    let mut target = model("anthropic-messages");
    target.input.truncate(1);
    let image = json!({"type": "image", "data": "aa", "mimeType": "image/png"});
    let text = json!({"type": "text", "text": "t"});
    let messages = json!([
        {"role": "user", "content": [image, image, text, image]},
        answer("m", "toolUse", json!([call("a")])),
        {"role": "toolResult", "toolCallId": "a", "content": [image]},
    ]);
    let out = given(messages, &target);
    let hidden = json!({"type": "text", "text": "(image omitted: model does not support images)"});
    assert_eq!(out[0]["content"], json!([hidden, text, hidden]));
    assert_eq!(
        out[2]["content"][0]["text"],
        "(tool image omitted: model does not support images)"
    );
}

/// Claude refuses images in the result of a failed call.
#[test]
fn images_of_failed_calls_follow_all_results() {
    let image = json!({"type": "image", "data": "aa", "mimeType": "image/png"});
    for (api, id) in [
        ("anthropic-messages", "m"),
        ("bedrock-converse-stream", "us.anthropic.claude-x"),
    ] {
        let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "shot", "arguments": {}});
        let failed = json!({"role": "toolResult", "toolCallId": "a", "toolName": "shot", "isError": true,
            "content": [{"type": "text", "text": "Broken."}, image, image]});
        let messages = json!([
            {"role": "assistant", "content": [call("a"), call("b")], "api": api, "provider": "p", "model": id, "stopReason": "toolUse"},
            failed, {"role": "toolResult", "toolCallId": "b", "toolName": "shot", "content": [image]},
        ]);
        let mut request = request(with(api, json!({"id": id})));
        request.messages = serde_json::from_value(messages).unwrap();
        let body = build(&request).1;
        let content = body["messages"][1]["content"].as_array().unwrap();
        let first = content[0].to_string();
        assert!(
            first.contains("Broken.") && first.contains("follow"),
            "{api}: {first}"
        );
        assert!(!first.contains("\"aa\""), "{api}: {first}");
        assert!(
            content[1].to_string().contains("\"aa\""),
            "{api}: results without an error keep images"
        );
        assert!(content[2]["text"].as_str().unwrap().contains("a (shot)"), "{api}");
        let images = content
            .iter()
            .skip(3)
            .filter(|block| block.to_string().contains("\"aa\""));
        assert_eq!(images.count(), 2, "{api}");
    }
}
