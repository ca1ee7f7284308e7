//! Tool calls of the model: looked up, run beside the session, reported back.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pinion_core::{Input, Prepared, ToolInput};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::{Progress, ToolContext, ToolOutcome, ToolRequest, Toolbox};
use wire::{ToolCall, ToolResult};

use crate::agent::Agent;
use crate::limits;

use super::Session;

/// News of a call, by its position in the answer's calls.
pub(super) struct CallReport {
    slot: usize,
    /// The batch it belongs to; reports of older batches do not count.
    batch: u64,
    input: ToolInput,
}

/// The calls of the current batch.
pub(super) struct Calls {
    pub(super) reports: mpsc::Receiver<CallReport>,
    sender: mpsc::Sender<CallReport>,
    cancel: CancellationToken,
    /// Of those calls that can be stopped one by one.
    own: HashMap<usize, CancellationToken>,
    prepared: HashMap<usize, ToolRequest>,
    batch: u64,
}

impl Calls {
    pub(super) fn new() -> Self {
        let (sender, reports) = mpsc::channel(limits::REPORTS);
        Self {
            reports,
            sender,
            cancel: CancellationToken::new(),
            own: HashMap::new(),
            prepared: HashMap::new(),
            batch: 0,
        }
    }

    /// Stops what runs. Reports still come.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Was the batch stopped?
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// From now on this call can be stopped by itself.
    pub(super) fn own_token(&mut self, slot: usize) {
        self.own.insert(slot, self.cancel.child_token());
    }

    /// What stops a call.
    pub(super) fn token(&self, slot: usize) -> CancellationToken {
        self.own.get(&slot).unwrap_or(&self.cancel).clone()
    }

    /// Keeps a call until it is its turn to run.
    pub(super) fn keep(&mut self, slot: usize, request: ToolRequest) {
        self.prepared.insert(slot, request);
    }

    /// A call that waits for its turn.
    pub(super) fn prepared(&self, slot: usize) -> Option<&ToolRequest> {
        self.prepared.get(&slot)
    }

    /// Takes a call out if it is one of this tool.
    pub(super) fn take_if(&mut self, slot: usize, tool: &str) -> Option<ToolRequest> {
        let is_it = self
            .prepared
            .get(&slot)
            .is_some_and(|request| request.name == tool);
        is_it.then(|| self.prepared.remove(&slot))?
    }

    /// Other arguments for a call that waits for its turn.
    pub(super) fn change_args(&mut self, slot: usize, args: &Map<String, Value>) {
        if let Some(request) = self.prepared.get_mut(&slot) {
            request.args.clone_from(args);
        }
    }

    /// Reports a call that somebody else runs.
    pub(super) fn reporter(&self, slot: usize) -> Reporter {
        Reporter {
            cancel: self.token(slot),
            sender: self.sender.clone(),
            slot,
            batch: self.batch,
            started: Instant::now(),
        }
    }

    /// Ready for the next batch.
    pub(super) fn reset(&mut self) {
        self.cancel = CancellationToken::new();
        self.own.clear();
        self.prepared.clear();
        self.batch += 1;
    }
}

/// Reports the steps of one call.
pub(super) struct Reporter {
    /// The call is to end.
    pub(super) cancel: CancellationToken,
    sender: mpsc::Sender<CallReport>,
    slot: usize,
    batch: u64,
    started: Instant,
}

impl Reporter {
    /// It came further.
    pub(super) async fn progress(&self, partial: ToolResult) {
        self.report(ToolInput::Progress(partial)).await;
    }

    /// It ended.
    pub(super) async fn done(self, result: ToolResult, is_error: bool) {
        let duration_ms = millis(self.started.elapsed());
        self.report(ToolInput::Done {
            result,
            is_error,
            duration_ms,
        })
        .await;
    }

    async fn report(&self, input: ToolInput) {
        let (slot, batch) = (self.slot, self.batch);
        let _gone = self.sender.send(CallReport { slot, batch, input }).await;
    }
}

