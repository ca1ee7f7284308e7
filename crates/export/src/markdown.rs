//! The Markdown format: the branch of the leaf, top to bottom. Tools are in `calls`, escaping in `fence` and `prose`.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::Value;
use wire::{
    AssistantBlock, AssistantMessage, Entry, EntryBody, Message, StopReason, ToolResultMessage, UserContent,
};

use crate::calls::{images, write_call, write_output, write_run};
use crate::fence::{code, folded, plain};
use crate::prose::message;
use crate::{ExportInput, Format};

/// Results of tools by the id of the call they answer.
type Results<'a> = HashMap<&'a str, &'a ToolResultMessage>;

/// Writes the branch of the leaf as Markdown: messages with their raw HTML turned to text, reasoning, tools and their results
/// in folded blocks. Images are named, not shown.
///
/// # Errors
/// When `out` fails.
pub fn markdown(input: &ExportInput<'_>, out: &mut impl Write) -> io::Result<()> {
    let branch = input.branch();
    writeln!(out, "{}\n", Format::Markdown.marker())?;
    head(input, &branch, out)?;
    let mut results = results(&branch);
    let mut answering = false;
    for (at, entry) in branch.into_iter().enumerate() {
        let own = results.remove(&at).unwrap_or_default();
        write_entry(entry, &own, answering, out)?;
        answering = match &entry.body {
            EntryBody::Message(body) => {
                matches!(&*body.message, Message::Assistant(_) | Message::ToolResult(_))
            }
            EntryBody::CustomMessage(body) => answering && !body.display,
            EntryBody::Compaction(_) | EntryBody::BranchSummary(_) | EntryBody::ModelChange(_) => false,
            // These leave nothing on the page.
            _ => answering,
        };
    }
    Ok(())
}

/// The results of each answer, by its place in the branch: some servers give calls of several answers the same id.
fn results<'a>(branch: &[&'a Entry]) -> HashMap<usize, Results<'a>> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    let mut results: HashMap<usize, Results<'a>> = HashMap::new();
    for (at, entry) in branch.iter().copied().enumerate() {
        let EntryBody::Message(body) = &entry.body else {
            continue;
        };
        match &*body.message {
            Message::Assistant(answer) => {
                owners.extend(answer.tool_calls().map(|call| (call.id.as_str(), at)));
            }
            Message::ToolResult(result) => {
                let id = result.tool_call_id.as_str();
                if let Some(owner) = owners.get(id) {
                    results.entry(*owner).or_default().entry(id).or_insert(result);
                }
            }
            _ => {}
        }
    }
    results
}

fn messages<'a>(branch: &[&'a Entry]) -> impl Iterator<Item = &'a Message> {
    branch.iter().filter_map(|entry| match &entry.body {
        EntryBody::Message(body) => Some(&*body.message),
        _ => None,
    })
}

