//! The tool with which a model gives the result of a run whose prompt has a schema (docs/guides/results.md). It exists only while such a
//! run wants a result.

use std::sync::Arc;

use agent::output;
use permissions::Source;
use serde_json::{Map, Value};
use tools::{OutputSchema, ToolOutcome};
use wire::{ToolCall, ToolResult, ToolSpec};

use super::tool::{Access, Definition, Invocation, Place, PreparedCall, Running, Tool};

const DESCRIPTION: &str = "Gives the result of your work to the program that asked for it. Call it once, when the work is done: the \
                           work ends with this call. The program reads only these arguments, no text.";

const ACCEPTED: &str = "The result is accepted.";

/// The tool for one schema.
pub(super) struct ResultTool {
    schema: Arc<OutputSchema>,
}

impl ResultTool {
    /// The tool for results that fit `schema`.
    pub(super) fn new(schema: Arc<OutputSchema>) -> Self {
        Self { schema }
    }
}

impl Tool for ResultTool {
    fn name(&self) -> &str {
        output::TOOL
    }

    fn definition(&self) -> Definition {
        Definition {
            spec: ToolSpec {
                name: output::TOOL.to_owned(),
                description: DESCRIPTION.to_owned(),
                parameters: self.schema.parameters(),
                prefers_strict: false,
            },
            // The system prompt never lists it: a prompt that changed with each run would be in no provider's cache.
            snippet: None,
            guidelines: None,
        }
    }

    fn source(&self) -> Source {
        Source::BuiltIn
    }

    fn access(&self, _: &Map<String, Value>, _: Place<'_>) -> Access {
        Access::Nothing
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        // Only checked: hooks see the arguments as the model wrote them, and the value is made when the call runs.
        self.schema.result(output::TOOL, &call.arguments)?;
        let args = call.arguments.clone();
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        // Hooks may have changed the arguments.
        let outcome = match self.schema.result(output::TOOL, &call.args) {
            Ok(value) => ToolOutcome::ok(ToolResult {
                // The machine takes the result of the run from here (`agent::output`).
                structured_content: Some(value),
                // Without it the model would be asked again (pi-core.md 1.3).
                terminate: Some(true),
                ..ToolResult::text(ACCEPTED)
            }),
            Err(error) => ToolOutcome::error(error),
        };
        Box::pin(std::future::ready(outcome))
    }
}
