//! What a prompt says about the run that it starts: limits, fallback models, the schema of its result.

use std::sync::Arc;

use agent::output;
use models::Registry;
use serde_json::Value;
use tools::OutputSchema;
use wire::command::PromptParams;
use wire::{Model, RunLimits};

use super::fallbacks::check_names;
use super::run_limits::check_new;
use super::tool_calls::ToolRegistry;

/// The options of a prompt.
#[derive(Debug, Default)]
pub(super) struct RunOptions {
    /// Limits of the run, in addition to those of the session.
    limits: Option<RunLimits>,
    /// Fallback models of the run, instead of those of the session.
    pub(super) fallbacks: Option<Vec<String>>,
    output_schema: Option<Value>,
}

/// Options that were checked.
#[derive(Debug, Default)]
pub(super) struct CheckedOptions {
    /// Limits of the run, in addition to those of the session.
    pub(super) limits: Option<RunLimits>,
    /// Fallback models of the run, instead of those of the session.
    pub(super) fallbacks: Option<Vec<String>>,
    /// The schema of the result.
    pub(super) output: Option<Arc<OutputSchema>>,
}

impl RunOptions {
    /// Takes the options out of a prompt.
    pub(super) fn take(params: &mut PromptParams) -> Self {
        Self {
            limits: params.limits.take(),
            fallbacks: params.fallback_models.take(),
            output_schema: params.output_schema.take(),
        }
    }

    /// Returns true if the prompt says nothing about its run, so that it may wait in a queue.
    pub(super) fn is_empty(&self) -> bool {
        self.limits.is_none() && self.fallbacks.is_none() && self.output_schema.is_none()
    }

    /// Checks the options for a run that asks `model` first.
    ///
    /// # Errors
    /// A sentence for the client.
    pub(super) fn check(
        self,
        model: &Model,
        registry: &Registry,
        tools: &ToolRegistry,
    ) -> Result<CheckedOptions, String> {
        if let Some(limits) = self.limits {
            check_new(limits, [model])?;
        }
        check_names(registry, self.fallbacks.as_deref().unwrap_or_default())?;
        // During the run a call of this name would be taken for the result, and the other tool could not be called.
        if self.output_schema.is_some() && tools.hides_result_tool() {
            let name = output::TOOL;
            return Err(format!(
                "outputSchema needs a tool named {name}, and another tool has that name"
            ));
        }
        // A schema that cannot be checked completely is refused before anything runs (GUARANTEES.md, 86).
        let output = self.output_schema.map(OutputSchema::new).transpose()?;
        Ok(CheckedOptions {
            limits: self.limits,
            fallbacks: self.fallbacks,
            output: output.map(Arc::new),
        })
    }
}

impl CheckedOptions {
    /// Returns true if the prompt says nothing about its run.
    pub(super) fn is_empty(&self) -> bool {
        self.limits.is_none() && self.fallbacks.is_none() && self.output.is_none()
    }
}