fn head(input: &ExportInput<'_>, branch: &[&Entry], out: &mut impl Write) -> io::Result<()> {
    let named = input.name.map(str::trim).filter(|name| !name.is_empty());
    writeln!(out, "# {}\n", plain(named.unwrap_or("Session")))?;
    writeln!(out, "- Session: {}", code(&input.header.id))?;
    writeln!(out, "- Date: {}", plain(&input.header.timestamp))?;
    writeln!(out, "- Folder: {}", code(&input.header.cwd))?;
    let mut models: Vec<String> = Vec::new();
    let (mut fresh, mut cached, mut answered, mut cost) = (0_u64, 0_u64, 0_u64, 0.0);
    for answer in messages(branch).filter_map(Message::as_assistant) {
        let usage = &answer.usage;
        fresh = fresh
            .saturating_add(usage.input)
            .saturating_add(usage.cache_write);
        cached = cached.saturating_add(usage.cache_read);
        answered = answered.saturating_add(usage.output);
        cost += usage.cost.total;
        let model = code(&answer.model);
        if !models.contains(&model) {
            models.push(model);
        }
    }
    if !models.is_empty() {
        writeln!(out, "- Models: {}", models.join(", "))?;
        let from_cache = match cached {
            0 => String::new(),
            _ => format!(" ({} from cache)", grouped(cached)),
        };
        let asked = grouped(fresh.saturating_add(cached));
        writeln!(out, "- Tokens: {asked} in{from_cache}, {} out", grouped(answered))?;
        writeln!(out, "- Cost: ${cost:.4}")?;
    }
    writeln!(out)?;
    if let Some(prompt) = input.system_prompt.filter(|prompt| !prompt.is_empty()) {
        folded("System prompt", "", prompt, out)?;
    }
    Ok(())
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// One entry. `answering`: did the one before belong to an answer too? Then there is no new headline.
fn write_entry(
    entry: &Entry,
    results: &Results<'_>,
    answering: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    match &entry.body {
        EntryBody::Message(body) => write_message(&body.message, results, answering, out),
        EntryBody::Compaction(body) => {
            writeln!(
                out,
                "---\n\n## Compacted from {} tokens\n\n{}\n",
                body.tokens_before,
                message(&body.summary)
            )
        }
        EntryBody::BranchSummary(body) => writeln!(
            out,
            "---\n\n## Summary of a branch\n\n{}\n",
            message(&body.summary)
        ),
        EntryBody::CustomMessage(body) if body.display => {
            writeln!(out, "## {}\n", plain(&body.custom_type))?;
            content(&body.content, out)
        }
        EntryBody::ModelChange(body) => match body.target() {
            Some((provider, model)) => writeln!(out, "*Model: {}*\n", plain(&format!("{provider}/{model}"))),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn write_message(
    body: &Message,
    results: &Results<'_>,
    answering: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    match body {
        Message::User(user) => {
            writeln!(out, "## User\n")?;
            asked(&user.content, out)
        }
        Message::Assistant(answer) => write_answer(answer, results, answering, out),
        Message::BashExecution(run) => write_run(run, out),
        Message::Custom(custom) if custom.display => {
            writeln!(out, "## {}\n", plain(&custom.custom_type))?;
            content(&custom.content, out)
        }
        Message::BranchSummary(summary) => {
            writeln!(
                out,
                "---\n\n## Summary of a branch\n\n{}\n",
                message(&summary.summary)
            )
        }
        Message::CompactionSummary(summary) => {
            writeln!(
                out,
                "---\n\n## Compacted from {} tokens\n\n{}\n",
                summary.tokens_before,
                message(&summary.summary)
            )
        }
        Message::Other(other) => write_other(other, out),
        _ => Ok(()),
    }
}

/// Roles of other agents and versions (dialects.md 12, pi-1.5-delta.md 3): what they say, when it can be told.
fn write_other(other: &Value, out: &mut impl Write) -> io::Result<()> {
    let text = |name: &str| other.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("role") {
        "system" => {
            let sections = other.get("sections").and_then(Value::as_object);
            let sections: Vec<&str> = sections
                .into_iter()
                .flatten()
                .filter_map(|(_, s)| s.as_str())
                .collect();
            let prompt = match sections.is_empty() {
                true => text_of(other.get("content")),
                false => sections.join("\n\n"),
            };
            if prompt.trim().is_empty() {
                return Ok(());
            }
            folded("System prompt", "", &prompt, out)
        }
        "pythonExecution" => {
            writeln!(out, "## Command\n")?;
            write_output("python", text("code"), text("output"), out)
        }
        "fileMention" => {
            let files = other.get("files").and_then(Value::as_array);
            let paths = files
                .into_iter()
                .flatten()
                .filter_map(|file| file.get("path")?.as_str());
            let paths: Vec<String> = paths.map(code).collect();
            writeln!(out, "*Mentioned files:* {}\n", paths.join(", "))
        }
        role => {
            let said = text_of(other.get("content"));
            if said.trim().is_empty() {
                return Ok(());
            }
            writeln!(out, "## {}\n\n{}\n", plain(role), message(&said))
        }
    }
}

/// The text of a content whose shape is not known for sure.
fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn write_answer(
    answer: &AssistantMessage,
    results: &Results<'_>,
    answering: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    if !answering {
        writeln!(out, "## Assistant\n")?;
    }
    for block in &answer.content {
        match block {
            AssistantBlock::Text(text) if !text.text.trim().is_empty() => {
                writeln!(out, "{}\n", message(&text.text))?
            }
            AssistantBlock::Thinking(thinking) if !thinking.thinking.trim().is_empty() => {
                folded("Reasoning", "", &thinking.thinking, out)?;
            }
            AssistantBlock::ToolCall(call) => write_call(call, results.get(call.id.as_str()).copied(), out)?,
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) => {}
        }
    }
    let reason = answer.error_message.as_deref().unwrap_or_default();
    let end = match answer.stop_reason {
        StopReason::Error => "Failed",
        StopReason::Aborted => "Aborted",
        StopReason::Length => "Cut off at the output limit",
        _ => return Ok(()),
    };
    match plain(reason) {
        none if none.is_empty() => writeln!(out, "> **{end}**\n"),
        reason => writeln!(out, "> **{end}:** {reason}\n"),
    }
}

/// What a user said; the text of a skill that was called is folded.
fn asked(said: &UserContent, out: &mut impl Write) -> io::Result<()> {
    let text = said.text();
    let Some((name, skill, rest)) = skill_in(&text) else {
        return content(said, out);
    };
    writeln!(out, "*Skill: {}*\n", plain(name))?;
    folded("Skill", "", skill, out)?;
    if !rest.trim().is_empty() {
        writeln!(out, "{}\n", message(rest.trim_start_matches('\n')))?;
    }
    match said {
        UserContent::Text(_) => Ok(()),
        UserContent::Blocks(blocks) => images(blocks, out),
    }
}

/// Returns name and text of a skill at the beginning of a message, and the user's own text (pi-core.md 6.3).
fn skill_in(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text
        .strip_prefix("<skill name=\"")?
        .split_once("\" location=\"")?;
    let (_, rest) = rest.split_once("\">\n")?;
    let (skill, rest) = rest.split_once("\n</skill>")?;
    Some((name, skill, rest))
}

fn content(content: &UserContent, out: &mut impl Write) -> io::Result<()> {
    let text = content.text();
    if !text.trim().is_empty() {
        writeln!(out, "{}\n", message(&text))?;
    }
    match content {
        UserContent::Text(_) => Ok(()),
        UserContent::Blocks(blocks) => images(blocks, out),
    }
}
