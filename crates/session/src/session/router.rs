//! Where wake-ups and commands go: each one to its component, and what follows for the session is deferred or told. Nothing is decided
//! here that a component could decide.

use agent::Readiness;
use serde_json::{Value, json};
use wire::hosted::Frame;
use wire::table::Respond;
use wire::{ConnectionCommand, Response, SessionCommand, SessionRule};

use crate::outbox::ClientId;
use crate::requests::{RequestReceiver, SessionRequest};
use crate::strings;

use super::asker::{Asked, Asker};
use super::change_request::ChangeAsker;
use super::deferred::{DeferredAction, DeferredActions, begins_work, defer};
use super::driver::Driver;
use super::extensions::{Continuation, command_list, failure};
use super::mcp::McpEvent;
use super::summaries::Summarised;
use super::wakeup::Wakeup;
use super::{Session, compaction, navigation, process_exits, prompt_delivery, prompts, session_change};

impl Session {
    /// Deals with a request of a client or of the manager.
    pub(super) async fn on_request(&mut self, request: SessionRequest) {
        let outbox = &self.driver.core.outbox;
        match request {
            SessionRequest::Reject(client, response) => {
                // Without a writer there is no client either.
                let _gone = outbox.response(client, response).await;
            }
            SessionRequest::Connection(origin, command) => {
                if let ConnectionCommand::Hello(params) = &command {
                    outbox.apply_hello(params);
                }
                // Only a replay needs the snapshot, which copies the list of all messages.
                let snapshot =
                    matches!(command, ConnectionCommand::Replay(_)).then(|| Box::new(self.driver.snapshot()));
                outbox.ask_connection(origin, command, snapshot).await;
            }
            // The manager keeps these for itself; a session knows no others.
            SessionRequest::Manager(origin, command) => {
                outbox
                    .refuse(origin, strings::not_available(command.name()))
                    .await;
            }
            SessionRequest::Frame(frame) => self.on_frame(frame).await,
            SessionRequest::Command(origin, command) => {
                // Called for its effect even if extensions hold the command: servers connect meanwhile.
                let is_early = self.driver.start_servers(&command).await;
                let is_held = is_early || self.driver.extensions.holds(&command);
                // The abort of `abort_and_prompt` is for what came before it. Its prompt waits by itself (`DeferredAction::rules`).
                if is_held && !matches!(command, SessionCommand::AbortAndPrompt(_)) {
                    self.defer(DeferredAction::Held(origin, Box::new(command)));
                } else {
                    command.dispatch(self, origin).await;
                }
            }
            SessionRequest::Retire(answer) => {
                let retired = self.retired().map(Box::new);
                let is_wanted = retired.is_some();
                // The caller may have given up. The session must then stay, because nothing would open it again.
                self.is_retired = answer.send(retired).is_ok() && is_wanted;
            }
            // The caller may have given up.
            SessionRequest::Describe(answer) => drop(answer.send(self.describe())),
        }
    }

    /// The texts of messages cannot be read, so that the session can do nothing with a request. Its state stays as it is, and the
    /// next wake-up tries again.
    pub(super) async fn turn_away(&mut self, wakeup: Wakeup, error: &str) {
        if let Wakeup::SessionRequest(request) = wakeup {
            request.turn_away(&self.driver.core.outbox, error).await;
        }
    }

    /// An answer of the client goes to the dialog or to the client tool that waits for it. An answer that nothing waits for is
    /// ignored.
    async fn on_frame(&mut self, frame: Frame) {
        if let Frame::UiResponse(response) = &frame {
            return self.driver.dialogs.answered(response);
        }
        match self.driver.core.client_tools.answer(frame) {
            // What the client sends next may depend on what follows from its answer.
            Ok(Some(slot)) => {
                if let Some(input) = self.driver.turn.settle(slot).await {
                    self.driver.drive(input).await;
                }
            }
            Ok(None) => {}
            // There is no command to answer, so the client gets what it gets for a line that cannot be parsed.
            Err(error) => {
                let response = Response {
                    id: None,
                    command: Some("parse".into()),
                    outcome: Err(error),
                };
                let outbox = &self.driver.core.outbox;
                let _gone = outbox.response(ClientId::default(), response).await;
            }
        }
    }

