//! Tools, commands and images in the Markdown format. The order of things is in `markdown`.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Map, Value};
use wire::{BashExecutionMessage, ToolCall, ToolResultMessage, UserBlock};

use crate::fence::{code, fenced, folded, plain};

/// Arguments that name the file a tool works on.
const PATHS: [&str; 3] = ["path", "file_path", "filePath"];

/// A call with what came of it. Files are named in the headline, commands and diffs stand open, all else is folded.
pub(super) fn write_call(
    call: &ToolCall,
    result: Option<&ToolResultMessage>,
    out: &mut impl Write,
) -> io::Result<()> {
    let state = match result {
        None => " (no result)",
        Some(result) if result.is_error => " (failed)",
        Some(_) => "",
    };
    let mut arguments: Map<String, Value> = call
        .arguments
        .iter()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let path = PATHS.iter().find_map(|name| match arguments.remove(*name)? {
        Value::String(path) => Some(path),
        _ => None,
    });
    let file = path.as_deref().map(|path| format!(" {}", code(path)));
    writeln!(
        out,
        "**{}**{}{state}\n",
        plain(&call.name),
        file.unwrap_or_default()
    )?;
    let diff = result.and_then(diff_of);
    let written = matches!(call.name.as_str(), "edit" | "write");
    if let Some(Value::String(command)) = arguments.remove("command") {
        fenced(out, "sh", &command)?;
    }
    if call.name == "write"
        && let Some(Value::String(content)) = arguments.remove("content")
    {
        folded("Content", language(path.as_deref()), &content, out)?;
    }
    if diff.is_some() {
        for name in ["edits", "oldText", "newText"] {
            arguments.remove(name);
        }
    }
    if !arguments.is_empty() {
        fenced(out, "json", &serde_json::to_string_pretty(&arguments)?)?;
    }
    if let Some(diff) = diff {
        fenced(out, "diff", diff)?;
    }
    let Some(result) = result else { return Ok(()) };
    let texts: Vec<&str> = result.content.iter().filter_map(UserBlock::as_text).collect();
    let text = texts.join("\n");
    // That a file was written is clear without the tool saying so.
    let says_nothing = written && !result.is_error && (diff.is_some() || call.name == "write");
    if !text.trim().is_empty() && !says_nothing {
        folded("Result", "", &text, out)?;
    }
    images(&result.content, out)
}

fn diff_of(result: &ToolResultMessage) -> Option<&str> {
    result
        .details
        .as_ref()?
        .get("diff")?
        .as_str()
        .filter(|diff| !diff.is_empty())
}

/// The language a fence is marked with: the file's extension, when it looks like one.
fn language(path: Option<&str>) -> &str {
    let extension = path.and_then(|path| Path::new(path).extension()?.to_str());
    extension.unwrap_or_default()
}

/// A command of the user's with its output.
pub(super) fn write_run(run: &BashExecutionMessage, out: &mut impl Write) -> io::Result<()> {
    let mut notes = Vec::new();
    match run.exit_code {
        _ if run.cancelled => notes.push("cancelled".to_owned()),
        Some(0) | None => {}
        Some(exit) => notes.push(format!("exit code {exit}")),
    }
    if run.exclude_from_context == Some(true) {
        notes.push("not shown to the model".to_owned());
    }
    let notes = match notes.join(", ") {
        none if none.is_empty() => none,
        some => format!(" ({some})"),
    };
    writeln!(out, "## Command{notes}\n")?;
    write_output("sh", &run.command, &run.output, out)
}

/// Writes a command, and its output as a folded block.
pub(super) fn write_output(info: &str, command: &str, output: &str, out: &mut impl Write) -> io::Result<()> {
    fenced(out, info, command)?;
    if output.trim().is_empty() {
        return Ok(());
    }
    folded("Output", "", output, out)
}

/// Images are named, not shown.
pub(super) fn images(blocks: &[UserBlock], out: &mut impl Write) -> io::Result<()> {
    for block in blocks {
        if let UserBlock::Image(image) = block {
            writeln!(out, "*[image, {}]*\n", plain(&image.mime_type))?;
        }
    }
    Ok(())
}
