//! Loading the extensions of a session, beside it, and leaving them. What becomes of each process is in `links`.

use std::path::Path;

use config::extensions::{Found, find};
use config::hooks;
use serde_json::json;
use uuid::Uuid;
use wire::SessionCommand;

use crate::hooks::Hooks;
use crate::limits;

use super::super::Session;
use super::super::tool_calls::Layer;
use super::{Extended, Stage, Then, failure, members};

impl Extended {
    /// Loads what a session that works in `cwd` has.
    pub(in crate::session) fn of(agent: &crate::agent::Agent, cwd: &Path) -> Self {
        let places = agent.places(cwd);
        Self::new(find(&places), Hooks::new(hooks::find(&places)))
    }

    /// A call is answered when the session has begun for its extensions.
    pub(in crate::session) fn owe(&mut self, id: u64) {
        self.owed = Some(id);
    }
}

/// Does a command depend on what extensions registered or listen to?
fn depends(command: &SessionCommand) -> bool {
    matches!(
        command,
        SessionCommand::Prompt(_)
            | SessionCommand::Steer(_)
            | SessionCommand::FollowUp(_)
            | SessionCommand::QueueMessage(_)
            | SessionCommand::AbortAndPrompt(_)
            | SessionCommand::Continue(_)
            | SessionCommand::GetCommands(_)
            | SessionCommand::GetProjectTrust(_)
            | SessionCommand::SetProjectTrust(_)
            | SessionCommand::CompleteArguments(_)
            | SessionCommand::GetTools(_)
            | SessionCommand::SetActiveTools(_)
            | SessionCommand::ReloadResources(_)
            | SessionCommand::GetShortcuts(_)
            | SessionCommand::RunShortcut(_)
            | SessionCommand::SetModel(_)
            | SessionCommand::CycleModel(_)
            | SessionCommand::GetAvailableModels(_)
            | SessionCommand::GetLoginProviders(_)
            | SessionCommand::Login(_)
            | SessionCommand::Compact(_)
            | SessionCommand::Bash(_)
            | SessionCommand::Reset(_)
            | SessionCommand::NewSession(_)
            | SessionCommand::SwitchSession(_)
            | SessionCommand::Fork(_)
            | SessionCommand::Branch(_)
            | SessionCommand::Clone(_)
            | SessionCommand::NavigateTree(_)
    )
}

impl Session {
    /// Must a command wait until extensions are loaded?
    pub(in crate::session) fn waits_for_extensions(&self, command: &SessionCommand) -> bool {
        // Which model there is depends on them only when nobody else knows it.
        let asks_model =
            self.extensions.unresolved.is_some() && matches!(command, SessionCommand::GetState(_));
        self.extensions.is_opening() && (depends(command) || asks_model)
    }

    /// Loads the extensions, if there are any. Commands that depend on them wait, but not for ever.
    pub(in crate::session) async fn begin_extensions(&mut self) {
        self.begin_hooks();
        self.withhold();
        let start = self.extensions.state.start();
        let extended = &mut self.extensions;
        extended.handle = Uuid::new_v4().to_string();
        extended.arrange(&start);
        let odd = extended.found.clone();
        self.name_odd(&odd).await;
        let places = self.extensions.links.len();
        if places == 0 {
            self.take_providers();
            return self.settle_owed();
        }
        self.extensions.stage = Stage::Opening;
        self.extensions.late = Some(Box::pin(tokio::time::sleep(limits::OPEN_WAIT)));
        for place in 0..places {
            self.find_door(place);
        }
    }

    /// Names extensions that say of themselves what cannot be understood.
    pub(super) async fn name_odd(&self, found: &[Found]) {
        for Found { source, runs, .. } in found {
            if let Err(error) = runs {
                self.extension_failed(failure(&source.path, "load", error)).await;
            }
        }
    }

    /// All know that the session has begun, and what they bring is known.
    pub(super) fn extensions_are_open(&mut self) {
        if self.extensions.is_loading() && self.extensions.stage == Stage::Opening {
            // One has died meanwhile.
            return;
        }
        self.extensions.stage = Stage::Open;
        self.extensions.late = None;
        self.settle_owed();
    }

    /// Commands have waited long enough. What extensions register later is taken then.
    pub(super) async fn extensions_are_late(&mut self) {
        if self.extensions.stage != Stage::Opening {
            return;
        }
        self.extensions.stage = Stage::Open;
        for path in self.extensions.unloaded() {
            let error = format!(
                "The extension is not loaded after {} s; the session goes on without it until it is",
                limits::OPEN_WAIT.as_secs()
            );
            self.extension_failed(failure(&path, "load", error)).await;
        }
        // The others do not wait for it either.
        if !self.ask_trust() && self.extensions.is_loading() && self.extensions.has_begun() {
            self.discover();
        }
    }

    /// Tells extensions that the session goes on in another file; what they hold belongs to the old one.
    pub(in crate::session) fn leave_extensions(&mut self, reason: &str) {
        let extended = &mut self.extensions;
        extended.subordinates.dispose();
        if let Some(door) = extended.door.take() {
            let closing = door.close_session(&extended.handle, reason);
            extended.wait_for(Then::Farewell, Ok(closing));
            extended.left = Some(door);
        }
        extended.stop_hearing();
        extended.asked_models.clear();
        extended.registered.clear();
        extended.give_up(|then| {
            matches!(
                then,
                Then::Opened(_)
                    | Then::Trust
                    | Then::Loaded(_)
                    | Then::Started(_)
                    | Then::Resources
                    | Then::Door(_)
                    | Then::Refreshed(_)
            )
        });
        self.take_registrations();
    }

    /// The same extensions for the session that took the place of the old one.
    pub(in crate::session) async fn reopen_extensions(&mut self, reason: &str, previous: Option<String>) {
        let places = self.agent.places(&self.cwd);
        self.extensions.found = find(&places);
        self.extensions.hooks = Hooks::new(hooks::find(&places));
        let mut start = members(json!({"type": "session_start", "reason": reason}));
        if let Some(previous) = previous {
            start.insert("previousSessionFile".to_owned(), previous.into());
        }
        self.extensions.state.forget(start.into());
        self.extensions.flags_count &= matches!(reason, "new" | "reload");
        self.begin_extensions().await;
    }

    /// Answers the extension that asked for the session which has begun now.
    fn settle_owed(&mut self) {
        if let Some(id) = self.extensions.owed.take() {
            let session = self.extensions.handle.clone();
            self.answer_later(Some(id), Ok(json!({"cancelled": false, "session": session})));
        }
    }

    /// The session is over: its extensions may say goodbye, for a moment.
    pub(in crate::session) async fn end_extensions(&mut self) {
        if self.extensions.hear("session_shutdown") {
            let event = json!({"type": "session_shutdown", "reason": "quit"});
            self.ask_extensions("session_shutdown", &event, Then::Farewell);
            let goodbye = self.hear_until(self.extensions.asked);
            let _in_time = tokio::time::timeout(limits::FAREWELL, goodbye).await;
        }
        self.agent.extensions.forget_models(&self.extensions.models_file);
        let extended = &mut self.extensions;
        extended.subordinates.dispose();
        // A tool keeps the processes of its extension.
        self.tools.set(Layer::Extension, Vec::new());
        let _in_time = tokio::time::timeout(limits::FAREWELL, extended.hooks.finish()).await;
        if let Some(door) = extended.door.take() {
            let closed = door.close_session(&extended.handle, "quit");
            let _in_time = tokio::time::timeout(limits::CLOSE, closed).await;
        }
    }
}
