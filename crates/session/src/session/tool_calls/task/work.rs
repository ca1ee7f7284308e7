//! A task from its call to its result: a place, a session, a prompt, its events, its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use config::resources::AgentDefinition;
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tools::ToolOutcome;
use wire::command::{NoParams, PromptParams};
use wire::reply::Disposition;
use wire::subagent::{
    AgentProgress, AgentSource, Subagent, SubagentEvent, SubagentLevel, SubagentLifecycle, SubagentPhase,
    SubagentProgress, SubagentStatus, SubagentTotals,
};
use wire::{Event, Reply, RunLimits, SessionCommand, ToolResult};

use crate::outbox::{ClientId, Origin, Outgoing, outbox};
use crate::requests::{SessionRequest, request_queue};
use crate::session::checkpoints::TurnCheckpoint;
use crate::session::clock::now_ms;
use crate::{limits, strings};

use super::super::report::ProgressSender;
use super::owner::{OpenSubagent, OpenedSubagent, TaskOwner};
use super::progress::Summary;
use super::register::SubagentRegister;

/// A task.
pub(super) struct Task {
    /// Who does it.
    pub(super) agent: AgentDefinition,
    /// Where the definition of the agent comes from.
    pub(super) source: AgentSource,
    /// The task in a few words; may be empty.
    pub(super) description: String,
    /// The task.
    pub(super) prompt: String,
    /// Id of the call.
    pub(super) call_id: String,
    /// The checkpoint of the turn.
    pub(super) checkpoint: Option<TurnCheckpoint>,
}

/// Carries out a task.
pub(super) async fn carry_out(mut work: Work, cancel: CancellationToken) -> ToolOutcome {
    // The permit is kept to the end of this function, which frees the place for the next task.
    let place = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        // With limits of tokens or cost sub-agents work one by one: two at once could each use up the rest.
        place = work.register.place(work.owner.one_by_one) => place,
    };
    if place.is_none() {
        return work
            .end(Err(strings::ABORTED.to_owned()), SubagentPhase::Aborted)
            .await;
    }
    let outcome = work.run(&cancel).await;
    let phase = match &outcome {
        Ok(_) => SubagentPhase::Completed,
        // Clients see that a task was aborted, not with which error it ended.
        Err(_) if cancel.is_cancelled() || work.summary.is_aborted() => SubagentPhase::Aborted,
        Err(_) => SubagentPhase::Failed,
    };
    work.end(outcome, phase).await
}

/// A task that is carried out. Dropping it ends the sub-agent.
pub(super) struct Work {
    task: Task,
    owner: TaskOwner,
    register: SubagentRegister,
    sender: ProgressSender,
    index: usize,
    id: String,
    file: Option<String>,
    summary: Summary,
    /// When progress may be told again; none when there is nothing new.
    due: Option<Instant>,
    /// When progress was told last.
    told: Option<Instant>,
}

impl Work {
    /// A task that waits for its place. The register knows it.
    pub(super) fn new(
        task: Task,
        owner: TaskOwner,
        register: SubagentRegister,
        sender: ProgressSender,
    ) -> Self {
        let index = register.next_index();
        let id = format!("{}-{index}", task.agent.name);
        let description = Some(&task.description).filter(|text| !text.is_empty());
        let progress = AgentProgress {
            index,
            id: id.clone(),
            agent: task.agent.name.clone(),
            agent_source: task.source,
            status: SubagentStatus::Pending,
            task: task.prompt.clone(),
            description: description.cloned(),
            current_tool: None,
            current_tool_args: None,
            current_tool_start_ms: None,
            recent_tools: Vec::new(),
            recent_output: Vec::new(),
            totals: SubagentTotals::default(),
            resolved_model: format!("{}/{}", owner.model.provider, owner.model.id),
        };
        let work = Self {
            task,
            owner,
            register,
            sender,
            index,
            id,
            file: None,
            summary: Summary::new(progress),
            due: None,
            told: None,
        };
        // Before it waits for a place: the register keeps a permission mode that is chosen meanwhile.
        work.register.update(work.subagent());
        work
    }

