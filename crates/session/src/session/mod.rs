//! One session: its only writer and its only reader. [`Session`] is an event loop that waits, and routes each wake-up to a component
//! (`router`, `commands`). No component names it. They are layers, each of which uses only those before it:
//!
//! 1. `session_core::SessionCore`: the machine of `agent`, the conversation, the directory, the tools. It asks and runs nothing.
//! 2. `extensions`, `dialogs`, `summaries`, `running_turn::RunningTurn`: open work. They take the core as a parameter.
//! 3. `driver::Driver`: owns these and carries out the effects of the machine. What may move the machine takes it.
//! 4. Procedures on the driver, by subject: `prompts`, `prompt_delivery`, `compaction`, `navigation`, `session_change`, `extension_*`.
//!    What has to wait for the session to be idle they return as a `DeferredAction`, which the router keeps.
//!
//! None of them decides what follows what in a run: that is the business of `agent`.

mod access;
mod asker;
mod attachments;
mod available_commands;
mod boundaries;
mod cache_warming;
mod change_request;
mod checkpoints;
mod client_tools;
mod clock;
mod commands;
mod compaction;
mod conversation;
mod deferred;
mod dialogs;
mod driver;
mod export;
mod extension_events;
mod extension_loading;
mod extension_models;
mod extension_notices;
mod extension_requests;
mod extensions;
mod fallbacks;
mod file_search;
mod handoff;
mod hook_points;
mod image_blobs;
mod interrupted_run;
mod lifecycle;
mod machine;
mod mcp;
mod message_pages;
mod model_choice;
mod model_probes;
mod model_request;
mod model_switch;
mod navigation;
mod newest_pi;
mod outline;
mod pending_prompt;
mod permission_wait;
mod process_exits;
mod prompt_delivery;
mod prompts;
mod queries;
mod queue;
mod router;
mod run_limits;
mod run_options;
mod running_turn;
mod session_change;
mod session_core;
mod session_file;
mod session_list;
mod session_replacement;
mod shell_commands;
mod state_reply;
mod storage;
mod stream_rules;
mod summaries;
#[cfg(test)]
mod tests;
mod todos;
mod tool_calls;
mod tool_pipeline;
mod trust;
mod user_shells;
mod view;
mod wakeup;
mod workspace;

use std::pin::Pin;

use tokio::time::Instant;
use wire::SessionRule;
use wire::event::CloseReason;
use wire::table::Respond;

use crate::event_scope::EventScope;
use crate::limits;
use crate::outbox::Responder;
use crate::requests::RequestReceiver;
use crate::strings;

pub use self::dialogs::{Answer, Dialog, NoAnswer, Show, Ui};
pub use self::session_file::{Opening, when_closed};
pub use self::tool_calls::PROCESS_TOOL;
pub(crate) use self::tool_calls::subagents_dir;

use self::available_commands::SentCommands;
use self::deferred::{DeferredAction, DeferredActions};
use self::driver::Driver;
use self::queries::Queries;
use self::wakeup::Wakeup;

/// A session. Made by [`Session::start`], runs until its requests end.
pub struct Session {
    driver: Driver,
    /// Odd things noticed at the start, until they are taken.
    warnings: Vec<String>,
    /// Commands that only read and take their time.
    queries: Queries,
    /// What waits for the session to be idle, in order.
    deferred: DeferredActions,
    /// The slash commands that clients have.
    sent_commands: SentCommands,
    /// Who asked for the session to be closed.
    closing: Option<Responder<()>>,
    /// It was evicted: it ends without further events.
    is_retired: bool,
}

impl Session {
    /// Serves the requests until it is closed and every command has been answered, then ends its work.
    ///
    /// Boxed here: the code of a future that another crate polls is compiled into that crate once more, and this one holds the
    /// code of all commands.
    #[must_use]
    pub fn run(self, requests: RequestReceiver) -> Pin<Box<dyn Future<Output = ()>>> {
        // The session is boxed, too: a future keeps the place of an argument that it has moved, and a session has 10 KB.
        let session = Box::new(self);
        Box::pin(session.serve(requests))
    }

