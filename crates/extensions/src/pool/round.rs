//! One event on its way through several processes: each is asked with what those before it made of it.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::ExtensionPaths;
use crate::combining::{Combining, Flow, Rule, rule};
use crate::error::ProcessError;
use crate::line::Failure;
use crate::process::{Answer, ExtensionProcess, PendingAnswer};

/// One event on its way to its listeners, one after the other.
pub(super) struct Round {
    session: String,
    name: String,
    combining: Combining,
    errors: Vec<Failure>,
    /// Cancelled when the answer will not be used.
    cancel: CancellationToken,
}

impl Round {
    pub(super) fn new(session: &str, name: &str, event: Value, cancel: CancellationToken) -> Self {
        Self {
            session: session.to_owned(),
            name: name.to_owned(),
            combining: Combining::new(name, event),
            errors: Vec::new(),
            cancel,
        }
    }

    /// Asks the others when the first, who was asked already, has answered.
    pub(super) async fn go(
        mut self,
        first: (PendingAnswer, ExtensionPaths),
        rest: Vec<(ExtensionProcess, ExtensionPaths)>,
    ) -> Result<Answer, ProcessError> {
        let (mut asking, mut whose) = first;
        let mut rest = rest.into_iter();
        loop {
            let answer = asking.cancelled_by(&self.cancel).await;
            if self.take(answer, &whose)? == Flow::Stop || self.cancel.is_cancelled() {
                return self.end();
            }
            asking = loop {
                let Some((process, next)) = rest.next() else {
                    return self.end();
                };
                match process.event(&self.session, &self.name, self.combining.event()) {
                    Ok(asking) => {
                        whose = next;
                        break asking.blaming(&whose);
                    }
                    Err(error) => drop(self.take(Err(error), &next)?),
                }
            };
        }
    }

    /// Takes an answer in. Who fails is left out, but not where a call waits for its permission.
    fn take(
        &mut self,
        answer: Result<Answer, ProcessError>,
        whose: &ExtensionPaths,
    ) -> Result<Flow, ProcessError> {
        let from = whose.first().map(String::as_str).unwrap_or_default();
        let error = match answer {
            Ok(answer) => {
                self.errors.extend(answer.errors);
                match self.combining.take(answer.value, from) {
                    Ok(flow) => return Ok(flow),
                    Err(error) => error,
                }
            }
            Err(error) if self.is_check() => return Err(error),
            // It may have run the command of the user already, which must not run a second time.
            Err(error @ ProcessError::Gone(_)) if self.name == "user_bash" => return Err(error),
            // The end of a process is reported elsewhere.
            Err(ProcessError::Gone(_)) => return Ok(Flow::On),
            Err(error) => error.to_string(),
        };
        self.errors.push(Failure {
            path: from.to_owned(),
            event: self.name.clone(),
            error,
            stack: None,
        });
        Ok(Flow::On)
    }

    fn is_check(&self) -> bool {
        rule(&self.name) == Rule::Block
    }

    fn end(self) -> Result<Answer, ProcessError> {
        let is_open = self.is_check() && self.cancel.is_cancelled();
        let value = self.combining.into_value();
        if is_open && value.get("block").is_none() {
            return Err(ProcessError::Failed("The check was cancelled".to_owned()));
        }
        let errors = self.errors;
        Ok(Answer { value, errors })
    }
}
