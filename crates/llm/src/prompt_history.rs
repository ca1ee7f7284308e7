//! How the instructions of a session changed from request to request: system prompt, tools and thinking level.
//!
//! A provider's prompt cache covers the beginning of a request. A changed system prompt, tool list or effort at the beginning
//! makes the provider read the whole conversation again. Models with the flags `supportsMidConvoSystemMessages`,
//! `supportsMidConvoToolChanges` and `supportsMidConvoEffort` accept such changes inside the conversation, at the place where
//! they happened. Here: which change belongs before which answer. The families write them.

use std::sync::Arc;

use wire::{AssistantMessage, Message, Model, ThinkingLevel, ToolSpec};

use crate::compat::flag;
use crate::encoded_history::EncodedHistory;
use crate::message_thread::MessageThread;
use crate::request::ModelRequest;

/// Most changes that are kept. Beyond it the history starts again: replaying a long list of changes costs more than it saves.
const MAX_STATES: usize = 64;

/// The instructions of a request, and how many answers the conversation had before it.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptState {
    answers: usize,
    /// Timestamp of the last of these answers; it distinguishes a branch or a compacted conversation from a
    /// continued one.
    last_answer: Option<i64>,
    system_prompt: String,
    tools: Vec<ToolSpec>,
    thinking: ThinkingLevel,
}

/// The instructions of earlier requests of a session, and the messages that they have encoded.
#[derive(Debug, Clone, Default)]
pub struct EarlierRequests {
    pub(crate) states: Vec<PromptState>,
    pub(crate) encoded: Option<EncodedHistory>,
    pub(crate) thread: Option<MessageThread>,
}

impl EarlierRequests {
    /// The tools of the earlier requests.
    pub(crate) fn tools_mut(&mut self) -> impl Iterator<Item = &mut ToolSpec> {
        self.states.iter_mut().flat_map(|state| &mut state.tools)
    }

    /// Shares nothing with further requests of the session. The instructions stay, because they are in the prompt.
    pub(crate) fn stand_alone(&mut self) {
        self.encoded = None;
        // The request is the same but for this: with a thread on its own, the session's could not be continued.
        self.thread = self.thread.is_some().then(MessageThread::off);
    }
}

/// The instructions of a session's requests to one model, oldest first.
#[derive(Debug, Default)]
pub struct PromptHistory {
    /// Provider, API and id of the model, and the timestamp of the first message.
    of: Option<(String, String, String, Option<i64>)>,
    states: Vec<PromptState>,
    encoded: EncodedHistory,
    /// The conversation that Anthropic keeps.
    thread: MessageThread,
}

impl PromptHistory {
    /// Forgets how messages were encoded: a run has ended, and the next one may be far away.
    pub fn forget_encoded(&self) {
        self.encoded.clear();
    }

    /// Records what a request of the session asks for, and adds the wishes of earlier requests to it. Starts again when
    /// the model changes or the conversation does not continue that of earlier requests.
    pub fn observe(&mut self, request: &mut ModelRequest) {
        request.earlier.encoded = Some(self.encoded.clone());
        request.earlier.thread = Some(self.thread.clone());
        let model = &request.model;
        if !changes_inside(model) {
            (self.of, self.states) = (None, Vec::new());
            return;
        }
        let first = request.messages.first().map(|message| timestamp(message));
        let of = (model.provider.clone(), model.api.clone(), model.id.clone(), first);
        let answers: Vec<i64> = kept_answers(&request.messages)
            .map(|answer| answer.timestamp)
            .collect();
        let goes_on = |state: &PromptState| {
            let last = state.answers.checked_sub(1);
            state.answers <= answers.len()
                && last.and_then(|last| answers.get(last).copied()) == state.last_answer
        };
        if self.of.as_ref() != Some(&of)
            || !self.states.iter().all(goes_on)
            || self.states.len() >= MAX_STATES
        {
            self.states.clear();
            self.of = Some(of);
        }
        let now = PromptState {
            answers: answers.len(),
            last_answer: answers.last().copied(),
            system_prompt: request.system_prompt.clone(),
            tools: request.tools.clone(),
            thinking: request.thinking,
        };
        // The request before this one brought no answer, so its instructions never mattered.
        self.states.pop_if(|last| last.answers == now.answers);
        let is_same = |last: &PromptState| {
            last.system_prompt == now.system_prompt
                && last.tools == now.tools
                && last.thinking == now.thinking
        };
        if !self.states.last().is_some_and(is_same) {
            self.states.push(now);
        }
        request.earlier.states.clone_from(&self.states);
    }
}

/// Returns true for models that accept changed instructions inside the conversation.
fn changes_inside(model: &Model) -> bool {
    ["supportsMidConvoSystemMessages", "supportsMidConvoEffort"]
        .into_iter()
        .any(|name| flag(model, name, false))
}

