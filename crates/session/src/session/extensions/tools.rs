//! Tools of extensions: their definitions, and how they run.

use std::sync::Arc;

use extensions::line::Tool as RegisteredTool;
use extensions::{ExtensionPool, PendingAnswer, ProcessError};
use permissions::Source;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::{ForeignSchema, ToolOutcome};
use wire::{Dialect, ToolCall, ToolResult, ToolSpec};

use crate::{limits, strings};

use super::super::tool_calls::{
    Access, Definition, Invocation, Place, PreparedCall, ProgressSender, Rewriting, Running, Tool,
    built_in_access, result,
};
use super::json::put;
use super::links::ExtensionLinks;

/// A tool of an extension.
struct ExtensionTool {
    /// The path of the extension.
    extension: String,
    tool: RegisteredTool,
    schema: ForeignSchema,
    /// The processes of the session's extensions.
    processes: Option<ExtensionPool>,
    /// What the processes call the session.
    handle: String,
}

impl ExtensionTool {
    /// Asks the extension. The request is on its way when this returns.
    fn ask(
        &self,
        method: &str,
        params: &Value,
        updates: Option<mpsc::Sender<Value>>,
    ) -> Result<PendingAnswer, ProcessError> {
        match &self.processes {
            Some(processes) => processes.call(&self.handle, method, params, updates),
            None => Err(ProcessError::Gone("it has just ended".to_owned())),
        }
    }
}

impl Tool for ExtensionTool {
    fn name(&self) -> &str {
        &self.tool.name
    }

    fn definition(&self) -> Definition {
        let tool = &self.tool;
        // The system prompt has one line for each tool.
        let line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        Definition {
            spec: ToolSpec {
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: self.schema.schema().clone(),
                prefers_strict: false,
            },
            snippet: tool.prompt_snippet.as_ref().map(line),
            guidelines: Some(tool.prompt_guidelines.clone()),
        }
    }

    fn source(&self) -> Source {
        Source::Extension(self.extension.clone())
    }

    fn starts_active(&self) -> bool {
        self.tool.default_active != Some(false)
    }

    /// One in the place of a built-in tool does the same kind of thing.
    fn access(&self, args: &Map<String, Value>, place: Place<'_>) -> Access {
        built_in_access(self.name(), args, place)
    }

    fn rewrite(&self, call: &ToolCall) -> Option<Rewriting> {
        // Without a process nothing can rewrite; the call fails when it runs.
        if !self.tool.prepares || self.processes.is_none() {
            return None;
        }
        let params = json!({"extension": self.extension, "name": call.name, "args": call.arguments});
        let asking = self.ask("tool.prepare", &params, None);
        Some(Box::pin(async move {
            let answer = match asking {
                Ok(asking) => asking.await,
                Err(error) => Err(error),
            };
            let mut answer = answer.map_err(|error| error.to_string())?;
            match answer.value.get_mut("args").map(Value::take) {
                Some(Value::Object(args)) => Ok(args),
                _ => Err(strings::ODD_ARGUMENTS.to_owned()),
            }
        }))
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        let args = self.schema.prepare(&call.name, &call.arguments)?;
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        let (updates, news) = mpsc::channel(extensions::limits::UPDATES);
        let params = json!({
            "extension": self.extension,
            "name": self.tool.name,
            "toolCallId": call.id,
            "args": call.args,
        });
        let asking = self.ask("tool.execute", &params, Some(updates));
        Box::pin(execute(asking, news, call.cancel, call.progress))
    }
}

/// The tools that extensions register. If two have the same name, the first one counts, as with commands.
pub(crate) fn extension_tools(links: &ExtensionLinks, dialect: Dialect) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for extension in links.registered() {
        for tool in extension.tools.iter().take(limits::REGISTRATIONS) {
            if tools.iter().all(|known| known.name() != tool.name) {
                // The schema moves out of the copy, since it is needed only once.
                let mut tool = tool.clone();
                tools.push(Arc::new(ExtensionTool {
                    extension: extension.path.clone(),
                    schema: ForeignSchema::new(tool.parameters.take()).with_dialect(dialect),
                    tool,
                    processes: links.pool().cloned(),
                    handle: links.handle().to_owned(),
                }));
            }
        }
    }
    tools
}

/// A tool as extensions see it.
pub(crate) fn described(tool: &dyn Tool) -> Value {
    let definition = tool.definition();
    let spec = definition.spec;
    let (path, source, scope) = match tool.source() {
        Source::Extension(path) => (path, "extension", "user"),
        Source::McpServer { server, .. } => (format!("<mcp:{server}>"), "mcp", "temporary"),
        Source::McpResources(_) => ("<mcp:*>".to_owned(), "mcp", "temporary"),
        Source::BuiltIn | Source::Client | Source::ClientUri => {
            (format!("<builtin:{}>", spec.name), "builtin", "temporary")
        }
    };
    let mut described = json!({
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "source": {"path": path, "source": source, "scope": scope, "origin": "top-level"},
    });
    if let Some(guidelines) = definition.guidelines {
        put(&mut described, "promptGuidelines", json!(guidelines));
    }
    described
}

