//! Shell commands of the user (`bash`). Several may run at once. Their output is stored when no run is active, because a tool call
//! and its result must stay next to each other, and the model gets it with the next prompt.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::{BashRun, Toolbox, UserBash, UserOutput};
use wire::command::BashParams;
use wire::state::BashResult;
use wire::table::Respond;
use wire::{BashExecutionMessage, Event, Message};

use crate::limits;
use crate::outbox::{Origin, Outbox, Responder};
use crate::strings;

use super::clock::now_ms;
use super::conversation::Conversation;

/// A report of a running command.
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

/// The names of a command.
#[derive(Debug, Clone)]
pub(super) struct Shell {
    /// The client's id of it.
    id: Option<serde_json::Value>,
    /// Ours.
    bash_id: String,
}

/// A command that an extension runs, and whose output comes in pieces.
pub(super) struct RemoteShell {
    shell: Shell,
    params: BashParams,
    output: UserOutput,
}

/// The shell commands of the user.
pub(super) struct UserShells {
    /// Few reports, since a piece of output may be long.
    reports: mpsc::Receiver<Box<ShellReport>>,
    sender: mpsc::Sender<Box<ShellReport>>,
    cancel: CancellationToken,
    /// How many run, including those of extensions.
    running: usize,
    /// Commands that extensions run, by the number of the request.
    remote: BTreeMap<u64, RemoteShell>,
    /// How many there were.
    made: u64,
    /// Commands that ended during the active run; they are stored after it.
    parked: Vec<BashExecutionMessage>,
}

impl UserShells {
    pub(super) fn new() -> Self {
        let (sender, reports) = mpsc::channel(limits::SHELL_REPORTS);
        Self {
            reports,
            sender,
            cancel: CancellationToken::new(),
            running: 0,
            remote: BTreeMap::new(),
            made: 0,
            parked: Vec::new(),
        }
    }

    /// How many there were.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// Continues the numbers of a session that was evicted.
    pub(super) fn continue_from(&mut self, made: u64) {
        self.made = made;
    }

    /// Returns true while a command runs here. A session change does not wait for those of extensions; it gives them up.
    pub(super) fn are_running(&self) -> bool {
        self.running > self.remote.len()
    }

    /// Returns true if a command runs or waits to be stored.
    pub(super) fn are_busy(&self) -> bool {
        self.are_running() || !self.parked.is_empty()
    }

    /// Kills all running commands; later ones are not affected.
    pub(super) fn cancel(&mut self) {
        self.cancel.cancel();
        // Commands that start from now on are not cancelled.
        self.cancel = CancellationToken::new();
    }

    /// Waits for the next report. Cancel-safe.
    pub(super) async fn next(&mut self) -> ShellReport {
        match self.reports.recv().await {
            Some(report) => *report,
            // Never: a sender is kept here.
            None => std::future::pending().await,
        }
    }

