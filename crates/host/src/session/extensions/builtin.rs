//! The agent's own tools, run for extensions that call them as functions (`createBashTool` and its like): without hooks and
//! permissions, since no model asked, in the directory that the extension names. Beside the session; whoever withdraws the
//! call ends it.

use std::path::PathBuf;

use door::Doors;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tools::{Progress, ToolContext, ToolOutcome, ToolRequest, Toolbox};

use crate::agent::Agent;

use super::super::Session;

/// What is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    name: String,
    args: Map<String, Value>,
    cwd: Option<PathBuf>,
    /// Added to the environment of a command.
    env: Map<String, Value>,
}

impl Session {
    /// Runs one of our tools for the call with this id.
    pub(super) fn run_builtin(&mut self, id: Option<u64>, params: Value) -> Result<(), String> {
        let wanted: Wanted = serde_json::from_value(params).map_err(|error| error.to_string())?;
        let (Some(id), Some(door)) = (id, self.extensions.door.clone()) else {
            return Err("a tool that nobody waits for is not run".to_owned());
        };
        let file = self.file_text();
        let mut env = Agent::tool_env(&self.log.header().id, file.as_deref(), Some(&self.model));
        env.extend(wanted.env.into_iter().filter_map(|(name, value)| {
            let value = value.as_str()?;
            Some((name.into(), value.into()))
        }));
        let progress = Progress::default();
        let context = ToolContext {
            cwd: self.cwd.join(wanted.cwd.unwrap_or_default()),
            cancel: CancellationToken::new(),
            progress: progress.clone(),
            sees_images: self.model.sees_images(),
            env,
        };
        let toolbox = self.agent.toolbox.clone();
        let request = ToolRequest {
            name: wanted.name,
            args: wanted.args,
        };
        // Dropping it kills what it started.
        let task = tokio::spawn(async move {
            let outcome = run(&toolbox, request, context, &progress, &door, id).await;
            let _sent = door.answer(id, &shown(&outcome));
        });
        self.extensions.keep_task(id, task.abort_handle());
        Ok(())
    }
}

/// Runs the tool and tells each step.
async fn run(
    toolbox: &Toolbox,
    request: ToolRequest,
    context: ToolContext,
    progress: &Progress,
    door: &Doors,
    id: u64,
) -> ToolOutcome {
    let running = toolbox.run(request, context);
    tokio::pin!(running);
    let outcome = loop {
        tokio::select! {
            biased;
            partial = progress.next() => drop(door.update_now(id, &partial)),
            outcome = &mut running => break outcome,
        }
    };
    if let Some(partial) = progress.take() {
        drop(door.update_now(id, &partial));
    }
    outcome
}

/// An outcome as extensions know it.
pub(super) fn shown(outcome: &ToolOutcome) -> Value {
    let mut shown = json!(outcome.result);
    super::put(&mut shown, "isError", json!(outcome.is_error));
    shown
}