/// Waits for the end of a call and reports each step. The extension learns when the call is to end; it may still answer.
async fn execute(
    asking: Result<PendingAnswer, ProcessError>,
    mut news: mpsc::Receiver<Value>,
    cancel: CancellationToken,
    progress: ProgressSender,
) -> ToolOutcome {
    let answer = match asking {
        Err(error) => Err(error),
        Ok(mut asking) => {
            let mut withdrawn = false;
            loop {
                tokio::select! {
                    // Partial results first: the result comes through another channel and must not overtake them.
                    biased;
                    Some(value) = news.recv() => {
                        if let Some(partial) = result(value) {
                            progress.send(partial).await;
                        }
                    }
                    answer = &mut asking => break answer.map(|answer| answer.value),
                    // Once: a cancelled token stays ready and would win every time.
                    () = cancel.cancelled(), if !withdrawn => {
                        asking.cancel();
                        withdrawn = true;
                    }
                }
            }
        }
    };
    // What came right before the answer may still be in the channel.
    while let Ok(value) = news.try_recv() {
        if let Some(partial) = result(value) {
            progress.send(partial).await;
        }
    }
    match answer {
        Ok(value) => {
            let is_error = value.get("isError") == Some(&Value::Bool(true));
            // Read here, since `result` also reads results of clients, which cannot end a run.
            let terminate = value.get("terminate").and_then(Value::as_bool);
            // Each call needs a result, also if the extension returned something else.
            let done = result(value).unwrap_or_else(|| ToolResult::text(""));
            ToolOutcome {
                result: ToolResult { terminate, ..done },
                is_error,
            }
        }
        Err(error) => ToolOutcome::error(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use process::Reaper;
    use tools::{Toolbox, ToolsConfig};

    use super::super::super::tool_calls::{CallUpdate, Environment, Layer, ToolCalls, ToolRegistry};
    use super::*;

    /// A tool whose process has ended.
    fn tool(name: &str) -> Arc<dyn Tool> {
        Arc::new(ExtensionTool {
            extension: "/e.ts".to_owned(),
            tool: RegisteredTool {
                name: name.to_owned(),
                description: "greets".to_owned(),
                prompt_snippet: Some(" greets\n people ".to_owned()),
                prompt_guidelines: vec!["Greet once.".to_owned()],
                prepares: true,
                ..RegisteredTool::default()
            },
            schema: ForeignSchema::new(json!({"type": "object", "required": ["who"]})),
            processes: None,
            handle: String::new(),
        })
    }

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall {
            name: name.to_owned(),
            arguments: arguments.as_object().unwrap().clone(),
            ..ToolCall::default()
        }
    }

    #[test]
    fn definition_has_snippet_in_one_line() {
        let definition = tool("greet").definition();
        assert_eq!(definition.snippet.as_deref(), Some("greets people"));
        assert_eq!(definition.guidelines, Some(vec!["Greet once.".to_owned()]));
        assert_eq!(
            described(tool("greet").as_ref()),
            json!({
                "name": "greet",
                "description": "greets",
                "parameters": {"type": "object", "required": ["who"]},
                "promptGuidelines": ["Greet once."],
                "source": {"path": "/e.ts", "source": "extension", "scope": "user", "origin": "top-level"},
            })
        );
    }

    #[test]
    fn replaced_bash_is_judged_as_command() {
        let toolbox = Toolbox::new(ToolsConfig::default(), Reaper::direct());
        let place = Place {
            toolbox: &toolbox,
            cwd: Path::new("/project"),
        };
        let args = call("bash", json!({"command": "ls"})).arguments;
        assert_eq!(
            tool("bash").access(&args, place),
            Access::Command("ls".to_owned())
        );
        assert_eq!(tool("greet").access(&args, place), Access::Unknown);
    }

    #[tokio::test]
    async fn call_without_process_fails() {
        let (mut calls, mut tools) = (ToolCalls::new(), ToolRegistry::new(Vec::new()));
        tools.set(Layer::Extension, vec![tool("greet")]);
        assert!(matches!(
            calls.prepare(&tools, 0, &call("greet", json!({}))),
            agent::Prepared::Refused(_)
        ));
        let greet = call("greet", json!({"who": "Ann"}));
        // The process that would rewrite the arguments is gone.
        assert!(!calls.rewrite(&tools, 0, &greet));
        assert!(matches!(calls.prepare(&tools, 0, &greet), agent::Prepared::Run));
        let environment = Environment {
            session: String::new(),
            toolbox: Toolbox::new(ToolsConfig::default(), Reaper::direct()),
            cwd: "/project".into(),
            env: Vec::new(),
            sees_images: false,
            shrinks_images: false,
            tmp_dir: "/tmp".into(),
            checkpoint: None,
            start_line: None,
            task_owner: None,
        };
        calls.run(0, environment);
        let report = calls.next().await;
        match calls.accept(report) {
            Some((0, CallUpdate::Input(agent::ToolInput::Done { result, is_error, .. }))) => {
                assert!(is_error);
                assert_eq!(
                    result.joined_text(),
                    "The extension process is gone: it has just ended"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}
