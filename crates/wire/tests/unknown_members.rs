//! What other agents of the family, and later versions, add to messages and entries comes out as it went in.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use pinion_wire::{Entry, Message};
use serde_json::{Value, json};

#[track_caller]
fn message_survives(message: &Value) {
    let parsed = Message::from_json(&message.to_string()).unwrap();
    assert!(!matches!(parsed, Message::Other(_)), "typed");
    assert_eq!(&serde_json::to_value(&parsed).unwrap(), message);
}

#[track_caller]
fn entry_survives(body: Value) {
    let mut entry =
        json!({"id": "e1", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z", "new": [1]});
    entry
        .as_object_mut()
        .unwrap()
        .extend(body.as_object().unwrap().clone());
    let parsed = Entry::from_json(&entry.to_string()).unwrap();
    assert_eq!(serde_json::to_value(&parsed).unwrap(), entry);
}

#[test]
fn unknown_members_of_messages_survive() {
    message_survives(
        &json!({"role": "user", "content": "hi", "timestamp": 1, "attachments": [{"id": "a"}], "synthetic": true}),
    );
    message_survives(&json!({"role": "user", "timestamp": 1, "content": [
        {"type": "text", "text": "x", "isDocument": true},
        {"type": "image", "data": "AA==", "mimeType": "image/png", "detail": "high"},
    ]}));
    message_survives(
        &json!({"role": "assistant", "api": "a", "provider": "p", "model": "m", "stopReason": "deferred", "timestamp": 1,
        "thinkingLevel": "high", "providerThinkingLevel": "max", "rawStopReason": "end", "diagnostics": [{"a": 1}], "endTurn": false,
        "usage": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 4, "totalTokens": 7, "reasoning": 1, "cacheWrite1h": 2, "premiumRequests": 1,
                  "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
        "content": [
            {"type": "text", "text": "t", "phase": "final"},
            {"type": "thinking", "thinking": "h", "itemId": "i"},
            {"type": "toolCall", "id": "c", "name": "read", "arguments": {}, "namespace": "n"},
        ]}),
    );
    message_survives(
        &json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": [], "isError": false, "timestamp": 1,
        "usage": {"input": 1}, "nestedCalls": [1], "prunedAt": 3}),
    );
    message_survives(
        &json!({"role": "bashExecution", "command": "ls", "output": "", "cancelled": false, "truncated": false, "timestamp": 1, "meta": {}}),
    );
    message_survives(
        &json!({"role": "custom", "customType": "c", "content": "x", "display": true, "timestamp": 1, "attribution": "user"}),
    );
}

#[test]
fn unknown_members_of_entries_survive() {
    entry_survives(json!({"type": "message", "message": {"role": "user", "content": "hi", "timestamp": 1}}));
    entry_survives(json!({"type": "model_change", "model": "p/m", "role": "smol"}));
    entry_survives(json!({"type": "thinking_level_change", "thinkingLevel": null, "why": "x"}));
    entry_survives(
        json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e1", "tokensBefore": 1, "shortSummary": "t",
        "preserveData": {"a": 1}, "fromExtension": false, "tokensAfter": 1, "systemMessage": {"role": "system"}}),
    );
    entry_survives(json!({"type": "branch_summary", "fromId": "root", "summary": "s", "old": {"input": 1}}));
    entry_survives(json!({"type": "custom", "customType": "c", "data": 1, "scope": "s"}));
    entry_survives(
        json!({"type": "custom_message", "customType": "c", "content": "x", "display": true, "attribution": "agent"}),
    );
    entry_survives(json!({"type": "label", "targetId": "e0", "label": "l", "colour": "red"}));
    entry_survives(json!({"type": "session_info", "name": "n", "source": "auto"}));
    entry_survives(json!({"type": "ttsr_injection", "injectedRules": ["a"]}));
}
