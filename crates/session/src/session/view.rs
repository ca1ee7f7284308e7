//! The session as clients see it: state, messages, entries, counts. Everything here only reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{Activity, Machine};
use wire::command::{EntriesParams, StatsParams};
use wire::content::AssistantBlock;
use wire::omp::{ContinuedSession, MessagesPage, MessagesPageParams, PAGE_BUSY};
use wire::reply::{
    ContextUsageReply, Entries, ForkMessage, ForkMessages, LastText, ListedSession, Messages, OpenSession,
};
use wire::state::{ContextUsage, PermissionMode, SessionState, SessionStats};
use wire::{Dialect, EntryBody, Message, SessionRule, StopReason};

use crate::factory::Agent;
use crate::strings;

use super::clock::now_ms;
use super::conversation::Conversation;
use super::{message_pages, trust};

/// What the read-only commands look at.
pub(super) struct View<'a> {
    pub(super) machine: &'a Machine,
    pub(super) conversation: &'a Conversation,
    /// The working directory.
    pub(super) cwd: &'a Path,
}

impl View<'_> {
    /// The reply of `get_state`.
    pub(super) fn state(&self, agent: &Agent, permission_mode: PermissionMode) -> SessionState {
        let settings = self.machine.settings();
        let queued = self.machine.queues().shown();
        let activity = self.machine.activity();
        let is_retrying = matches!(activity, Activity::WaitingToRetry { .. });
        // In today's pi, a run is active until the session settles, also while it compacts by itself or waits for a retry.
        let is_active = activity != Activity::Idle && !activity.is_outside_runs();
        let waits = agent.options.dialect.follows(SessionRule::RunsIncludeRetries) && is_active;
        // In pi 0.74, a prompt during the delay has begun its run.
        let joins = activity == Activity::WaitingToRetry { joined: true };
        let Conversation {
            log,
            choice,
            auto_compaction,
            ..
        } = self.conversation;
        SessionState {
            model: Some(choice.model.clone()),
            thinking_level: choice.thinking,
            is_streaming: activity.is_running() || waits || joins,
            is_compacting: activity.is_compacting(),
            is_retrying,
            // Two names for one value, here and below (dialects.md 5, row 7).
            queue_mode: settings.steering_mode,
            steering_mode: settings.steering_mode,
            follow_up_mode: settings.follow_up_mode,
            interrupt_mode: settings.interrupt_mode,
            // Named although the file may not exist yet (behaviour.md 9.2).
            session_file: log.file_text(),
            session_id: log.header().id.clone(),
            session_name: log.session_name().map(str::to_owned),
            auto_compaction_enabled: *auto_compaction,
            // Finished messages only, also during a run (behaviour.md 2.12).
            message_count: self.machine.messages().len(),
            pending_message_count: queued,
            queued_message_count: queued,
            todo_phases: self.machine.todos().phases().to_vec(),
            context_usage: self.context_usage(),
            permission_mode,
            project_trust: trust::state(agent),
            sandbox: agent.options.sandbox,
            storage: log.state(),
            settings_error: settings_error(agent),
        }
    }

    /// The session in a list of open sessions.
    pub(super) fn open_session(&self) -> OpenSession {
        let log = &self.conversation.log;
        OpenSession {
            session: None,
            session_id: log.header().id.clone(),
            session_file: log.file_text(),
            session_name: log.session_name().map(str::to_owned),
            cwd: self.cwd.to_string_lossy().into_owned(),
            is_streaming: self.machine.activity().is_running(),
            message_count: self.machine.messages().len(),
            evicted: false,
        }
    }

    /// The session as `continue_session` reports it.
    pub(super) fn continued(&self, resumed: bool) -> ContinuedSession {
        let log = &self.conversation.log;
        ContinuedSession {
            cancelled: false,
            resumed,
            session_id: log.header().id.clone(),
            session_file: log.file_text(),
        }
    }

    /// Where the files of the sessions after this one go; none with `--no-session`.
    pub(super) fn next_session_dir(&self, agent: &Agent) -> Option<PathBuf> {
        agent.next_session_dir(self.cwd, self.conversation.log.path())
    }

    /// The reply of `get_messages`.
    pub(super) fn messages(&self) -> Messages {
        Messages {
            messages: self.machine.messages().to_vec(),
        }
    }

    /// The reply of `get_messages_page`.
    ///
    /// # Errors
    /// While the conversation changes, or when a page is asked for that does not exist.
    pub(super) fn page(&self, params: &MessagesPageParams) -> Result<MessagesPage, String> {
        let activity = self.machine.activity();
        // The pages of one reading must be of one conversation, which a run changes. A retry begins its run by itself.
        let will_run = matches!(activity, Activity::WaitingToRetry { .. });
        if activity.is_running() || activity.is_compacting() || will_run {
            return Err(PAGE_BUSY.to_owned());
        }
        let log = &self.conversation.log;
        let conversation = message_pages::Conversation {
            session_id: &log.header().id,
            leaf_id: log.leaf_id(),
            messages: self.machine.messages(),
        };
        conversation.page(params)
    }

    /// The reply of `get_entries`.
    ///
    /// # Errors
    /// When `since` names no entry.
    pub(super) fn entries(&self, params: &EntriesParams) -> Result<Entries, String> {
        let log = &self.conversation.log;
        // In the order of the file and of all branches (pi-1.5-delta.md 2).
        let entries = log.entries();
        let from = match &params.since {
            None => 0,
            Some(id) => entries
                .iter()
                .position(|entry| entry.id == *id)
                .map(|at| at + 1)
                .ok_or_else(|| strings::entry_not_found(id))?,
        };
        Ok(Entries {
            entries: entries.iter().skip(from).cloned().collect(),
            leaf_id: log.leaf_id().map(str::to_owned),
        })
    }

    /// The text of the newest answer. An aborted answer without content does not count.
    pub(super) fn last_text(&self) -> LastText {
        let messages = self.machine.messages().iter().rev();
        let mut answers = messages.filter_map(|message| message.as_assistant());
        let newest =
            answers.find(|answer| !(answer.stop_reason == StopReason::Aborted && answer.content.is_empty()));
        let text = newest.map(|answer| {
            let texts = answer.content.iter().filter_map(|block| match block {
                AssistantBlock::Text(text) => Some(text.text.as_str()),
                AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) => None,
            });
            texts.collect::<String>().trim().to_owned()
        });
        LastText {
            // Without text, `data` of the response is `{}` (behaviour.md 1.8).
            text: text.filter(|text| !text.is_empty()),
        }
    }

    /// The reply of `get_session_stats`.
    pub(super) fn stats(&self, params: StatsParams, dialect: Dialect) -> SessionStats {
        let log = &self.conversation.log;
        let messages = self.machine.messages();
        let mut counts = agent::stats::count(messages);
        let mut total_messages = messages.len();
        if dialect.follows(SessionRule::CountsWholeFile) {
            // Today's pi counts the whole file, with compacted messages and summaries.
            let stored: Vec<Arc<Message>> = log
                .entries()
                .iter()
                .filter_map(|entry| stored(&entry.body))
                .collect();
            counts = agent::stats::count(&stored);
            (counts.tokens, counts.cost) = agent::spending::total(log.entries());
            total_messages = stored.len();
        }
        SessionStats {
            session_file: log.file_text(),
            session_id: log.header().id.clone(),
            user_messages: counts.user,
            assistant_messages: counts.assistant,
            tool_calls: counts.tool_calls,
            tool_results: counts.tool_results,
            total_messages,
            tokens: counts.tokens,
            cost: counts.cost,
            by_model: params.by_model.then(|| agent::spending::by_model(log.entries())),
            context_usage: self.context_usage(),
        }
    }

    /// The use of the context window.
    pub(super) fn context_usage(&self) -> Option<ContextUsage> {
        self.conversation.context_usage(self.machine.messages())
    }

    /// The reply of `get_context_usage`.
    pub(super) fn context_usage_reply(&self) -> ContextUsageReply {
        let usage = self.context_usage();
        ContextUsageReply { usage }
    }

    /// User messages with text, of all branches; with their lines in the file for clients of the older `branch`.
    pub(super) fn fork_messages(&self, with_index: bool) -> ForkMessages {
        let entries = self.conversation.log.entries().iter().enumerate();
        let messages = entries.filter_map(|(at, entry)| match &entry.body {
            EntryBody::Message(body) => match body.message.as_ref() {
                Message::User(user) => {
                    let text = user.content.text();
                    (!text.is_empty()).then(|| ForkMessage {
                        entry_id: entry.id.clone(),
                        // Line 0 is the header.
                        entry_index: with_index.then_some(at + 1),
                        text,
                    })
                }
                _ => None,
            },
            _ => None,
        });
        ForkMessages {
            messages: messages.collect(),
        }
    }

    /// The session as it is listed before all others once the user has said something in it: pages go on with the first one
    /// that is listed, and would end its run otherwise. `None` for a session that is not stored, since no page could go to it.
    pub(super) fn listed(&self) -> Option<ListedSession> {
        let messages = self.machine.messages();
        let first_message = messages.iter().find_map(|message| match message.as_ref() {
            Message::User(user) => Some(user.content.text()),
            _ => None,
        })?;
        let log = &self.conversation.log;
        let path = log.file_text()?;
        let header = log.header();
        Some(ListedSession {
            path,
            id: header.id.clone(),
            cwd: self.cwd.to_string_lossy().into_owned(),
            name: log.session_name().map(str::to_owned),
            parent_session_path: header.parent_session.clone(),
            created: header.timestamp.clone(),
            modified: store::ms_to_iso(now_ms()),
            message_count: u64::try_from(messages.len()).unwrap_or(u64::MAX),
            first_message,
            all_messages_text: String::new(),
        })
    }
}

fn settings_error(agent: &Agent) -> Option<String> {
    let faults = &agent.settings.faults;
    (!faults.is_empty()).then(|| faults.join("\n"))
}

fn stored(body: &EntryBody) -> Option<Arc<Message>> {
    match body {
        EntryBody::Message(body) => Some(Arc::clone(&body.message)),
        _ => None,
    }
}
