//! Ending a session that nobody uses so that it can go on later as if nothing had been: whether it may, what its file does not
//! say, and putting that back. Who is put away when, and taken up again, is decided in the hub.

use std::path::PathBuf;

use pinion_core::{Change, LoopSettings};
use wire::event::CloseReason;
use wire::reply::OpenSession;
use wire::state::{Durability, PermissionMode};
use wire::{Event, Model, ThinkingLevel};

use crate::strings;

use super::Session;

/// A session that was put away.
#[derive(Debug)]
pub(crate) struct Retired {
    /// What it was, for a list of open sessions.
    pub(crate) described: OpenSession,
    /// Its file; none when nothing was said in it.
    pub(crate) file: Option<PathBuf>,
    /// Its working directory.
    pub(crate) cwd: PathBuf,
    habits: Habits,
}

/// What a client chose for a session and no file says.
#[derive(Debug)]
struct Habits {
    settings: LoopSettings,
    auto_compaction: bool,
    permission_mode: Option<PermissionMode>,
    durability: Durability,
    chosen: (Option<Model>, Option<ThinkingLevel>),
    /// Shell commands so far, so that no two have the same name.
    shells: u64,
    /// Does it hear of MCP servers?
    hears_mcp: bool,
}

impl Session {
    /// What is needed to go on later; none when something is under way, waits for somebody, or would be lost.
    pub(super) fn retired(&self) -> Option<Retired> {
        let is_at_rest = self.machine.is_idle()
            && self.machine.queued() == 0
            && self.summarising.is_none()
            && self.later.is_empty()
            && self.closing.is_none()
            && self.agenda.is_empty()
            && !self.shells.are_running()
            && self.parked.is_empty()
            && self.dialogs.open().is_empty()
            && self.extensions.is_at_rest()
            && !self.mcp.is_asking()
            && !self.probes.are_running()
            // What is only in memory would be lost.
            && self.log.waiting() == 0
            && !self.log.has_left();
        let is_equipped = self.client_tools.are_in_use() || self.mcp.has_set();
        // Going to another place of the tree is no entry: the file would lead back to its end.
        let newest = self.log.entries().last().map(|entry| entry.id.as_str());
        let is_at_end = self.log.leaf_id() == newest;
        let is_on_disk = self.log.is_on_disk();
        let is_empty = self.machine.messages().is_empty() && self.log.entries().len() <= NOTED_AT_START;
        if !is_at_rest || is_equipped || !is_at_end || !(is_on_disk || is_empty) {
            return None;
        }
        let path = self.log.path().filter(|_| is_on_disk);
        Some(Retired {
            described: self.describe(),
            file: path.map(PathBuf::from),
            cwd: self.cwd.clone(),
            habits: Habits {
                settings: self.machine.settings(),
                auto_compaction: self.auto_compaction,
                permission_mode: self.permitting.chosen(),
                durability: self.log.durability(),
                chosen: self.chosen.clone(),
                shells: self.shells.made(),
                hears_mcp: self.mcp.is_heard(),
            },
        })
    }

    /// Goes on as the client had chosen before the session was put away.
    pub(crate) fn resume_habits(&mut self, retired: Retired) {
        let habits = retired.habits;
        self.step(Change::Settings(habits.settings).into());
        self.auto_compaction = habits.auto_compaction;
        self.chosen = habits.chosen;
        self.set_durability(habits.durability);
        self.shells.go_on_from(habits.shells);
        if habits.hears_mcp {
            self.mcp.hear();
        }
        if let Some(mode) = habits.permission_mode {
            self.choose_permission_mode(mode);
        }
    }

    /// Tells clients that the session is closed.
    pub(super) async fn tell_closed(&self, reason: CloseReason) {
        let event = Event::SessionClosed {
            reason,
            session_id: self.log.header().id.clone(),
            session_file: self.file_text(),
        };
        self.outbox.tell(event).await;
    }
}

impl Retired {
    /// Why it could not be taken up again.
    pub(crate) fn lost(&self, handle: &str, error: &str) -> String {
        strings::cannot_go_on(handle, self.described.session_file.as_deref(), error)
    }
}

/// Entries of a session that nobody has used: its model and its thinking level.
const NOTED_AT_START: usize = 2;
