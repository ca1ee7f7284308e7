//! One session: its only writer and its only reader. [`Session`] is an event loop that waits, and routes each wake-up to a component
//! (`router`, `commands`). No component names it. They are layers, each of which uses only those before it:
//!
//! 1. `session_core::SessionCore`: the machine of `agent`, the conversation, the directory, the tools. It asks and runs nothing.
//! 2. `extensions`, `dialogs`, `summaries`, `driver::RunningTurn`: open work. They take the core as a parameter.
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
mod progress;
mod prompt_delivery;
mod prompts;
mod queries;
mod queue;
mod router;
mod run_limits;
mod run_options;
mod session_change;
mod session_core;
mod session_file;
mod session_list;
mod session_replacement;
mod shell_commands;
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

use wire::event::CloseReason;
use wire::table::Respond;

use crate::limits;
use crate::outbox::Responder;
use crate::requests::RequestReceiver;
use crate::strings;

pub use self::dialogs::{Answer, Dialog, NoAnswer, Show, Ui};
pub use self::session_file::Opening;
pub use self::tool_calls::PROCESS_TOOL;
pub(crate) use self::tool_calls::subagents_dir;

use self::deferred::DeferredActions;
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
        let mut requests = Some(requests);
        // What waits for the session to be idle is owed an answer.
        while requests.is_some() || !self.deferred.is_empty() || self.driver.probes.are_running() {
            let wakeup = self.next(requests.as_mut()).await;
            // A closed queue would wake the loop again and again.
            if matches!(wakeup, Wakeup::Closed) {
                requests = None;
            }
            Box::pin(self.handle(wakeup)).await;
            // `close_session` does not wait for the run, which `shut_down` then aborts. A shutdown that an extension wants does
            // wait.
            if self.closing.is_some()
                || self.is_retired
                || self.driver.extensions.wants_shutdown() && self.driver.core.machine.is_idle()
            {
                break;
            }
        }
        let closing = self.closing.take();
        // A session that is closed or evicted still has its client: the events of the end are for it.
        if closing.is_none() && !self.is_retired {
            Box::pin(self.lose_client()).await;
        }
        Box::pin(self.shut_down()).await;
        // Extensions end after the run, which asks their hooks, and before the log, to which they may still append.
        Box::pin(extension_events::end(&mut self.driver, &mut self.deferred)).await;
        let core = &mut self.driver.core;
        core.conversation.log.finish(&core.outbox).await;
        match closing {
            // The request that closes it is answered at the end.
            Some(responder) => {
                // The handle is free as soon as the client can know.
                let left = requests.map(|mut requests| requests.close()).unwrap_or_default();
                core.tell_closed(CloseReason::Closed).await;
                responder.respond(Ok(())).await;
                for request in left {
                    request.turn_away(&core.outbox, strings::CLOSED).await;
                }
            }
            None if self.is_retired => core.tell_closed(CloseReason::Evicted).await,
            None => {}
        }
    }

    /// The client is gone: no more events (behaviour.md 11), except the ends of calls that waited for it.
    async fn lose_client(&mut self) {
        let core = &mut self.driver.core;
        if !core.client_tools.are_asked() && !core.outbox.is_heard_to_the_end() {
            core.outbox = core.outbox.without_events();
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
        tokio::select! {
            request = wakeup::next_request(requests, urgent_only) => request.map_or(Wakeup::Closed, Wakeup::SessionRequest),
            report = turn.calls.next() => Wakeup::Call(report),
            report = shells.next() => Wakeup::Shell(report),
            events = wakeup::next_events(&mut turn.request) => Wakeup::Model(events),
            summarised = summaries.next() => Wakeup::Summarised(summarised),
            event = dialogs.next() => Wakeup::Dialog(event),
            event = extensions.next() => Wakeup::Extension(event),
            event = core.mcp.next() => Wakeup::Mcp(event),
            Some(()) = self.queries.next() => Wakeup::Queried,
            Some(probed) = probes.next() => Wakeup::Probed(Box::new(probed)),
            answer = wakeup::permission(&mut core.permissions.asking) => Wakeup::Permission(answer),
            () = wakeup::due(&mut turn.retry_timer) => Wakeup::RetryDue,
            () = wakeup::at(deadline) => Wakeup::TimeLimit,
            () = storage => Wakeup::StorageDue,
            () = wakeup::at(todo) => Wakeup::TodoDue,
            () = processes.exited() => Wakeup::ProcessExited,
            event = warming.next() => Wakeup::CacheWarming(event),
        }
    }

    async fn handle(&mut self, wakeup: Wakeup) {
        // A wake-up that needs texts must not be handled without them (docs/internals/decisions/39-texts-on-demand.md).
        if wakeup.needs_texts()
            && let Err(error) = self.driver.core.load_texts().await
            && !wakeup.leaves_session()
        {
            return self.turn_away(wakeup, &error).await;
        }
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
            // Both only wake the loop: what may follow is done by `catch_up` below.
            Wakeup::Queried | Wakeup::ProcessExited => {}
            // No answer can come any more, so that every open dialog returns its default (GUARANTEES.md, 28).
            Wakeup::Closed => self.driver.dialogs.lose_client(),
        }
        // After each wake-up, since any of them may have opened or closed a dialog.
        extension_notices::note_prompts(&mut self.driver);
        self.catch_up().await;
    }

    /// The run ends as after an abort, so that the messages so far are on disk. Work that does not end in time is left behind.
    async fn shut_down(&mut self) {
        // A process that ends now must not begin another run.
        self.driver.core.tools.processes().set_wakeups(false);
        // A prompt that a server still makes would begin a run after the abort.
        self.driver.core.mcp.withdraw_prompt().await;
        let quiet = async {
            self.driver.drive(agent::Input::Abort).await;
            self.driver.shells.cancel();
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
        // Their clients still wait for answers, and a query holds nothing of the session.
        self.queries.detach();
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
