//! The question to the user about a call: which tool, where it comes from, and what it would do. How the text is made visible
//! is in `visible`, how the user is asked in `session`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::limits;
use super::visible::{self, counted, number};

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// It is one of the agent's own.
    BuiltIn,
    /// The client runs it.
    Client,
    /// The client serves the URI that a built-in tool reads or writes.
    ClientUri,
    /// An extension, by its path.
    Extension(String),
    /// An MCP server.
    McpServer {
        /// Its name.
        server: String,
        /// The tool's own name.
        tool: String,
        /// The name of the tool that models call, before it is shortened to what providers accept.
        full_name: String,
        /// How the server is reached, so that another server of the same name is another one.
        config: String,
    },
    /// The resources of all MCP servers.
    McpResources(Vec<String>),
}

impl Source {
    /// The line of the question that names it.
    fn line(&self) -> Option<String> {
        let name = |name: &str| visible::line(name, limits::ASKED_NAME);
        Some(match self {
            Self::BuiltIn => return None,
            Self::Client => "Tool of the client".to_owned(),
            Self::ClientUri => "URI of the client".to_owned(),
            Self::Extension(path) => format!(
                "Tool of the extension {}",
                visible::line(path, limits::ASKED_PATH)
            ),
            Self::McpServer { server, tool, .. } => {
                format!("Tool {} of the MCP server {}", name(tool), name(server))
            }
            Self::McpResources(servers) => {
                format!("Resources of the MCP servers {}", name(&servers.join(", ")))
            }
        })
    }
}

/// A call before it may run.
#[derive(Debug)]
pub struct Proposal<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Where the tool comes from.
    pub source: Source,
    /// Its description for the model. Empty for built-in tools, which do not change.
    pub description: &'a str,
    /// The schema of its arguments, if it is no built-in one.
    pub schema: Option<&'a Value>,
    /// The arguments.
    pub args: &'a Map<String, Value>,
}

impl Proposal<'_> {
    /// What a consent for the session is bound to in addition to the subject of the call: a hash of the tool's definition and of the
    /// arguments. None for built-in tools: what they do with a command or a file is known, and rules can judge it.
    ///
    /// Annotations such as `readOnlyHint` of MCP loosen nothing, since the server itself writes them.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        if self.source == Source::BuiltIn {
            return None;
        }
        // Reading a URI is judged by the URI. Any other call to the client may do anything.
        let is_reading = self.source == Source::ClientUri && self.tool == "read";
        let args = if is_reading {
            String::new()
        } else {
            serde_json::to_string(self.args).unwrap_or_default()
        };
        let schema = self.schema.map(Value::to_string).unwrap_or_default();
        let mut hash = Sha256::new();
        let source = format!("{:?}", self.source);
        for part in [self.tool, &source, self.description, &schema, &args] {
            // With its length, so that no part can pass for a piece of another.
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The question about it; `subject` is the command, the path or the URI, and `file` the real path of a file.
    #[must_use]
    pub fn question(&self, subject: String, file: Option<PathBuf>) -> Question {
        Question {
            tool: self.tool.to_owned(),
            source: self.source.clone(),
            args: self.args.clone(),
            subject,
            file,
        }
    }
}

/// What the path of a `write` call holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Nothing.
    Nothing,
    /// A regular file of this many bytes.
    File(u64),
    /// Something else: a directory, a pipe, a device.
    Other,
}

/// The question about one call.
#[derive(Debug)]
pub struct Question {
    tool: String,
    source: Source,
    args: Map<String, Value>,
    subject: String,
    file: Option<PathBuf>,
}

impl Question {
    /// The arguments of an edit whose diff should be shown, if it is one.
    #[must_use]
    pub fn edit_args(&self) -> Option<&Map<String, Value>> {
        (self.source == Source::BuiltIn && self.tool == "edit").then_some(&self.args)
    }

    /// The real path of the file that a `write` call would replace or create, if it is one.
    #[must_use]
    pub fn written_file(&self) -> Option<&Path> {
        let is_known = matches!(self.source, Source::BuiltIn | Source::ClientUri);
        self.file.as_deref().filter(|_| is_known && self.tool == "write")
    }

    /// The text of the question. `diff` is what an edit would change, or why that is not known; `existing` is what
    /// [`Self::written_file`] holds.
    #[must_use]
    pub fn title(&self, diff: Option<Result<String, String>>, existing: Option<Existing>) -> String {
        let mut lines = vec![format!(
            "Allow {}?",
            visible::line(&self.tool, limits::ASKED_NAME)
        )];
        lines.extend(self.source.line());
        let is_known = matches!(self.source, Source::BuiltIn | Source::ClientUri);
        match self.tool.as_str() {
            "bash" => {
                lines.push(visible::text(&self.subject));
                // An extension's own `bash` may take further arguments.
                lines.extend(self.other_args(if is_known {
                    &["command", "timeout"]
                } else {
                    &["command"]
                }));
            }
            "write" if is_known => {
                lines.push(self.subject_line());
                let content = self.text_of("content");
                lines.push(size(content, existing));
                lines.extend(self.session_line());
                lines.push(visible::text(content));
            }
            "edit" if is_known => {
                lines.push(self.subject_line());
                lines.extend(self.session_line());
                lines.push(match diff {
                    Some(Ok(diff)) => visible::text(&diff),
                    Some(Err(why)) => {
                        let why = visible::line(why.trim(), limits::ASKED_PATH);
                        format!(
                            "It would fail now: {why}\n{}",
                            visible::text(&self.replacements())
                        )
                    }
                    None => visible::text(&self.replacements()),
                });
            }
            _ if is_known && !self.subject.is_empty() => {
                lines.push(self.subject_line());
                lines.extend(self.other_args(&["path"]));
            }
            _ => lines.push(self.other_args(&[]).unwrap_or_else(|| "No arguments".to_owned())),
        }
        lines.join("\n")
    }

