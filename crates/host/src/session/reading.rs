//! Answers that only look: state, messages, entries, counts.

use std::sync::Arc;

use wire::StopReason;
use wire::command::{EntriesParams, StatsParams};
use wire::connection::Snapshot;
use wire::content::AssistantBlock;
use wire::reply::{Entries, LastText, Messages};
use wire::state::{ContextUsage, SessionState, SessionStats};

use crate::strings;

use super::Session;

impl Session {
    /// The session as it is now, for a client that cannot follow what led to it.
    pub(super) fn snapshot(&self) -> Snapshot {
        let message = self.answering.as_ref().and_then(|answering| answering.so_far());
        Snapshot {
            state: self.session_state(),
            messages: self.machine.messages().to_vec(),
            message: message.map(Arc::new),
            dialogs: self.dialogs.open(),
            retry: self
                .outbox
                .standing()
                .retry()
                .filter(|_| self.machine.is_waiting_to_retry()),
            queue: self.queued_texts(),
            tools: self.outbox.standing().tools(),
            bash: self.outbox.standing().bash(),
            shown: self.outbox.standing().shown(),
        }
    }

    pub(super) fn session_state(&self) -> SessionState {
        let settings = self.machine.settings();
        let queued = self.machine.queued();
        SessionState {
            model: Some(self.model.clone()),
            thinking_level: self.thinking,
            is_streaming: self.machine.is_running(),
            is_compacting: self.machine.is_compacting(),
            is_retrying: self.machine.is_waiting_to_retry(),
            queue_mode: settings.steering_mode,
            steering_mode: settings.steering_mode,
            follow_up_mode: settings.follow_up_mode,
            interrupt_mode: settings.interrupt_mode,
            session_file: self.file_text(),
            session_id: self.log.header().id.clone(),
            session_name: self.log.session_name().map(str::to_owned),
            auto_compaction_enabled: self.auto_compaction,
            message_count: self.machine.messages().len(),
            pending_message_count: queued,
            queued_message_count: queued,
            todo_phases: self.machine.todos().phases().to_vec(),
            context_usage: self.context_usage(),
            permission_mode: self.permitting.mode(),
            project_trust: self.trust_state(),
            sandbox: self.agent.options.sandbox,
            storage: self.storage_state(),
            settings_error: self.settings_error(),
        }
    }

    fn settings_error(&self) -> Option<String> {
        let faults = &self.agent.settings.faults;
        (!faults.is_empty()).then(|| faults.join("\n"))
    }

    pub(super) fn get_messages(&self) -> Messages {
        Messages {
            messages: self.machine.messages().to_vec(),
        }
    }

    pub(super) fn get_entries(&self, params: &EntriesParams) -> Result<Entries, String> {
        let entries = self.log.entries();
        let from = match &params.since {
            None => 0,
            Some(id) => entries
                .iter()
                .position(|entry| entry.id == *id)
                .map(|at| at + 1)
                .ok_or_else(|| strings::entry_not_found(id))?,
        };
        let entries = entries.iter().skip(from).cloned().collect();
        Ok(Entries {
            entries,
            leaf_id: self.log.leaf_id().map(str::to_owned),
        })
    }

    /// Text of the newest answer; an aborted one without content does not count (dialects.md 2).
    pub(super) fn last_text(&self) -> LastText {
        let answers = self
            .machine
            .messages()
            .iter()
            .rev()
            .filter_map(|message| message.as_assistant());
        let newest = answers
            .into_iter()
            .find(|answer| !(answer.stop_reason == StopReason::Aborted && answer.content.is_empty()));
        let text = newest.map(|answer| {
            let texts = answer.content.iter().filter_map(|block| match block {
                AssistantBlock::Text(text) => Some(text.text.as_str()),
                AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) => None,
            });
            texts.collect::<String>().trim().to_owned()
        });
        LastText {
            text: text.filter(|text| !text.is_empty()),
        }
    }

    pub(super) fn stats(&self, params: StatsParams) -> SessionStats {
        let messages = self.machine.messages();
        let counts = pinion_core::stats::count(messages);
        SessionStats {
            session_file: self.file_text(),
            session_id: self.log.header().id.clone(),
            user_messages: counts.user,
            assistant_messages: counts.assistant,
            tool_calls: counts.tool_calls,
            tool_results: counts.tool_results,
            total_messages: messages.len(),
            tokens: counts.tokens,
            cost: counts.cost,
            by_model: params
                .by_model
                .then(|| pinion_core::spending::by_model(self.log.entries())),
            context_usage: self.context_usage(),
        }
    }

    pub(super) fn context_usage(&self) -> Option<ContextUsage> {
        let window = self.model.context_window;
        pinion_core::stats::context_usage(self.machine.messages(), window, self.kept)
    }
}