    /// A session is idle most of its time. So the futures of its work, up to 13 KB, have no place in this one.
    async fn serve(mut self: Box<Self>, requests: RequestReceiver) {
        self.driver.core.report_warnings().await;
        // Before the first request is taken: commands that depend on extensions must find them loading.
        Box::pin(extension_loading::begin(&mut self.driver)).await;
        Box::pin(self.sent_commands.update(&self.driver)).await;
        let mut requests = Some(requests);
        let (mut has_ended, mut give_up) = (false, None);
        while requests.is_some() || self.owes_answers() {
            // Once no more requests can come in, each wait for an extension has its bound.
            let waits = has_ended && self.driver.extensions.holds_requests();
            give_up = waits.then(|| give_up.unwrap_or_else(|| Instant::now() + limits::END_WAIT));
            let next = self.next(requests.as_mut());
            let wakeup = match give_up {
                None => next.await,
                Some(at) => match tokio::time::timeout_at(at, next).await {
                    Ok(wakeup) => wakeup,
                    Err(_) => break,
                },
            };
            // A closed queue would wake the loop again and again. What it holds back is still to be answered.
            if matches!(wakeup, Wakeup::Closed) {
                requests = requests.filter(RequestReceiver::holds_back);
                has_ended = true;
            }
            if wakeup.is_abort()
                && let Some(requests) = &mut requests
            {
                Box::pin(router::refuse_overtaken(&self.driver, requests)).await;
            }
            Box::pin(self.handle(wakeup)).await;
            if self.closing.is_some() || self.is_retired || self.is_shut_down() {
                break;
            }
        }
        Box::pin(self.end(requests)).await;
    }

    /// Returns true if an extension ends the session. Unlike `close_session`, whose end aborts the run, it waits for the run and for
    /// all responses.
    fn is_shut_down(&self) -> bool {
        self.driver.extensions.wants_shutdown() && self.driver.core.machine.is_idle() && !self.owes_answers()
    }

    /// Ends the work of the session, says that it has ended, and refuses the requests that are left.
    async fn end(&mut self, requests: Option<RequestReceiver>) {
        let closing = self.closing.take();
        // If an extension ends the first session, the program ends, and with it the client. Another session is closed for its client.
        let is_closed = closing.is_some()
            || requests.is_some() && !self.is_retired && self.driver.core.outbox.is_of_another();
        // A session that is closed or evicted still has its client: the events of the end are for it.
        if !is_closed && !self.is_retired {
            self.lose_client().await;
        }
        Box::pin(self.shut_down()).await;
        // Extensions end after the run, which asks their hooks, and before the log, to which they may still append.
        Box::pin(extension_events::end(&mut self.driver, &mut self.deferred)).await;
        let core = &mut self.driver.core;
        core.conversation.log.finish(&core.outbox).await;
        if self.is_retired {
            return core.tell_closed(CloseReason::Evicted).await;
        }
        // The handle is free as soon as the client can know.
        let left = requests.map(|mut requests| requests.close()).unwrap_or_default();
        if is_closed {
            core.tell_closed(CloseReason::Closed).await;
        }
        // The request that closes it is answered at the end.
        if let Some(responder) = closing {
            responder.respond(Ok(())).await;
        }
        for request in left {
            request.turn_away(&core.outbox, strings::CLOSED).await;
        }
    }

    /// The client is gone: no more events (behaviour.md 11), except the ends of calls that waited for it, and for today's oh-my-pi those
    /// of messages and turns.
    async fn lose_client(&mut self) {
        let core = &mut self.driver.core;
        if !core.client_tools.are_asked() && !core.outbox.is_heard_to_the_end() {
            let scope = match core.follows(SessionRule::LostClientsGetMessages) {
                true => EventScope::Messages,
                false => EventScope::Extensions,
            };
            core.outbox = core.outbox.at_end_of_input(scope);
        }
        self.driver.lose_client().await;
    }