    /// Runs a command, unless too many are running.
    pub(super) async fn run(
        &mut self,
        responder: Responder<BashResult>,
        params: BashParams,
        (toolbox, cwd): (Toolbox, PathBuf),
        outbox: &Outbox,
    ) {
        if self.running >= limits::BASH_RUNNING {
            let error = strings::too_many_commands(limits::BASH_RUNNING);
            return responder.refuse(error).await;
        }
        let shell = self.begin(responder.origin(), &params, outbox).await;
        let (sender, cancel) = (self.sender.clone(), self.cancel.clone());
        tokio::spawn(async move {
            // One piece at a time, so that a command waits for a client that does not read.
            let (output, mut pieces) = mpsc::channel(1);
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
                    // Output first: clients get no output of a command after its end.
                    biased;
                    Some(piece) = pieces.recv() => {
                        let piece = Box::new(ShellReport::Output(shell.clone(), piece));
                        let _gone = sender.send(piece).await;
                    }
                    outcome = &mut running => break outcome,
                }
            };
            // Output that was printed before the end may still be in the channel.
            while let Ok(piece) = pieces.try_recv() {
                let piece = ShellReport::Output(shell.clone(), piece);
                let _gone = sender.send(Box::new(piece)).await;
            }
            let outcome = outcome.map_err(|error| error.to_string());
            let done = ShellReport::Done(Box::new(responder), params, shell, outcome);
            // Only a session that has ended takes no more reports.
            let _gone = sender.send(Box::new(done)).await;
        });
    }

    /// Announces a command, which an extension may run instead.
    pub(super) async fn begin(&mut self, origin: &Origin, params: &BashParams, outbox: &Outbox) -> Shell {
        self.running += 1;
        self.made += 1;
        let id = origin.id.as_ref();
        let shell = Shell {
            id: id.and_then(|id| serde_json::from_str(id.get()).ok()),
            bash_id: format!("b{}", self.made),
        };
        let event = Event::BashExecutionStart {
            id: shell.id.clone(),
            command_id: None,
            bash_id: shell.bash_id.clone(),
            command: params.command.clone(),
            exclude_from_context: params.exclude_from_context,
        };
        outbox.tell(event).await;
        shell
    }

    /// Returns true if output of a command that an extension runs has come.
    pub(super) fn is_remote(&self, number: u64) -> bool {
        self.remote.contains_key(&number)
    }

    /// Announces a command that an extension runs, when its first output comes.
    pub(super) async fn begin_remote(
        &mut self,
        number: u64,
        (origin, params): (Origin, BashParams),
        output: UserOutput,
        outbox: &Outbox,
    ) {
        let shell = self.begin(&origin, &params, outbox).await;
        let remote = RemoteShell {
            shell,
            params,
            output,
        };
        self.remote.insert(number, remote);
    }

    /// Takes output of a command that an extension runs.
    pub(super) async fn push(&mut self, number: u64, text: &str, outbox: &Outbox) {
        if let Some(remote) = self.remote.get_mut(&number) {
            let delta = remote.output.push(text.as_bytes()).await;
            send_output(remote.shell.clone(), delta, outbox).await;
        }
    }

    /// Takes out a command that an extension ran, if output of it has come.
    pub(super) fn take_remote(&mut self, number: u64) -> Option<RemoteShell> {
        self.remote.remove(&number)
    }

    /// Gives up the commands that extensions run. Their clients get the error from the owner of the responders.
    pub(super) async fn give_up_remote(&mut self, error: &str, outbox: &Outbox) {
        for RemoteShell { shell, params, .. } in std::mem::take(&mut self.remote).into_values() {
            self.running = self.running.saturating_sub(1);
            let event = ended(shell, params, nothing(), Some(error.to_owned()));
            outbox.tell(event).await;
        }
    }

    /// Deals with a report. While no run is active (`is_idle`) the command is stored at once.
    pub(super) async fn accept(
        &mut self,
        report: ShellReport,
        is_idle: bool,
        conversation: &mut Conversation,
        outbox: &Outbox,
    ) {
        let (responder, params, shell, outcome) = match report {
            ShellReport::Output(shell, delta) => return send_output(shell, delta, outbox).await,
            ShellReport::Done(responder, params, shell, outcome) => (*responder, params, shell, outcome),
        };
        self.running = self.running.saturating_sub(1);
        let (result, outcome) = match outcome {
            Ok(run) => {
                // Parked also while the session is idle, so that commands are stored in the order in which they ended.
                self.parked.push(message(&params, &run));
                // During a run the command is stored after the run, and its response does not wait for that.
                let is_stored = !is_idle || self.store(conversation, outbox).await;
                let result = answer(run);
                let outcome = if is_stored {
                    Ok(result.clone())
                } else {
                    Err(strings::ran_unstored(result.exit_code, conversation.log.error()))
                };
                (result, outcome)
            }
            Err(error) => (nothing(), Err(error)),
        };
        let error = outcome.as_ref().err().cloned();
        // For all clients. The client of the command gets its response in addition.
        outbox.tell(ended(shell, params, result, error)).await;
        responder.respond(outcome).await;
    }

    /// Stores the commands that ended during a run. Returns false if they wait to be written.
    pub(super) async fn store(&mut self, conversation: &mut Conversation, outbox: &Outbox) -> bool {
        let mut is_stored = true;
        for bash in std::mem::take(&mut self.parked) {
            let message = Arc::new(Message::BashExecution(bash));
            // Also after a failure: entries that cannot be written wait in their order.
            is_stored &= conversation.log.persist(Arc::clone(&message), outbox).await;
            conversation.add_unsent_shell(message);
        }
        is_stored
    }
}

impl RemoteShell {
    /// Ends the output. The outcome has the end of it, also if the extension named another output.
    pub(super) async fn finish(
        mut self,
        outcome: Result<BashRun, String>,
        outbox: &Outbox,
    ) -> (Shell, Result<BashRun, String>) {
        let rest = self.output.finish().await;
        send_output(self.shell.clone(), rest, outbox).await;
        let outcome = outcome.map(|run| {
            let seen = self.output.outcome(run.exit_code, run.cancelled);
            BashRun {
                // The extension left out a part itself.
                truncated: seen.truncated || run.truncated,
                full_output_path: seen.full_output_path.filter(|_| !run.truncated),
                ..seen
            }
        });
        (self.shell, outcome)
    }
}

/// Sends output of a command to the clients.
async fn send_output(shell: Shell, delta: String, outbox: &Outbox) {
    // An escape sequence alone leaves no text.
    if delta.is_empty() {
        return;
    }
    let event = Event::BashExecutionUpdate {
        id: shell.id,
        command_id: None,
        bash_id: Some(shell.bash_id),
        delta,
    };
    outbox.tell(event).await;
}

/// The event for clients that did not send the command.
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
