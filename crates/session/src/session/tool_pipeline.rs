//! The tool calls that the machine wants prepared, run and stopped, for every kind of tool: the owner of the tool rewrites the
//! arguments, the call runs, its report goes back to the machine. The machine decides when hooks and permissions are asked;
//! see `hook_points` and `permission_wait`.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use agent::{Input, Prepared, TASK_TOOL, ToolInput, is_nested};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use wire::{Model, ToolCall, ToolResult};

use crate::factory::Agent;
use crate::off_thread::off_thread;
use crate::strings;

use super::Session;
use super::lifecycle::Opening;
use super::tool_calls::{CallNews, CallReport, Environment, OpenSubagent, OpenedSubagent, TaskOwner};

impl Session {
    /// Looks up a call. `None` if the outcome comes later, as an input.
    pub(super) fn prepare(&mut self, slot: usize, call: &ToolCall) -> Option<Prepared> {
        if slot == 0 {
            self.calls.reset();
        }
        if is_nested(slot) {
            self.calls.isolate(slot);
        }
        self.calls.note(slot, call);
        let may_run = self.tools.is_active(&call.name) || is_nested(slot);
        if !may_run {
            let error = self.tools.not_found(&call.name);
            return Some(Prepared::Refused(ToolResult::error(error)));
        }
        if self.calls.rewrite(&self.tools, slot, call) {
            return None;
        }
        Some(self.look_up(slot, call))
    }

    fn look_up(&mut self, slot: usize, call: &ToolCall) -> Prepared {
        let prepared = self.calls.prepare(&self.tools, slot, call);
        // Permissions fail closed: a hook that has died might have blocked the call.
        if matches!(prepared, Prepared::Run) && self.extensions.links.misses_a_guard() {
            return Prepared::Refused(ToolResult::error(strings::GUARD_GONE));
        }
        prepared
    }

    /// The owner of the tool has rewritten the arguments of a call (pi-core.md 1.5).
    async fn on_rewritten(&mut self, slot: usize, arguments: Result<Map<String, Value>, String>) {
        let Some(call) = self.calls.call(slot).cloned() else {
            return;
        };
        let prepared = match arguments {
            Ok(arguments) => self.look_up(slot, &ToolCall { arguments, ..call }),
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        };
        self.drive(Input::Tool(slot, ToolInput::Prepared(prepared))).await;
    }

    /// Starts a call whose turn has come. What it wants of the session, or of the client, follows at once, so that it keeps its
    /// place among the events.
    pub(super) async fn run_call(&mut self, slot: usize, inputs: &mut VecDeque<Input>) {
        // A tool of an extension may look at the session while it runs.
        self.sync_state();
        let mut environment = self.environment();
        if self.tools.is_active(TASK_TOOL) {
            environment.task_owner = Some(Box::new(task_owner(self)));
        }
        self.calls.run(slot, environment);
        self.answer_todo_writes(inputs).await;
        self.client_tools.send_requests(&self.outbox).await;
    }

    /// What calls may use of the session now.
    fn environment(&mut self) -> Environment {
        let checkpoint = self.conversation.checkpoint(self.agent.checkpoints());
        let file = self.conversation.log.file_text();
        let model = self
            .conversation
            .choice
            .run_model
            .as_ref()
            .map(|(model, _)| model);
        Environment {
            toolbox: self.agent.toolbox.clone(),
            cwd: self.workspace.cwd.clone(),
            session: self.conversation.log.header().id.clone(),
            env: Agent::tool_env(&self.conversation.log.header().id, file.as_deref(), model),
            sees_images: model.is_some_and(Model::sees_images),
            shrinks_images: self.agent.settings.images.auto_resize,
            tmp_dir: self.agent.mcp.tmp_dir.clone(),
            checkpoint,
            task_owner: None,
        }
    }

