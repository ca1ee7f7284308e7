//! The tool calls of a session: prepared, run in tasks, reported back. Every kind of tool takes the same way here.
//!
//! [`ToolCalls`] owns the calls and knows nothing of the session; which tools there are is in `registry`, what a tool must do in
//! `tool`. The machine asks hooks and permissions before and after a
//! call; `session::tool_pipeline` answers for the session.

mod background;
mod built_in;
mod fetch;
mod parse;
mod registry;
mod report;
mod result;
mod task;
#[cfg(test)]
mod tests;
mod todo;
mod tool;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::{Prepared, ToolInput};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tools::ToolOutcome;
use wire::{ToolCall, ToolResult};

use crate::{limits, strings};

use super::checkpoints::CallBegins;

pub(super) use self::background::Exits;
pub use self::background::PROCESS_TOOL;
pub(super) use self::built_in::built_in_access;
pub(super) use self::parse::{block, result};
pub(super) use self::registry::{ChosenBy, Layer, ToolRegistry};
pub(super) use self::report::{CallReport, CallUpdate, ProgressSender};
pub(crate) use self::task::subagents_dir;
pub(super) use self::task::{OpenSubagent, OpenedSubagent, TaskOwner};
pub(super) use self::tool::{
    Access, Definition, Environment, Invocation, Place, PreparedCall, Rewriting, Running, Subject, Tool,
};

/// The calls of the current batch. A slot is the position of a call in its batch.
pub(super) struct ToolCalls {
    // Boxed: a channel has room for 32 entries from its beginning, in every idle session.
    reports: mpsc::Receiver<Box<CallReport>>,
    sender: mpsc::Sender<Box<CallReport>>,
    /// Reports that arrived while the session waited for the report of another call.
    early: VecDeque<CallReport>,
    /// Stops all calls of the batch.
    cancel: CancellationToken,
    /// Stops single calls.
    own: HashMap<usize, CancellationToken>,
    /// The calls as the model made them, refused ones included. Hooks see them with the results.
    made: HashMap<usize, ToolCall>,
    /// Calls whose arguments are being rewritten.
    rewriting: HashMap<usize, AbortHandle>,
    /// Calls that wait for their turn.
    prepared: HashMap<usize, PreparedCall>,
    /// Calls that have begun and wait for their checkpoints.
    awaiting_checkpoint: HashMap<usize, CallAwaitingCheckpoint>,
    /// Held by the call whose checkpoint is being stored: its lock goes to those who wait in their order, so that calls start in theirs.
    checkpoint_turn: Arc<tokio::sync::Mutex<()>>,
    batch: u64,
    /// How long a call may take to end once it is cancelled, and to report once it has what it waited for.
    grace: Duration,
}

/// A call whose checkpoint is not stored yet.
struct CallAwaitingCheckpoint {
    tool: Arc<dyn Tool>,
    call: Invocation,
    /// Takes what runs.
    start: oneshot::Sender<Running>,
}

impl ToolCalls {
    /// No calls yet.
    pub(super) fn new() -> Self {
        Self::with_grace(limits::CANCEL_GRACE)
    }

    fn with_grace(grace: Duration) -> Self {
        let (sender, reports) = mpsc::channel(limits::REPORTS);
        Self {
            reports,
            sender,
            early: VecDeque::new(),
            cancel: CancellationToken::new(),
            own: HashMap::new(),
            made: HashMap::new(),
            rewriting: HashMap::new(),
            prepared: HashMap::new(),
            awaiting_checkpoint: HashMap::new(),
            checkpoint_turn: Arc::default(),
            batch: 0,
            grace,
        }
    }

    /// Begins a batch. What older calls still report does not count.
    pub(super) fn reset(&mut self) {
        // A cancelled token stays cancelled. Calls of the older batch keep theirs.
        self.cancel = CancellationToken::new();
        self.own.clear();
        self.awaiting_checkpoint.clear();
        self.forget();
        // Tasks of older calls still hold a sender. The number tells their reports from those of this batch.
        self.batch += 1;
    }

    /// Forgets calls that were not started. Running calls still report.
    pub(super) fn forget(&mut self) {
        // The future is dropped with its task, which also cancels the request in the process of the extension.
        for (_, task) in self.rewriting.drain() {
            task.abort();
        }
        self.made.clear();
        self.prepared.clear();
    }

    /// Notes a call of the model.
    pub(super) fn note(&mut self, slot: usize, call: &ToolCall) {
        // Needed again once the arguments are rewritten: the rest of the call stays as the model made it.
        self.made.insert(slot, call.clone());
    }