    pub(super) async fn on_mcp(&mut self, event: McpEvent) {
        let (mcp, host) = self.driver.core.mcp(self.driver.dialogs.ui());
        let Some(prompted) = mcp.accept(event, host).await else {
            return;
        };
        // The wake-up did not ask for the texts (`Wakeup::needs_texts`).
        match (prompted.into_prompt(), self.driver.core.load_texts().await) {
            (Ok(prompt), Ok(())) => prompt_delivery::deliver(&mut self.driver, prompt).await,
            (Ok(prompt), Err(error)) => prompt.sender.refuse(error).await,
            (Err((sender, error)), _) => sender.refuse(error).await,
        }
    }

    pub(super) async fn on_summarised(&mut self, summarised: Summarised) {
        match self.driver.summaries.accept(summarised) {
            Summarised::Compaction(outcome) => compaction::compacted(&mut self.driver, outcome).await,
            Summarised::Branch(outcome) => navigation::summarised_branch(&mut self.driver, outcome).await,
        }
    }

    /// Does something once the session is idle.
    pub(super) fn defer(&mut self, action: impl Into<Option<DeferredAction>>) {
        defer(&mut self.deferred, &mut self.driver.shells, action);
    }

    /// Refuses what has not begun and would begin after an abort: prompts that hooks still look at or that a server still makes, and
    /// what waits for the session.
    pub(super) async fn withdraw(&mut self) {
        // Not at the end of input: commands behind the switch are for the other session.
        prompt_delivery::withdraw_switch(&mut self.driver).await;
        self.withdraw_waiting(DeferredAction::ends_with_abort).await;
    }

    /// Returns true while a client may wait for an answer to something that waits here.
    pub(super) fn owes_answers(&self) -> bool {
        // A `set_model` for which a local server is being asked waits elsewhere (GUARANTEES.md, 2), and so does a switch to a file
        // that another process has open.
        let questions = &self.driver.extensions.questions;
        self.deferred.items().any(DeferredAction::is_owed)
            || self.driver.probes.are_running()
            || questions.any(|open| matches!(open, Continuation::Closed(..)))
    }

    /// As [`Self::withdraw`], for the actions that end.
    pub(super) async fn withdraw_waiting(&mut self, ends: impl Fn(&DeferredAction) -> bool) {
        prompt_delivery::withdraw_prompts(&mut self.driver).await;
        self.driver.core.mcp.withdraw_prompt().await;
        self.driver.core.tools.processes().hold_wakeups();
        for action in self.deferred.take(ends) {
            // The messages of the run that does not begin are kept all the same.
            if let DeferredAction::Run(messages) = &action {
                for message in messages.clone() {
                    self.driver.add_message(message).await;
                }
            }
            refuse(&mut self.driver, action, strings::ABORTED.to_owned()).await;
        }
    }

    /// Returns true while ordered commands wait: while a session change or a prompt waits for the run before it, later commands
    /// must not overtake it.
    pub(super) fn holds_requests(&self) -> bool {
        self.deferred.holds() || self.awaits_answer()
    }

    /// Returns true while a command waits for an answer that later commands may depend on.
    fn awaits_answer(&self) -> bool {
        self.driver.extensions.holds_requests()
            || self.driver.core.mcp.is_asking()
            // A prompt behind `set_model` is for the new model.
            || self.driver.probes.are_running()
    }

    fn readiness(&self) -> Readiness {
        let (core, extensions) = (&self.driver.core, &self.driver.extensions);
        Readiness {
            is_idle: core.machine.is_idle() && !core.machine.is_holding() && !extensions.holds_requests(),
            is_loading: extensions.is_opening() || core.mcp.is_connecting() || self.awaits_answer(),
            runs_shells: self.driver.shells.are_running(),
            is_answering: extensions.client_requests.is_response_first(),
        }
    }

    /// Does what waited for the session to be idle, and commands that waited until extensions and servers are loaded.
    pub(super) async fn catch_up(&mut self) {
        // An action may begin a run, so the state is looked at again for each one.
        while self.driver.core.machine.is_idle() || !self.deferred.is_empty() {
            let readiness = self.readiness();
            // Not while a hook or an extension holds back what follows from the run.
            if readiness.is_idle {
                store_shells(&mut self.driver).await;
            }
            match self.deferred.next(readiness) {
                None => {
                    // Only when nothing else waits: what the user asked for comes before what processes have to say, and it
                    // may leave the session. Like every run it waits for extensions and servers.
                    if readiness.is_idle && self.deferred.is_empty() && !readiness.is_loading {
                        self.driver.extensions.client_requests.end_commands(false).await;
                        process_exits::wake(&mut self.driver).await;
                    }
                    break;
                }
                Some(action) => self.run_deferred(action).await,
            }
        }
    }

