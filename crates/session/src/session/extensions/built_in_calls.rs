//! The agent's own tools, run for extensions that call them as functions (`createBashTool` and its like): without hooks and
//! permissions, since no model asked, in the directory that the extension names. They run in tasks and end when the extension
//! withdraws the request.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use extensions::ExtensionPool;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tools::{Progress, StartLine, ToolContext, ToolOutcome, ToolRequest, Toolbox};

use super::json::put;
use super::request_tasks::RequestTasks;

/// A built-in tool to run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BuiltInCall {
    name: String,
    args: Map<String, Value>,
    cwd: Option<PathBuf>,
    /// Added to the environment of a command.
    env: Map<String, Value>,
}

/// Where built-in tools run.
pub(crate) struct Workplace<'a> {
    pub(crate) toolbox: &'a Toolbox,
    /// The working directory of the session.
    pub(crate) cwd: &'a Path,
    /// Environment of commands.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The model accepts images.
    pub(crate) sees_images: bool,
    /// Where the line that announces the extension's call was sent.
    pub(crate) start_line: Arc<dyn StartLine>,
}

/// Runs a built-in tool for the request with this id. Steps and the outcome are sent to the extension.
pub(crate) fn run_built_in(
    tasks: &mut RequestTasks,
    pool: &ExtensionPool,
    id: u64,
    call: BuiltInCall,
    place: Workplace<'_>,
) {
    let mut env = place.env;
    env.extend(call.env.into_iter().filter_map(|(name, value)| {
        // Only texts: the environment of a command knows nothing else.
        let value = value.as_str()?;
        Some((name.into(), value.into()))
    }));
    let progress = Progress::default();
    let context = ToolContext {
        cwd: place.cwd.join(call.cwd.unwrap_or_default()),
        // Never cancelled: the task is aborted when the request is withdrawn.
        cancel: CancellationToken::new(),
        progress: progress.clone(),
        sees_images: place.sees_images,
        env,
        caller: None,
        // The call of the extension's tool is noted as a whole.
        changes: None,
        start_line: Some(place.start_line),
    };
    let (toolbox, pool) = (place.toolbox.clone(), pool.clone());
    let request = ToolRequest {
        name: call.name,
        args: call.args,
    };
    // An aborted task kills the processes of the tool.
    let task = tokio::spawn(async move {
        let outcome = run(&toolbox, request, context, &progress, &pool, id).await;
        let _sent = pool.answer(id, &shown(&outcome));
    });
    tasks.keep(id, task.abort_handle());
}

/// Runs the tool and sends each step.
async fn run(
    toolbox: &Toolbox,
    request: ToolRequest,
    context: ToolContext,
    progress: &Progress,
    pool: &ExtensionPool,
    id: u64,
) -> ToolOutcome {
    // Not `run_validated`: the arguments come from the extension, and nothing has checked them.
    let running = toolbox.run(request, context);
    tokio::pin!(running);
    let outcome = loop {
        tokio::select! {
            // Partial results first: the extension gets none after the outcome.
            biased;
            // It fails only if nothing waits for the call any more, and then this task is aborted.
            partial = progress.next() => drop(pool.update_now(id, &partial)),
            outcome = &mut running => break outcome,
        }
    };
    if let Some(partial) = progress.take() {
        drop(pool.update_now(id, &partial));
    }
    outcome
}

/// An outcome as extensions know it.
pub(super) fn shown(outcome: &ToolOutcome) -> Value {
    let mut shown = json!(outcome.result);
    put(&mut shown, "isError", json!(outcome.is_error));
    shown
}
