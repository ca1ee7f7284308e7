//! Hook executables: programs of the user's that get one event as JSON on their standard input and answer with JSON or with
//! their exit code. No runtime is needed for them and nothing stays running.
//!
//! What lives here: one run of a hook (`running`), what its exit means
//! (`answering`), those of events without an answer (`telling`). What does not: which hooks there are (`config::hooks`), how answers combine
//! (`extensions::combining`), what a session does with them (`session::extensions`), hooks in TypeScript (`extensions`).

mod answering;
mod running;
mod telling;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use config::hooks::{Finding, Hook, Refused};
use extensions::Answer;
use extensions::line::Failure;
use process::Reaper;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tools::pattern::fits;

use crate::limits;
use extensions::combining::{Combining, Flow, Rule, rule};

use self::telling::Telling;

/// Returns true if a hook subscribes to this event. A pattern can also mean the name of a tool of an MCP server before it was cut.
fn wants(hook: &Hook, name: &str, event: &Value) -> bool {
    let tool = || event.get("toolName").and_then(Value::as_str).unwrap_or_default();
    let means = |item: &String| fits(item, tool()) || ::mcp::may_have_been(item, tool());
    hook.event == name && (hook.tools.is_empty() || hook.tools.iter().any(means))
}

/// Does an executable say nothing about this event? The end of a turn is a notice for them: it must not delay the next turn.
fn is_only_told(event: &str) -> bool {
    rule(event) == Rule::Observe || event == "turn_end"
}

/// The input of a hook in addition to the event.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The member `session`.
    pub(crate) session: Value,
    /// The member `agent`.
    pub(crate) agent: Value,
    /// The environment of tools, with the variables of the session.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The session's working directory, which is theirs, too.
    pub(crate) cwd: PathBuf,
}

/// One run that is to be.
#[derive(Debug)]
struct Job {
    name: String,
    /// The line on its standard input.
    line: Vec<u8>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
}

impl Facts {
    fn job(&self, name: &str, event: &Value) -> Job {
        let line = json!({"event": event, "session": self.session, "agent": self.agent});
        let mut line = line.to_string().into_bytes();
        // Scripts read the event with `read`, which wants a whole line.
        line.push(b'\n');
        let mut env = self.env.clone();
        // Also in the environment, so that a script can choose without parsing JSON.
        env.push(("PI_HOOK_EVENT".into(), name.into()));
        if let Some(tool) = event.get("toolName").and_then(Value::as_str) {
            env.push(("PI_HOOK_TOOL".into(), tool.into()));
        }
        Job {
            name: name.to_owned(),
            line,
            env,
            cwd: self.cwd.clone(),
        }
    }
}

/// The hook executables of a session.
#[derive(Debug)]
pub(crate) struct Hooks {
    hooks: Vec<Arc<Hook>>,
    refused: Vec<Refused>,
    telling: Telling,
    /// How many hooks with an answer may run at the same time. Hooks without an answer do not count.
    at_once: Arc<Semaphore>,
    /// True when no hook is asked any more.
    muted: bool,
}

impl Hooks {
    /// None has run yet.
    pub(crate) fn new(found: Finding) -> Self {
        Self {
            hooks: found.hooks.into_iter().map(Arc::new).collect(),
            refused: found.refused,
            telling: Telling::default(),
            at_once: Arc::new(Semaphore::new(limits::HOOKS_AT_ONCE)),
            muted: false,
        }
    }

    /// What could not be loaded, once. True: it may have been meant to check calls.
    pub(crate) fn take_refused(&mut self) -> Vec<(Failure, bool)> {
        let refused = std::mem::take(&mut self.refused).into_iter();
        let why = |why: String| format!("The hook was not loaded: {why}");
        let failures = refused.map(|refused| {
            let failure = failed(&refused.path.to_string_lossy(), "load", why(refused.why));
            (failure, refused.is_guard)
        });
        failures.collect()
    }

