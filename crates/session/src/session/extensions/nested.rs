//! Calls that a tool of an extension makes while it runs itself (`ctx.executeTool`). The machine prepares and runs them with
//! hooks and permissions, as if the model had asked; here requests come in and answers leave.

use agent::{Input, NestedCall};
use serde_json::{Value, json};
use tools::pattern::fits;
use wire::ToolResult;

use crate::limits;

use super::super::Session;
use super::put;

impl Session {
    /// A tool of an extension calls another one.
    pub(in crate::session) async fn nest(
        &mut self,
        request: Option<u64>,
        params: &Value,
    ) -> Result<(), String> {
        let text = |name: &str| {
            params
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (name, parent) = (text("name"), text("callerId"));
        let open = self
            .machine
            .nested_calls(&parent)
            .ok_or("executeTool is only there while the tool runs that calls it")?;
        if open >= limits::NESTED_CALLS {
            return Err(format!(
                "{} calls of tools are running already",
                limits::NESTED_CALLS
            ));
        }
        if !self.may_nest(&name) {
            return Err(self.tools.not_found(&name));
        }
        let args = params
            .get("args")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let call = NestedCall {
            request,
            parent,
            name,
            args,
        };
        self.drive(Input::Nest(call)).await;
        Ok(())
    }

    /// Tools that the command line leaves out stay out.
    fn may_nest(&self, name: &str) -> bool {
        let options = &self.agent.options;
        let named = |list: &[String]| list.iter().any(|item| fits(item, name));
        self.tools.is_active(name)
            || (!named(&options.excluded_tools) && options.only_tools.as_ref().is_none_or(|only| named(only)))
    }

    /// A call that a tool of an extension made has ended.
    pub(in crate::session) fn answer_nested(&mut self, request: u64, result: ToolResult, is_error: bool) {
        let mut answer = json!(result);
        put(&mut answer, "isError", json!(is_error));
        self.answer_later(Some(request), Ok(answer));
    }

    /// A call that a tool of an extension made has come further.
    pub(in crate::session) fn update_nested(&self, request: u64, partial: &ToolResult) {
        if let Some(process) = self.extensions.links.pool() {
            // Text that is no JSON is no update.
            let _sent = process.update_now(request, partial);
        }
    }
}
