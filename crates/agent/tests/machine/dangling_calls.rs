//! Calls that never got a result.

use std::sync::Arc;

use crate::common::answer;
use pinion_agent::convert::close_dangling_calls;
use wire::{Message, StopReason, ToolResultMessage};

fn result(id: &str) -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: "tool".to_owned(),
        content: Vec::new(),
        details: None,
        is_error: false,
        duration_ms: None,
        timestamp: 0,
        extra: wire::Extra::default(),
    }))
}

fn ids(messages: &[Arc<Message>]) -> Vec<String> {
    let name = |message: &Arc<Message>| match message.as_ref() {
        Message::ToolResult(result) => format!(
            "{}{}",
            result.tool_call_id,
            if result.is_error { "!" } else { "" }
        ),
        other => other.role().to_owned(),
    };
    messages.iter().map(name).collect()
}

#[test]
fn dangling_calls_get_error_results_after_others() {
    let asks = Arc::new(Message::Assistant(answer(&["a", "b"], StopReason::ToolUse)));
    let user = Arc::new(Message::user("go on", 0));
    let messages = vec![Arc::clone(&asks), result("b"), user, asks];
    assert_eq!(
        ids(&close_dangling_calls(messages)),
        ["assistant", "b", "a!", "user", "assistant", "a!", "b!"]
    );
}

#[test]
fn dangling_calls_of_failed_answers_get_none() {
    let failed = Arc::new(Message::Assistant(answer(&["a"], StopReason::Aborted)));
    assert_eq!(ids(&close_dangling_calls(vec![failed])), ["assistant"]);
}

#[test]
fn duplicate_call_ids_get_one_result_each() {
    let asks = Arc::new(Message::Assistant(answer(&["a", "a"], StopReason::ToolUse)));
    assert_eq!(
        ids(&close_dangling_calls(vec![asks, result("a")])),
        ["assistant", "a", "a!"]
    );
}