/// The answers that are sent back to a model.
fn kept_answers(messages: &[Arc<Message>]) -> impl Iterator<Item = &AssistantMessage> {
    messages.iter().filter_map(|message| match &**message {
        Message::Assistant(answer) if !answer.failed() => Some(answer),
        _ => None,
    })
}

fn timestamp(message: &Message) -> i64 {
    match message {
        Message::User(user) => user.timestamp,
        Message::Assistant(answer) => answer.timestamp,
        Message::ToolResult(result) => result.timestamp,
        _ => 0,
    }
}

/// A change of the instructions, to be written directly before the answer with this index, or at the end.
#[derive(Debug, PartialEq)]
pub(crate) struct Update {
    pub(crate) answers: usize,
    /// What to tell the model about the system prompt; empty when it stays.
    pub(crate) text: String,
    /// Tools that are new or have another definition; empty unless the model accepts tool changes.
    pub(crate) added: Vec<ToolSpec>,
    /// Names of tools that are gone.
    pub(crate) removed: Vec<String>,
}

/// A request's instructions as its model accepts them: what stands at the beginning, and what changes later.
#[derive(Debug)]
pub(crate) struct Instructions<'a> {
    /// The system prompt at the beginning.
    pub(crate) system_prompt: &'a str,
    /// The tools at the beginning.
    pub(crate) tools: &'a [ToolSpec],
    /// Returns true when tool changes are written inside the conversation.
    pub(crate) tools_change: bool,
    pub(crate) updates: Vec<Update>,
    states: &'a [PromptState],
}

impl<'a> Instructions<'a> {
    /// Reads the model's flags. `tools_may_change` tells whether the family can write tool changes.
    pub(crate) fn of(request: &'a ModelRequest, tools_may_change: bool) -> Self {
        let model = &request.model;
        let takes_system = flag(model, "supportsMidConvoSystemMessages", false);
        let states = request.earlier.states.as_slice();
        let first = states.first().filter(|_| takes_system);
        let initial = first.map_or(request.tools.as_slice(), |first| first.tools.as_slice());
        let tools_change = takes_system
            && tools_may_change
            && flag(model, "supportsMidConvoToolChanges", false)
            && !initial.is_empty();
        let updates = if takes_system {
            let pairs = states.iter().zip(states.iter().skip(1));
            let updates = pairs.map(|(old, new)| update(old, new, tools_change));
            updates.filter(|update| !update.is_empty()).collect()
        } else {
            Vec::new()
        };
        Self {
            system_prompt: first.map_or(&request.system_prompt, |first| &first.system_prompt),
            tools: if tools_change { initial } else { &request.tools },
            tools_change,
            updates,
            states,
        }
    }

    /// The updates to write before the answer with this index that have not been written yet; `written` counts them.
    pub(crate) fn due(&self, answer: usize, written: &mut usize) -> &[Update] {
        let rest = self.updates.get(*written..).unwrap_or_default();
        let due = rest.iter().take_while(|update| update.answers <= answer).count();
        *written += due;
        rest.get(..due).unwrap_or_default()
    }

    /// The thinking level that the answer with this index was asked for with; none for answers before the history.
    pub(crate) fn thinking(&self, answer: usize) -> Option<ThinkingLevel> {
        let known = self.states.iter().rev().find(|state| state.answers <= answer);
        known.map(|state| state.thinking)
    }
}

impl Update {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }
}

fn update(old: &PromptState, new: &PromptState, tools: bool) -> Update {
    let has = |tools: &[ToolSpec], name: &str| tools.iter().any(|tool| tool.name == name);
    let added = new.tools.iter().filter(|tool| tools && !old.tools.contains(tool));
    let removed = old
        .tools
        .iter()
        .filter(|tool| tools && !has(&new.tools, &tool.name));
    Update {
        answers: new.answers,
        text: text(&old.system_prompt, &new.system_prompt),
        added: added.cloned().collect(),
        removed: removed.map(|tool| tool.name.clone()).collect(),
    }
}

/// Says how the system prompt changed. A mere addition is said alone: repeating the prompt would cost its length again.
fn text(old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    match new.strip_prefix(old) {
        _ if new.trim().is_empty() => "The system prompt no longer applies.".to_owned(),
        Some(added) if !old.trim().is_empty() => {
            format!("Addition to the system prompt:\n\n{}", added.trim_start())
        }
        _ => format!("This replaces the system prompt:\n\n{new}"),
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn prompt_change_is_described_shortest() {
        assert_eq!(text("Be brief.", "Be brief."), "");
        assert_eq!(
            text("Be brief.", "Be brief.\n\nSpeak French."),
            "Addition to the system prompt:\n\nSpeak French."
        );
        assert_eq!(
            text("Be brief.", "Be long."),
            "This replaces the system prompt:\n\nBe long."
        );
        assert_eq!(
            text("", "Be long."),
            "This replaces the system prompt:\n\nBe long."
        );
        assert_eq!(text("Be brief.", " "), "The system prompt no longer applies.");
    }
}
