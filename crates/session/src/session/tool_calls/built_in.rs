//! The built-in tools of the agent. How they work is in the crate `tools`.

use std::sync::Arc;

use serde_json::{Map, Value};
use tools::client::Caller;
use tools::{Progress, ToolContext, ToolInfo, ToolRequest, Toolbox};
use wire::{Dialect, ToolCall};

use permissions::Source;

use crate::session::checkpoints::TurnCheckpoint;

use super::tool::{Access, Definition, Environment, Invocation, Place, PreparedCall, Running, Tool};

/// A built-in tool.
struct BuiltInTool(&'static ToolInfo, Dialect);

/// The built-in tools in their order. Errors of arguments have the words of `dialect`.
pub(crate) fn built_in_tools(dialect: Dialect) -> Vec<Arc<dyn Tool>> {
    let tools = Toolbox::infos().iter();
    tools
        .map(|info| -> Arc<dyn Tool> { Arc::new(BuiltInTool(info, dialect)) })
        .collect()
}

/// What a call of the built-in tool of this name gets access to. An extension that replaces the tool does the same kind of
/// thing, so rules for commands and files hold for it, too.
pub(crate) fn built_in_access(name: &str, args: &Map<String, Value>, place: Place<'_>) -> Access {
    if name == "bash" {
        let command = args.get("command").and_then(Value::as_str);
        return Access::Command(command.unwrap_or_default().to_owned());
    }
    let target = place.toolbox.target(name, args, place.cwd);
    // Tools of extensions are judged here, too. Of a name that no file tool has, nothing is known.
    target.map_or(Access::Unknown, Access::File)
}

impl Tool for BuiltInTool {
    fn name(&self) -> &str {
        &self.0.spec.name
    }

    fn definition(&self) -> Definition {
        let guidelines = self.0.guidelines.iter();
        Definition {
            spec: self.0.spec.clone(),
            snippet: Some(self.0.snippet.to_owned()),
            guidelines: Some(guidelines.map(|&rule| rule.to_owned()).collect()),
        }
    }

    fn source(&self) -> Source {
        Source::BuiltIn
    }

    fn access(&self, args: &Map<String, Value>, place: Place<'_>) -> Access {
        built_in_access(self.name(), args, place)
    }

    fn repaired(&self, call: &ToolCall) -> Option<Map<String, Value>> {
        Toolbox::repaired(self.name(), &call.arguments)
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        let args = Toolbox::prepare(self.name(), &call.arguments, self.1)?;
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        let Environment {
            toolbox,
            cwd,
            env,
            sees_images,
            session,
            checkpoint,
            start_line,
            ..
        } = call.environment;
        let request = ToolRequest {
            name: self.name().to_owned(),
            args: call.args,
        };
        // A command may write faster than clients read, so that only its newest partial result counts.
        let updates = Progress::default();
        let context = ToolContext {
            cwd,
            cancel: call.cancel,
            progress: updates.clone(),
            sees_images,
            env,
            caller: Some(Caller {
                session,
                call: call.id,
            }),
            // For `edit` and `write`, which report what they change. Other calls have a checkpoint of their own (`begin_call`).
            changes: checkpoint.map(TurnCheckpoint::recorder),
            start_line,
        };
        let progress = call.progress;
        Box::pin(async move {
            let running = toolbox.run_validated(request, context);
            tokio::pin!(running);
            let outcome = loop {
                tokio::select! {
                    // The partial result first: clients get none after the end of the call.
                    biased;
                    partial = updates.next() => progress.send(partial).await,
                    outcome = &mut running => break outcome,
                }
            };
            // The newest partial result may not have been sent.
            if let Some(partial) = updates.take() {
                progress.send(partial).await;
            }
            outcome
        })
    }
}
