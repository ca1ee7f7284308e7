//! From a conversation to what a model gets: every role becomes user, assistant or tool result (pi-core.md 1.12). What
//! depends on the target model (ids, signatures, images it cannot see) is done by `llm`.

use std::sync::Arc;

use wire::content::AssistantBlock;
use wire::message::UserContent;
use wire::omp::SILENT_ANSWER;
use wire::{
    AssistantMessage, BashExecutionMessage, Message, StopReason, ToolCall, ToolResult, ToolResultMessage,
    UserBlock, UserMessage,
};

use crate::ttsr;

/// Stands for an image when images are blocked by the user's settings.
// The words of pi (pi-core.md 1.12).
const BLOCKED_IMAGE: &str = "Image reading is disabled.";

/// The messages a model gets for a conversation, with results in the order of their calls. `block_images` replaces every image by a
/// sentence (setting `images.blockImages`).
#[must_use]
pub fn to_llm(messages: &[Arc<Message>], block_images: bool) -> Vec<Arc<Message>> {
    let converted = messages.iter().filter_map(convert);
    let mut converted: Vec<_> = if block_images {
        converted.map(without_images).collect()
    } else {
        converted.collect()
    };
    // A group is a message and the results behind it.
    for group in converted.chunk_by_mut(|_, next| matches!(**next, Message::ToolResult(_))) {
        if let [answer, results @ ..] = group
            && results.len() > 1
            && let Some(answer) = answer.as_assistant()
        {
            sort_by_calls(results, answer);
        }
    }
    converted
}

/// Puts the results of an answer in the order of its calls. The file may have them in the order of their ends (`ResultOrder`), but
/// Google and servers with chat templates match results and calls by their order.
fn sort_by_calls(results: &mut [Arc<Message>], answer: &AssistantMessage) {
    let mut calls: Vec<Option<&str>> = answer.tool_calls().map(|call| Some(call.id.as_str())).collect();
    let mut place = |result: &Message| {
        let Message::ToolResult(result) = result else {
            return usize::MAX;
        };
        let id = Some(result.tool_call_id.as_str());
        // Each call once: there are providers that give two calls of an answer the same id.
        let open = calls.iter_mut().enumerate().find(|(_, call)| **call == id);
        open.map_or(usize::MAX, |(at, call)| {
            *call = None;
            at
        })
    };
    // Not `sort_by_cached_key`, which may ask for the keys in any order.
    let mut placed: Vec<_> = results
        .iter()
        .map(|result| (place(result), Arc::clone(result)))
        .collect();
    placed.sort_by_key(|(at, _)| *at);
    for (result, (_, sorted)) in results.iter_mut().zip(placed) {
        *result = sorted;
    }
}

/// Did the answer fail, or find no room to say anything? Such an answer is asked for again.
#[must_use]
pub fn is_void(answer: &AssistantMessage) -> bool {
    match answer.stop_reason {
        StopReason::Error => true,
        StopReason::Length => answer.content.is_empty(),
        _ => false,
    }
}

/// Returns true for an answer that ended well and shows the user nothing: it is empty, or has nothing but reasoning.
#[must_use]
pub(crate) fn is_silent(answer: &AssistantMessage) -> bool {
    is_empty(answer) || has_reasoning_only(answer)
}

/// Returns true for an answer that ended well and has nothing but reasoning with text.
fn has_reasoning_only(answer: &AssistantMessage) -> bool {
    // `None` for a block that is more than reasoning makes all of `found` none.
    let is_reasoning = |block: &AssistantBlock| match block {
        AssistantBlock::Thinking(thinking) => Some(!thinking.thinking.trim().is_empty()),
        AssistantBlock::Text(text) => text.text.trim().is_empty().then_some(false),
        AssistantBlock::ToolCall(_) => None,
    };
    let found: Option<Vec<bool>> = answer.content.iter().map(is_reasoning).collect();
    answer.stop_reason == StopReason::Stop && found.is_some_and(|found| found.contains(&true))
}

/// Returns true for an answer that ended well without text, reasoning and calls. Reasoning that only the provider can read is not
/// empty: the next request returns it, as in oh-my-pi.
#[must_use]
pub(crate) fn is_empty(answer: &AssistantMessage) -> bool {
    let says_nothing = |block: &AssistantBlock| match block {
        AssistantBlock::Thinking(thinking) => {
            let signature = thinking.thinking_signature.as_deref().unwrap_or_default();
            thinking.thinking.trim().is_empty() && signature.trim().is_empty()
        }
        AssistantBlock::Text(text) => text.text.trim().is_empty(),
        AssistantBlock::ToolCall(_) => false,
    };
    answer.stop_reason == StopReason::Stop && answer.content.iter().all(says_nothing)
}

/// Returns true for the message that asks again after a silent answer.
fn asks_again(message: &Message) -> bool {
    matches!(message, Message::Custom(custom) if custom.custom_type == SILENT_ANSWER)
}

/// Leaves out answers that were requested again: failed ones that another answer follows, answers that a rule cut off, and empty ones
/// after which the model was asked again. The running agent took them out of the conversation when it tried again; the file has them.
/// `kept` of the messages are what a compaction left; how many of those remain is the second result.
#[must_use]
pub fn without_retried(messages: Vec<Arc<Message>>, kept: usize) -> (Vec<Arc<Message>>, usize) {
    let mut out: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    let mut remain = kept;
    for (at, message) in messages.into_iter().enumerate() {
        let last = out.last().and_then(|last| last.as_assistant());
        // The file has no mark of a retry: that another answer follows the failed one at once is the sign.
        let retried = last.is_some_and(|last| {
            (is_void(last) && message.as_assistant().is_some())
                || (last.failed() && ttsr::discards_answer(&message))
                || (is_empty(last) && asks_again(&message))
        });
        if retried {
            out.pop();
            // It stood right before `at`: if it was one of the kept ones, the border moves with it.
            if at <= kept {
                remain = remain.saturating_sub(1);
            }
        }
        out.push(message);
    }
    (out, remain)
}