    fn subject_line(&self) -> String {
        visible::line(&self.subject, limits::ASKED_PATH)
    }

    /// What "Allow for this session" covers, where that is more than the call that is shown.
    fn session_line(&self) -> Option<String> {
        let covers = format!("For this session: any {} of this file", self.tool);
        (self.source == Source::BuiltIn).then_some(covers)
    }

    fn text_of(&self, name: &str) -> &str {
        self.args.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The arguments that are not shown yet, as JSON.
    fn other_args(&self, shown: &[&str]) -> Option<String> {
        let mut args = self.args.clone();
        args.retain(|name, _| !shown.contains(&name.as_str()));
        if args.is_empty() {
            return None;
        }
        serde_json::to_string_pretty(&args)
            .ok()
            .map(|text| visible::text(&text))
    }

    /// The replacements of an edit as they were asked for.
    fn replacements(&self) -> String {
        let edits = self.args.get("edits").and_then(Value::as_array);
        let mut lines = Vec::new();
        for edit in edits.into_iter().flatten() {
            let text = |name| edit.get(name).and_then(Value::as_str).unwrap_or_default();
            lines.extend(text("oldText").lines().map(|line| format!("-{line}")));
            lines.extend(text("newText").lines().map(|line| format!("+{line}")));
        }
        lines.join("\n")
    }
}

/// How much is written, and what it replaces.
fn size(content: &str, existing: Option<Existing>) -> String {
    let size = format!(
        "{}, {}",
        counted(content.lines().count(), "line"),
        counted(content.len(), "byte")
    );
    match existing {
        None => size,
        Some(Existing::File(bytes)) => {
            let old = usize::try_from(bytes).unwrap_or(usize::MAX);
            format!("Replaces the file of {} bytes with {size}", number(old))
        }
        Some(Existing::Other) => format!("This is no regular file: {size}"),
        Some(Existing::Nothing) => format!("Creates the file: {size}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn identity(source: &Source, description: &str, schema: &Value, args: &Value) -> Option<String> {
        Proposal {
            tool: "tool",
            source: source.clone(),
            description,
            schema: Some(schema),
            args: args.as_object().unwrap(),
        }
        .identity()
    }

    #[test]
    fn tool_identity_changes_with_its_definition() {
        let server = |config: &str| Source::McpServer {
            server: "s".to_owned(),
            tool: "t".to_owned(),
            full_name: "mcp__s__t".to_owned(),
            config: config.to_owned(),
        };
        let (empty, schema) = (json!({}), json!({"type": "object"}));
        let all = [
            identity(&Source::Client, "d", &empty, &empty),
            identity(&Source::Client, "D", &empty, &empty),
            identity(&Source::Client, "d", &schema, &empty),
            identity(&Source::Client, "d", &empty, &json!({"a": 1})),
            identity(&Source::Extension("a".to_owned()), "d", &empty, &empty),
            identity(&Source::Extension("b".to_owned()), "d", &empty, &empty),
            identity(&server("one"), "d", &empty, &empty),
            identity(&server("two"), "d", &empty, &empty),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(
                one.is_some() && !all.iter().skip(at + 1).any(|other| other == one),
                "{at}"
            );
        }
        assert_eq!(
            all.first().unwrap(),
            &identity(&Source::Client, "d", &empty, &empty)
        );
        assert_eq!(identity(&Source::BuiltIn, "d", &empty, &empty), None);
    }

    #[test]
    fn write_question_names_existing_file() {
        let args = json!({"path": "a", "content": "x\ny\n"});
        let proposal = Proposal {
            tool: "write",
            source: Source::BuiltIn,
            description: "",
            schema: None,
            args: args.as_object().unwrap(),
        };
        let file = PathBuf::from("/project/a");
        let question = proposal.question("/project/a".to_owned(), Some(file.clone()));
        assert_eq!(question.written_file(), Some(file.as_path()));
        for (existing, expected) in [
            (Some(Existing::Nothing), "Creates the file: 2 lines, 4 bytes"),
            (
                Some(Existing::File(1_234)),
                "Replaces the file of 1,234 bytes with 2 lines, 4 bytes",
            ),
            (Some(Existing::Other), "This is no regular file: 2 lines, 4 bytes"),
            (None, "2 lines, 4 bytes"),
        ] {
            let title = question.title(None, existing);
            assert_eq!(title.lines().nth(2), Some(expected), "{title}");
        }
    }

    #[test]
    fn names_cannot_imitate_lines_of_question() {
        let args = Map::new();
        let proposal = Proposal {
            tool: "read?\nTool of the client",
            source: Source::Extension("/a\n/b".to_owned()),
            description: "",
            schema: None,
            args: &args,
        };
        assert_eq!(
            proposal.question(String::new(), None).title(None, None),
            "Allow read?\\u{a}Tool of the client?\nTool of the extension /a\\u{a}/b\nNo arguments"
        );
    }
}