    /// Works until the session has settled.
    async fn run(&mut self, cancel: &CancellationToken) -> Result<String, String> {
        let mut events = self.open().await?;
        self.summary.set_status(SubagentStatus::Running);
        self.tell_lifecycle(SubagentPhase::Started).await;
        // Limits of this prompt only. The rest of the owner's limits is in the agent (`TaskOwner::agent_for`).
        let limits = self.task.agent.max_turns.map(|turns| RunLimits {
            max_turns: Some(turns),
            ..RunLimits::default()
        });
        let prompt = SessionCommand::Prompt(PromptParams {
            message: message_of(&self.task.prompt),
            images: Vec::new(),
            attachments: Vec::new(),
            streaming_behavior: None,
            fallback_models: None,
            limits,
            output_schema: None,
        });
        if !self.send("prompt", prompt).await {
            return Err(strings::SUBAGENT_GONE.to_owned());
        }
        let (mut is_cancelled, mut has_begun) = (false, false);
        while !self.summary.is_settled() {
            let item = tokio::select! {
                            biased;
            // First, so that a flood of events cannot hold progress back.
                            () = until(self.due), if self.due.is_some() => {
                                self.tell_progress().await;
                                continue;
                            }
            // Once: a cancelled token stays ready and would win every time.
                            () = cancel.cancelled(), if !is_cancelled => {
                                is_cancelled = true;
                                // A session that takes no more requests ends with this call.
                                let _gone = self.send("abort", SessionCommand::Abort(NoParams {})).await;
                                continue;
                            }
                            item = events.recv() => item,
                        };
            match item {
                Some(Outgoing::Event(event)) => self.take(&event).await,
                // Responses to the prompt, to an abort and to permission modes. The failure of any ends the task.
                Some(Outgoing::Response(_, response)) => {
                    has_begun |= begins_run(&response.outcome?)?;
                    // Without a run nothing will settle.
                    if is_cancelled && !has_begun {
                        return Err(strings::ABORTED.to_owned());
                    }
                }
                // The session waits for a writer, and there is none here.
                Some(Outgoing::Flush(done)) => {
                    let _gone = done.send(());
                }
                // For the writer of a connection, and a sub-agent has none.
                Some(Outgoing::Connection(..) | Outgoing::OptionsChanged | Outgoing::PendingWakeup(_)) => {}
                None => return Err(strings::SUBAGENT_GONE.to_owned()),
            }
        }
        self.close(events).await;
        self.summary.result()
    }

    async fn open(&mut self) -> Result<Receiver<Outgoing>, String> {
        let (outbox, events) = outbox(limits::OUTBOX);
        // Extensions cannot ask through a sub-agent; permissions are asked through the owner.
        outbox.render_nothing();
        let (requests, receiver) = request_queue();
        let (reply, opened) = oneshot::channel();
        let wanted = OpenSubagent {
            agent: self.owner.agent_for(&self.task.agent),
            outbox,
            requests: receiver,
            ui: self
                .owner
                .ui
                .for_subagent(&self.task.agent.name, &self.task.call_id),
            account: self.owner.account.take(),
            checkpoint: self.task.checkpoint.take(),
            reply,
        };
        if self.owner.open.send(wanted).await.is_err() {
            return Err(strings::SUBAGENT_GONE.to_owned());
        }
        let opened = opened.await.map_err(|_| strings::SUBAGENT_GONE.to_owned())?;
        let OpenedSubagent { file, model } = opened?;
        self.register.opened(&self.id, file.as_deref(), requests);
        self.file = file;
        self.summary.set_model(model);
        Ok(events)
    }

    /// Sends a command to the session. Returns false if it takes no more.
    async fn send(&self, name: &'static str, wanted: SessionCommand) -> bool {
        // Kept for this command only: the session must end when the register drops its own sender.
        match self.register.requests(&self.id) {
            Some(requests) => requests.send(command(name, wanted)).await,
            None => false,
        }
    }

    /// Lets the session end, so that its file is complete when the result is there.
    async fn close(&self, mut events: Receiver<Outgoing>) {
        self.register.ended(&self.id);
        let ended = async {
            while let Some(item) = events.recv().await {
                if let Outgoing::Flush(done) = item {
                    let _gone = done.send(());
                }
            }
        };
        // Bounded: the result of the call must not wait for a session that hangs.
        let _late = tokio::time::timeout(limits::END_WAIT, ended).await;
    }

    async fn take(&mut self, event: &Arc<Event>) {
        if self.register.level() == SubagentLevel::Events {
            let payload = Box::new(SubagentEvent {
                id: self.id.clone(),
                parent_tool_call_id: self.task.call_id.clone(),
                event: Arc::clone(event),
            });
            self.owner.outbox.tell(Event::SubagentEvent { payload }).await;
        }
        if !self.summary.take(event) {
            return;
        }
        self.register.update(self.subagent());
        let pause = Duration::from_millis(limits::SUBAGENT_PROGRESS_MS);
        // At most one event per pause, and none is lost: the newest state follows when the pause is over.
        let due = self.told.map_or_else(Instant::now, |told| told + pause);
        self.due.get_or_insert(due);
    }

