//! What the model `offline/echo` answers: fixed words, the prompt, and a tool call when files are asked for. No guessing, no
//! memory.

use std::collections::VecDeque;
use std::time::Duration;

use auth::text::cut;
use serde_json::json;
use wire::content::joined_text;
use wire::{Message, StopReason, ToolResultMessage, Usage};

use super::play::Step;
use crate::request::ModelRequest;

/// The first line of every answer.
const NOBODY: &str = "No AI was asked: this is the answer of Pinion's built-in offline model.";

/// Every first answer continues with this.
const WHO: &str = "No AI was asked: this is the answer of Pinion's built-in offline model.\n\nIt is not an AI: it answers with \
                   fixed words, so that you can try the program without a key and without a network.";

/// Every last answer ends with this.
const HOW: &str = "To talk to a real model, set the key of a provider (for example ANTHROPIC_API_KEY) or name a model with \
                   --model.";

/// Lines of a tool result that are repeated.
const SHOWN_LINES: usize = 12;

/// Longest part of the prompt that is repeated, in bytes.
const SHOWN_PROMPT: usize = 400;

/// The steps of an answer.
pub(super) fn answer(request: &ModelRequest, word_delay: Duration) -> VecDeque<Step> {
    let mut writer = Writer {
        steps: VecDeque::from([Step::Begin]),
        word_delay,
        written: 0,
    };
    let reason = match request.messages.last().map(|message| &**message) {
        Some(Message::ToolResult(result)) => {
            writer.text(&summary(result));
            StopReason::Stop
        }
        Some(Message::User(user)) => reply(&user.content.text(), request, &mut writer),
        _ => {
            writer.text(&format!("{WHO}\n\n{HOW}"));
            StopReason::Stop
        }
    };
    let read: usize = request.messages.iter().map(|message| message_len(message)).sum();
    let input = tokens(request.system_prompt.len() + read);
    writer.steps.push_back(Step::Usage(Usage {
        input,
        output: tokens(writer.written),
        ..Usage::default()
    }));
    writer.steps.push_back(Step::Done(reason));
    writer.steps
}

/// Answers a prompt and says how the answer ends.
fn reply(prompt: &str, request: &ModelRequest, writer: &mut Writer) -> StopReason {
    let active = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let tool = if active("ls") {
        Some(("ls", json!({"path": "."})))
    } else if active("bash") {
        Some(("bash", json!({"command": "ls -la"})))
    } else {
        None
    };
    match tool.filter(|_| asks_for_files(prompt)) {
        Some((name, arguments)) => {
            writer.text(&format!(
                "{WHO}\n\nYou asked about files, so here is a call of the tool `{name}`."
            ));
            writer.call(
                &format!("offline_{}", request.messages.len()),
                name,
                &arguments.to_string(),
            );
            StopReason::ToolUse
        }
        None => {
            let shown = cut(prompt.trim(), SHOWN_PROMPT);
            writer.text(&format!(
                "{WHO}\n\nYou wrote:\n\n> {}\n\nAsk it to list the files to see a tool call. {HOW}",
                shown.replace('\n', "\n> ")
            ));
            StopReason::Stop
        }
    }
}

/// Returns true if a prompt mentions listing files. It compares English words only.
fn asks_for_files(prompt: &str) -> bool {
    let words: Vec<String> = prompt
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    any(&["ls", "dir"])
        || (any(&["list", "show", "what", "which", "see", "read"])
            && any(&["file", "files", "folder", "folders", "directory", "directories"]))
}

/// Says what a tool gave back.
fn summary(result: &ToolResultMessage) -> String {
    let text = joined_text(&result.content);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let failed = if result.is_error { " with an error" } else { "" };
    let shown: Vec<String> = lines
        .iter()
        .take(SHOWN_LINES)
        .map(|line| format!("    {}", cut(line, 200)))
        .collect();
    let more = lines.len().saturating_sub(SHOWN_LINES);
    let rest = if more > 0 {
        format!("\n    ({more} more)")
    } else {
        String::new()
    };
    format!(
        "{NOBODY}\n\nThe tool `{}` came back{failed} with {} line(s):\n\n{}{rest}\n\nThat is all the offline model can do. {HOW}",
        result.tool_name,
        lines.len(),
        shown.join("\n"),
    )
}

/// About four bytes are a token.
fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// Text of a message in bytes.
fn message_len(message: &Message) -> usize {
    match message {
        Message::User(user) => user.content.text().len(),
        Message::ToolResult(result) => joined_text(&result.content).len(),
        Message::Assistant(answer) => answer
            .content
            .iter()
            .map(|block| {
                if let wire::AssistantBlock::Text(text) = block {
                    text.text.len()
                } else {
                    0
                }
            })
            .sum(),
        _ => 0,
    }
}

/// Turns texts into steps.
struct Writer {
    steps: VecDeque<Step>,
    word_delay: Duration,
    written: usize,
}

impl Writer {
    /// A text block, word by word.
    fn text(&mut self, text: &str) {
        self.steps.push_back(Step::Text);
        for word in text.split_inclusive(' ') {
            self.delta(word);
        }
        self.steps.push_back(Step::End);
    }

    /// A tool call, its arguments in two pieces.
    fn call(&mut self, id: &str, name: &str, arguments: &str) {
        self.steps.push_back(Step::Call {
            id: id.to_owned(),
            name: name.to_owned(),
        });
        let (first, second) = arguments
            .split_at_checked(arguments.len() / 2)
            .unwrap_or((arguments, ""));
        self.delta(first);
        self.delta(second);
        self.steps.push_back(Step::End);
    }

    /// One piece, after a pause.
    fn delta(&mut self, text: &str) {
        self.written += text.len();
        if !self.word_delay.is_zero() {
            self.steps.push_back(Step::Wait(self.word_delay));
        }
        self.steps.push_back(Step::Delta(text.to_owned()));
    }
}
