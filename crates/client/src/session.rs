//! A session of the agent: any command, runs, events, tools. Commands with names of their own are in `commands`.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::events::Events;
use crate::link::Link;
use crate::run::{Prompt, Run};
use crate::tool::HostTool;

/// A session of the agent. Copies mean the same session.
#[derive(Debug, Clone)]
pub struct Session {
    link: Arc<Link>,
    handle: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolNames {
    tool_names: Vec<String>,
}

impl Session {
    pub(crate) fn new(link: Arc<Link>, handle: Option<String>) -> Self {
        Self { link, handle }
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Its name in the protocol; none for the first session.
    #[must_use]
    pub fn handle(&self) -> Option<&str> {
        self.handle.as_deref()
    }

    /// Sends any command and gives what it answers. Parameters are an object; members that are null are left out.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::TimedOut`], [`Error::Exited`]; [`Error::Protocol`] when the answer is no `R`, cannot be
    /// read, or holds more than 250 containers inside each other; [`Session::tree`] and
    /// [`Session::call_raw`] have no such limit.
    pub async fn call<R: DeserializeOwned>(
        &self,
        command: &str,
        params: &(impl Serialize + Sync),
    ) -> Result<R> {
        self.link.call(self.handle(), command, params).await
    }

    /// Sends any command and returns the JSON text of its answer, of any depth.
    ///
    /// # Errors
    /// As [`Session::call`], except errors of parsing.
    pub async fn call_raw(&self, command: &str, params: &(impl Serialize + Sync)) -> Result<Box<RawValue>> {
        self.link.call_raw(self.handle(), command, params).await
    }

    /// Prompts and gives what follows.
    ///
    /// # Errors
    /// Those of [`Session::call`].
    pub async fn run(&self, prompt: impl Into<Prompt>) -> Result<Run> {
        let prompt = prompt.into();
        let (accepted, events) = self
            .link
            .call_and_listen(self.handle(), "prompt", &prompt)
            .await?;
        Ok(Run::new(self.clone(), events, accepted))
    }

    /// Prompts and returns the text of the last answer.
    ///
    /// # Errors
    /// [`Error::Failed`] if the model failed or the run was aborted, and the errors of [`Session::call`].
    pub async fn ask(&self, prompt: impl Into<Prompt>) -> Result<String> {
        Ok(self.run(prompt).await?.finish().await?.checked()?.text)
    }

    /// Prompts and returns a value that fits the JSON Schema.
    ///
    /// # Errors
    /// Those of [`Outcome::into_result`](crate::Outcome::into_result) and of [`Session::call`].
    pub async fn ask_json<T: DeserializeOwned>(&self, prompt: impl Into<Prompt>, schema: Value) -> Result<T> {
        let prompt = prompt.into().output_schema(schema);
        self.run(prompt).await?.finish().await?.into_result()
    }

    /// Like [`Session::ask`], with a time limit after which the run is aborted.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and the errors of [`Session::ask`].
    pub async fn ask_within(&self, prompt: impl Into<Prompt>, limit: Duration) -> Result<String> {
        match timeout(limit, self.ask(prompt)).await {
            Ok(answer) => answer,
            Err(_) => {
                let abort = crate::link::line("abort", None, self.handle(), json!({}));
                self.link.write(&abort).await?;
                Err(Error::timed_out("no complete answer", limit))
            }
        }
    }

    /// Everything this session says from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.link.events(self.handle())
    }

    /// Gives the session these tools in place of those it was given before. Needs an agent with host tools.
    ///
    /// # Errors
    /// [`Error::Refused`] when a definition is wrong; the tools before remain.
    pub async fn set_tools(&self, tools: Vec<HostTool>) -> Result<Vec<String>> {
        let definitions: Vec<_> = tools.iter().map(|tool| tool.definition().clone()).collect();
        // The new ones can be called from the moment the agent knows them.
        let before = self.link.replace_tools(self.handle(), tools);
        let answer = self
            .call::<ToolNames>("set_host_tools", &json!({ "tools": definitions }))
            .await;
        match answer {
            Ok(names) => Ok(names.tool_names),
            Err(error) => {
                // After any other error the agent may still take the new ones.
                if matches!(error, Error::Refused { .. }) {
                    self.link.replace_tools(self.handle(), before);
                }
                Err(error)
            }
        }
    }

    /// Closes the session; the agent goes on.
    ///
    /// # Errors
    /// Those of [`Session::call`].
    pub async fn close_session(&self) -> Result<()> {
        self.call::<Value>("close_session", &json!({})).await?;
        self.link.forget(self.handle());
        Ok(())
    }
}