    /// The call as the model made it.
    pub(super) fn call(&self, slot: usize) -> Option<&ToolCall> {
        self.made.get(&slot)
    }

    /// Lets the owner of the tool rewrite the arguments, if it wants to; a report follows then. Returns false if it does not.
    pub(super) fn rewrite(&mut self, tools: &ToolRegistry, slot: usize, call: &ToolCall) -> bool {
        let rewriting = tools.find(&call.name).and_then(|tool| tool.rewrite(call));
        let Some(rewriting) = rewriting else {
            return false;
        };
        let sender = self.progress_sender(slot);
        // In a task: an extension may take its time, and the session must see an abort meanwhile.
        let task = tokio::spawn(async move { sender.report(CallUpdate::Rewritten(rewriting.await)).await });
        self.rewriting.insert(slot, task.abort_handle());
        true
    }

    /// Stops rewriting arguments. Returns the calls that waited for it.
    pub(super) fn stop_rewriting(&mut self) -> Vec<usize> {
        let mut slots = Vec::new();
        for (slot, task) in self.rewriting.drain() {
            task.abort();
            slots.push(slot);
        }
        // A map has no order. The machine gets the refusals in the order of the calls.
        slots.sort_unstable();
        slots
    }

    /// Looks up the tool of a call and checks the arguments. The call waits for its turn then.
    pub(super) fn prepare(&mut self, tools: &ToolRegistry, slot: usize, call: &ToolCall) -> Prepared {
        let Some(tool) = tools.find(&call.name) else {
            // Also for an active name: the command line may name a tool before an extension brings it.
            return Prepared::Refused(ToolResult::error(tools.not_found(&call.name)));
        };
        match tool.clone().prepare(call) {
            Ok(prepared) => {
                self.prepared.insert(slot, prepared);
                Prepared::Run
            }
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        }
    }

    /// The arguments that a call would run with.
    pub(super) fn args(&self, slot: usize) -> Option<&Map<String, Value>> {
        self.prepared.get(&slot).map(|call| &call.args)
    }

    /// Replaces the arguments of a call that waits for its turn.
    pub(super) fn change_args(&mut self, slot: usize, changed: Map<String, Value>) {
        if let Some(PreparedCall { tool, args, .. }) = self.prepared.get_mut(&slot) {
            tool.change_args(args, changed);
        }
    }

