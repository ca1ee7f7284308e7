//! Loading the extensions of a session, beside it; leaving them; and what happens when their process is gone.

use std::path::Path;
use std::sync::Arc;

use door::line::{Opened, Registered, Source};
use door::{Door, DoorError, Said};
use serde_json::{Value, json};
use uuid::Uuid;
use wire::Command;

use crate::extensions::{Places, era, find};
use crate::hooks::{self, Hooks};
use crate::limits;

use super::super::Session;
use super::{Extended, News, Outcome, Stage, Then, failure, members};

impl Extended {
    /// Loads what a session that works in `cwd` has.
    pub(in crate::session) fn of(agent: &crate::agent::Agent, cwd: &Path) -> Self {
        Self::new(find(agent, cwd), Hooks::new(hooks::find(&Places::of(agent, cwd))))
    }

    /// A call is answered when the session has begun for its extensions.
    pub(in crate::session) fn owe(&mut self, id: u64) {
        self.owed = Some(id);
    }

    /// Is the process being started?
    fn is_starting(&self) -> bool {
        self.waits.values().any(|wait| matches!(wait.then, Then::Door))
    }
}

/// Does a command depend on what extensions registered or listen to?
fn depends(command: &Command) -> bool {
    matches!(
        command,
        Command::Prompt(_)
            | Command::Steer(_)
            | Command::FollowUp(_)
            | Command::QueueMessage(_)
            | Command::AbortAndPrompt(_)
            | Command::Continue(_)
            | Command::GetCommands(_)
            | Command::GetProjectTrust(_)
            | Command::SetProjectTrust(_)
            | Command::CompleteArguments(_)
            | Command::GetShortcuts(_)
            | Command::RunShortcut(_)
            | Command::SetModel(_)
            | Command::CycleModel(_)
            | Command::GetAvailableModels(_)
            | Command::GetLoginProviders(_)
            | Command::Login(_)
            | Command::Compact(_)
            | Command::Bash(_)
            | Command::Reset(_)
            | Command::NewSession(_)
            | Command::SwitchSession(_)
            | Command::Fork(_)
            | Command::Branch(_)
            | Command::Clone(_)
            | Command::NavigateTree(_)
    )
}

impl Session {
    /// Must a command wait until extensions are loaded?
    pub(in crate::session) fn waits_for_extensions(&self, command: &Command) -> bool {
        // Which model there is depends on them only when nobody else knows it.
        let asks_model = self.extensions.unresolved.is_some() && matches!(command, Command::GetState(_));
        self.extensions.is_opening() && (depends(command) || asks_model)
    }

    /// Loads the extensions, if there are any. Commands that depend on them wait, but not for ever.
    pub(in crate::session) fn begin_extensions(&mut self) {
        self.begin_hooks();
        self.load_extensions();
    }

    fn load_extensions(&mut self) {
        if self.extensions.found.is_empty() {
            return;
        }
        self.withhold();
        self.extensions.stage = Stage::Opening;
        self.extensions.late = Some(Box::pin(tokio::time::sleep(limits::OPEN_WAIT)));
        self.find_door();
    }

    fn find_door(&mut self) {
        let shared = Arc::clone(&self.agent.extensions);
        let registry = Arc::clone(&self.agent.registry);
        if registry.registered_providers().is_empty() {
            self.extensions.models_file = shared.models_file(None);
        }
        let path = self.extensions.models_file.clone();
        let door = async move {
            shared.write_models(registry, path).await;
            Outcome::Door(shared.door().await)
        };
        self.extensions.wait(Then::Door, door);
    }

    pub(super) async fn on_door(&mut self, door: Result<Door, DoorError>) {
        match door {
            Ok(door) => {
                let extended = &mut self.extensions;
                extended.handle = Uuid::new_v4().to_string();
                extended.said = Some(door.attach(&extended.handle));
                extended.door = Some(door);
                self.open_extensions();
            }
            Err(error) => self.without_extensions(&error.to_string()).await,
        }
    }

    fn open_extensions(&mut self) {
        let state = self.whole_state();
        let flags = self.agent.options.extensions.flags();
        let extended = &mut self.extensions;
        let sources: Vec<Source> = extended.found.iter().map(|found| found.source.clone()).collect();
        if let Some(door) = &extended.door {
            let era = era(&self.agent);
            let asking = door.open_session(&extended.handle, &sources, &flags, &state, era);
            extended.wait_for(Then::Opened, asking);
        }
    }

    /// None of them can be had; each is named, and the session goes on.
    async fn without_extensions(&mut self, why: &str) {
        let paths: Vec<String> = self
            .extensions
            .found
            .iter()
            .map(|found| found.source.path.clone())
            .collect();
        for path in paths {
            let error = format!("The extension was not loaded: {why}");
            self.extension_failed(failure(&path, "load", error)).await;
        }
        self.extensions.stage = Stage::Absent;
        self.extensions.late = None;
        self.take_providers();
        self.choose_again().await;
    }

    pub(super) async fn on_opened(&mut self, answer: Result<Value, DoorError>) {
        let opened = answer.and_then(|value| {
            serde_json::from_value::<Opened>(value).map_err(|error| DoorError::Odd(error.to_string()))
        });
        let opened = match opened {
            Ok(opened) => opened,
            // The process died over it and is being started again.
            Err(DoorError::Gone(_)) if self.extensions.is_starting() => return,
            Err(error) => return self.without_extensions(&error.to_string()).await,
        };
        self.report_unloaded(&opened).await;
        self.extensions.registered = opened.extensions;
        self.take_registrations(&[]);
        if !self.ask_trust() {
            self.begin_for_extensions().await;
        }
    }

