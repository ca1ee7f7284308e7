//! The Markdown format: the branch of the leaf, top to bottom. Escaping is in `fence`.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::Value;
use wire::{
    AssistantBlock, AssistantMessage, BashExecutionMessage, Entry, EntryBody, Message, ToolCall,
    ToolResultMessage, UserBlock, UserContent,
};

use super::fence::{code, fenced, message, plain};
use super::{ExportInput, Format};

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
    let results: Results<'_> = messages(&branch)
        .filter_map(|message| match message {
            Message::ToolResult(result) => Some((result.tool_call_id.as_str(), result)),
            _ => None,
        })
        .collect();
    let mut answering = false;
    for entry in branch {
        let is_answer = match &entry.body {
            EntryBody::Message(body) => {
                matches!(&*body.message, Message::Assistant(_) | Message::ToolResult(_))
            }
            _ => false,
        };
        write_entry(entry, &results, answering, out)?;
        answering = is_answer;
    }
    Ok(())
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
    let (mut input_tokens, mut output_tokens, mut cost) = (0_u64, 0_u64, 0.0);
    for answer in messages(branch).filter_map(Message::as_assistant) {
        let usage = &answer.usage;
        input_tokens = [usage.input, usage.cache_read, usage.cache_write]
            .iter()
            .fold(input_tokens, |sum, n| sum.saturating_add(*n));
        output_tokens = output_tokens.saturating_add(usage.output);
        cost += usage.cost.total;
        let model = code(&answer.model);
        if !models.contains(&model) {
            models.push(model);
        }
    }
    if !models.is_empty() {
        writeln!(out, "- Models: {}", models.join(", "))?;
        writeln!(
            out,
            "- Tokens: {input_tokens} in, {output_tokens} out; cost ${cost:.4}"
        )?;
    }
    writeln!(out)?;
    if let Some(prompt) = input.system_prompt.filter(|prompt| !prompt.is_empty()) {
        folded("System prompt", "", prompt, out)?;
    }
    Ok(())
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
            content(&user.content, out)
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
        _ => Ok(()),
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
    if answer.failed() {
        let reason = answer.error_message.as_deref().unwrap_or("aborted");
        writeln!(out, "> **{}**\n", plain(reason))?;
    }
    Ok(())
}

fn write_call(call: &ToolCall, result: Option<&ToolResultMessage>, out: &mut impl Write) -> io::Result<()> {
    let state = match result {
        None => " (no result)",
        Some(result) if result.is_error => " (failed)",
        Some(_) => "",
    };
    writeln!(out, "**{}**{state}\n", plain(&call.name))?;
    match call.arguments.get("command").and_then(Value::as_str) {
        Some(command) => fenced(out, "sh", command)?,
        None => fenced(out, "json", &serde_json::to_string_pretty(&call.arguments)?)?,
    }
    let Some(result) = result else { return Ok(()) };
    let diff = result
        .details
        .as_ref()
        .and_then(|details| details.get("diff")?.as_str());
    if let Some(diff) = diff {
        folded("Changes", "diff", diff, out)?;
    }
    let texts: Vec<&str> = result.content.iter().filter_map(UserBlock::as_text).collect();
    let text = texts.join("\n");
    if !text.trim().is_empty() {
        folded("Result", "", &text, out)?;
    }
    images(&result.content, out)
}

fn write_run(run: &BashExecutionMessage, out: &mut impl Write) -> io::Result<()> {
    let hidden = if run.exclude_from_context == Some(true) {
        " (not shown to the model)"
    } else {
        ""
    };
    writeln!(out, "## Command{hidden}\n")?;
    fenced(out, "sh", &run.command)?;
    if !run.output.trim().is_empty() {
        folded("Output", "", &run.output, out)?;
    }
    Ok(())
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

fn images(blocks: &[UserBlock], out: &mut impl Write) -> io::Result<()> {
    for block in blocks {
        if let UserBlock::Image(image) = block {
            writeln!(out, "*[image, {}]*\n", plain(&image.mime_type))?;
        }
    }
    Ok(())
}

/// A block that viewers show closed. `summary` is ours, never text of the session.
fn folded(summary: &str, info: &str, text: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<details><summary>{summary}</summary>\n")?;
    fenced(out, info, text)?;
    writeln!(out, "</details>\n")
}
