//! The tool that writes the session's todo list. The list belongs to the machine, so the session carries the writes out.

use std::sync::{Arc, Mutex, PoisonError};

use agent::todo::{self, Op};
use tokio::sync::oneshot;
use tools::ToolOutcome;
use wire::{ToolCall, ToolResult};

use crate::strings;
use permissions::Source;

use super::tool::{Definition, Invocation, PreparedCall, Running, Tool};

/// A write to the list that the session has to carry out.
pub(crate) struct TodoWrite {
    /// Position of the call in its batch.
    pub(crate) slot: usize,
    /// What to change.
    pub(crate) ops: Vec<Op>,
    /// Takes the result.
    pub(crate) done: oneshot::Sender<ToolResult>,
}

/// Writes that wait for the session. Clones share them.
#[derive(Clone, Default)]
pub(super) struct TodoWrites {
    waiting: Arc<Mutex<Vec<TodoWrite>>>,
}

impl TodoWrites {
    /// Takes what waits, in order.
    pub(super) fn take(&self) -> Vec<TodoWrite> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, write: TodoWrite) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(write);
    }
}

/// The tool.
pub(super) struct TodoTool {
    writes: TodoWrites,
}

impl TodoTool {
    /// A tool whose writes go to `writes`.
    pub(super) fn new(writes: TodoWrites) -> Self {
        Self { writes }
    }
}

impl Tool for TodoTool {
    fn name(&self) -> &str {
        todo::TOOL
    }

    fn definition(&self) -> Definition {
        let guidelines = todo::TOOL_GUIDELINES.iter();
        Definition {
            spec: todo::tool_spec(),
            snippet: Some(todo::TOOL_SNIPPET.to_owned()),
            guidelines: Some(guidelines.map(|&rule| rule.to_owned()).collect()),
        }
    }

    fn source(&self) -> Source {
        Source::BuiltIn
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        // The arguments stay as the model wrote them: hooks see them so, and they are parsed when the call runs.
        Op::parse(&call.arguments)?;
        let args = call.arguments.clone();
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        let (done, result) = oneshot::channel();
        // Now and not in the future: the session carries writes out right after the start of the call (`Driver::run_call`).
        self.writes.push(TodoWrite {
            slot: call.slot,
            // Hooks may have changed the arguments into something that is no change of a list: nothing is written then.
            ops: Op::parse(&call.args).unwrap_or_default(),
            done,
        });
        Box::pin(async move {
            match result.await {
                Ok(result) => ToolOutcome::ok(result),
                Err(_) => ToolOutcome::error(strings::ABORTED),
            }
        })
    }
}