impl Session {
    /// Another batch of calls begins.
    pub(super) fn begin_batch(&mut self) {
        self.calls.reset();
        self.hosted.reset();
        self.extensions.forget_calls();
        self.mcp.tools_mut().reset();
    }

    /// Looks a call up and checks its arguments.
    pub(super) fn prepare_call(&mut self, slot: usize, call: &ToolCall) -> Prepared {
        if !self.active_tools.contains(&call.name) && !Self::is_nested(slot) {
            return Prepared::Refused(ToolResult::error(format!("Tool {} not found", call.name)));
        }
        if let Some(prepared) = self.extensions.prepare(slot, call) {
            return prepared;
        }
        if let Some(prepared) = self.mcp.tools_mut().prepare(slot, call) {
            return prepared;
        }
        if call.name == pinion_core::todo::TOOL {
            return self.prepare_todo(slot, call.clone());
        }
        let ToolCall {
            id, name, arguments, ..
        } = call;
        if let Some(prepared) = self.hosted.prepare(slot, id.clone(), name, arguments) {
            return prepared;
        }
        match Toolbox::prepare(name, arguments) {
            Ok(args) => {
                if let Some(prepared) = self.hosted.prepare_uri(slot, name, &args) {
                    return prepared;
                }
                let name = name.clone();
                self.calls.keep(slot, ToolRequest { name, args });
                Prepared::Run
            }
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        }
    }

    /// Runs a prepared call beside the session.
    pub(super) fn run_call(&mut self, slot: usize) {
        let Some(request) = self.calls.prepared.remove(&slot) else {
            return;
        };
        let file = self.log.path().map(|path| path.to_string_lossy().into_owned());
        let model = self.run_model.as_ref().map(|(model, _)| model);
        let context = ToolContext {
            cwd: self.cwd.clone(),
            cancel: self.calls.token(slot),
            progress: Progress::default(),
            sees_images: model.is_some_and(wire::Model::sees_images),
            env: Agent::tool_env(&self.log.header().id, file.as_deref(), model),
        };
        let (sender, batch) = (self.calls.sender.clone(), self.calls.batch);
        let toolbox = self.agent.toolbox.clone();
        tokio::spawn(async move { run(&toolbox, request, context, slot, batch, sender).await });
    }

    pub(super) async fn on_call(&mut self, report: CallReport) {
        // What an extension said while its tool ran comes first.
        self.hear_out().await;
        if report.batch == self.calls.batch {
            self.drive(Input::Tool(report.slot, report.input)).await;
        }
    }
}

/// Runs one call to its end and reports each step. A cancelled tool that does not end in time is given up.
async fn run(
    toolbox: &Toolbox,
    request: ToolRequest,
    context: ToolContext,
    slot: usize,
    batch: u64,
    sender: mpsc::Sender<CallReport>,
) {
    let started = Instant::now();
    let progress = context.progress.clone();
    let cancel = context.cancel.clone();
    let report = |input| sender.send(CallReport { slot, batch, input });
    let running = toolbox.run_validated(request, context);
    tokio::pin!(running);
    let given_up = async {
        cancel.cancelled().await;
        tokio::time::sleep(limits::CANCEL_GRACE).await;
    };
    tokio::pin!(given_up);
    let outcome = loop {
        tokio::select! {
            biased;
            partial = progress.next() => {
                let _gone = report(ToolInput::Progress(partial)).await;
            }
            outcome = &mut running => break outcome,
            () = &mut given_up => break ToolOutcome::error("Operation aborted"),
        }
    };
    if let Some(partial) = progress.take() {
        let _gone = report(ToolInput::Progress(partial)).await;
    }
    let duration_ms = millis(started.elapsed());
    let done = ToolInput::Done {
        result: outcome.result,
        is_error: outcome.is_error,
        duration_ms,
    };
    let _gone = report(done).await;
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
