//! Stored messages as `session/update`, for `session/load`.

use std::path::Path;

use serde_json::{Value, json};
use wire::content::{AssistantBlock, UserBlock};
use wire::message::{Message, ToolResultMessage};

use crate::{content, updates};

/// Converts a message. Messages that only the model sees have no update.
pub(crate) fn of_message(message: &Message, cwd: &Path) -> Vec<Value> {
    match message {
        Message::User(user) => chunks("user_message_chunk", &user.content.to_blocks()),
        Message::Assistant(answer) => {
            let blocks = answer.content.iter();
            blocks.filter_map(|block| of_block(block, cwd)).collect()
        }
        Message::ToolResult(result) => vec![of_result(result)],
        Message::Custom(custom) if custom.display => {
            chunks("agent_message_chunk", &custom.content.to_blocks())
        }
        Message::BashExecution(bash) => vec![chunk(
            "user_message_chunk",
            &content::text(&format!("!{}\n{}", bash.command, bash.output)),
        )],
        Message::BranchSummary(summary) => {
            vec![chunk("agent_message_chunk", &content::text(&summary.summary))]
        }
        Message::CompactionSummary(summary) => {
            vec![chunk("agent_message_chunk", &content::text(&summary.summary))]
        }
        _ => Vec::new(),
    }
}

fn chunk(kind: &str, content: &Value) -> Value {
    json!({"sessionUpdate": kind, "content": content})
}

fn chunks(kind: &str, blocks: &[UserBlock]) -> Vec<Value> {
    let blocks = blocks.iter().map(content::block);
    blocks.map(|block| chunk(kind, &block)).collect()
}

fn of_block(block: &AssistantBlock, cwd: &Path) -> Option<Value> {
    match block {
        AssistantBlock::Text(text) => Some(chunk("agent_message_chunk", &content::text(&text.text))),
        // Providers may return encrypted reasoning without text.
        AssistantBlock::Thinking(thinking) if thinking.thinking.is_empty() => None,
        AssistantBlock::Thinking(thinking) => {
            Some(chunk("agent_thought_chunk", &content::text(&thinking.thinking)))
        }
        AssistantBlock::ToolCall(call) => Some(updates::stored(&call.id, &call.name, &call.arguments, cwd)),
    }
}

fn of_result(message: &ToolResultMessage) -> Value {
    let content: Vec<Value> = message.content.iter().map(content::block).collect();
    json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": message.tool_call_id,
        "status": if message.is_error { "failed" } else { "completed" },
        "content": content
            .iter()
            .map(|block| json!({"type": "content", "content": block}))
            .collect::<Vec<_>>(),
        "rawOutput": {"content": content, "details": message.details},
    })
}