    /// Is one of them run for this event?
    pub(crate) fn has_listener(&self, name: &str) -> bool {
        // Hooks that are only told delay nothing, so the end of the time for hooks does not concern them.
        let silent = self.muted && !is_only_told(name);
        !silent && self.hooks.iter().any(|hook| hook.event == name)
    }

    /// Is one of them asked about this event, and not only told?
    pub(crate) fn answers(&self, name: &str) -> bool {
        !is_only_told(name) && self.has_listener(name)
    }

    /// Stops asking hooks. Hooks without an answer still run.
    pub(crate) fn mute(&mut self) {
        self.muted = true;
    }

    /// The hooks that answer an event; `None` if its hooks have no answer.
    pub(crate) fn asked(&self, name: &str, event: &Value) -> Option<Asked> {
        if !self.answers(name) {
            return None;
        }
        let asked = self.hooks.iter().filter(|hook| wants(hook, name, event));
        let hooks: Vec<Arc<Hook>> = asked.cloned().collect();
        (!hooks.is_empty()).then(|| Asked {
            hooks,
            at_once: Arc::clone(&self.at_once),
        })
    }

    /// Runs the hooks without an answer in a task. Failures come out of `failures`.
    pub(crate) fn tell(
        &mut self,
        name: &str,
        event: &Value,
        facts: &Facts,
        reaper: &Reaper,
        failures: &mpsc::Sender<Failure>,
    ) {
        for (place, hook) in self.hooks.iter().enumerate() {
            if wants(hook, name, event) {
                let job = facts.job(name, event);
                self.telling.tell(place, hook, job, reaper, failures);
            }
        }
    }

    /// Waits until all who were told have ended.
    pub(crate) async fn finish(&mut self) {
        self.telling.finish().await;
    }
}

/// Hooks that are to be asked about one event, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    hooks: Vec<Arc<Hook>>,
    at_once: Arc<Semaphore>,
}

impl Asked {
    /// Asks them one after the other; `first` is the answer before them. A check that cannot be made is failed.
    pub(crate) async fn ask(
        self,
        facts: Facts,
        reaper: Reaper,
        name: String,
        event: Value,
        first: Answer,
    ) -> Answer {
        let mut errors = first.errors;
        let mut combining = Combining::new(&name, event);
        // The extensions answered before: hooks see what they changed, and none is asked after a block.
        let mut flow = note(combining.take(first.value, ""), "<runtime>", &name, &mut errors);
        for hook in self.hooks {
            if flow == Flow::Stop {
                break;
            }
            let label = hook.label();
            // Each hook sees what the hooks before it have changed.
            let job = facts.job(&name, combining.event());
            flow = match run_one(&self.at_once, &reaper, &hook, job).await {
                Ok(value) => note(combining.take(value, &label), &label, &name, &mut errors),
                Err(error) => {
                    errors.push(failed(&label, &name, &error));
                    // Fail closed: a check that could not be made blocks the call.
                    if rule(&name) == Rule::Block {
                        let reason = format!("Hook {label} failed: {error}");
                        let blocked = json!({"block": true, "reason": reason});
                        note(combining.take(blocked, &label), &label, &name, &mut errors)
                    } else {
                        // Other events go on without the hook (dialects.md 10.3).
                        Flow::On
                    }
                }
            };
        }
        Answer {
            value: combining.into_value(),
            errors,
        }
    }
}

/// Runs one when it is its turn, and understands it.
async fn run_one(at_once: &Semaphore, reaper: &Reaper, hook: &Hook, job: Job) -> Result<Value, String> {
    // Never closed.
    let _turn = at_once.acquire().await;
    let name = job.name.clone();
    let exit = running::run(reaper, hook, job).await?;
    answering::answer(&name, exit)
}

fn note(taken: Result<Flow, String>, label: &str, name: &str, errors: &mut Vec<Failure>) -> Flow {
    taken.unwrap_or_else(|error| {
        errors.push(failed(label, name, error));
        Flow::On
    })
}

fn failed(path: &str, event: &str, error: impl ToString) -> Failure {
    Failure {
        path: path.to_owned(),
        event: event.to_owned(),
        error: error.to_string(),
        stack: None,
    }
}