    /// Waits for the first event. Ordinary requests wait while a session change waits for the run to end.
    async fn next(&mut self, requests: Option<&mut RequestReceiver>) -> Wakeup {
        let urgent_only = self.holds_requests();
        let Driver {
            core,
            turn,
            summaries,
            extensions,
            dialogs,
            shells,
            probes,
            warming,
        } = &mut self.driver;
        // Copied out of the core, since the branches below borrow it.
        let todo = core.machine.todos().next_due();
        let deadline = core.machine.deadline();
        let storage = core.conversation.log.retry_due();
        let processes = core.tools.processes();
        // In turns (not biased), so that neither a flood of commands nor one of deltas keeps the others waiting.
        // All of them are cancel-safe: the ones that lose are dropped, and must not lose an event with them.
        tokio::select! {
            request = wakeup::next_request(requests, urgent_only) => request.map_or(Wakeup::Closed, Wakeup::SessionRequest),
            report = turn.calls.next() => Wakeup::Call(report),
            report = shells.next() => Wakeup::Shell(report),
            events = wakeup::next_events(&mut turn.request) => Wakeup::Model(events),
            summarised = summaries.next() => Wakeup::Summarised(summarised),
            event = dialogs.next() => Wakeup::Dialog(event),
            event = extensions.next() => Wakeup::Extension(event),
            event = core.mcp.next() => Wakeup::Mcp(event),
            // Without a task it is ready at once. Its pattern then leaves it out of this wait.
            Some(()) = self.queries.next() => Wakeup::Queried,
            probed = probes.next() => Wakeup::Probed(Box::new(probed)),
            answer = wakeup::permission(&mut core.permissions.asking) => Wakeup::Permission(answer),
            () = wakeup::due(&mut turn.retry_timer) => Wakeup::RetryDue,
            () = wakeup::at(deadline) => Wakeup::TimeLimit,
            () = storage => Wakeup::StorageDue,
            () = wakeup::at(todo) => Wakeup::TodoDue,
            () = processes.exited() => Wakeup::ProcessExited,
            () = core.outbox.listeners().filled() => Wakeup::ListenersDue,
            event = warming.next() => Wakeup::CacheWarming(event),
        }
    }

    async fn handle(&mut self, wakeup: Wakeup) {
        // A request that needs texts must not be carried out without them (docs/internals/decisions/39-texts-on-demand.md).
        if wakeup.needs_texts()
            && let Err(error) = self.driver.core.load_texts().await
            && !wakeup.goes_on_without_texts()
        {
            self.turn_away(wakeup, &error).await;
            return self.catch_up().await;
        }
        // Not after each delta, since the list is made anew.
        let may_change_commands = matches!(
            wakeup,
            Wakeup::SessionRequest(_) | Wakeup::Extension(_) | Wakeup::Mcp(_)
        );
        // Deltas are the most frequent wake-ups by far, and nothing follows from them but their events. Listeners to a warning among
        // them wake the loop by themselves (`ListenersDue`).
        let is_within_answer = wakeup.is_within_answer();
        self.route(wakeup).await;
        if is_within_answer {
            return;
        }
        // After each other wake-up, since any of them may have sent events, and opened or closed a dialog.
        self.driver.extensions.pass_on_events(&mut self.driver.core);
        extension_notices::note_prompts(&mut self.driver);
        self.catch_up().await;
        // Last, since any of this may have begun or ended a run, or allowed wakeups.
        self.driver.core.tools.processes().tell_pending_wakeup().await;
        // A change of the session waits for the end of the run, which other wake-ups bring.
        if may_change_commands || self.driver.core.machine.is_idle() {
            self.sent_commands.update(&self.driver).await;
        }
    }