    /// Names those that could not be loaded.
    pub(super) async fn report_unloaded(&self, opened: &Opened) {
        for extension in &opened.extensions {
            if let Some(error) = &extension.error {
                self.extension_failed(failure(&extension.path, "load", error))
                    .await;
            }
        }
    }

    /// All are loaded: the session begins for them.
    pub(super) async fn begin_for_extensions(&mut self) {
        self.take_providers();
        self.change_models().await;
        self.write_models().await;
        self.choose_again().await;
        self.refresh_models();
        if self.extensions.process_hears("session_start") {
            self.ask_process_to_start();
        } else {
            self.discover().await;
        }
    }

    /// Hooks have heard of it already.
    fn ask_process_to_start(&mut self) {
        self.sync_state();
        let extended = &mut self.extensions;
        let start = extended.state.reason();
        if let Some(door) = &extended.door {
            let asking = door.event(&extended.handle, "session_start", &start);
            extended.wait_for(Then::Started, asking);
        }
    }

    pub(super) async fn extensions_are_open(&mut self) {
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
        if self.extensions.registered.is_empty() {
            let paths: Vec<String> = self
                .extensions
                .found
                .iter()
                .map(|found| found.source.path.clone())
                .collect();
            for path in paths {
                let error = format!(
                    "The extension is not loaded after {} s; the session goes on without it until it is",
                    limits::OPEN_WAIT.as_secs()
                );
                self.extension_failed(failure(&path, "load", error)).await;
            }
        }
    }

    /// What one extension registered takes the place of what it had registered before.
    pub(super) async fn on_changed(&mut self, registered: Registered) {
        let old: Vec<String> = self.extensions.tools.names();
        let known = &mut self.extensions.registered;
        match known
            .iter_mut()
            .find(|extension| extension.path == registered.path)
        {
            Some(extension) => *extension = registered,
            None => known.push(registered),
        }
        self.take_registrations(&old);
        if self.take_providers() {
            self.change_models().await;
            self.write_models().await;
            self.refresh_models();
        }
    }

    /// The process is gone, and with it all that its extensions had registered. It is started again, within limits.
    pub(super) async fn on_gone(&mut self, reason: &str) {
        let old = self.extensions.tools.names();
        let extended = &mut self.extensions;
        (extended.door, extended.said) = (None, None);
        extended.subordinates.dispose();
        extended.registered.clear();
        for (_, dialog) in extended.dialogs.drain() {
            dialog.abort();
        }
        extended.asked_models.clear();
        extended
            .state
            .forget(json!({"type": "session_start", "reason": "reload"}));
        self.take_registrations(&old);
        let error = format!("The extension process ended: {reason}");
        self.extension_failed(failure("<runtime>", "process", error))
            .await;
        if !self.extensions.found.is_empty() {
            self.load_extensions();
        }
    }

    /// Tells extensions that the session goes on in another file; what they hold belongs to the old one.
    pub(in crate::session) fn leave_extensions(&mut self, reason: &str) {
        let old = self.extensions.tools.names();
        let extended = &mut self.extensions;
        extended.subordinates.dispose();
        if let Some(door) = extended.door.take() {
            let closing = door.close_session(&extended.handle, reason);
            extended.wait_for(Then::Farewell, Ok(closing));
        }
        extended.said = None;
        extended.asked_models.clear();
        extended.registered.clear();
        extended.give_up(|then| {
            matches!(
                then,
                Then::Opened
                    | Then::Trust
                    | Then::Loaded
                    | Then::Started
                    | Then::Resources
                    | Then::Door
                    | Then::Refreshed(_)
            )
        });
        self.take_registrations(&old);
    }

    /// The same extensions for the session that took the place of the old one.
    pub(in crate::session) async fn reopen_extensions(&mut self, reason: &str, previous: Option<String>) {
        self.extensions.found = find(&self.agent, &self.cwd);
        self.extensions.hooks = Hooks::new(hooks::find(&Places::of(&self.agent, &self.cwd)));
        let mut start = members(json!({"type": "session_start", "reason": reason}));
        if let Some(previous) = previous {
            start.insert("previousSessionFile".to_owned(), previous.into());
        }
        self.extensions.state.forget(start.into());
        self.extensions.flags_count &= matches!(reason, "new" | "reload");
        self.begin_extensions();
        if self.extensions.found.is_empty() {
            self.take_providers();
            self.settle_owed();
        }
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
            let over = self.extensions.asked;
            let goodbye = async {
                loop {
                    match self.extensions.next().await {
                        News::Told(told) if told.ticket == over => break self.on_told(told).await,
                        News::Said(Said::Gone(_)) => break,
                        news => self.on_extension(news).await,
                    }
                }
            };
            let _in_time = tokio::time::timeout(limits::FAREWELL, goodbye).await;
        }
        self.agent.extensions.forget_models(&self.extensions.models_file);
        let extended = &mut self.extensions;
        extended.subordinates.dispose();
        let _in_time = tokio::time::timeout(limits::FAREWELL, extended.hooks.finish()).await;
        if let Some(door) = extended.door.take() {
            let closed = door.close_session(&extended.handle, "quit");
            let _in_time = tokio::time::timeout(limits::CLOSE, closed).await;
        }
    }
}
