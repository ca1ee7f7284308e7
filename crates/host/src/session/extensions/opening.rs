//! Loading the extensions of a session, beside it, and leaving them. What becomes of each process is in `links`.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use uuid::Uuid;
use wire::Command;

use crate::extensions::find;
use crate::limits;

use super::super::Session;
use super::{Extended, Stage, Then, failure, members};

impl Extended {
    /// Loads what a session that works in `cwd` has.
    pub(in crate::session) fn of(agent: &crate::agent::Agent, cwd: &Path) -> Self {
        Self::new(find(agent, cwd))
    }

    /// Extensions that say of themselves what cannot be understood.
    fn odd(&self) -> Vec<(String, String)> {
        let found = self.found.iter();
        let odd = found.filter_map(|found| Some((found.source.path.clone(), found.runs.clone().err()?)));
        odd.collect()
    }

    /// A call is answered when the session has begun for its extensions.
    pub(in crate::session) fn owe(&mut self, id: u64) {
        self.owed = Some(id);
    }
}

/// Does a command depend on what extensions registered or listen to?
pub(in crate::session) fn depends(command: &Command) -> bool {
    matches!(
        command,
        Command::Prompt(_)
            | Command::Steer(_)
            | Command::FollowUp(_)
            | Command::QueueMessage(_)
            | Command::AbortAndPrompt(_)
            | Command::Continue(_)
            | Command::GetCommands(_)
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
    /// Loads the extensions, if there are any. Commands that depend on them wait, but not for ever.
    pub(in crate::session) async fn begin_extensions(&mut self) {
        let start = self.extensions.state.start();
        let extended = &mut self.extensions;
        extended.arrange(&start);
        extended.handle = Uuid::new_v4().to_string();
        for (path, error) in extended.odd() {
            self.extension_failed(failure(&path, "load", error)).await;
        }
        let places = self.extensions.links.len();
        if places == 0 {
            return self.settle_owed();
        }
        self.extensions.stage = Stage::Opening;
        self.extensions.late = Some(Box::pin(tokio::time::sleep(limits::OPEN_WAIT)));
        for place in 0..places {
            self.find_door(place);
        }
    }

    pub(super) fn extensions_are_open(&mut self) {
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
    }

    /// Tells extensions that the session goes on in another file; what they hold belongs to the old one.
    pub(in crate::session) fn leave_extensions(&mut self, reason: &str) {
        let old = self.extensions.tools.names();
        let extended = &mut self.extensions;
        if let Some(door) = extended.door.take() {
            let closing = door.close_session(&extended.handle, reason);
            extended.wait_for(Then::Farewell, Ok(closing));
            extended.left = Some(door);
        }
        extended.stop_hearing();
        extended.registered.clear();
        extended.give_up(|then| matches!(then, Then::Opened(_) | Then::Started(_) | Then::Door(_)));
        self.take_registrations(&old);
    }

    /// The same extensions for the session that took the place of the old one.
    pub(in crate::session) async fn reopen_extensions(&mut self, reason: &str, previous: Option<String>) {
        let found = find(&self.agent, &self.cwd);
        self.extensions.found = found;
        let mut start = members(json!({"type": "session_start", "reason": reason}));
        if let Some(previous) = previous {
            start.insert("previousSessionFile".to_owned(), previous.into());
        }
        self.extensions.state.forget(start.into());
        self.begin_extensions().await;
    }

    /// Extensions begin anew, with what their files say now.
    pub(super) async fn reload_extensions(&mut self, id: Option<u64>) {
        if let Some(id) = id {
            self.extensions.owe(id);
        }
        self.leave_extensions("reload");
        for key in self.extensions.keys() {
            self.agent.extensions.renew(&key);
        }
        self.resources = self.agent.load_resources(&self.cwd);
        self.reopen_extensions("reload", None).await;
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
        let extended = &mut self.extensions;
        if let Some(door) = extended.door.take() {
            let closed = door.close_session(&extended.handle, "quit");
            let _in_time = tokio::time::timeout(Duration::from_millis(200), closed).await;
        }
    }
}