/// What stands for the result of a call that never got one.
// The words of pi (behaviour.md 3.8).
const NO_RESULT: &str = "No result provided";

/// Gives every tool call that has no result an error result, right after its answer's other results: a session whose agent
/// died in the middle of a call is whole again when it is loaded. Calls of failed answers need none: those answers are
/// never sent (pi-core.md 1.8).
#[must_use]
pub fn close_dangling_calls(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let mut out: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    let mut open: Vec<ToolResultMessage> = Vec::new();
    for message in messages {
        match message.as_ref() {
            // Only one: there are providers that give two calls of an answer the same id.
            Message::ToolResult(result) => {
                let answered = open
                    .iter()
                    .position(|call| call.tool_call_id == result.tool_call_id);
                answered.map(|at| open.remove(at));
            }
            // Any other message ends the results: a call that is still open never got one.
            _ => out.extend(open.drain(..).map(|call| Arc::new(Message::ToolResult(call)))),
        }
        if let Some(answer) = message.as_assistant().filter(|answer| !answer.failed()) {
            open.extend(answer.tool_calls().map(|call| no_result(call, answer.timestamp)));
        }
        out.push(message);
    }
    out.extend(open.into_iter().map(|call| Arc::new(Message::ToolResult(call))));
    out
}

fn no_result(call: &ToolCall, timestamp: i64) -> ToolResultMessage {
    let result = ToolResult::error(NO_RESULT);
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: result.content,
        details: result.details,
        is_error: true,
        duration_ms: None,
        timestamp,
        extra: wire::Extra::default(),
    }
}

fn convert(message: &Arc<Message>) -> Option<Arc<Message>> {
    match message.as_ref() {
        Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => Some(Arc::clone(message)),
        Message::BashExecution(bash) => (bash.exclude_from_context != Some(true))
            .then(|| Arc::new(Message::user(bash_text(bash), bash.timestamp))),
        // Also hidden messages: `display` is for clients (pi-core.md 1.12).
        Message::Custom(custom) => {
            let content = UserContent::Blocks(custom.content.to_blocks());
            Some(Arc::new(Message::User(UserMessage {
                content,
                timestamp: custom.timestamp,
                extra: wire::Extra::default(),
            })))
        }
        // No line feed before the closing tag, as in pi and unlike below (pi-core.md 1.12).
        Message::BranchSummary(branch) => Some(Arc::new(Message::user(
            format!(
                "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{}</summary>",
                branch.summary
            ),
            branch.timestamp,
        ))),
        Message::CompactionSummary(compaction) => Some(Arc::new(Message::user(
            format!(
                "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}\n</summary>",
                compaction.summary
            ),
            compaction.timestamp,
        ))),
        // Other roles mean nothing to a model (pi-core.md 1.12).
        _ => None,
    }
}

/// A user's shell command as the model reads it.
fn bash_text(bash: &BashExecutionMessage) -> String {
    let mut text = format!("Ran `{}`\n", bash.command);
    if bash.output.is_empty() {
        text.push_str("(no output)");
    } else {
        // Three backticks even if the output has some, as in pi (pi-core.md 1.12).
        text.push_str("```\n");
        text.push_str(&bash.output);
        text.push_str("\n```");
    }
    match bash.exit_code {
        // A cancelled command has no exit code to report (pi-core.md 1.13).
        _ if bash.cancelled => text.push_str("\n\n(command cancelled)"),
        Some(code) if code != 0 => text.push_str(&format!("\n\nCommand exited with code {code}")),
        _ => {}
    }
    if let (true, Some(path)) = (bash.truncated, &bash.full_output_path) {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    text
}

fn without_images(message: Arc<Message>) -> Arc<Message> {
    // After `convert`, so that messages of extensions are user messages with blocks by now.
    match message.as_ref() {
        Message::User(UserMessage {
            content: UserContent::Blocks(blocks),
            timestamp,
            ..
        }) if has_image(blocks) => {
            let content = UserContent::Blocks(blocked(blocks));
            Arc::new(Message::User(UserMessage {
                content,
                timestamp: *timestamp,
                extra: wire::Extra::default(),
            }))
        }
        Message::ToolResult(result) if has_image(&result.content) => {
            Arc::new(Message::ToolResult(ToolResultMessage {
                content: blocked(&result.content),
                ..result.clone()
            }))
        }
        _ => message,
    }
}

fn has_image(blocks: &[UserBlock]) -> bool {
    blocks.iter().any(|block| matches!(block, UserBlock::Image(_)))
}

/// Replaces images; neighbouring replacements become one.
fn blocked(blocks: &[UserBlock]) -> Vec<UserBlock> {
    let mut out: Vec<UserBlock> = Vec::with_capacity(blocks.len());
    for block in blocks {
        let block = match block {
            UserBlock::Image(_) => UserBlock::text(BLOCKED_IMAGE),
            UserBlock::Text(_) => block.clone(),
        };
        let repeats = block.as_text() == Some(BLOCKED_IMAGE) && out.last() == Some(&block);
        if !repeats {
            out.push(block);
        }
    }
    out
}