    async fn tell_progress(&mut self) {
        self.due = None;
        self.told = Some(Instant::now());
        let progress = self.summary.progress();
        let partial = ToolResult {
            details: Some(self.details(&progress)),
            ..ToolResult::text(shown(&progress))
        };
        // At every level: clients that know nothing of sub-agents see the progress of the call.
        self.sender.send(partial).await;
        if self.register.level() == SubagentLevel::Off {
            return;
        }
        let payload = Box::new(SubagentProgress {
            index: self.index,
            agent: self.task.agent.name.clone(),
            agent_source: self.task.source,
            task: self.task.prompt.clone(),
            parent_tool_call_id: self.task.call_id.clone(),
            progress,
            session_file: self.file.clone(),
        });
        self.owner.outbox.tell(Event::SubagentProgress { payload }).await;
    }

    async fn tell_lifecycle(&self, status: SubagentPhase) {
        if self.register.level() == SubagentLevel::Off {
            return;
        }
        let description = Some(&self.task.description).filter(|text| !text.is_empty());
        let payload = Box::new(SubagentLifecycle {
            id: self.id.clone(),
            agent: self.task.agent.name.clone(),
            agent_source: self.task.source,
            description: description.cloned(),
            status,
            session_file: self.file.clone(),
            parent_tool_call_id: self.task.call_id.clone(),
            index: self.index,
        });
        self.owner.outbox.tell(Event::SubagentLifecycle { payload }).await;
    }

    fn subagent(&self) -> Subagent {
        let progress = self.summary.progress();
        Subagent {
            id: self.id.clone(),
            index: self.index,
            agent: self.task.agent.name.clone(),
            agent_source: self.task.source,
            description: progress.description.clone(),
            status: progress.status,
            task: self.task.prompt.clone(),
            session_file: self.file.clone(),
            parent_tool_call_id: self.task.call_id.clone(),
            last_update: now_ms(),
            progress: Some(progress),
        }
    }

    fn details(&self, progress: &AgentProgress) -> Value {
        let mut details = serde_json::to_value(progress).unwrap_or_else(|_| json!({}));
        if let (Some(details), Some(file)) = (details.as_object_mut(), &self.file) {
            details.insert("sessionFile".to_owned(), file.clone().into());
        }
        details
    }

    /// The result of the call.
    async fn end(mut self, outcome: Result<String, String>, phase: SubagentPhase) -> ToolOutcome {
        // A task that never got its place has announced no start, so it announces no end.
        let has_begun = self.summary.progress().status != SubagentStatus::Pending;
        self.summary.set_status(match phase {
            SubagentPhase::Started => SubagentStatus::Running,
            SubagentPhase::Completed => SubagentStatus::Completed,
            SubagentPhase::Failed => SubagentStatus::Failed,
            SubagentPhase::Aborted => SubagentStatus::Aborted,
        });
        let is_error = outcome.is_err();
        let progress = self.summary.progress();
        let (Ok(text) | Err(text)) = outcome;
        let result = ToolResult {
            details: Some(self.details(&progress)),
            // Counts in the totals of the session (pi-1.5-delta.md 3).
            usage: (progress.totals.requests > 0).then(|| Box::new(self.summary.usage().clone())),
            ..ToolResult::text(text)
        };
        self.register.ended(&self.id);
        if has_begun {
            self.tell_lifecycle(phase).await;
        }
        ToolOutcome { result, is_error }
    }
}

impl Drop for Work {
    /// The call was given up: the sub-agent works for nothing.
    fn drop(&mut self) {
        self.register.ended(&self.id);
    }
}

/// Returns true for the reply to a prompt that begins a run.
///
/// # Errors
/// When a hook or an extension has dealt with the prompt itself, so that no run begins.
fn begins_run(reply: &Reply) -> Result<bool, String> {
    match reply {
        Reply::Accepted(accepted) if accepted.disposition == Disposition::Handled => {
            Err(strings::TASK_HANDLED.to_owned())
        }
        reply => Ok(matches!(reply, Reply::Accepted(_))),
    }
}

/// Waits until a time; for ever without one.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Progress for clients that know nothing of sub-agents.
fn shown(progress: &AgentProgress) -> String {
    let done = progress.recent_tools.iter().rev();
    let mut lines: Vec<String> = done.map(|one| format!("{} {}", one.tool, one.args)).collect();
    if let (Some(tool), Some(args)) = (&progress.current_tool, &progress.current_tool_args) {
        lines.push(format!("{tool} {args} ..."));
    }
    lines.extend(progress.recent_output.iter().cloned());
    lines.join("\n")
}

fn command(name: &'static str, command: SessionCommand) -> SessionRequest {
    let origin = Origin {
        client: ClientId::default(),
        // Responses need not be matched with commands, since the failure of any ends the task.
        id: None,
        command: name,
    };
    SessionRequest::Command(origin, command)
}

/// The task as a message. A slash at its start is part of the task, not a command of the user.
fn message_of(prompt: &str) -> String {
    match prompt.starts_with('/') {
        true => format!("Task: {prompt}"),
        false => prompt.to_owned(),
    }
}