    /// A call has reported something.
    pub(super) async fn on_call(&mut self, report: CallReport) {
        // What an extension said while its tool ran comes first.
        self.hear_out().await;
        match self.calls.accept(report) {
            Some((slot, CallNews::Input(input))) => self.drive(Input::Tool(slot, input)).await,
            Some((slot, CallNews::Rewritten(arguments))) => self.on_rewritten(slot, arguments).await,
            None => {}
        }
    }

    /// Waits for the report of a call that has just got what it waited for.
    pub(super) async fn settle_call(&mut self, slot: usize, inputs: &mut VecDeque<Input>) {
        let report = self.calls.settle(slot).await;
        if let Some((slot, CallNews::Input(input))) = report.and_then(|report| self.calls.accept(report)) {
            inputs.push_back(Input::Tool(slot, input));
        }
    }

    /// Stops all calls, wherever they are on their way.
    pub(super) async fn cancel_calls(&mut self, inputs: &mut VecDeque<Input>) {
        self.outbox.trace().kills("tool calls");
        self.calls.cancel();
        self.permitting.asking = None;
        for slot in self.calls.stop_rewriting() {
            let refused = Prepared::Refused(ToolResult::error(strings::ABORTED));
            inputs.push_back(Input::Tool(slot, ToolInput::Prepared(refused)));
        }
        self.withdraw_client_requests(inputs).await;
    }

    /// Stops one call that a tool made. A client that carries it out learns it, as with the calls of the model.
    pub(super) async fn cancel_call(&mut self, slot: usize) {
        self.calls.cancel_one(slot);
        self.permitting.forget(|asked| asked == slot);
        for withdrawn in self.client_tools.withdraw(|open| open == slot) {
            if let Some(event) = withdrawn.event {
                self.outbox.tell(event).await;
            }
        }
    }
}

/// What the session lends to a sub-agent now.
fn task_owner(session: &mut Session) -> TaskOwner {
    let choice = &session.conversation.choice;
    let (model, thinking) = match &choice.run_model {
        Some((model, thinking)) => (model.clone(), *thinking),
        None => (choice.model.clone(), choice.thinking),
    };
    // The rest of the limits and the beginning of the count must be of the same moment.
    let account = Some(session.machine.new_member());
    let budget = session.machine.budget();
    TaskOwner {
        agent: Arc::clone(&session.agent),
        tools: session.tools.active_names().to_vec(),
        mode: session.permitting.mode(),
        model,
        thinking,
        ui: session.dialogs.ui(),
        outbox: session.outbox.clone(),
        limits: budget.left(),
        one_by_one: budget.limits_use(),
        account,
        file: session.conversation.log.path().map(std::path::Path::to_path_buf),
        open: opener(),
    }
}

/// Opens sessions on the thread of the sessions, for one call.
fn opener() -> mpsc::Sender<OpenSubagent> {
    let (sender, mut wanted) = mpsc::channel(1);
    tokio::task::spawn_local(async move {
        while let Some(wanted) = wanted.recv().await {
            open_subagent(wanted).await;
        }
    });
    sender
}

async fn open_subagent(wanted: OpenSubagent) {
    let OpenSubagent {
        agent,
        outbox,
        requests,
        ui,
        account,
        checkpoint,
        reply,
    } = wanted;
    let started = off_thread(move || Session::start(agent, outbox, &Opening::New { id: None })).await;
    let mut session = match started {
        Ok(session) => session,
        Err(error) => return drop(reply.send(Err(error.to_string()))),
    };
    session.dialogs.ask_through(ui);
    // It ends with its task.
    session.tools.processes().set_wakeups(false);
    if let Some(account) = account {
        session.machine.join(account);
    }
    session.conversation.lend_checkpoint(checkpoint);
    let model = session.model();
    let opened = OpenedSubagent {
        file: session.conversation.log.file_text(),
        model: format!("{}/{}", model.provider, model.id),
    };
    // A call that was given up has dropped the other end of the requests, which ends the session at once.
    let _given_up = reply.send(Ok(opened));
    // Boxed, since a session may hold sessions.
    let run: Pin<Box<dyn Future<Output = ()>>> = Box::pin(session.run(requests));
    tokio::task::spawn_local(run);
}
