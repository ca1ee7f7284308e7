//! Descriptions of the seven tools for models and the system prompt. Data only; the tools are implemented in their modules.

use std::sync::LazyLock;

use serde_json::{Value, json};
use wire::ToolSpec;

/// A tool as the prompt and the request describe it.
#[derive(Debug, Clone)]
pub struct ToolInfo {
    /// Name, description and schema, for the request.
    pub spec: ToolSpec,
    /// One line for the tool list of the system prompt.
    pub snippet: &'static str,
    /// Advice for the system prompt.
    pub guidelines: &'static [&'static str],
    /// True if the tool is active unless the user configures otherwise.
    pub active_by_default: bool,
}

/// The seven tools: read, bash, edit, write, grep, find, ls.
#[must_use]
pub fn infos() -> &'static [ToolInfo] {
    static INFOS: LazyLock<Vec<ToolInfo>> =
        LazyLock::new(|| vec![read(), bash(), edit(), write(), grep(), find(), ls()]);
    &INFOS
}

fn tool(name: &str, description: &str, parameters: Value, snippet: &'static str) -> ToolInfo {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        prefers_strict: matches!(name, "read" | "bash" | "edit" | "write"),
    };
    ToolInfo {
        spec,
        snippet,
        guidelines: &[],
        active_by_default: false,
    }
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn number(description: &str) -> Value {
    json!({ "type": "number", "description": description })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn schema(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn read() -> ToolInfo {
    let info = tool(
        "read",
        "Show a file. Text comes from the first line on, at most 2000 lines or 50KB per call; go on with offset and limit \
         until you have what you need. PNG, JPEG, GIF and WebP files are shown as images.",
        schema(
            &["path"],
            json!({
                "path": text("The file, relative to the working directory or absolute"),
                "offset": number("First line to show, counted from 1"),
                "limit": number("How many lines to show at most"),
            }),
        ),
        "Show a text file or an image",
    );
    ToolInfo {
        guidelines: &["Look at files with read rather than with cat or sed."],
        active_by_default: true,
        ..info
    }
}

fn bash() -> ToolInfo {
    let info = tool(
        "bash",
        "Run a bash command in the working directory and get its output, stdout and stderr together. Only the end of a \
         long output is shown (2000 lines or 50KB); the whole is then kept in a file that is named. Standard input is \
         empty. Without a timeout the command may run as long as it likes, unless the user has set a default.",
        schema(
            &["command"],
            json!({
                "command": text("The command line, handed to bash -c"),
                "timeout": number("Seconds after which the command is stopped; leave out for none"),
            }),
        ),
        "Run shell commands",
    );
    ToolInfo {
        active_by_default: true,
        ..info
    }
}

fn edit() -> ToolInfo {
    let one = json!({
        "type": "object",
        "properties": {
            "oldText": text("Text that occurs exactly once in the file as it is now and does not overlap another edit"),
            "newText": text("Text to put in its place"),
        },
        "required": ["oldText", "newText"],
        "additionalProperties": false,
    });
    let info = tool(
        "edit",
        "Change a file by replacing texts. Every oldText must be found exactly once in the file as it was before the call; \
         several places of one file go into one call.",
        schema(
            &["path", "edits"],
            json!({
                "path": text("The file, relative to the working directory or absolute"),
                "edits": { "type": "array", "items": one,
                    "description": "The replacements, all matched against the unchanged file" },
            }),
        ),
        "Replace exact texts in a file, several at once",
    );
    ToolInfo {
        guidelines: &[
            "Make small changes with edit; oldText has to match the file exactly, blanks and line breaks included.",
            "Put several changes of one file into one edit call; each oldText is matched against the original file.",
            "Keep oldText short, but long enough to occur only once.",
        ],
        active_by_default: true,
        ..info
    }
}

fn write() -> ToolInfo {
    let info = tool(
        "write",
        "Write a file whole. It is created with its directories if it is not there, and replaced if it is.",
        schema(
            &["path", "content"],
            json!({
                "path": text("The file, relative to the working directory or absolute"),
                "content": text("Everything the file shall contain"),
            }),
        ),
        "Create or replace a file",
    );
    ToolInfo {
        guidelines: &["Keep write for new files and complete rewrites."],
        active_by_default: true,
        ..info
    }
}

fn grep() -> ToolInfo {
    tool(
        "grep",
        "Search file contents for a regular expression. Gives file, line number and line. Honours .gitignore; 100 matches \
         or 50KB at most, lines cut at 500 characters.",
        schema(
            &["pattern"],
            json!({
                "pattern": text("Regular expression, or plain text with literal"),
                "path": text("File or directory to search; the working directory if left out"),
                "glob": text("Search only files that match, such as '*.rs' or 'src/**/*.ts'"),
                "ignoreCase": flag("Take capital and small letters as the same"),
                "literal": flag("Take the pattern as plain text"),
                "context": number("Lines to show before and after each match"),
                "limit": number("How many matches to show at most (100)"),
            }),
        ),
        "Search file contents (honours .gitignore)",
    )
}

fn find() -> ToolInfo {
    tool(
        "find",
        "Find files and directories by glob. Gives paths relative to the directory searched. Honours .gitignore; 1000 \
         results or 50KB at most.",
        schema(
            &["pattern"],
            json!({
                "pattern": text("Glob, such as '*.rs', '**/*.json' or 'src/**/*.test.ts'"),
                "path": text("Directory to search; the working directory if left out"),
                "limit": number("How many results to show at most (1000)"),
            }),
        ),
        "Find files by glob (honours .gitignore)",
    )
}

fn ls() -> ToolInfo {
    tool(
        "ls",
        "List a directory by name, dotfiles included; directories end in '/'. 500 entries or 50KB at most.",
        schema(
            &[],
            json!({
                "path": text("Directory to list; the working directory if left out"),
                "limit": number("How many entries to show at most (500)"),
            }),
        ),
        "List a directory",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_tools_in_order_and_four_active() {
        let names: Vec<_> = infos().iter().map(|info| info.spec.name.as_str()).collect();
        assert_eq!(names, ["read", "bash", "edit", "write", "grep", "find", "ls"]);
        let active: Vec<_> = infos().iter().map(|info| info.active_by_default).collect();
        assert_eq!(active, [true, true, true, true, false, false, false]);
        for info in infos() {
            assert!(!info.snippet.contains('\n') && !info.spec.description.contains("  "));
            assert_eq!(info.spec.parameters["type"], "object");
        }
    }
}