    /// What permission rules judge about a call that waits for its turn. The call gets it when it runs: until then, other calls of the
    /// same answer may change what it would do.
    pub(super) fn subject(&mut self, slot: usize, place: Place<'_>) -> Option<Subject<'_>> {
        self.prepared.get_mut(&slot).map(|call| Subject::of(call, place))
    }

    /// Returns the id of a call that waits for its turn.
    pub(super) fn call_id(&self, slot: usize) -> Option<&str> {
        self.prepared.get(&slot).map(|call| call.id.as_str())
    }

    /// Starts a call whose turn has come. Reports follow.
    pub(super) fn run(&mut self, slot: usize, environment: Environment) {
        // A reset since the preparation has forgotten the call.
        let Some(call) = self.prepared.remove(&slot) else {
            return;
        };
        let PreparedCall {
            tool,
            id,
            args,
            judged,
        } = call;
        let (cancel, progress) = (self.token(slot), self.progress_sender(slot));
        let checkpoint = environment.checkpoint.as_ref();
        let begins = checkpoint.and_then(|checkpoint| checkpoint.begin_call(tool.name(), &tool.source()));
        let call = Invocation {
            slot,
            id,
            args,
            judged,
            environment,
            cancel: cancel.clone(),
            progress: progress.clone(),
        };
        let running: Running = match begins {
            Some(begins) => {
                let (start, started) = oneshot::channel();
                self.awaiting_checkpoint
                    .insert(slot, CallAwaitingCheckpoint { tool, call, start });
                let turn = Arc::clone(&self.checkpoint_turn);
                Box::pin(run_with_checkpoint(begins, turn, started, progress.clone()))
            }
            None => tool.run(call),
        };
        // In a task: the session must get its wake-ups while a tool works.
        tokio::spawn(watch(running, cancel, self.grace, progress));
    }

    /// Starts the tool of a call whose checkpoint is stored. What the tool sends to other processes is on its way when this returns.
    pub(super) fn start_tool(&mut self, slot: usize) {
        let Some(CallAwaitingCheckpoint { tool, call, start }) = self.awaiting_checkpoint.remove(&slot)
        else {
            return;
        };
        // Dropping `start` ends a call that was stopped meanwhile.
        if !call.cancel.is_cancelled() {
            // A call that was given up was stopped before.
            let _given_up = start.send(tool.run(call));
        }
    }

    /// Stops all calls of the batch. Their reports still come.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Lets a call be stopped on its own.
    pub(super) fn isolate(&mut self, slot: usize) {
        // A child token: an abort of the batch stops the call, too.
        self.own.insert(slot, self.cancel.child_token());
    }

    /// Stops a call that was isolated.
    pub(super) fn cancel_one(&self, slot: usize) {
        if let Some(token) = self.own.get(&slot) {
            token.cancel();
        }
    }

    fn token(&self, slot: usize) -> CancellationToken {
        self.own.get(&slot).unwrap_or(&self.cancel).clone()
    }

    fn progress_sender(&self, slot: usize) -> ProgressSender {
        ProgressSender {
            sender: self.sender.clone(),
            slot,
            batch: self.batch,
        }
    }

    /// Waits for the next report. Cancel-safe.
    pub(super) async fn next(&mut self) -> CallReport {
        if let Some(report) = self.early.pop_front() {
            return report;
        }
        match self.reports.recv().await {
            Some(report) => *report,
            // There is a sender in `self`, so this cannot happen.
            None => std::future::pending().await,
        }
    }

    /// Waits for the report of one call, which has just got what it waited for. So the report keeps its place before the next line that the
    /// client sends next. `None` if the call reports nothing in time.
    pub(super) async fn settle(&mut self, slot: usize) -> Option<CallReport> {
        // A wait for another call may have set this report aside.
        if let Some(at) = self.early.iter().position(|report| report.slot == slot) {
            return self.early.remove(at);
        }
        let wait = async {
            loop {
                let report = *self.reports.recv().await?;
                if report.slot == slot {
                    return Some(report);
                }
                // `next` returns these first, so that reports of other calls keep their order.
                self.early.push_back(report);
            }
        };
        // Bounded, since the session does nothing else while it waits here.
        tokio::time::timeout(self.grace, wait).await.ok().flatten()
    }

    /// What a report says, and about which call. `None` if it does not count any more.
    pub(super) fn accept(&mut self, report: CallReport) -> Option<(usize, CallUpdate)> {
        let CallReport { slot, batch, update } = report;
        // A call of an older batch may have the same slot.
        if batch != self.batch {
            return None;
        }
        // A task that was stopped too late has reported already.
        let is_rewritten = matches!(update, CallUpdate::Rewritten(_));
        if is_rewritten && self.rewriting.remove(&slot).is_none() {
            return None;
        }
        // Its checkpoint could not be stored, or it was given up before.
        if matches!(update, CallUpdate::Input(ToolInput::Done { .. })) {
            self.awaiting_checkpoint.remove(&slot);
        }
        Some((slot, update))
    }
}

/// A call with its checkpoint. Its tool starts on the session's side, once the checkpoint is stored: a request to a client or another
/// process cannot be taken back, and a call without its checkpoint must not run (GUARANTEES.md, 88).
async fn run_with_checkpoint(
    begins: CallBegins,
    turn: Arc<tokio::sync::Mutex<()>>,
    started: oneshot::Receiver<Running>,
    reporter: ProgressSender,
) -> ToolOutcome {
    let own_turn = turn.lock_owned().await;
    let checkpoint = match begins.await {
        Ok(checkpoint) => checkpoint,
        Err(error) => return ToolOutcome::error(error),
    };
    reporter.report(CallUpdate::CheckpointStored).await;
    drop(own_turn);
    let Ok(running) = started.await else {
        checkpoint.end().await;
        return ToolOutcome::error(strings::ABORTED);
    };
    let outcome = running.await;
    checkpoint.end().await;
    outcome
}

/// Waits for the end of a call and reports it. A tool that does not end in time after it was cancelled is given up.
async fn watch(running: Running, cancel: CancellationToken, grace: Duration, reporter: ProgressSender) {
    let started = Instant::now();
    // A cancelled tool gets time to end by itself: `bash` then returns its output so far (behaviour.md 3.7).
    let given_up = async {
        cancel.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    let outcome = tokio::select! {
    // A result that is there when the grace period ends counts.
            biased;
            outcome = running => outcome,
            () = given_up => ToolOutcome::error(strings::ABORTED),
        };
    let done = ToolInput::Done {
        result: outcome.result,
        is_error: outcome.is_error,
        duration_ms: millis(started.elapsed()),
    };
    reporter.report(CallUpdate::Input(done)).await;
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
