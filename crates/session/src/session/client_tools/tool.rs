//! A tool that the client carries out.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tools::ToolOutcome;
use wire::{Event, ToolCall, ToolSpec};

use crate::{limits, strings};
use permissions::Source;

use super::super::tool_calls::{Definition, Invocation, PreparedCall, Running, Tool};
use super::client::ClientTools;
use super::definitions::ClientDefinition;
use super::requests::Answer;

/// A tool of the client.
pub(super) struct ClientTool {
    definition: Arc<ClientDefinition>,
    client: ClientTools,
}

impl ClientTool {
    /// The tool with this definition.
    pub(super) fn new(definition: &Arc<ClientDefinition>, client: ClientTools) -> Self {
        let definition = Arc::clone(definition);
        Self { definition, client }
    }
}

/// The first line of a description, for the system prompt.
fn hint(description: &str) -> String {
    let line = description.lines().next().unwrap_or_default();
    let end = line.floor_char_boundary(limits::HOST_HINT);
    line.get(..end).unwrap_or_default().to_owned()
}

impl Tool for ClientTool {
    fn name(&self) -> &str {
        &self.definition.name
    }

    /// The client may have set other tools since a call was prepared. The call is carried out by the tool that has the name
    /// now, so the definition of now counts; without one it says nothing.
    fn definition(&self) -> Definition {
        let now = self.client.definition(&self.definition.name);
        let description = now.as_ref().map_or("", |tool| tool.description.as_str());
        Definition {
            spec: ToolSpec {
                name: self.definition.name.clone(),
                description: description.to_owned(),
                parameters: now
                    .as_ref()
                    .map_or(Value::Null, |tool| tool.schema.schema().clone()),
                prefers_strict: false,
            },
            snippet: Some(hint(description)),
            guidelines: None,
        }
    }

    fn source(&self) -> Source {
        Source::Client
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        // The client is asked only with arguments that fit its schema (dialects.md 7).
        let args = self.definition.schema.prepare(&call.name, &call.arguments)?;
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        let Invocation {
            slot,
            id: tool_call_id,
            args: arguments,
            cancel,
            progress,
            ..
        } = call;
        let (updates, mut news) = mpsc::channel(limits::CLIENT_UPDATES);
        let (done, mut outcome) = oneshot::channel();
        let (client, name) = (self.client.clone(), self.definition.name.clone());
        // A call that was stopped before it began asks nothing. `done` is dropped then, which ends the call.
        if !cancel.is_cancelled() {
            let tool_name = name.clone();
            client.request(slot, Answer::Tool { updates, done }, |id| Event::HostToolCall {
                id,
                tool_call_id,
                tool_name,
                arguments,
            });
        }
        Box::pin(async move {
            let given_up = || {
                // The protocol has a text of its own for the end of stdin (dialects.md 7).
                ToolOutcome::error(if client.is_gone() {
                    strings::HOST_GONE_TOOL.to_owned()
                } else {
                    strings::host_tool_aborted(&name)
                })
            };
            loop {
                tokio::select! {
                    biased;
                    // Partial results first, since the client sent them before the result.
                    Some(partial) = news.recv() => progress.send(partial).await,
                    // The request was withdrawn, or never sent.
                    outcome = &mut outcome => return outcome.unwrap_or_else(|_| given_up()),
                    () = cancel.cancelled() => return given_up(),
                }
            }
        })
    }
}
