//! Tools that the host gives to the agent (dialects.md 7): their descriptions for the model, and a call in progress.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use wire::ToolResult;

use crate::error::Result;
use crate::link::Link;

/// Any error of a tool; its text is what the model sees.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

type Function =
    dyn Fn(ToolCall) -> BoxFuture<'static, std::result::Result<ToolResult, BoxError>> + Send + Sync;

/// A tool of the host.
#[derive(Clone)]
pub struct HostTool {
    definition: Map<String, Value>,
    function: Arc<Function>,
}

impl HostTool {
    /// A tool with a name, a description for the model, and the JSON Schema of its arguments.
    ///
    /// The future is dropped when the agent no longer wants the result. If it panics, the model gets an error.
    pub fn new<F, W>(name: &str, description: &str, parameters: Value, function: F) -> Self
    where
        F: Fn(ToolCall) -> W + Send + Sync + 'static,
        W: Future<Output = std::result::Result<ToolResult, BoxError>> + Send + 'static,
    {
        let definition = json!({ "name": name, "description": description, "parameters": parameters });
        Self {
            definition: definition.as_object().cloned().unwrap_or_default(),
            function: Arc::new(move |call| function(call).boxed()),
        }
    }

    /// With another name for people.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self {
        self.definition.insert("label".to_owned(), label.into());
        self
    }

    /// Registered, but not shown to the model until it is activated by name.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.definition.insert("hidden".to_owned(), true.into());
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.definition
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The tool as `set_host_tools` takes it.
    pub(crate) fn definition(&self) -> &Map<String, Value> {
        &self.definition
    }

    /// Carries out a call.
    pub(crate) fn run(
        &self,
        call: ToolCall,
    ) -> BoxFuture<'static, std::result::Result<ToolResult, BoxError>> {
        (self.function)(call)
    }
}

impl fmt::Debug for HostTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HostTool")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}

/// A call as it comes in.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallFrame {
    pub(crate) id: String,
    #[serde(default)]
    tool_call_id: String,
    pub(crate) tool_name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    pub(crate) session: Option<String>,
}

/// A call under way.
#[derive(Debug, Clone)]
pub struct ToolCall {
    frame: CallFrame,
    link: Arc<Link>,
}

impl ToolCall {
    pub(crate) fn new(frame: CallFrame, link: Arc<Link>) -> Self {
        Self { frame, link }
    }

    /// The tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.frame.tool_name
    }

    /// The model's id of the call, as in `tool_execution_start`.
    #[must_use]
    pub fn tool_call_id(&self) -> &str {
        &self.frame.tool_call_id
    }

    /// Handle of the session that calls; none for the first.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.frame.session.as_deref()
    }

    /// The arguments, checked against the schema by the agent.
    #[must_use]
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.frame.arguments
    }

    /// The arguments as a type of yours.
    ///
    /// # Errors
    /// When they do not fit. Return it with `?`, and the model gets the error.
    pub fn parse<T: DeserializeOwned>(&self) -> std::result::Result<T, serde_json::Error> {
        serde_json::from_value(Value::Object(self.frame.arguments.clone()))
    }

    /// Reports progress. Each update replaces the one before.
    ///
    /// # Errors
    /// When the agent is gone or does not read.
    pub async fn update(&self, so_far: &ToolResult) -> Result<()> {
        self.link
            .write(&self.line("host_tool_update", json!({ "partialResult": so_far })))
            .await
    }

    /// A line about this call.
    pub(crate) fn line(&self, kind: &str, members: Value) -> Map<String, Value> {
        crate::link::line(kind, Some(&self.frame.id), self.session(), members)
    }
}
