//! The listeners of an event: processes with extensions, then hook executables.

use extensions::combining::{Rule, rule};
use extensions::{Answer, ExtensionPool, ProcessError};
use process::Reaper;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::hooks::{Asked, Facts};

use super::failures::failure;

/// The listeners of an event.
#[derive(Clone)]
pub(crate) struct Listeners {
    /// The processes, when an extension in one of them listens, and what they call the session.
    pub(super) process: Option<(ExtensionPool, String)>,
    /// Executables, and the state of the session that they receive.
    pub(super) hooks: Option<(Asked, Facts)>,
    pub(super) reaper: Reaper,
}

impl Listeners {
    /// Asks all of them; the question is on its way at once.
    pub(crate) fn ask(
        self,
        name: &str,
        event: &Value,
    ) -> impl Future<Output = Result<Answer, ProcessError>> + Send + use<> {
        self.ask_until(name, event, CancellationToken::new())
    }

    /// Asks all of them, until `cancel` is cancelled. Then the process that is asked learns of it, its answer still counts, and the others
    /// are not asked any more.
    pub(crate) fn ask_until(
        self,
        name: &str,
        event: &Value,
        cancel: CancellationToken,
    ) -> impl Future<Output = Result<Answer, ProcessError>> + Send + use<> {
        let process = self.process.as_ref();
        let asking = process.map(|(process, handle)| process.event(handle, name, event));
        let after = self
            .hooks
            .map(|(hooks, facts)| (hooks, facts, event.clone(), name.to_owned()));
        async move {
            let first = match asking {
                Some(asking) => asking?.cancelled_by(&cancel).await,
                None => Ok(Answer::default()),
            };
            let Some((hooks, facts, event, name)) = after.filter(|_| !cancel.is_cancelled()) else {
                return first;
            };
            let first = match first {
                Ok(first) => first,
                // If a checker of a call cannot answer, no other listener replaces its answer.
                Err(error) if is_gate(&name) => return Err(error),
                // Other events go on to the hooks (dialects.md 10.3); the failure is reported with their answer.
                Err(error) => Answer {
                    value: Value::Null,
                    errors: vec![failure("<runtime>", &name, error)],
                },
            };
            Ok(hooks.ask(facts, self.reaper, name, event, first).await)
        }
    }
}

/// Returns true if the answer to an event decides whether a call runs.
fn is_gate(event: &str) -> bool {
    // `user_bash` takes the first answer: without that of a failed checker, the user's command must not run either.
    matches!(rule(event), Rule::Block | Rule::First(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_answers_that_block_are_gates() {
        assert!(is_gate("tool_call"));
        for event in ["tool_result", "agent_end", "message_end", "nothing"] {
            assert!(!is_gate(event), "{event}");
        }
    }

    #[tokio::test]
    async fn event_without_listeners_has_empty_answer() {
        let listeners = Listeners {
            process: None,
            hooks: None,
            reaper: Reaper::direct(),
        };
        let answer = listeners.ask("tool_call", &json!({})).await.unwrap();
        assert!(answer.value.is_null() && answer.errors.is_empty());
    }
}