    async fn run_deferred(&mut self, action: DeferredAction) {
        let driver = &mut self.driver;
        // The action before it may have opened another session. A change of the session checks by itself what it needs.
        if !matches!(action, DeferredAction::Change(..))
            && let Err(error) = driver.core.load_texts().await
        {
            return refuse(driver, action, error).await;
        }
        match action {
            DeferredAction::Respond(responder) => responder.respond(Ok(())).await,
            DeferredAction::Prompt(responder, params) => prompts::prompt(driver, responder, params).await,
            DeferredAction::Compact(asked) => compaction::compact_now(driver, asked).await,
            DeferredAction::Move(asker, params) => navigation::move_if_allowed(driver, asker, params).await,
            DeferredAction::Change(asker, change) => {
                let waiting = &mut self.deferred;
                let reloaded = session_change::leave_when_closed(driver, waiting, asker, change).await;
                self.defer(reloaded);
            }
            DeferredAction::Held(origin, command) => command.dispatch(self, origin).await,
            DeferredAction::Reloaded(responder) => {
                let commands = command_list(&driver.extensions, &driver.core);
                responder.respond(Ok(commands)).await;
            }
            DeferredAction::ExtensionPrompt(prompt) => prompt_delivery::deliver(driver, *prompt).await,
            DeferredAction::Run(messages) => prompt_delivery::begin_run(driver, messages).await,
            DeferredAction::CompactFor(id, instructions) => {
                let asker = Asker::Extension(id);
                compaction::compact_now(driver, Asked { asker, instructions }).await;
            }
            DeferredAction::Idle(id) => driver.extensions.links.answer(id, Ok(Value::Null)),
        }
    }
}

/// Answers actions that still wait when the session has ended.
pub(super) async fn end_waiting(driver: &mut Driver, waiting: &mut DeferredActions) {
    driver.extensions.client_requests.end_commands(false).await;
    for asker in driver.probes.give_up() {
        match asker {
            Asker::Client(responder) => responder.refuse(strings::CLOSED).await,
            Asker::Extension(id) => driver.extensions.links.answer(id, Ok(json!(false))),
        }
    }
    for action in waiting.take(|_| true) {
        match action {
            // The run that was to be aborted has ended.
            DeferredAction::Respond(responder) => responder.respond(Ok(())).await,
            action => refuse(driver, action, strings::CLOSED.to_owned()).await,
        }
    }
}

/// Refuses requests that an abort has overtaken although they came before it. They would begin their work after it.
pub(super) async fn refuse_overtaken(driver: &Driver, requests: &mut RequestReceiver) {
    for request in requests.take_held_back(begins_work) {
        request.turn_away(&driver.core.outbox, strings::ABORTED).await;
    }
}

/// Stores commands that ran during the run. They come first in the file: the next action may be a prompt about them.
async fn store_shells(driver: &mut Driver) {
    let core = &mut driver.core;
    driver.shells.store(&mut core.conversation, &core.outbox).await;
    if core.follows(SessionRule::ShellMessagesFollowRun) {
        // Today's pi lists commands of the user as soon as the run has ended, others with the next prompt.
        core.add_shell_messages();
    }
}

/// Refuses an action that waited.
pub(super) async fn refuse(driver: &mut Driver, action: DeferredAction, error: String) {
    let links = &mut driver.extensions.links;
    match action {
        DeferredAction::Held(origin, _) => driver.core.outbox.refuse(origin, error).await,
        DeferredAction::Prompt(responder, _) => responder.refuse(error).await,
        DeferredAction::Respond(responder) => responder.refuse(error).await,
        DeferredAction::Reloaded(responder) => responder.refuse(error).await,
        DeferredAction::Compact(asked) => {
            links.reply(asked.asker, Err(error)).await;
            compaction::settle_interrupted(driver).await;
        }
        DeferredAction::Move(asker, _) => links.reply(asker, Err(error)).await,
        DeferredAction::CompactFor(id, _)
        | DeferredAction::Idle(id)
        | DeferredAction::Change(ChangeAsker::Extension(id), _) => links.answer(id, Err(error)),
        DeferredAction::ExtensionPrompt(prompt) => {
            prompt_delivery::answer_prompt(driver, prompt.sender, Err(error)).await;
        }
        DeferredAction::Run(_) => {
            let failed = failure("<runtime>", "send_message", error);
            driver.extension_failed(failed).await;
        }
        DeferredAction::Change(asker, _) => session_change::reply(driver, asker, Err(error)).await,
    }
}