    /// Gives a wake-up to the component that it is for.
    async fn route(&mut self, wakeup: Wakeup) {
        match wakeup {
            Wakeup::SessionRequest(request) => self.on_request(request).await,
            Wakeup::Model(events) => self.driver.on_model(events).await,
            Wakeup::Call(report) => {
                // What an extension said while its tool ran comes first.
                extension_events::accept_messages(&mut self.driver, &mut self.deferred).await;
                self.driver.on_call(report).await;
            }
            Wakeup::Shell(report) => shell_commands::on_report(&mut self.driver, report).await,
            Wakeup::Summarised(summarised) => self.on_summarised(summarised).await,
            // Driven and not only applied: clients get an event for each item that leaves the list (dialects.md 8).
            Wakeup::TodoDue => self.driver.drive(agent::Change::TodosDue.into()).await,
            // Nothing to do with the outcome: `flush` tells clients of it.
            Wakeup::StorageDue => drop(
                self.driver
                    .core
                    .conversation
                    .log
                    .flush(&self.driver.core.outbox)
                    .await,
            ),
            // The machine knows its deadline: an abort after it names the limit at the end of the run.
            Wakeup::TimeLimit => self.driver.drive(agent::Input::Abort).await,
            Wakeup::RetryDue => self.driver.drive(agent::Input::RetryDue).await,
            Wakeup::Dialog(event) => self.driver.dialogs.handle(event, &self.driver.core.outbox).await,
            Wakeup::Permission(answer) => {
                if let Some(input) = self.driver.core.permissions.accept(answer) {
                    self.driver.drive(input).await;
                }
            }
            Wakeup::Extension(event) => {
                extension_events::on_event(&mut self.driver, &mut self.deferred, event).await;
            }
            Wakeup::Mcp(event) => self.on_mcp(event).await,
            Wakeup::Probed(probed) => model_switch::on_probed(&mut self.driver, *probed).await,
            Wakeup::CacheWarming(event) => cache_warming::on_event(&mut self.driver, event).await,
            // They only wake the loop: what may follow is done by the caller.
            Wakeup::Queried | Wakeup::ProcessExited | Wakeup::ListenersDue => {}
            Wakeup::Closed => {
                // No answer can come any more, so that every open dialog returns its default (GUARANTEES.md, 28).
                self.driver.dialogs.lose_client();
                // The end of input is an abort, and must not wait for extensions and servers first.
                self.withdraw_waiting(DeferredAction::ends_with_input).await;
            }
        }
    }

    /// The run ends as after an abort, so that the messages so far are on disk. Work that does not end in time is left behind.
    async fn shut_down(&mut self) {
        // A process that ends now must not begin another run.
        self.driver.core.tools.processes().set_wakeups(false);
        self.withdraw().await;
        let quiet = async {
            self.driver.drive(agent::Input::Abort).await;
            self.driver.shells.cancel();
            shell_commands::give_up(&mut self.driver).await;
            self.catch_up().await;
            while !self.driver.core.machine.is_idle()
                || self.driver.shells.are_running()
                || self.driver.core.machine.is_holding()
                || self.driver.extensions.has_open_answers()
                || self.driver.core.mcp.is_asking()
                || self.queries.are_running()
            {
                let wakeup = self.next(None).await;
                self.handle(wakeup).await;
            }
        };
        if tokio::time::timeout(limits::END_WAIT, quiet).await.is_err() {
            // The entry that is being written comes first; a disk that hangs is given up, and the rest stays unwritten.
            let _late =
                tokio::time::timeout(limits::END_WAIT, self.driver.core.conversation.log.settle()).await;
            self.driver.cut_off().await;
        }
        // Only a run or an extension that did not end in time has left any of these.
        router::end_waiting(&mut self.driver, &mut self.deferred).await;
        // Their clients still wait for answers, and a query holds nothing of the session.
        self.queries.detach();
        // Only a run that did not end in time has left any of these.
        self.driver.turn.request = None;
        self.driver.summaries.running = None;
        self.driver.turn.calls.cancel();
        self.driver.shells.cancel();
        // No background process outlives its session (GUARANTEES.md, 92).
        self.driver.core.tools.processes().end().await;
        self.driver.core.mcp.end();
    }

    /// Asks the user of the client.
    #[must_use]
    pub fn ui(&self) -> Ui {
        self.driver.dialogs.ui()
    }
}
