//! Counts and estimates: the same over messages as over entries.

use std::sync::Arc;

use pinion_agent::compaction;
use pinion_agent::stats::{self, count, estimate, weight};
use serde_json::{Value, json};
use wire::{EntryBody, Message};

use crate::common::{Branch, call, long};

fn message(json: Value) -> Message {
    Message::from_json(&json.to_string()).unwrap()
}

/// The messages of a branch that has only message entries.
fn messages(branch: &Branch) -> Vec<Arc<Message>> {
    let messages = branch.0.iter().filter_map(|entry| match &entry.body {
        EntryBody::Message(body) => Some(Arc::clone(&body.message)),
        _ => None,
    });
    messages.collect()
}

#[test]
fn images_have_equal_estimates_for_every_role() {
    let image = json!([{"type": "text", "text": "abcde"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]);
    let user = message(json!({"role": "user", "content": image}));
    let result = message(json!({"role": "toolResult", "toolCallId": "c", "content": image}));
    let custom = message(json!({"role": "custom", "customType": "x", "content": image}));
    for message in [user, result, custom] {
        assert_eq!((estimate(&message), weight(&message)), (1_202, 1_202));
    }
}

#[test]
fn unsent_messages_have_zero_weight() {
    let content = json!([{"type": "text", "text": long(10)}]);
    let failed = message(json!({"role": "assistant", "content": content, "stopReason": "error"}));
    let hidden = message(
        json!({"role": "bashExecution", "command": "abcd", "output": "efgh", "excludeFromContext": true}),
    );
    assert_eq!((estimate(&failed), weight(&failed)), (10, 0));
    assert_eq!((estimate(&hidden), weight(&hidden)), (2, 0));
}

#[test]
fn system_message_has_prompt_and_tools() {
    let tools = json!([{"name": "read"}]);
    let declared = message(
        json!({"role": "system", "content": "ab", "sections": {"prompt": "cdef", "gone": null}, "toolsAdded": tools}),
    );
    // 2 and 4 characters, and 17 of the list as JSON.
    assert_eq!((estimate(&declared), weight(&declared)), (6, 6));
}

#[test]
fn context_shown_counts_unsent_messages() {
    let image = json!({"type": "message", "message": {"role": "user", "content": [
        {"type": "image", "data": "AA==", "mimeType": "image/png"}]}});
    let hidden = json!({"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": long(9),
        "excludeFromContext": true}});
    let unknown = json!({"type": "message", "message": {"role": "later", "content": "prompt"}});
    let mut branch = Branch::default();
    let agrees = |branch: &Branch, shown: u64, sent: u64| {
        assert_eq!(stats::context_tokens(&messages(branch)), shown);
        assert_eq!(compaction::context_tokens(&branch.0), sent);
    };
    agrees(&branch, 0, 0);
    branch = branch.user(&long(7)).entry(image).entry(hidden).entry(unknown);
    agrees(&branch, 1_217, 1_207);
    branch = branch.failed("error", &long(50));
    agrees(&branch, 1_267, 1_207);
    branch = branch.calls(0, "ls", json!({}), 4_000).result(0, &long(5));
    agrees(&branch, 4_005, 4_005);
    branch = branch.failed("aborted", &long(50)).says(&long(3), 0);
    agrees(&branch, 4_058, 4_008);
}

#[test]
fn conversation_counts_messages_tools_and_costs() {
    let answer = |output: u64, stop: &str| {
        Arc::new(message(json!({
            "role": "assistant", "content": [call(0, "ls", json!({}))], "stopReason": stop,
            "usage": {"input": 1, "output": output, "cacheRead": 2, "cost": {"total": 0.5}},
        })))
    };
    let messages = [
        Arc::new(Message::user("hi", 0)),
        answer(10, "stop"),
        answer(20, "error"),
    ];
    let counts = count(&messages);
    assert_eq!(
        (
            counts.user,
            counts.assistant,
            counts.tool_calls,
            counts.tool_results
        ),
        (1, 2, 2, 0)
    );
    assert_eq!((counts.tokens.total, counts.cost), (36, 1.0));
}

#[test]
fn context_usage_after_compaction_is_unknown_until_answer() {
    let branch = Branch::default().user("one").says("x", 4_000).user(&long(10));
    let mut messages = messages(&branch);
    let tokens = |messages: &[Arc<Message>], kept| {
        let usage = stats::context_usage(messages, 8_000, kept).unwrap();
        (usage.tokens, usage.percent)
    };
    assert_eq!(tokens(&messages, 0), (Some(4_010), Some(50.125)));
    assert_eq!(tokens(&messages, 3), (None, None));
    messages.extend(self::messages(&Branch::default().failed("error", "x")));
    assert_eq!(tokens(&messages, 3), (None, None));
    messages.extend(self::messages(&Branch::default().says("y", 400)));
    assert_eq!(tokens(&messages, 3), (Some(400), Some(5.0)));
    assert_eq!(stats::context_usage(&messages, 0, 0), None);
}
