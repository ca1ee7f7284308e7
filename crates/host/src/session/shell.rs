//! Shell commands of the user (`bash`): several at once, told to the model with its next request (pi-core.md 1.13).

use std::sync::Arc;

use pinion_core::Change;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::{BashRun, UserBash};
use wire::command::BashParams;
use wire::state::BashResult;
use wire::table::Respond;
use wire::{BashExecutionMessage, Event, Message};

use crate::limits;
use crate::outbox::{Origin, Responder};
use crate::strings;

use super::Session;
use super::drive::now_ms;

/// News of a command.
pub(super) enum ShellReport {
    /// It printed something.
    Output(Shell, String),
    /// It ended, or could not be started.
    Done(
        Box<Responder<BashResult>>,
        BashParams,
        Shell,
        Result<BashRun, String>,
    ),
}

/// How a command is known.
#[derive(Debug, Clone)]
pub(super) struct Shell {
    /// The client's id of it.
    id: Option<serde_json::Value>,
    /// Ours.
    bash_id: String,
}

/// The user's commands that run.
pub(super) struct Shells {
    pub(super) reports: mpsc::Receiver<ShellReport>,
    sender: mpsc::Sender<ShellReport>,
    cancel: CancellationToken,
    running: usize,
    /// How many there were.
    made: u64,
}

impl Shells {
    pub(super) fn new() -> Self {
        let (sender, reports) = mpsc::channel(limits::REPORTS);
        Self {
            reports,
            sender,
            cancel: CancellationToken::new(),
            running: 0,
            made: 0,
        }
    }

    /// How many there were.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// So many there were before.
    pub(super) fn go_on_from(&mut self, made: u64) {
        self.made = made;
    }

    /// Does any of them run?
    pub(super) fn are_running(&self) -> bool {
        self.running > 0
    }

    /// Kills all that run; later ones are not touched.
    pub(super) fn cancel(&mut self) {
        self.cancel.cancel();
        self.cancel = CancellationToken::new();
    }
}

impl Session {
    pub(super) async fn bash_now(&mut self, responder: Responder<BashResult>, params: BashParams) {
        if self.shells.running >= limits::BASH_RUNNING {
            let error = strings::too_many_commands(limits::BASH_RUNNING);
            responder.refuse(error).await;
            return;
        }
        let shell = self.shell_began(responder.origin(), &params).await;
        let (sender, cancel) = (self.shells.sender.clone(), self.shells.cancel.clone());
        let toolbox = self.agent.toolbox.clone();
        let cwd = self.cwd.clone();
        tokio::spawn(async move {
            let (output, mut pieces) = mpsc::channel(limits::REPORTS);
            let request = UserBash {
                command: params.command.clone(),
                cwd,
                cancel,
                deltas: Some(output),
                env: Vec::new(),
            };
            let running = toolbox.user_bash(request);
            tokio::pin!(running);
            let outcome = loop {
                tokio::select! {
                    biased;
                    Some(piece) = pieces.recv() => {
                        let _gone = sender.send(ShellReport::Output(shell.clone(), piece)).await;
                    }
                    outcome = &mut running => break outcome,
                }
            };
            while let Ok(piece) = pieces.try_recv() {
                let _gone = sender.send(ShellReport::Output(shell.clone(), piece)).await;
            }
            let outcome = outcome.map_err(|error| error.to_string());
            let _gone = sender
                .send(ShellReport::Done(Box::new(responder), params, shell, outcome))
                .await;
        });
    }

    /// A command begins, whoever runs it.
    pub(super) async fn shell_began(&mut self, origin: &Origin, params: &BashParams) -> Shell {
        self.shells.running += 1;
        self.shells.made += 1;
        let id = origin.id.as_ref();
        let shell = Shell {
            id: id.and_then(|id| serde_json::from_str(id.get()).ok()),
            bash_id: format!("b{}", self.shells.made),
        };
        let event = Event::BashExecutionStart {
            id: shell.id.clone(),
            command_id: None,
            bash_id: shell.bash_id.clone(),
            command: params.command.clone(),
            exclude_from_context: params.exclude_from_context,
        };
        self.outbox.tell(event).await;
        shell
    }

    pub(super) async fn on_shell(&mut self, report: ShellReport) {
        let (responder, params, shell, outcome) = match report {
            ShellReport::Output(shell, delta) => {
                let event = Event::BashExecutionUpdate {
                    id: shell.id,
                    command_id: None,
                    bash_id: Some(shell.bash_id),
                    delta,
                };
                return self.outbox.tell(event).await;
            }
            ShellReport::Done(responder, params, shell, outcome) => (*responder, params, shell, outcome),
        };
        self.shells.running -= 1;
        let (result, outcome) = match outcome {
            Ok(run) => {
                self.parked.push(message(&params, &run));
                let mut is_stored = true;
                if self.machine.is_idle() {
                    is_stored = self.unpark().await;
                    self.hear();
                }
                let result = answer(run);
                let outcome = if is_stored {
                    Ok(result.clone())
                } else {
                    Err(strings::ran_unstored(result.exit_code, self.storage_error()))
                };
                (result, outcome)
            }
            Err(error) => (nothing(), Err(error)),
        };
        let error = outcome.as_ref().err().cloned();
        self.outbox.tell(ended(shell, params, result, error)).await;
        responder.respond(outcome).await;
    }

    /// Writes down commands that ended during a run. Not before the run is over: a tool call and its result must stay next
    /// to each other. Returns false if they wait to be written.
    pub(super) async fn unpark(&mut self) -> bool {
        let mut is_stored = true;
        for bash in std::mem::take(&mut self.parked) {
            let message = Arc::new(Message::BashExecution(bash));
            is_stored &= self.persist(Arc::clone(&message)).await;
            self.unheard.push(message);
        }
        is_stored
    }

    /// Commands that ended during a run become part of the conversation with the next prompt (behaviour.md 10).
    pub(super) fn hear(&mut self) {
        for message in std::mem::take(&mut self.unheard) {
            self.step(Change::Add(message).into());
        }
    }
}

/// What clients are told that did not ask for it.
fn ended(shell: Shell, params: BashParams, result: BashResult, error: Option<String>) -> Event {
    Event::BashExecutionEnd {
        id: shell.id,
        command_id: None,
        bash_id: shell.bash_id,
        command: params.command,
        exclude_from_context: params.exclude_from_context,
        result,
        error,
    }
}

/// The result of a command that could not be started.
fn nothing() -> BashResult {
    BashResult {
        output: String::new(),
        exit_code: None,
        cancelled: false,
        truncated: false,
        full_output_path: None,
        counts: None,
    }
}

fn message(params: &BashParams, run: &BashRun) -> BashExecutionMessage {
    BashExecutionMessage {
        command: params.command.clone(),
        output: run.output.clone(),
        exit_code: run.exit_code,
        cancelled: run.cancelled,
        truncated: run.truncated,
        full_output_path: run.full_output_path.clone(),
        exclude_from_context: params.exclude_from_context,
        timestamp: now_ms(),
        extra: wire::Extra::default(),
    }
}

fn answer(run: BashRun) -> BashResult {
    BashResult {
        output: run.output,
        exit_code: run.exit_code,
        cancelled: run.cancelled,
        truncated: run.truncated,
        full_output_path: run.full_output_path,
        counts: Some(run.counts),
    }
}
